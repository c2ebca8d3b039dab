//! Versions of the runtime as data: what each accepts and how it chooses a plan.

use std::fmt;
use std::str::FromStr;

/// A version of MSCCL++ that runs execution plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExecutorProfile {
    /// 0.6 to 0.8: the stand-in for NCCL reads every file of a folder.
    V06,
    /// 0.9 and later: plans are registered with what they are for.
    V09,
}

impl ExecutorProfile {
    /// All profiles, in the order documents list them.
    pub const ALL: [Self; 2] = [Self::V06, Self::V09];

    /// The name used everywhere in canopy's text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V06 => "mscclpp-0.6",
            Self::V09 => "mscclpp-0.9",
        }
    }

    /// What the runtime accepts.
    pub const fn limits(self) -> &'static ExecutorLimits {
        match self {
            Self::V06 => &V06,
            Self::V09 => &V09,
        }
    }

    /// Largest message that a plan with this `max_message_size` is used for, in bytes. The loader itself takes the bound
    /// as inclusive; where the stand-in for NCCL chooses first, it takes it as exclusive.
    pub const fn bytes_max_inclusive(self, attribute: u64) -> Option<u64> {
        match self {
            Self::V06 => attribute.checked_sub(1),
            Self::V09 => Some(attribute),
        }
    }

    /// The `max_message_size` that admits messages up to this size; the inverse of
    /// [`bytes_max_inclusive`](Self::bytes_max_inclusive).
    pub const fn bytes_max_attribute(self, bytes: u64) -> u64 {
        match self {
            Self::V06 => bytes.saturating_add(1),
            Self::V09 => bytes,
        }
    }
}

impl fmt::Display for ExecutorProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A profile that is none of this format's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a profile of mscclpp-json; use mscclpp-0.6 or mscclpp-0.9")]
pub struct UnknownExecutorProfile {
    /// What was found.
    pub name: String,
}

impl FromStr for ExecutorProfile {
    type Err = UnknownExecutorProfile;

    fn from_str(name: &str) -> Result<Self, UnknownExecutorProfile> {
        let known = Self::ALL.into_iter().find(|profile| profile.name() == name);
        known.ok_or_else(|| UnknownExecutorProfile { name: name.chars().take(80).collect() })
    }
}

/// Everything about a version that is a number. All limits are inclusive.
///
/// Read from microsoft/mscclpp, `src/core/include/execution_common.hpp` and the loader: few of them are checked there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutorLimits {
    /// Most operations of a block; a pipeline counts as one more than what it repeats.
    pub operations_per_block: u32,
    /// Most channels of one type that a block uses.
    pub channels_per_block: u32,
    /// Most channels of an operation.
    pub channels_per_operation: u32,
    /// Most references that an operation reads, and that it writes.
    pub references_per_operation: u32,
    /// Most remote buffers of one type of access that a block uses.
    pub remotes_per_block: u32,
    /// Barriers of a rank.
    pub barriers: u32,
    /// Most semaphores of an operation.
    pub semaphores_per_operation: u32,
    /// Most threads of a block.
    pub threads_per_block: u64,
    /// Largest offset and size in an operation, in bytes.
    pub offset_bytes: u64,
    /// Largest number of a block's channel or remote buffer.
    pub index: u32,
    /// Blocks beyond this may not be resident at once on common accelerators, and those that wait spin.
    pub blocks_resident: u32,
    /// Whether the loader knows `gstore` and `gstorepkt`.
    pub has_group_store: bool,
    /// Whether `max_message_size` is the first size that is too large.
    pub is_max_exclusive: bool,
}

const V09: ExecutorLimits = ExecutorLimits {
    operations_per_block: 64,
    channels_per_block: 16,
    channels_per_operation: 8,
    references_per_operation: 10,
    remotes_per_block: 16,
    barriers: 16,
    semaphores_per_operation: 16,
    threads_per_block: 1024,
    offset_bytes: u32::MAX as u64,
    index: u8::MAX as u32,
    blocks_resident: 108,
    has_group_store: true,
    is_max_exclusive: false,
};

/// Older versions have one table of 8 for the references of an operation, and of what switches do only sums.
const V06: ExecutorLimits =
    ExecutorLimits { references_per_operation: 8, has_group_store: false, is_max_exclusive: true, ..V09 };
