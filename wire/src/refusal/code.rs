//! Kinds of refusals.

/// The kind of a refusal, with the name and the number that gRPC has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum Code {
    /// Nobody waits for it any more.
    Cancelled = 1,
    /// A kind that is none of these: another version may have written it down, and this one never makes it.
    Unknown = 2,
    /// A field of the request is wrong.
    InvalidArgument = 3,
    /// The time is over.
    DeadlineExceeded = 4,
    /// There is no such thing.
    NotFound = 5,
    /// There is such a thing already.
    AlreadyExists = 6,
    /// This caller may not do it.
    PermissionDenied = 7,
    /// A limit is reached.
    ResourceExhausted = 8,
    /// The request is valid, and has no answer.
    FailedPrecondition = 9,
    /// Somebody else ended it.
    Aborted = 10,
    /// The place asked for is gone.
    OutOfRange = 11,
    /// Canopy itself is at fault.
    Internal = 13,
    /// Try again.
    Unavailable = 14,
    /// Data that was kept is damaged.
    DataLoss = 15,
    /// The caller is not known.
    Unauthenticated = 16,
}

impl Code {
    /// All kinds, by number.
    pub const ALL: [Self; 15] = [
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// Reads a number; one of no kind here is `Unknown`, as for gRPC.
    pub fn from_number(number: i32) -> Self {
        Self::ALL.into_iter().find(|code| i32::from(*code) == number).unwrap_or(Self::Unknown)
    }
}

impl From<Code> for i32 {
    fn from(code: Code) -> Self {
        code as Self
    }
}
