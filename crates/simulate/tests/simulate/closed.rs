//! Closed forms of well-known algorithms, to the picosecond: 25 GB/s are 40 ps per byte, 12.5 GB/s are 80.

use std::collections::BTreeMap;
use std::ops::Range;

use canopy_schedule::{CollectiveKind, Schedule, Shares};
use canopy_simulate::{Sharing, SimulateOptions, Sync, bandwidth_limit_ps, least_time_ps, simulate, step_numbers};
use canopy_synth::{
    Never, Silent, SteppedError, SynthesisRequest, binomial, bruck, pairwise, recursive_doubling, synthesize,
};
use canopy_topology::{Latency, LinkIndex, Topology, TopologyLimits, generate};

use crate::networks::{ALPHA_PS, BETA, checked, collective, network, one_way_ring, options, run, run_in_steps, steps};

/// `(N − 1)(α + S/(N·capacity))`, barriers or not.
#[test]
fn ring_allgather() {
    for ranks in [2, 3, 8, 17] {
        let topology = one_way_ring(ranks);
        let sent: Vec<_> = (0..ranks - 1)
            .flat_map(|step| {
                (0..ranks).map(move |rank| (step, rank, (rank + 1) % ranks, (rank + ranks - step) % ranks))
            })
            .map(|(step, from, to, share)| (step, from, to, share.into()..u64::from(share) + 1))
            .collect();
        let kind = collective(&topology, CollectiveKind::Allgather);
        let schedule = steps(&topology, kind, Shares::Equal, 1, &sent);
        let share = 4_096;
        let expected = u64::from(ranks - 1) * (ALPHA_PS + share * BETA);
        for sharing in [Sharing::Fair, Sharing::Fifo] {
            let options = SimulateOptions { sharing, ..options(share * u64::from(ranks)) };
            assert_eq!(run(&topology, &schedule, &options).time_ps, expected, "{ranks} ranks");
            assert_eq!(run_in_steps(&topology, &schedule, &options).time_ps, expected, "{ranks} ranks");
        }
    }
}

/// Once around for allgather and reduce-scatter, twice for allreduce: `(N − 1)(α + λ + S/(N·capacity))` each time.
#[test]
fn rings_of_all_kinds() {
    for (kind, rounds) in
        [(CollectiveKind::Allgather, 1), (CollectiveKind::ReduceScatter, 1), (CollectiveKind::Allreduce, 2)]
    {
        for ranks in [2, 5, 8] {
            let topology = one_way_ring(ranks);
            let request = SynthesisRequest::new(collective(&topology, kind), canopy_synth::Algorithm::Ring);
            let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
            let share = 4_096;
            for sharing in [Sharing::Fair, Sharing::Fifo] {
                let options = SimulateOptions { sharing, ..options(share * u64::from(ranks)) };
                let expected = rounds * u64::from(ranks - 1) * (ALPHA_PS + share * BETA);
                assert_eq!(run(&topology, &schedule, &options).time_ps, expected, "{kind} of {ranks}, {sharing:?}");
            }
        }
    }
}

type Algorithm = fn(&Topology, canopy_schedule::Collective, &dyn canopy_synth::Stop) -> Result<Schedule, SteppedError>;

/// Algorithm, collective, ranks; steps, and shares that the fullest link carries, summed over the steps.
const CLASSIC: [(Algorithm, CollectiveKind, u32, u64, u64); 16] = [
    (recursive_doubling, CollectiveKind::Allgather, 8, 3, 1 + 2 + 4),
    (recursive_doubling, CollectiveKind::ReduceScatter, 8, 3, 4 + 2 + 1),
    (recursive_doubling, CollectiveKind::Allreduce, 16, 8, 2 * 15),
    (bruck, CollectiveKind::Allgather, 8, 3, 1 + 2 + 4),
    (bruck, CollectiveKind::Allgather, 7, 3, 1 + 2 + 3),
    // Blocks with a bit of their distance set: of 1 … 7 four each, of 1 … 5 three, two and two.
    (bruck, CollectiveKind::AllToAll, 8, 3, 4 + 4 + 4),
    (bruck, CollectiveKind::AllToAll, 6, 3, 3 + 2 + 2),
    (binomial, CollectiveKind::Broadcast, 8, 3, 3 * 8),
    (binomial, CollectiveKind::Broadcast, 6, 3, 3 * 6),
    (binomial, CollectiveKind::Reduce, 8, 3, 3 * 8),
    (binomial, CollectiveKind::Gather, 8, 3, 1 + 2 + 4),
    (binomial, CollectiveKind::Gather, 6, 3, 1 + 2 + 2),
    (binomial, CollectiveKind::Scatter, 8, 3, 4 + 2 + 1),
    (pairwise, CollectiveKind::AllToAll, 8, 7, 7),
    (pairwise, CollectiveKind::ReduceScatter, 6, 5, 5),
    (pairwise, CollectiveKind::Allgather, 5, 4, 4),
];

/// On a network with a link of 25 GB/s between any two ranks: `steps · (α + λ) + shares · S/N · 40 ps`, with barriers.
#[test]
fn classic_algorithms() {
    for (algorithm, kind, ranks, step_count, shares) in CLASSIC {
        for (latency, sharing) in [(0, Sharing::Fair), (0, Sharing::Fifo), (700, Sharing::Fair), (700, Sharing::Fifo)] {
            let expression = format!("complete:{ranks},bw=25GB/s,lat={latency}ns");
            let topology = generate(&expression, &TopologyLimits::STANDARD).unwrap();
            let schedule = algorithm(&topology, collective(&topology, kind), &Never).unwrap();
            let share = 1_000;
            let options = SimulateOptions { sharing, ..options(share * u64::from(ranks)) };
            let found = run_in_steps(&topology, &schedule, &options);
            let expected = step_count * (ALPHA_PS + latency * 1_000) + shares * share * BETA;
            assert_eq!(found.time_ps, expected, "{} {kind} of {ranks}, {latency} ns {sharing:?}", schedule.algorithm);
        }
    }
}

/// Where a byte takes no whole number of picoseconds, the same forms hold to a picosecond for each message that a link
/// carries in turn, and no time is below its form.
#[test]
fn classic_algorithms_at_other_rates() {
    for (algorithm, kind, ranks, step_count, shares) in CLASSIC {
        for capacity in [3_000_000_000_u64, 300_000_000_000, 6_999_999_937, 123_456_789] {
            let topology = generate(&format!("complete:{ranks},bw={capacity}B/s,lat=300ns"), &TopologyLimits::STANDARD);
            let topology = topology.unwrap();
            let schedule = algorithm(&topology, collective(&topology, kind), &Never).unwrap();
            let share = 1_001;
            for sharing in [Sharing::Fair, Sharing::Fifo] {
                let options = SimulateOptions { sharing, ..options(share * u64::from(ranks)) };
                let found = run_in_steps(&topology, &schedule, &options).time_ps;
                let fixed = u128::from(step_count * (ALPHA_PS + 300_000)) * u128::from(capacity);
                // Both sides times the capacity, so that nothing is rounded.
                let exact = fixed + u128::from(shares * share) * 1_000_000_000_000;
                let messages = messages_in_turn(&topology, &schedule);
                let found = u128::from(found) * u128::from(capacity);
                let name = format!("{} {kind} of {ranks} at {capacity} {sharing:?}", schedule.algorithm);
                assert!(found >= exact, "{name}: {found} below {exact}");
                assert!(found <= exact + messages * u128::from(capacity), "{name}: {found}, above {exact}");
            }
        }
    }
}

/// Without α and latencies, what is left of the forms is the exact bandwidth limit, step by step.
#[test]
fn the_bandwidth_limit_is_the_closed_form_of_bytes() {
    for (algorithm, kind, ranks, step_count, shares) in CLASSIC {
        let topology = generate(&format!("complete:{ranks},bw=25GB/s,lat=700ns"), &TopologyLimits::STANDARD).unwrap();
        let schedule = algorithm(&topology, collective(&topology, kind), &Never).unwrap();
        let (graph, algbw) = checked(&topology, &schedule);
        let numbers = step_numbers(&schedule, &graph);
        let share = 1_000;
        let size = share * u64::from(ranks);
        let limit = |sync| bandwidth_limit_ps(&topology, &graph, &SimulateOptions { sync, ..options(size) }).unwrap();
        let name = format!("{} {kind} of {ranks}", schedule.algorithm);
        assert_eq!(limit(Sync::Steps(&numbers)), shares * share * BETA, "{name}");
        assert_eq!(Some(limit(Sync::Steps(&numbers))), least_time_ps(size, &algbw), "{name}");
        assert!(limit(Sync::Deps) <= limit(Sync::Steps(&numbers)), "{name}");
        for sharing in [Sharing::Fair, Sharing::Fifo] {
            let found = run_in_steps(&topology, &schedule, &SimulateOptions { sharing, ..options(size) });
            let fixed = step_count * (ALPHA_PS + 700_000);
            assert_eq!(found.time_ps - fixed, limit(Sync::Steps(&numbers)), "{name} {sharing:?}");
        }
        // Of 3 bytes, most shares have none: still no run is faster.
        let tiny = SimulateOptions { alpha: Latency::default(), ..options(3) };
        let least = bandwidth_limit_ps(&topology, &graph, &tiny).unwrap();
        assert!(simulate(&topology, &graph, &tiny, &|| false).unwrap().time_ps >= least, "{name}");
    }
}

/// Messages of the link that carries the most of them, step by step.
fn messages_in_turn(topology: &Topology, schedule: &Schedule) -> u128 {
    let (graph, _) = checked(topology, schedule);
    let mut counts: BTreeMap<u32, BTreeMap<LinkIndex, u128>> = BTreeMap::new();
    for (transfer, step) in graph.transfers.iter().zip(step_numbers(schedule, &graph)) {
        for carrier in graph.carriers_of(transfer) {
            for &link in graph.routes.get(carrier.route).unwrap() {
                *counts.entry(step).or_default().entry(link).or_default() += 1;
            }
        }
    }
    counts.values().map(|links| links.values().max().unwrap()).sum()
}

/// Kautz networks K(d, 2) of 12.5 GB/s, blocks of 10⁶ bytes and α of 1 µs: values K2 and K3 of Pham 2026 as recomputed from
/// its table 3.2, with combined messages (two steps) and without (d + 1 steps).
#[test]
fn kautz_networks() {
    let degree = 4_u32;
    let words: Vec<(u32, u32)> =
        (0..=degree).flat_map(|x| (0..=degree).filter(move |&y| y != x).map(move |y| (x, y))).collect();
    let rank = |word: (u32, u32)| u32::try_from(words.iter().position(|&other| other == word).unwrap()).unwrap();
    let after = |(_, y): (u32, u32)| (0..=degree).filter(move |&z| z != y).map(move |z| (y, z));
    let before = |(x, _): (u32, u32)| (0..=degree).filter(move |&w| w != x).map(move |w| (w, x));
    let names: Vec<String> = (0..words.len()).map(|rank| rank.to_string()).collect();
    let links: Vec<_> = words
        .iter()
        .flat_map(|&word| after(word).map(move |next| (word, next)))
        .map(|(from, to)| (names[rank(from) as usize].as_str(), names[rank(to) as usize].as_str(), 12_500_000_000, 0))
        .collect();
    let ranks = u32::try_from(words.len()).unwrap();
    let topology = network(ranks, 0, &links);
    let chunk = |word| Range { start: u64::from(rank(word)), end: u64::from(rank(word)) + 1 };
    let mut combined = Vec::new();
    let mut single = Vec::new();
    for &word in &words {
        for next in after(word) {
            combined.push((0, rank(word), rank(next), chunk(word)));
            single.push((0, rank(word), rank(next), chunk(word)));
            // One block after the other in the second schedule.
            for (turn, of) in (1..).zip(before(word).filter(|&of| of != next)) {
                combined.push((1, rank(word), rank(next), chunk(of)));
                single.push((turn, rank(word), rank(next), chunk(of)));
            }
        }
    }
    let kind = collective(&topology, CollectiveKind::Allgather);
    for (mut sent, microseconds) in [(combined, 402), (single, 405)] {
        sent.sort_by_key(|&(step, ..)| step);
        let schedule = steps(&topology, kind, Shares::Equal, 1, &sent);
        let found = run_in_steps(&topology, &schedule, &options(1_000_000 * u64::from(ranks)));
        assert_eq!(found.time_ps, microseconds * 1_000_000);
    }
    // Broadcast: two levels of the one shortest-path tree.
    let root = words[0];
    let mut sent: Vec<_> = after(root).map(|next| (0, rank(root), rank(next), 0..1)).collect();
    for inner in after(root) {
        sent.extend(after(inner).filter(|&leaf| leaf != root).map(|leaf| (1, rank(inner), rank(leaf), 0..1)));
    }
    let kind = collective(&topology, CollectiveKind::Broadcast);
    let schedule = steps(&topology, kind, Shares::Equal, 1, &sent);
    assert_eq!(run_in_steps(&topology, &schedule, &options(1_000_000)).time_ps, 162_000_000);
}
