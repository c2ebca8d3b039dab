//! What the environment says.

use std::env;
use std::path::PathBuf;

/// A folder of plans, or a bundle.
pub(crate) const PLAN_DIR: &str = "CANOPY_PLAN_DIR";
/// What `canopy job fetch` and `canopy job env` set for a job; read where [`PLAN_DIR`] is not set.
pub(crate) const JOB_DIR: &str = "CANOPY_JOB_DIR";
/// Whether plans that cannot be used are errors.
pub(crate) const STRICT: &str = "CANOPY_STRICT";
/// `1` for a report on standard error, or the file that gets it as JSON.
pub(crate) const REPORT: &str = "CANOPY_MPI_REPORT";

/// All settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Where plans are.
    pub(crate) plans: Option<PathBuf>,
    /// Whether plans that cannot be used are errors of the call.
    pub(crate) is_strict: bool,
    /// Where the report goes.
    pub(crate) report: ReportTo,
}

/// Where the report goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReportTo {
    /// There is none.
    #[default]
    Nowhere,
    /// Standard error of rank 0, as text.
    Stderr,
    /// A file, as JSON.
    File(PathBuf),
}

impl Settings {
    /// Reads the environment of the process.
    pub(crate) fn from_environment() -> Self {
        let value = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let is_set = |name: &str| value(name).is_some_and(|value| value != "0");
        let report = match value(REPORT) {
            None => ReportTo::Nowhere,
            Some(value) if value == "0" => ReportTo::Nowhere,
            Some(value) if value == "1" => ReportTo::Stderr,
            Some(value) => ReportTo::File(value.into()),
        };
        let plans = value(PLAN_DIR).or_else(|| value(JOB_DIR)).map(PathBuf::from);
        Self { plans, is_strict: is_set(STRICT), report }
    }
}
