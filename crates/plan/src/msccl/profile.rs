//! Target runtimes as data: what each accepts, how it spells things, and how its queues behave.
//!
//! Adding a profile means adding a table; lowering, parser, proof and emulator read the numbers from here.

mod tables;

use std::fmt;
use std::str::FromStr;

use canopy_schedule::CollectiveKind;

use super::program::{Operation, Protocol};

/// A runtime that reads MSCCL files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// microsoft/msccl, built on NCCL 2.12.
    Msccl,
    /// Azure/msccl-executor-nccl, built on NCCL 2.23.
    MscclExecutor,
    /// ROCm/rccl as it is shipped, with reduced kernels.
    RcclMsccl,
}

/// Runtimes that read another format, and which one.
const OF_OTHER_FORMATS: [(&str, &str); 4] = [
    ("mscclpp-0.8", "mscclpp-json"),
    ("mscclpp-0.9", "mscclpp-json"),
    ("mscclpp-0.10", "mscclpp-json"),
    ("oneccl", "oneccl-xml"),
];

impl Profile {
    /// All profiles, in the order documents list them.
    pub const ALL: [Self; 3] = [Self::Msccl, Self::MscclExecutor, Self::RcclMsccl];

    /// The name used everywhere in canopy's text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Msccl => "msccl",
            Self::MscclExecutor => "msccl-executor",
            Self::RcclMsccl => "rccl-msccl",
        }
    }

    /// What the runtime accepts.
    pub const fn limits(self) -> &'static ProfileLimits {
        match self {
            Self::Msccl => &tables::MSCCL,
            Self::MscclExecutor => &tables::MSCCL_EXECUTOR,
            Self::RcclMsccl => &tables::RCCL_MSCCL,
        }
    }

    /// The runtime's spelling of a collective; `None` where a file cannot say it.
    pub fn spell(self, kind: CollectiveKind) -> Option<&'static str> {
        self.limits().collectives.iter().find(|(known, _)| *known == kind).map(|&(_, spelling)| spelling)
    }

    /// The collective a spelling stands for.
    pub fn read_spelling(self, spelling: &str) -> Option<CollectiveKind> {
        self.limits().collectives.iter().find(|(_, known)| *known == spelling).map(|&(kind, _)| kind)
    }

    /// Whether the runtime's kernels carry out an operation.
    pub fn allows(self, operation: Operation) -> bool {
        self.limits().operations.contains(&operation)
    }

    /// Whether a text can be the `name` of a file: the runtimes cut longer ones and decode no entities.
    pub fn accepts_name(self, name: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        (1..=self.limits().name_length).contains(&name.len()) && name.bytes().all(is_plain)
    }

    /// Largest message a file with this `maxBytes` is used for, in bytes; `None` when there is no bound, or the range is
    /// empty: `0` means the one or the other, see [`ByteRange`].
    pub fn bytes_max_inclusive(self, attribute: u64) -> Option<u64> {
        match (attribute, self.limits().byte_range) {
            (0, _) => None,
            (bound, ByteRange::Exclusive { .. }) => Some(bound - 1),
            (bound, ByteRange::Inclusive) => Some(bound),
        }
    }

    /// The `maxBytes` that admits messages up to this size and no larger, in bytes; the inverse of
    /// [`bytes_max_inclusive`](Self::bytes_max_inclusive). `None` for 0 and for sizes the attribute cannot state.
    pub fn bytes_max_attribute(self, bytes: u64) -> Option<u64> {
        let attribute = match self.limits().byte_range {
            ByteRange::Exclusive { .. } => bytes.checked_add(1)?,
            ByteRange::Inclusive => bytes,
        };
        (bytes > 0 && i64::try_from(attribute).is_ok()).then_some(attribute)
    }

    /// Largest message of a file in bytes, by its `maxBytes` or the runtime's default for a file without one; `None` as in
    /// [`bytes_max_inclusive`](Self::bytes_max_inclusive).
    pub fn bytes_max_of(self, attribute: Option<u64>) -> Option<u64> {
        attribute.or(self.bytes_max_default()).and_then(|attribute| self.bytes_max_inclusive(attribute))
    }

    /// `maxBytes` that holds for a file which does not say, where the runtime has such a default.
    pub const fn bytes_max_default(self) -> Option<u64> {
        match self.limits().byte_range {
            ByteRange::Exclusive { default } => Some(default),
            ByteRange::Inclusive => None,
        }
    }

    /// Most chunks one transfer carries when a message of `bytes` is cut into `chunk_count` chunks:
    /// `clamp(⌊E / ⌈bytes / chunk_count⌉⌋, 1, chunks per step)` with `E` the payload of one transfer. Without a bound on
    /// the message it is 1, the worst case for queues.
    pub fn chunks_per_transfer(self, protocol: Protocol, bytes: Option<u64>, chunk_count: u32) -> u32 {
        let most = self.limits().chunks_per_step;
        let Some(bytes) = bytes else { return 1 };
        let chunk_bytes = bytes.div_ceil(u64::from(chunk_count.max(1))).max(1);
        let fitting = self.limits().queue(protocol).transfer_bytes / chunk_bytes;
        u32::try_from(fitting).unwrap_or(most).clamp(1, most)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A profile name that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ProfileError {
    #[error("profile `{name}` is for {format} files; use msccl, msccl-executor or rccl-msccl here")]
    OfOther { name: &'static str, format: &'static str },
    #[error("unknown profile `{name}`; use msccl, msccl-executor or rccl-msccl")]
    Unknown { name: String },
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(name: &str) -> Result<Self, ProfileError> {
        if let Some(profile) = Self::ALL.into_iter().find(|profile| profile.name() == name) {
            return Ok(profile);
        }
        match OF_OTHER_FORMATS.into_iter().find(|(known, _)| *known == name) {
            Some((name, format)) => Err(ProfileError::OfOther { name, format }),
            None => Err(ProfileError::Unknown { name: name.chars().take(80).collect() }),
        }
    }
}

/// Everything about a runtime that is a number or a spelling. All limits are inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileLimits {
    /// Most steps of one thread block.
    pub steps_per_block: u32,
    /// Most thread blocks of one rank.
    pub blocks_per_rank: u32,
    /// Most channels (`nchannels`).
    pub channels: u32,
    /// Most blocks of one rank and channel that have a send peer; the same for receive peers.
    pub peers_per_channel: u32,
    /// Most chunks one step moves (`cnt`).
    pub chunks_per_step: u32,
    /// Most fused `re` steps in one chain.
    pub fused_reductions: u32,
    /// Most XML nodes a rank keeps: 1 + ranks + its blocks + its steps.
    pub nodes: u32,
    /// Most children of one element: the readers' tables are this long and unchecked.
    pub children: u32,
    /// Largest block id a dependency can name.
    pub dependency_block: u32,
    /// Largest chunk offset.
    pub offset: u32,
    /// Most characters of `name`.
    pub name_length: usize,
    /// Most rounds of the whole step list over slices of a chunk; flags count them.
    pub rounds: u64,
    /// How `minBytes` and `maxBytes` bound the messages a file is used for.
    pub byte_range: ByteRange,
    /// How a file says whether input and output may share memory.
    pub placement: PlacementRule,
    /// Attributes of `<algo>` without which the file is refused, of those that another runtime does not need.
    pub required: &'static [&'static str],
    /// Operations that the kernels carry out.
    pub operations: &'static [Operation],
    /// Blocks beyond this may not be resident at once on common accelerators.
    pub blocks_resident: u32,
    /// Queue sizes by protocol: Simple, LL, LL128.
    pub queues: [Queue; 3],
    /// Spellings of `coll`.
    pub collectives: &'static [(CollectiveKind, &'static str)],
    /// All words that may stand in `coll`, for messages.
    pub collective_words: &'static str,
    /// Spellings of `coll` that promise nothing a file could be judged by.
    pub collectives_unjudged: &'static [&'static str],
    /// How the runtime finds files and picks one.
    pub selection: Selection,
}

impl ProfileLimits {
    /// How connections of a protocol behave.
    pub const fn queue(&self, protocol: Protocol) -> Queue {
        match protocol {
            Protocol::Simple => self.queues[0],
            Protocol::Ll => self.queues[1],
            Protocol::Ll128 => self.queues[2],
        }
    }
}

/// How a connection of one protocol behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Most bytes of one transfer (E).
    pub transfer_bytes: u64,
    /// Transfers in flight before a sender waits (Q).
    pub slots: u32,
}

/// How `maxBytes` bounds the messages a file is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteRange {
    /// `maxBytes` is the first size that is too large; 0 admits no message.
    Exclusive {
        /// `maxBytes` of a file that does not say.
        default: u64,
    },
    /// `maxBytes` is the largest size; 0 means that there is no bound. A file must say it.
    Inclusive,
}

/// How a file says whether it is for calls whose input and output share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlacementRule {
    /// `inplace` must equal the state of the call; `outofplace` is passed over.
    InPlaceEquals,
    /// `inplace` and `outofplace` admit either kind of call, each for itself.
    BothFlags,
}

/// How a runtime finds files and picks one: what a person must set and know, in the runtime's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Environment variables that lead to the files, most significant first.
    pub variables: &'static [&'static str],
    /// Most files that are loaded.
    pub files_max: usize,
    /// In which order files are considered; the first that matches is used.
    pub order: SelectionOrder,
    /// When a file matches a call, and what else decides, as a sentence for people.
    pub explanation: &'static str,
}

/// In which order a runtime considers files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SelectionOrder {
    /// As listed in a variable or a configuration file.
    Listed,
    /// By full path.
    Sorted,
    /// As the directory happens to list them.
    Directory,
}

#[cfg(test)]
mod tests;
