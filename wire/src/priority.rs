//! Priorities of waiting jobs.

use canopy_proto::v1;

use crate::refused::RequestError;

/// The names on the wire.
const NAMES: &str = "PRIORITY_PREFETCH, PRIORITY_INTERACTIVE, PRIORITY_JOB_START or PRIORITY_REPAIR";

/// Priority of a waiting job, in ascending order: the last one goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Warming the cache.
    Prefetch,
    /// A user waits at a terminal.
    Interactive,
    /// A job is about to start.
    JobStart,
    /// A running job is halted.
    Repair,
}

impl Priority {
    /// Every priority, highest first.
    pub const ALL: [Self; 4] = [Self::Repair, Self::JobStart, Self::Interactive, Self::Prefetch];

    /// The name used in text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prefetch => "prefetch",
            Self::Interactive => "interactive",
            Self::JobStart => "job-start",
            Self::Repair => "repair",
        }
    }

    /// The value on the wire.
    pub const fn on_the_wire(self) -> v1::Priority {
        match self {
            Self::Prefetch => v1::Priority::Prefetch,
            Self::Interactive => v1::Priority::Interactive,
            Self::JobStart => v1::Priority::JobStart,
            Self::Repair => v1::Priority::Repair,
        }
    }

    /// The number on the wire.
    pub const fn number(self) -> i32 {
        self.on_the_wire() as i32
    }

    /// The priority of this number on the wire; `None` for an unspecified or unknown number.
    pub fn of_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|priority| priority.number() == number)
    }

    /// Reads the priority of a request; `None` if it states none.
    ///
    /// # Errors
    /// A number that this version does not know.
    pub fn stated(number: i32) -> Result<Option<Self>, RequestError> {
        if number == i32::from(v1::Priority::Unspecified) {
            return Ok(None);
        }
        let unknown = || RequestError::UnknownValue { field: "priority".to_owned(), number, known: NAMES };
        Self::of_number(number).map(Some).ok_or_else(unknown)
    }
}
