//! The five classes of failure, and the exit status of each.

/// Who has to act after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The request is wrong or over a configured limit, or a check failed: change the request.
    Input,
    /// The request is valid but has no answer: the ranks are not connected, a precondition of the algorithm does not
    /// hold, or the plan does not fit the runtime.
    Infeasible,
    /// The server is busy, unreachable or shutting down: try again.
    Busy,
    /// The deadline passed before there was a plan.
    Deadline,
    /// The server or canopy itself is at fault.
    Fault,
}

impl ErrorClass {
    /// All classes, by exit status.
    pub const ALL: [Self; 5] = [Self::Input, Self::Infeasible, Self::Fault, Self::Deadline, Self::Busy];

    /// The exit status of a process that fails with this class.
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::Input => 2,
            Self::Infeasible => 3,
            Self::Fault => 4,
            Self::Deadline => 5,
            Self::Busy => 6,
        }
    }
}
