//! Operations, what each waits for, and how they share a machine.

use canopy_schedule::CollectiveKind;

/// Most operations of a program.
pub const OPERATIONS_MAX: usize = 1 << 20;
/// Most waits of all operations together.
pub const WAITS_MAX: usize = 1 << 22;

/// A collective of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    /// Which.
    pub kind: CollectiveKind,
    /// Its root; `None` for a kind without one.
    pub root: Option<u32>,
    /// Its size in bytes, as simulations count it: the vector of all ranks, or the message; of an all-to-all, what one
    /// rank has for all.
    pub size_bytes: u64,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Computes on the accelerator of every rank.
    Compute {
        /// In picoseconds.
        time_ps: u64,
    },
    /// Computes on the host of every rank.
    Host {
        /// In picoseconds.
        time_ps: u64,
    },
    /// Communicates.
    Collective(Call),
    /// Takes no time: others wait for all that it waits for.
    Join,
}

/// One thing to do, on all ranks alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// For people.
    pub name: String,
    /// What it does.
    pub work: Work,
    /// Positions of the operations that must have ended before it starts; smaller than its own.
    pub after: Vec<u32>,
}

/// Which of several operations that could start comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// That which is listed first; others wait for it even while it cannot start, as on a stream of a runtime.
    Listed,
    /// That which could start first; of several the one listed first.
    Ready,
}

/// Whether computations and collectives overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// They do.
    Allowed,
    /// Only one operation runs at a time.
    None,
}

/// Why operations are no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ProgramError {
    #[error("there is no operation; state at least one")]
    Empty,
    #[error("more than {limit} {what}; use fewer repetitions or merge operations")]
    TooMany { what: &'static str, limit: usize },
    #[error("operation {operation} waits for operation {before}, which is not before it")]
    Order { operation: usize, before: u32 },
}

/// Operations in an order in which they can run: each waits only for earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    operations: Vec<Operation>,
    order: Order,
    overlap: Overlap,
}

impl Program {
    /// Checks and keeps operations.
    ///
    /// # Errors
    /// No operation, too many of them or of their waits, and a wait for one that is not earlier. O(operations + waits).
    pub fn new(operations: Vec<Operation>, order: Order, overlap: Overlap) -> Result<Self, ProgramError> {
        if operations.is_empty() {
            return Err(ProgramError::Empty);
        }
        if operations.len() > OPERATIONS_MAX {
            return Err(ProgramError::TooMany { what: "operations", limit: OPERATIONS_MAX });
        }
        let waits = operations.iter().map(|operation| operation.after.len()).fold(0, usize::saturating_add);
        if waits > WAITS_MAX {
            return Err(ProgramError::TooMany { what: "waits of operations", limit: WAITS_MAX });
        }
        for (number, operation) in operations.iter().enumerate() {
            if let Some(&before) = operation.after.iter().find(|&&before| before as usize >= number) {
                return Err(ProgramError::Order { operation: number, before });
            }
        }
        Ok(Self { operations, order, overlap })
    }

    /// All operations, in order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Which of several that could start comes first.
    pub const fn order(&self) -> Order {
        self.order
    }

    /// Whether computations and collectives overlap.
    pub const fn overlap(&self) -> Overlap {
        self.overlap
    }

    /// All different calls, in their order.
    pub fn calls(&self) -> Vec<Call> {
        let calls = self.operations.iter().filter_map(|operation| match operation.work {
            Work::Collective(call) => Some(call),
            Work::Compute { .. } | Work::Host { .. } | Work::Join => None,
        });
        let mut calls: Vec<Call> = calls.collect();
        calls.sort_unstable();
        calls.dedup();
        calls
    }
}
