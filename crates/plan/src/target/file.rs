//! What a file is made of, and what is made.

use std::num::NonZeroU32;

use canopy_schedule::{Schedule, TransferGraph};
use canopy_topology::{Topology, TopologyLimits};

use super::{Stop, TargetError};
use crate::plan_file::PlanFile;

/// What the files of a target are made of, beside the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Plan,
    /// The transfers of the plan.
    Transfers,
    /// Its flow with a layer for each path, of which there are at most so many.
    Layers(Option<NonZeroU32>),
}

/// A flow with layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layered {
    /// The plan, or one that takes other ways, as a flow.
    pub schedule: Schedule,
    /// By path.
    pub layers: Vec<u32>,
    /// One more than the greatest of them.
    pub layer_count: u32,
    /// Chunks that take another way than in the plan.
    pub chunks_moved: u64,
}

/// What is to be written.
#[derive(Clone)]
pub struct Asked<'a> {
    /// The network of the plan.
    pub topology: &'a Topology,
    /// The checked plan; none where that is not needed, as for files of runtimes.
    pub plan: Option<&'a PlanFile>,
    /// Its transfers; needed for [`Needs::Transfers`].
    pub graph: Option<&'a TransferGraph>,
    /// Its paths; needed for [`Needs::Layers`]. There may be millions, so they are given away.
    pub layered: Option<Layered>,
    /// Label in the file.
    pub name: &'a str,
    /// Whether output and input share memory.
    pub in_place: bool,
    /// Smallest message in bytes; 0: any.
    pub bytes_min: u64,
    /// Greatest message in bytes, inclusive.
    pub bytes_max: u64,
    /// Where the data and orders of runs begin.
    pub seed: u64,
    /// What a plan file that is read back may hold.
    pub limits: &'a TopologyLimits,
    /// Asked now and then whether to give up.
    pub stop: Stop<'a>,
}

impl<'a> Asked<'a> {
    /// The transfers, for formats that need them.
    pub(super) fn transfers(&self) -> Result<&'a TransferGraph, TargetError> {
        let none = || TargetError::rejected("the file of a runtime needs the plan's transfers");
        self.graph.ok_or_else(none)
    }
}

/// A finished file, and what using it demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetFile {
    /// Its bytes.
    pub content: Vec<u8>,
    /// Instances of the plan in it; 0 where the format has none.
    pub instances: u32,
    /// Layers of its routes; 0 where the format has none.
    pub layers: u32,
    /// Smallest message in bytes it may be used for.
    pub bytes_min: u64,
    /// Greatest, inclusive, where the file itself says so.
    pub bytes_max: Option<u64>,
    /// Elements of a message must be a multiple of this.
    pub alignment_elements: u64,
    /// What its user should know.
    pub warnings: Vec<TargetWarning>,
}

/// What the user of a file should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetWarning {
    /// Its kind.
    pub code: &'static str,
    /// In words.
    pub text: String,
}

impl TargetFile {
    /// A file without demands.
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
