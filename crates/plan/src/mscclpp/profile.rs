//! Versions of the runtime as data: what each accepts and how it chooses a plan.

use std::fmt;
use std::str::FromStr;

use super::program::OpName;

/// A version of MSCCL++ that runs execution plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExecutorProfile {
    /// 0.8, the first that reads this schema: its NCCL shim reads every file of a folder.
    V08,
    /// 0.9: plans are registered with what they are for.
    V09,
    /// 0.10 and later, the first whose kernel executes `pwsf` as it is meant.
    V10,
}

impl ExecutorProfile {
    /// All profiles, in the order documents list them.
    pub const ALL: [Self; 3] = [Self::V08, Self::V09, Self::V10];

    /// The one that is taken where none is named.
    pub const NEWEST: Self = Self::V10;

    /// The name used everywhere in canopy's text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V08 => "mscclpp-0.8",
            Self::V09 => "mscclpp-0.9",
            Self::V10 => "mscclpp-0.10",
        }
    }

    /// What the runtime accepts.
    pub const fn limits(self) -> &'static ExecutorLimits {
        match self {
            Self::V08 => &V08,
            Self::V09 => &V09,
            Self::V10 => &V10,
        }
    }

    /// The first version whose loader knows an operation. Loaders before throw on the whole file.
    pub const fn first_with(name: OpName) -> Self {
        match name {
            OpName::GroupStore | OpName::GroupStorePackets => Self::V10,
            OpName::ReduceCopyPackets | OpName::ReduceCopySendPackets => Self::V09,
            _ => Self::V08,
        }
    }

    /// Whether the loader knows an operation.
    pub fn knows(self, name: OpName) -> bool {
        self >= Self::first_with(name)
    }

    /// Whether plans are registered by a module beside them. Else the runtime finds them in a folder.
    pub const fn is_registered(self) -> bool {
        !matches!(self, Self::V08)
    }

    /// Largest message that a plan with this `max_message_size` is used for, in bytes. The loader itself takes the bound
    /// as inclusive; where the stand-in for NCCL chooses first, it takes it as exclusive.
    pub const fn bytes_max_inclusive(self, attribute: u64) -> Option<u64> {
        if self.limits().is_max_exclusive { attribute.checked_sub(1) } else { Some(attribute) }
    }

    /// The `max_message_size` that admits messages up to this size; the inverse of
    /// [`bytes_max_inclusive`](Self::bytes_max_inclusive).
    pub const fn bytes_max_attribute(self, bytes: u64) -> u64 {
        if self.limits().is_max_exclusive { bytes.saturating_add(1) } else { bytes }
    }
}

impl fmt::Display for ExecutorProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A profile that this format does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum UnknownExecutorProfile {
    #[error("unknown mscclpp-json profile `{name}`; use {}", known())]
    Unknown { name: String },
    #[error(
        "`{name}` is not a profile of mscclpp-json: MSCCL++ 0.6 and 0.7 read another schema and abort on these files; \
         update the runtime, and use {}",
        known()
    )]
    OtherSchema { name: &'static str },
}

/// Versions of the runtime that read another schema.
const OTHER_SCHEMA: [&str; 2] = ["mscclpp-0.6", "mscclpp-0.7"];

fn known() -> String {
    let [first, second, last] = ExecutorProfile::ALL.map(ExecutorProfile::name);
    format!("{first}, {second} or {last}")
}

impl FromStr for ExecutorProfile {
    type Err = UnknownExecutorProfile;

    fn from_str(name: &str) -> Result<Self, UnknownExecutorProfile> {
        if let Some(profile) = Self::ALL.into_iter().find(|profile| profile.name() == name) {
            return Ok(profile);
        }
        Err(match OTHER_SCHEMA.into_iter().find(|known| *known == name) {
            Some(name) => UnknownExecutorProfile::OtherSchema { name },
            None => UnknownExecutorProfile::Unknown { name: name.chars().take(80).collect() },
        })
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
    /// Whether the kernel takes the address of a `pwsf`'s offsets for the offset of its source, over port channels.
    pub misreads_flushing_puts: bool,
    /// Whether `max_message_size` is the first size that is too large.
    pub is_max_exclusive: bool,
    /// Whether its NCCL shim has an all-to-all. From 0.10 on such calls fail as "currently unavailable".
    pub intercepts_all_to_all: bool,
}

const V10: ExecutorLimits = ExecutorLimits {
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
    misreads_flushing_puts: false,
    is_max_exclusive: false,
    intercepts_all_to_all: false,
};

const V09: ExecutorLimits = ExecutorLimits { misreads_flushing_puts: true, intercepts_all_to_all: true, ..V10 };

/// Has one table of 8 for the references of an operation.
const V08: ExecutorLimits = ExecutorLimits { references_per_operation: 8, is_max_exclusive: true, ..V09 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_another_schema_are_refused_with_the_reason() {
        for name in ["mscclpp-0.6", "mscclpp-0.7"] {
            let found = name.parse::<ExecutorProfile>().unwrap_err().to_string();
            assert!(found.contains("0.6 and 0.7 read another schema"), "{found}");
            assert!(found.ends_with("use mscclpp-0.8, mscclpp-0.9 or mscclpp-0.10"), "{found}");
        }
        let found = "mscclpp-0.1".parse::<ExecutorProfile>().unwrap_err().to_string();
        assert_eq!(found, "unknown mscclpp-json profile `mscclpp-0.1`; use mscclpp-0.8, mscclpp-0.9 or mscclpp-0.10");
    }

    #[test]
    fn names_are_read_back_and_the_newest_is_the_last() {
        for profile in ExecutorProfile::ALL {
            assert_eq!(profile.name().parse(), Ok(profile));
            assert_eq!(profile.bytes_max_inclusive(profile.bytes_max_attribute(4096)), Some(4096));
        }
        assert_eq!(ExecutorProfile::ALL.last(), Some(&ExecutorProfile::NEWEST));
    }
}
