//! Target runtimes as data: what each accepts, how it spells things, and how its queues behave.
//!
//! Adding a profile means adding a table; lowering, parser, proof and emulator read the numbers from here.

use std::fmt;
use std::str::FromStr;

use canopy_schedule::CollectiveKind;

use super::program::Protocol;

/// A runtime that reads MSCCL files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// microsoft/msccl, built on NCCL 2.12.
    Msccl,
}

/// Names of canopy's contract whose tables do not exist.
const NAMED_ELSEWHERE: [&str; 5] = ["msccl-executor", "rccl-msccl", "mscclpp-0.6", "mscclpp-0.9", "oneccl"];

impl Profile {
    /// The name used everywhere in canopy's text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Msccl => "msccl",
        }
    }

    /// What the runtime accepts.
    pub const fn limits(self) -> &'static ProfileLimits {
        match self {
            Self::Msccl => &MSCCL,
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

    /// Whether a text can be the `name` of a file: the runtimes cut longer ones and decode no entities.
    pub fn accepts_name(self, name: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        (1..=self.limits().name_length).contains(&name.len()) && name.bytes().all(is_plain)
    }

    /// Largest message a file with this `maxBytes` is used for, in bytes; `None` when there is no bound, or the range is
    /// empty (`0`).
    pub fn bytes_max_inclusive(self, attribute: u64) -> Option<u64> {
        match attribute {
            0 => None,
            bound if self.limits().bytes_max_is_exclusive => Some(bound - 1),
            bound => Some(bound),
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
    #[error("profile `{name}` is not available yet; use msccl")]
    NotAvailable { name: &'static str },
    #[error("`{name}` is not a profile; use msccl")]
    Unknown { name: String },
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(name: &str) -> Result<Self, ProfileError> {
        if name == Self::Msccl.name() {
            return Ok(Self::Msccl);
        }
        match NAMED_ELSEWHERE.into_iter().find(|known| *known == name) {
            Some(name) => Err(ProfileError::NotAvailable { name }),
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
    /// Whether `maxBytes` is the first size that is too large.
    pub bytes_max_is_exclusive: bool,
    /// `maxBytes` of a file that does not say.
    pub bytes_max_default: u64,
    /// Blocks beyond this may not be resident at once on common accelerators.
    pub blocks_resident: u32,
    /// Queue sizes by protocol: Simple, LL, LL128.
    pub queues: [Queue; 3],
    /// Spellings of `coll`.
    pub collectives: &'static [(CollectiveKind, &'static str)],
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

const MSCCL: ProfileLimits = ProfileLimits {
    steps_per_block: 256,
    blocks_per_rank: 216,
    channels: 32,
    peers_per_channel: 32,
    chunks_per_step: 71,
    fused_reductions: 16,
    nodes: 4095,
    children: 1024,
    dependency_block: 127,
    offset: 32767,
    name_length: 63,
    rounds: 65535,
    bytes_max_is_exclusive: true,
    bytes_max_default: 1 << 27,
    blocks_resident: 108,
    // Simple moves half of its eight 512 KiB slots at a time, LL and LL128 one slot.
    queues: [
        Queue { transfer_bytes: 2 << 20, slots: 2 },
        Queue { transfer_bytes: 32 << 10, slots: 8 },
        Queue { transfer_bytes: 576_000, slots: 8 },
    ],
    collectives: &[
        (CollectiveKind::Allgather, "allgather"),
        (CollectiveKind::ReduceScatter, "reduce_scatter"),
        (CollectiveKind::Allreduce, "allreduce"),
        (CollectiveKind::Broadcast, "broadcast"),
        (CollectiveKind::Reduce, "reduce"),
        (CollectiveKind::AllToAll, "alltoall"),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_or_refused_with_a_remedy() {
        assert_eq!("msccl".parse(), Ok(Profile::Msccl));
        assert_eq!(Profile::Msccl.to_string(), "msccl");
        let refused = |name: &str| name.parse::<Profile>().unwrap_err().to_string();
        assert_eq!(refused("rccl-msccl"), "profile `rccl-msccl` is not available yet; use msccl");
        assert_eq!(refused("MSCCL"), "`MSCCL` is not a profile; use msccl");
    }

    /// The sizes at which `maxAllowed` changes, by hand: 2 MiB per transfer of Simple, 32 KiB of LL.
    #[test]
    fn chunks_per_transfer_follow_the_formula() {
        let count = |protocol, bytes, chunks| Profile::Msccl.chunks_per_transfer(protocol, bytes, chunks);
        // 16 MiB in 512 chunks of 32 KiB, 64 of which fill a transfer; beyond 256 MiB fewer than 4.
        assert_eq!(count(Protocol::Simple, Some(16 << 20), 512), 64);
        assert_eq!(count(Protocol::Simple, Some(256 << 20), 512), 4);
        assert_eq!(count(Protocol::Simple, Some((256 << 20) + 1), 512), 3);
        assert_eq!(count(Protocol::Simple, Some(1 << 40), 512), 1);
        assert_eq!(count(Protocol::Simple, None, 512), 1);
        assert_eq!(count(Protocol::Simple, Some(0), 512), 71);
        assert_eq!(count(Protocol::Ll, Some(8 << 10), 8), 32);
        assert_eq!(count(Protocol::Ll128, Some(1000), 1), 71);
    }

    #[test]
    fn a_bound_is_exclusive() {
        assert_eq!(Profile::Msccl.bytes_max_inclusive(1025), Some(1024));
        assert_eq!(Profile::Msccl.bytes_max_inclusive(0), None);
    }

    #[test]
    fn spellings_are_the_runtimes_own() {
        for kind in CollectiveKind::ALL {
            let spelling = Profile::Msccl.spell(kind);
            assert_eq!(spelling.and_then(|spelling| Profile::Msccl.read_spelling(spelling)), spelling.map(|_| kind));
        }
        assert_eq!(Profile::Msccl.spell(CollectiveKind::ReduceScatter), Some("reduce_scatter"));
        assert_eq!(Profile::Msccl.read_spelling("custom"), None);
    }
}
