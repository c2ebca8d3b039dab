//! The exact bandwidth limit that every simulated time stands beside.

use std::collections::BTreeMap;

use canopy_schedule::{CollectiveKind, RouteIndex, TransferGraph};
use canopy_topology::{LinkIndex, Rate, Topology};

use crate::gates::checked_steps;
use crate::options::{Pieces, SimulateError, SimulateOptions, Sync};
use crate::workload::Workload;

/// Picoseconds of a second.
pub(crate) const PS_PER_SEC: u64 = 1_000_000_000_000;

/// Least whole number of picoseconds that a collective of this size takes at an exact algbw: `⌈size / algbw⌉`.
///
/// With the algbw that [`check`](canopy_schedule::check) finds for a schedule it is the time in which its busiest link can
/// carry what it has to; with a proven bound, the time that no schedule beats. `None` for a rate of zero and times of
/// 2⁶⁴ ps and more.
pub fn least_time_ps(size_bytes: u64, algbw: &Rate) -> Option<u64> {
    let (bytes, seconds) = algbw.parts();
    let one = Rate::new(seconds * size_bytes * PS_PER_SEC, bytes)?;
    let (whole, part) = one.parts();
    let rounded_up = (&whole + &part - 1_u32) / &part;
    u64::try_from(rounded_up).ok()
}

/// Least whole number of picoseconds in which the links can carry a run's bytes, whatever they wait for: what
/// [`simulate`](crate::simulate) would take without α and latencies if no link were ever idle.
///
/// Without barriers it is the time of the busiest link, with them the sum of those of the busiest link of each step. No run
/// is faster, fair or FIFO: a link carries no byte faster than its capacity, and a step begins where one has ended, on a
/// whole picosecond. (Fair rates are rounded up: by less than a byte in a century.) In whole bytes, as a run cuts them, so it
/// is exact for small sizes, too.
///
/// * **In.** As of [`simulate`](crate::simulate); of the options, α, pieces and sharing play no part.
/// * **Errors.** Arguments that do not match, and sizes over the limits.
/// * **Cost.** O(links of all routes), with barriers times the logarithm of them.
pub fn bandwidth_limit_ps(
    topology: &Topology,
    graph: &TransferGraph,
    options: &SimulateOptions<'_>,
) -> Result<u64, SimulateError> {
    let workload = Workload::new(topology, graph, &SimulateOptions { pieces: Pieces::Whole, ..*options })?;
    let steps = match options.sync {
        Sync::Deps => None,
        Sync::Steps(numbers) => Some(checked_steps(graph, numbers)?),
    };
    let mut bytes: BTreeMap<(u32, LinkIndex), u64> = BTreeMap::new();
    for lane in &workload.lanes {
        let step = steps.map_or(0, |numbers| numbers[lane.transfer as usize]);
        for &link in graph.routes.get(RouteIndex::new(lane.route)).unwrap_or_default() {
            *bytes.entry((step, link)).or_default() += lane.bytes;
        }
    }
    let mut longest: BTreeMap<u32, u128> = BTreeMap::new();
    for ((step, link), bytes) in bytes {
        let capacity = topology.link(link).capacity.bytes_per_sec();
        let takes = (u128::from(bytes) * u128::from(PS_PER_SEC)).div_ceil(capacity.into());
        let most = longest.entry(step).or_default();
        *most = takes.max(*most);
    }
    u64::try_from(longest.values().sum::<u128>()).map_err(|_| SimulateError::TooLong)
}

/// algbw of a collective of this size that took so long: `size / time`, exact. `None` for no time.
pub fn algbw(size_bytes: u64, time_ps: u64) -> Option<Rate> {
    Rate::new(u128::from(size_bytes) * u128::from(PS_PER_SEC), time_ps)
}

/// busbw of a collective on so many ranks: algbw times what a link of a perfect ring would carry for each byte of size,
/// `2(N−1)/N` for allreduce, 1 for broadcast and reduce, `(N−1)/N` for all others. As in NVIDIA's nccl-tests. `None` for no
/// ranks.
pub fn busbw(kind: CollectiveKind, rank_count: u32, algbw: &Rate) -> Option<Rate> {
    let others = rank_count.checked_sub(1)?;
    let (times, by) = match kind {
        CollectiveKind::Broadcast | CollectiveKind::Reduce => (1, 1),
        CollectiveKind::Allreduce => (2 * u64::from(others), rank_count),
        _ => (others.into(), rank_count),
    };
    let (numerator, denominator) = algbw.parts();
    Rate::new(numerator * times, denominator * by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_rounded_up_to_a_picosecond() {
        let rate = |numerator: u64, denominator: u64| Rate::new(numerator, denominator).unwrap();
        assert_eq!(least_time_ps(1_000, &rate(25_000_000_000, 1)), Some(40_000));
        assert_eq!(least_time_ps(1, &rate(3_000_000_000_000, 1)), Some(1));
        assert_eq!(least_time_ps(2, &rate(3_000_000_000_000, 2)), Some(2));
        assert_eq!(least_time_ps(0, &rate(1, 1)), Some(0));
        assert_eq!(least_time_ps(1, &Rate::zero()), None);
        assert_eq!(least_time_ps(u64::MAX, &rate(1, 1)), None);
        assert_eq!(algbw(1_000, 40_000), Some(rate(25_000_000_000, 1)));
        assert_eq!(algbw(1, 0), None);
    }

    #[test]
    fn bus_rates_are_those_of_nccl_tests() {
        let of = |kind, ranks| busbw(kind, ranks, &Rate::new(80_u32, 1_u32).unwrap()).map(|rate| rate.to_string());
        assert_eq!(of(CollectiveKind::Allreduce, 8), Some("140".to_owned()));
        assert_eq!(of(CollectiveKind::Allgather, 8), Some("70".to_owned()));
        assert_eq!(of(CollectiveKind::AllToAll, 3), Some("160/3".to_owned()));
        assert_eq!(of(CollectiveKind::Reduce, 8), Some("80".to_owned()));
        assert_eq!(of(CollectiveKind::Gather, 0), None);
    }
}
