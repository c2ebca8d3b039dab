//! What a runtime reads of a file before it runs it: the attributes as they are stated, and no more.

use canopy_plan::{
    ExecutionPlan, ExecutionPlanError, MSCCL_OWN_BYTES_MAX, ParseError, Program, execution_alignment_bytes, oneccl,
    parse_execution_plan, parse_msccl_xml_until,
};
use canopy_schedule::CollectiveKind;

use crate::runtime::Runtime;

/// Why a text is no file of a runtime.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PlanFileError {
    #[error("{path} is no MSCCL file")]
    Msccl { path: String, source: ParseError },
    #[error("{path} is no oneCCL plan")]
    OneCcl { path: String, source: oneccl::ParseError },
    #[error("{path} is no execution plan")]
    ExecutionPlan { path: String, source: ExecutionPlanError },
    #[error("{path} is for {runtime}, which runs no plans; name the profile of a runtime that does")]
    NoPlans { path: String, runtime: Runtime },
}

/// A plan file as the selection of a runtime sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFileFacts {
    /// Its path in the folder of the bundle.
    pub path: String,
    /// What it does; `None` where it promises no collective.
    pub collective: Option<CollectiveKind>,
    /// Number of ranks.
    pub ranks: u32,
    /// Ranks on each machine, where the file says so.
    pub ranks_per_node: Option<u32>,
    /// Whether it is for calls whose input and output share memory.
    pub in_place: bool,
    /// Whether it is for calls whose input and output do not, where it says so.
    pub out_of_place: Option<bool>,
    /// Smallest message in bytes, where it says so.
    pub bytes_min: Option<u64>,
    /// Its attribute for the greatest message, in bytes, where it has one; what it means is the runtime's business.
    pub bytes_max: Option<u64>,
    /// How it divides a message.
    pub divisor: Divisor,
}

impl PlanFileFacts {
    /// What a file of a runtime says, from its text.
    ///
    /// * **Errors.** The text is no file that the runtime reads, or `stop` returned true. **Cost.** O(bytes).
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
    /// So many elements.
    Elements(u64),
    /// So many bytes.
    Bytes(u64),
}

impl Divisor {
    /// Whether it divides a message of so many bytes in elements of so many.
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
