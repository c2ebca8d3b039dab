//! What NCCL's own formulas choose: an algorithm and a protocol for each size.
//!
//! A latency for each algorithm and protocol, and the part of the links' rate that is left of it; the least time counts. The numbers
//! are those of NCCL 2.28 to 2.31 for GPUs since the A100, read in its public sources. Measured times differ by a fifth and more
//! below 128 MiB: this says what NCCL takes, not how fast it is.

use canopy_schedule::CollectiveKind;

use super::{NcclAlgorithm, NcclNetwork, nccl_algorithms};

/// How messages are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// A flag with each word: least latency, half of the rate.
    LowLatency,
    /// A flag with each 128 bytes.
    LowLatency128,
    /// Whole pieces.
    Simple,
}

impl Protocol {
    const ALL: [Self; 3] = [Self::LowLatency, Self::LowLatency128, Self::Simple];

    /// NCCL's word for it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::LowLatency => "ll",
            Self::LowLatency128 => "ll128",
            Self::Simple => "simple",
        }
    }
}

/// What is taken for some sizes, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) algorithm: NcclAlgorithm,
    pub(super) protocol: Protocol,
}

/// First and last power of two at which times are compared: below and above nothing changes.
const POWERS: std::ops::RangeInclusive<u32> = 6..=34;

/// For every size from 0 to 2⁶⁴ − 1, in rising order without gaps.
pub(super) fn choices(kind: CollectiveKind, network: &NcclNetwork) -> Vec<Choice> {
    let mut found: Vec<Choice> = Vec::new();
    for power in POWERS {
        let size = 1_u64 << power;
        let all =
            nccl_algorithms(kind).iter().flat_map(|&algorithm| Protocol::ALL.map(|protocol| (algorithm, protocol)));
        let timed =
            all.map(|(algorithm, protocol)| (time_ps(kind, network, (algorithm, protocol), size), algorithm, protocol));
        let Some((_, algorithm, protocol)) = timed.min_by_key(|&(time, ..)| time) else { continue };
        match found.last_mut() {
            Some(choice) if (choice.algorithm, choice.protocol) == (algorithm, protocol) => choice.last = u64::MAX,
            before => {
                let first = if before.is_none() { 0 } else { size };
                before.into_iter().for_each(|choice| choice.last = size - 1);
                found.push(Choice { first, last: u64::MAX, algorithm, protocol });
            }
        }
    }
    found
}

/// Latencies in nanoseconds, in the order of [`Protocol::ALL`]: once, for a step inside a machine, for one between two.
struct Latencies {
    base: [u64; 3],
    inside: [u64; 3],
    across: [u64; 3],
}

const RING: Latencies =
    Latencies { base: [6_600, 14_000, 8_400], inside: [1_000, 1_900, 3_400], across: [2_700, 4_000, 14_000] };
const TREE: Latencies =
    Latencies { base: [6_800, 14_000, 8_400], inside: [600, 1_250, 4_000], across: [5_000, 8_500, 14_000] };
/// Tenths of a tree's rate that are reached with messages of 64 bytes, 128 bytes, and so on.
const TREE_TENTHS: [[u64; 24]; 3] = [
    [10, 10, 10, 10, 9, 8, 7, 7, 7, 7, 6, 5, 4, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10, 10],
    [10, 10, 10, 10, 10, 9, 8, 8, 8, 7, 6, 6, 6, 6, 6, 6, 8, 9, 9, 9, 9, 10, 10, 10],
    [9, 9, 9, 9, 9, 9, 9, 8, 7, 6, 6, 5, 5, 5, 5, 6, 7, 8, 7, 7, 8, 9, 9, 9],
];

/// Time of a message by the formulas, in picoseconds.
fn time_ps(
    kind: CollectiveKind,
    network: &NcclNetwork,
    (algorithm, protocol): (NcclAlgorithm, Protocol),
    size_bytes: u64,
) -> u128 {
    let (ranks, nodes) = (u64::from(network.ranks.max(2)), u64::from(network.nodes.max(1)));
    let row = Protocol::ALL.iter().position(|&one| one == protocol).unwrap_or_default();
    let at = |table: &[u64; 3]| table.get(row).copied().unwrap_or_default();
    let (latency_ns, part) = match algorithm {
        NcclAlgorithm::Ring => {
            let (steps, across) = match kind {
                CollectiveKind::Allreduce => (2 * (ranks - 1), 2 * (nodes - 1)),
                CollectiveKind::Broadcast | CollectiveKind::Reduce => (ranks, nodes - 1),
                _ => (ranks - 1, nodes - 1),
            };
            let latency = at(&RING.base) + (steps - across.min(steps)) * at(&RING.inside) + across * at(&RING.across);
            let is_slowed = protocol == Protocol::Simple && kind == CollectiveKind::Allreduce && nodes > 1;
            let latency = if is_slowed { latency * 14 / 10 } else { latency };
            // Of a hundredth of the links' rate, over the times that the data passes each of them.
            (latency, (at(&[50, 92, 100]) * ranks, steps))
        }
        NcclAlgorithm::Tree => {
            let inside = (ranks / nodes).saturating_sub(1);
            let latency =
                at(&TREE.base) + 2 * (inside * at(&TREE.inside) + u64::from(nodes.ilog2()) * at(&TREE.across));
            let part = at(&[26, if nodes > 1 { 86 } else { 72 }, 92]);
            let column = (size_bytes.max(64).ilog2() - 6).min(23) as usize;
            let tenths = TREE_TENTHS.get(row).and_then(|row| row.get(column)).copied().unwrap_or(10);
            (latency, (part * tenths, 20))
        }
    };
    let (numerator, denominator) = part;
    let bus = u128::from(network.bus_bytes_per_sec()) * u128::from(numerator);
    let transfer = u128::from(size_bytes) * 100 * 1_000_000_000_000 * u128::from(denominator) / bus.max(1);
    u128::from(latency_ns) * 1_000 + transfer
}
