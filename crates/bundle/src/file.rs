//! What a runtime reads of a file before it runs it: the attributes as they are stated, and no more.

use canopy_plan::{
    ExecutionPlan, ExecutionPlanError, MSCCL_OWN_BYTES_MAX, ParseError, Program, execution_alignment_bytes, oneccl,
    parse_execution_plan, parse_msccl_xml_until,
};
use canopy_schedule::CollectiveKind;

use crate::runtime::Runtime;

/// Why a text is not a plan file of a runtime.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PlanFileError {
    #[error("{path} is not an MSCCL file")]
    Msccl { path: String, source: ParseError },
    #[error("{path} is not a oneCCL plan")]
    OneCcl { path: String, source: oneccl::ParseError },
    #[error("{path} is not an execution plan")]
    ExecutionPlan { path: String, source: ExecutionPlanError },
    #[error("{path} is for {runtime}, which cannot load plans; name the profile of a runtime that can")]
    NoPlans { path: String, runtime: Runtime },
}

/// A plan file as the selection of a runtime sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFileFacts {
    /// Path in the folder of the bundle.
    pub path: String,
    /// Its collective; `None` if it promises none.
    pub collective: Option<CollectiveKind>,
    /// Number of ranks.
    pub ranks: u32,
    /// Ranks on each machine, if the file states them.
    pub ranks_per_node: Option<u32>,
    /// The devices of its ranks, if the file states them.
    pub rank_map: Option<String>,
    /// Whether it serves in-place calls.
    pub in_place: bool,
    /// Whether it serves out-of-place calls, if the file states it.
    pub out_of_place: Option<bool>,
    /// Smallest message in bytes, if the file states it.
    pub bytes_min: Option<u64>,
    /// Its attribute for the largest message in bytes, if present; the runtime defines the meaning.
    pub bytes_max: Option<u64>,
    /// How it divides a message.
    pub divisor: Divisor,
}

impl PlanFileFacts {
    /// Reads the facts of a plan file from its text.
    ///
    /// * **Errors.** The runtime cannot read the text, or `stop` returned true. **Cost.** O(bytes).
    pub fn read(
        runtime: Runtime,
        path: String,
        text: &str,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, PlanFileError> {
        match (runtime, runtime.msccl_profile()) {
            (_, Some(profile)) => match parse_msccl_xml_until(text, profile, MSCCL_OWN_BYTES_MAX, stop) {
                Ok(program) => Ok(Self::of_msccl(path, &program)),
                Err(source) => Err(PlanFileError::Msccl { path, source }),
            },
            (Runtime::OneCcl, None) => match oneccl::parse_until(text, oneccl::OWN_BYTES_MAX, stop) {
                Ok(program) => Ok(Self::of_oneccl(path, &program)),
                Err(source) => Err(PlanFileError::OneCcl { path, source }),
            },
            (Runtime::Mscclpp08 | Runtime::Mscclpp09 | Runtime::Mscclpp10, None) => match parse_execution_plan(text) {
                Ok(plan) => Ok(Self::of_execution_plan(path, &plan)),
                Err(source) => Err(PlanFileError::ExecutionPlan { path, source }),
            },
            (_, None) => Err(PlanFileError::NoPlans { path, runtime }),
        }
    }

    /// What an MSCCL file says.
    pub fn of_msccl(path: String, program: &Program) -> Self {
        Self {
            path,
            collective: program.purpose.collective(),
            ranks: program.rank_count,
            ranks_per_node: None,
            rank_map: None,
            in_place: program.in_place,
            out_of_place: program.out_of_place,
            bytes_min: program.bytes_min,
            bytes_max: program.bytes_max,
            divisor: Divisor::Elements(u64::from(program.chunk_count).max(1)),
        }
    }

    /// What a oneCCL file says. Its chunks need not be of one size, so any message divides.
    pub fn of_oneccl(path: String, program: &oneccl::Program) -> Self {
        Self {
            path,
            collective: Some(program.collective.kind()),
            ranks: program.rank_count,
            ranks_per_node: None,
            rank_map: program.rank_map().map(str::to_owned),
            in_place: program.in_place,
            out_of_place: None,
            bytes_min: Some(program.bytes_min),
            bytes_max: Some(program.bytes_max.unwrap_or(0)),
            divisor: Divisor::Elements(1),
        }
    }

    /// What an execution plan of MSCCL++ says, and no more: nothing of where its ranks are, and no collective with a root.
    pub fn of_execution_plan(path: String, plan: &ExecutionPlan) -> Self {
        Self {
            path,
            collective: plan.stated_collective(),
            ranks: u32::try_from(plan.ranks.len()).unwrap_or(u32::MAX),
            ranks_per_node: None,
            rank_map: None,
            in_place: plan.in_place,
            out_of_place: None,
            bytes_min: Some(plan.bytes_min),
            bytes_max: Some(plan.bytes_max),
            divisor: Divisor::Bytes(execution_alignment_bytes(plan)),
        }
    }

    /// The same, registered by a module that states a collective and, where it is known, how many ranks a machine has.
    pub fn registered(self, collective: CollectiveKind, ranks_per_node: Option<u32>) -> Self {
        Self { collective: Some(collective), ranks_per_node, ..self }
    }
}

/// What the whole message must be a multiple of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Divisor {
    /// A number of elements.
    Elements(u64),
    /// A number of bytes.
    Bytes(u64),
}

impl Divisor {
    /// Whether it divides a message of `bytes` bytes with elements of `element_bytes` bytes.
    pub fn divides(self, bytes: u64, element_bytes: u64) -> bool {
        match self {
            Self::Elements(count) => {
                element_bytes > 0
                    && bytes.is_multiple_of(element_bytes)
                    && (bytes / element_bytes).is_multiple_of(count.max(1))
            }
            Self::Bytes(count) => bytes.is_multiple_of(count.max(1)),
        }
    }

    /// The number, of whichever it is.
    pub const fn count(self) -> u64 {
        match self {
            Self::Elements(count) | Self::Bytes(count) => count,
        }
    }
}

/// The files that a runtime is pointed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folder {
    /// Plan files, in the order in which they are listed where a list names them.
    pub files: Vec<PlanFileFacts>,
    /// Paths of other regular files where the runtime would come upon them.
    pub others: Vec<String>,
}
