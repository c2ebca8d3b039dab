//! What a runtime reads of a file before it runs it: the attributes as they are stated, and no more.

use canopy_plan::{Program, oneccl};
use canopy_schedule::CollectiveKind;

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

    /// What a oneCCL file says.
    pub fn of_oneccl(path: String, program: &oneccl::Program) -> Self {
        Self {
            path,
            collective: Some(program.collective.kind()),
            ranks: program.rank_count,
            ranks_per_node: None,
            in_place: program.in_place,
            out_of_place: None,
            bytes_min: Some(program.bytes_min),
            // As it is written: 0 where there is no bound.
            bytes_max: Some(program.bytes_max.unwrap_or(0)),
            // Chunks need not be of one size.
            divisor: Divisor::Elements(1),
        }
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
