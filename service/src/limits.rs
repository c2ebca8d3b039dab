//! Limits of planning, read from the environment: the variables of a server's settings.

use std::env;
use std::str::FromStr;

use canopy_store::RecordOptions;
use canopy_topology::TopologyLimits;

use crate::machine::Memory;

/// Limits of planning in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Greatest topology: `CANOPY_MAX_NODES`, `CANOPY_MAX_LINKS`, `CANOPY_MAX_REQUEST_BYTES`.
    pub topology: TopologyLimits,
    /// Most bytes of stored plans: `CANOPY_STORE_BYTES`.
    pub store_bytes: u64,
    /// Most bytes of memory that the estimate of one plan may have: `CANOPY_JOB_MEMORY_BYTES`.
    pub memory_bytes: u64,
}

/// A variable of the environment cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value '{value}' for '{variable}': write a whole number")]
pub struct LimitsError {
    /// Name of the variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
}

impl Limits {
    /// The limits of this process.
    ///
    /// # Errors
    /// A variable is not a whole number.
    pub fn of_environment() -> Result<Self, LimitsError> {
        let standard = TopologyLimits::STANDARD;
        Ok(Self {
            topology: TopologyLimits {
                nodes_max: number("CANOPY_MAX_NODES")?.unwrap_or(standard.nodes_max),
                links_max: number("CANOPY_MAX_LINKS")?.unwrap_or(standard.links_max),
                bytes_max: number("CANOPY_MAX_REQUEST_BYTES")?.unwrap_or(standard.bytes_max),
            },
            store_bytes: number("CANOPY_STORE_BYTES")?.unwrap_or(RecordOptions::STANDARD.bytes_max),
            memory_bytes: number("CANOPY_JOB_MEMORY_BYTES")?.unwrap_or_else(|| Memory::of_process().for_plans()),
        })
    }
}

fn number<T: FromStr>(variable: &'static str) -> Result<Option<T>, LimitsError> {
    let Some(value) = env::var_os(variable).filter(|value| !value.is_empty()) else { return Ok(None) };
    let value = value.to_string_lossy().into_owned();
    value.parse().map(Some).map_err(|_| LimitsError { variable, value })
}
