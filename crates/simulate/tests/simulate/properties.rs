//! What holds for all networks: bounds, bytes, that numbering does not matter, and monotony where nothing competes.
//!
//! Where messages compete, more capacity or fewer bytes may well take longer, as with any schedule made on the spot
//! (Graham 1969); so monotony is asked of single trees only.

use canopy_schedule::{CollectiveKind, Schedule, relabelled};
use canopy_simulate::{
    Outcome, Pieces, Sharing, SimulateOptions, Sync, bandwidth_limit_ps, least_time_ps, simulate, simulate_traced,
    step_numbers,
};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Latency, LinkIndex, Topology};
use proptest::prelude::*;

use crate::networks::{broadcast, checked, collective, network, options, run, run_in_steps};

const RANKS: [&str; 5] = ["0", "1", "2", "3", "4"];

/// Five ranks at two of three switches each, all in both directions, rates in GB/s by rank; switches under given names.
fn leaf_network(rates: &[u64; 10], switches: [&str; 3]) -> Topology {
    let mut links = Vec::new();
    for (rank, name) in RANKS.into_iter().enumerate() {
        for (side, rate) in [(rank % 3, rates[2 * rank]), ((rank + 1) % 3, rates[2 * rank + 1])] {
            let (capacity, latency) = (rate * 1_000_000_000, 100 + rank as u64);
            links.push((name, switches[side], capacity, latency));
            links.push((switches[side], name, capacity, latency));
        }
    }
    network(5, 3, &links)
}

fn planned(topology: &Topology, kind: CollectiveKind, algorithm: Algorithm) -> Schedule {
    let request = SynthesisRequest::new(collective(topology, kind), algorithm);
    synthesize(topology, &request, &Never, &Silent).unwrap()
}

fn plans() -> impl Strategy<Value = (CollectiveKind, Algorithm)> {
    use CollectiveKind::{AllToAll, Allgather, Allreduce, Broadcast, Gather, ReduceScatter};
    prop::sample::select(vec![
        (Allgather, Algorithm::Forest),
        (ReduceScatter, Algorithm::Forest),
        (Allreduce, Algorithm::Forest),
        (Broadcast, Algorithm::Forest),
        (Gather, Algorithm::Flow),
        (AllToAll, Algorithm::Direct),
        (Allgather, Algorithm::Ring),
    ])
}

fn steps_of_ranks() -> impl Strategy<Value = (CollectiveKind, Algorithm)> {
    use CollectiveKind::{AllToAll, Allgather, Allreduce, Broadcast, ReduceScatter};
    prop::sample::select(vec![
        (Allgather, Algorithm::Tacos),
        (Allreduce, Algorithm::Tacos),
        (AllToAll, Algorithm::Tacos),
        (Allgather, Algorithm::Multitree),
        (Allreduce, Algorithm::Multitree),
        (Allgather, Algorithm::Bruck),
        (ReduceScatter, Algorithm::Pairwise),
        (AllToAll, Algorithm::Bruck),
        (Broadcast, Algorithm::Binomial),
    ])
}

fn settings() -> impl Strategy<Value = SimulateOptions<'static>> {
    let pieces = prop_oneof![
        Just(Pieces::Whole),
        (1_u32..20).prop_map(Pieces::Count),
        (1_000_u64..1_000_000).prop_map(|bytes| Pieces::AtMost { bytes }),
    ];
    let sharing = prop_oneof![Just(Sharing::Fair), Just(Sharing::Fifo)];
    (0_u64..3_000_000, 0_u64..3_000, pieces, sharing).prop_map(|(size, alpha, pieces, sharing)| SimulateOptions {
        alpha: Latency::from_nanos(alpha),
        pieces,
        sharing,
        ..options(size)
    })
}

/// A tree over ranks `0 … parents.len()`, each hop on a link of its own: the parent of rank `r + 1` is one below it.
fn tree(parents: &[usize], rates: &[u64]) -> (Topology, Schedule) {
    let names: Vec<String> = (0..=parents.len()).map(|rank| rank.to_string()).collect();
    let mut depth = vec![0_u32];
    let (mut links, mut sent) = (Vec::new(), Vec::new());
    for (child, &parent) in (1_usize..).zip(parents) {
        let parent = parent % child;
        links.push((names[parent].as_str(), names[child].as_str(), rates[child - 1], 250));
        sent.push((depth[parent], u32::try_from(parent).unwrap(), u32::try_from(child).unwrap()));
        depth.push(depth[parent] + 1);
    }
    sent.sort_by_key(|&(step, ..)| step);
    let topology = network(u32::try_from(names.len()).unwrap(), 0, &links);
    let schedule = broadcast(&topology, &sent);
    (topology, schedule)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Under fair sharing a link is busy exactly while some message on it has been launched and has not left.
    #[test]
    fn a_trace_tells_when_links_are_busy(rates in prop::array::uniform10(1_u64..50), (kind, algorithm) in plans(), options in settings()) {
        let topology = leaf_network(&rates, ["s0", "s1", "s2"]);
        let (graph, _) = checked(&topology, &planned(&topology, kind, algorithm));
        let options = SimulateOptions { sharing: Sharing::Fair, ..options };
        let (outcome, trace) = simulate_traced(&topology, &graph, &options, &|| false).unwrap();
        prop_assert_eq!(trace.len() as u64, outcome.message_count);
        let mut times = vec![Vec::new(); topology.links().len()];
        for sent in &trace {
            prop_assert!(sent.launched_ps <= sent.left_ps && sent.left_ps <= outcome.time_ps);
            for link in graph.routes.get(sent.route).unwrap() {
                times[link.index()].push((sent.launched_ps, sent.left_ps));
            }
        }
        for (found, times) in outcome.links.iter().zip(&mut times) {
            times.sort_unstable();
            let (mut busy, mut until) = (0, 0);
            for &(start, end) in times.iter() {
                busy += end.max(until) - start.max(until);
                until = until.max(end);
            }
            prop_assert_eq!(busy, found.busy_ps);
        }
    }

    /// No run is faster than its busiest link, step by step where there are barriers, whether or not chunks are whole.
    #[test]
    fn no_run_beats_the_bytes_it_has(rates in prop::array::uniform10(1_u64..50), (kind, algorithm) in plans(), options in settings()) {
        let topology = leaf_network(&rates, ["s0", "s1", "s2"]);
        let schedule = planned(&topology, kind, algorithm);
        let (graph, _) = checked(&topology, &schedule);
        let numbers = step_numbers(&schedule, &graph);
        for sync in [Sync::Deps, Sync::Steps(&numbers)] {
            let options = SimulateOptions { sync, ..options };
            let limit = bandwidth_limit_ps(&topology, &graph, &options).unwrap();
            let found = simulate(&topology, &graph, &options, &|| false).unwrap();
            prop_assert!(found.time_ps >= limit, "{} ps, below {}", found.time_ps, limit);
        }
    }

    /// No run is faster than its busiest link, each link carries its bytes and is busy for no less than they take, and
    /// the critical path explains the time without a gap.
    #[test]
    fn no_run_beats_the_limit(rates in prop::array::uniform10(1_u64..50), (kind, algorithm) in plans(), options in settings()) {
        let topology = leaf_network(&rates, ["s0", "s1", "s2"]);
        let schedule = planned(&topology, kind, algorithm);
        let (graph, algbw) = checked(&topology, &schedule);
        // A chunk is a whole number of bytes, so that none has a byte less than its part.
        let chunks = match kind {
            CollectiveKind::AllToAll => u64::from(graph.rank_count) * graph.chunks_per_share,
            _ => graph.chunk_count().unwrap(),
        };
        let size = options.size_bytes.next_multiple_of(chunks);
        let options = SimulateOptions { size_bytes: size, ..options };
        let found = run(&topology, &schedule, &options);
        prop_assert!(found.time_ps >= least_time_ps(size, &algbw).unwrap());
        let mut bytes = vec![0_u64; topology.links().len()];
        for carrier in graph.transfers.iter().flat_map(|transfer| graph.carriers_of(transfer)) {
            for link in graph.routes.get(carrier.route).unwrap() {
                bytes[link.index()] += carrier.chunk_count * (size / chunks);
            }
        }
        for ((link, found), bytes) in topology.links().iter().zip(&found.links).zip(bytes) {
            prop_assert_eq!(found.bytes, bytes);
            let least = u128::from(bytes) * 1_000_000_000_000 / u128::from(link.capacity.bytes_per_sec());
            prop_assert!(u128::from(found.busy_ps) >= least);
        }
        prop_assert_eq!(found.ranks_ps.iter().max(), Some(&found.time_ps));
        let path = &found.critical_path;
        prop_assert_eq!((path[0].start_ps, path[path.len() - 1].end_ps), (0, found.time_ps));
        for legs in path.windows(2) {
            prop_assert!(legs[1].start_ps == legs[0].end_ps || legs[1].start_ps == legs[0].left_ps);
        }
        // Runs with barriers come to their end, and are bounded alike.
        prop_assert!(run_in_steps(&topology, &schedule, &options).time_ps >= least_time_ps(size, &algbw).unwrap());
    }

    /// Whole messages on links between ranks, at any rates: by the time of a barrier all before it has arrived, and nothing after it has
    /// taken a part of a link.
    #[test]
    fn no_run_takes_longer_for_lack_of_barriers(
        rates in prop::array::uniform7(1_u64..9),
        chords in prop::collection::vec((0_usize..7, 1_usize..6, 1_u64..9), 0..12),
        (kind, algorithm) in steps_of_ranks(),
        options in settings(),
    ) {
        let names = ["0", "1", "2", "3", "4", "5", "6"];
        let ring = (0..7).map(|from| (from, 1, rates[from]));
        let links: Vec<_> = ring
            .chain(chords)
            .map(|(from, apart, rate)| (names[from], names[(from + apart) % 7], rate * 1_000_000_000, 0))
            .collect();
        let topology = network(7, 0, &links);
        let schedule = planned(&topology, kind, algorithm);
        let options = SimulateOptions { pieces: Pieces::Whole, ..options };
        let with = run_in_steps(&topology, &schedule, &options).time_ps;
        let without = run(&topology, &schedule, &options).time_ps;
        // Rates and times are rounded to picoseconds at each event.
        prop_assert!(without <= with + 1_000, "{} without, {} with", without, with);
    }

    /// Names of switches decide how links are numbered, and nothing else.
    #[test]
    fn the_order_of_links_changes_nothing(
        rates in prop::array::uniform10(1_u64..8),
        (kind, algorithm) in plans(),
        options in settings(),
    ) {
        let first = leaf_network(&rates, ["s0", "s1", "s2"]);
        let second = leaf_network(&rates, ["s2", "s0", "s1"]);
        let rename = |node: canopy_topology::NodeIndex| match first.node(node).id.as_str() {
            "s0" => second.find_node("s2").unwrap(),
            "s1" => second.find_node("s0").unwrap(),
            "s2" => second.find_node("s1").unwrap(),
            _ => node,
        };
        let links: Vec<LinkIndex> = first.links().iter().map(|link| {
            let ends = (rename(link.from), rename(link.to));
            let place = second.links().iter().position(|other| (other.from, other.to) == ends).unwrap();
            LinkIndex::new(u32::try_from(place).unwrap())
        }).collect();
        prop_assert!(links.windows(2).any(|pair| pair[0] > pair[1]));
        let schedule = planned(&first, kind, algorithm);
        let ranks: Vec<_> = first.ranks().collect();
        let renamed = relabelled(&schedule, &ranks, &links).unwrap();
        let one = run(&first, &schedule, &options);
        let other = run(&second, &renamed, &options);
        let uses: Vec<_> = links.iter().map(|link| other.links[link.index()]).collect();
        let times = |found: &Outcome| found.critical_path.iter().map(|leg| (leg.transfer, leg.piece, leg.end_ps)).collect::<Vec<_>>();
        prop_assert_eq!((one.time_ps, &one.ranks_ps, &one.links), (other.time_ps, &other.ranks_ps, &uses));
        prop_assert_eq!(times(&one), times(&other));
    }

    /// In a tree whose hops have links of their own, more bytes and less capacity take longer, whatever the model.
    #[test]
    fn trees_are_monotone(
        parents in prop::collection::vec(0_usize..100, 1..9),
        rates in prop::collection::vec(1_000_000_u64..100_000_000_000, 9),
        (more, slower, at) in (0_u64..1_000_000, 0_u64..1_000_000, 0_usize..9),
        options in settings(),
    ) {
        // The number of pieces must not depend on the size here.
        let pieces = match options.pieces { Pieces::AtMost { .. } => Pieces::Count(7), pieces => pieces };
        let options = SimulateOptions { pieces, ..options };
        let (topology, schedule) = tree(&parents, &rates);
        let time = run(&topology, &schedule, &options).time_ps;
        let larger = SimulateOptions { size_bytes: options.size_bytes + more, ..options };
        prop_assert!(run(&topology, &schedule, &larger).time_ps >= time);
        let mut narrow = rates.clone();
        narrow[at] -= slower.min(narrow[at] - 1);
        let (narrowed, schedule) = tree(&parents, &narrow);
        prop_assert!(run(&narrowed, &schedule, &options).time_ps >= time);
    }
}
