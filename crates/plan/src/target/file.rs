//! The inputs of a file, and the result.

use std::num::NonZeroU32;

use canopy_schedule::{Schedule, TransferGraph};
use canopy_topology::{Slot, Topology, TopologyLimits};

use super::{Stop, TargetError};
use crate::plan_file::PlanFile;

/// What the files of a target need beside the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Plan,
    /// The transfers of the plan.
    Transfers,
    /// Its flow with a layer for each path, and the limit on layers.
    Layers(Option<NonZeroU32>),
}

/// A flow with layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layered {
    /// The plan as a flow, perhaps with other routes.
    pub schedule: Schedule,
    /// The layer of each path.
    pub layers: Vec<u32>,
    /// Number of layers.
    pub layer_count: u32,
    /// Chunks that take other routes than in the plan.
    pub chunks_moved: u64,
}

/// The inputs of a file.
#[derive(Clone)]
pub struct Asked<'a> {
    /// The network of the plan.
    pub topology: &'a Topology,
    /// The network of its expression without faults, as it was generated, if it is at hand: it need not be made again.
    pub base: Option<&'a Topology>,
    /// The checked plan; `None` where it is not needed, as for files for runtimes.
    pub plan: Option<&'a PlanFile>,
    /// Its transfers; needed for [`Needs::Transfers`].
    pub graph: Option<&'a TransferGraph>,
    /// Its paths; needed for [`Needs::Layers`]. Moved, since there may be millions.
    pub layered: Option<Layered>,
    /// Label in the file.
    pub name: &'a str,
    /// The devices of the ranks, for formats that state them; `None`: nothing is stated.
    pub rank_map: Option<&'a [Slot]>,
    /// Whether output and input share memory.
    pub in_place: bool,
    /// Smallest message in bytes; 0: any.
    pub bytes_min: u64,
    /// Largest message in bytes, inclusive.
    pub bytes_max: u64,
    /// Seed for the data and the order of runs.
    pub seed: u64,
    /// Limits on a plan file that is read back.
    pub limits: &'a TopologyLimits,
    /// Polled regularly; true stops the work.
    pub stop: Stop<'a>,
}

impl<'a> Asked<'a> {
    /// The transfers, for formats that need them.
    pub(super) fn transfers(&self) -> Result<&'a TransferGraph, TargetError> {
        let none = || TargetError::rejected("a file for a runtime needs the plan's transfers");
        self.graph.ok_or_else(none)
    }
}

/// A finished file and the requirements for its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetFile {
    /// Its bytes.
    pub content: Vec<u8>,
    /// Instances of the plan in it; 0 where the format has none.
    pub instances: u32,
    /// Layers of its routes; 0 where the format has none.
    pub layers: u32,
    /// Smallest message in bytes that it serves.
    pub bytes_min: u64,
    /// Largest message, inclusive, if the file itself states it.
    pub bytes_max: Option<u64>,
    /// Elements of a message must be a multiple of this.
    pub alignment_elements: u64,
    /// Warnings for its user.
    pub warnings: Vec<TargetWarning>,
}

/// A warning for the user of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetWarning {
    /// Its code.
    pub code: &'static str,
    /// Its text.
    pub text: String,
}

impl TargetFile {
    /// A file without requirements.
    pub(super) fn new(content: impl Into<Vec<u8>>) -> Self {
        Self {
            content: content.into(),
            instances: 0,
            layers: 0,
            bytes_min: 0,
            bytes_max: None,
            alignment_elements: 1,
            warnings: Vec::new(),
        }
    }
}
