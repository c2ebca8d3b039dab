//! Steps in turn: times by hand, and between barriers and the load.

use canopy_schedule::{
    Action, Carrier, Collective, CollectiveKind, Pace, RouteInterner, Schedule, Send, Shape, Shares, Steps,
    TransferGraph, check, compile,
};
use canopy_topology::{Capacity, Latency, Rank, Rate, Topology, TopologyDraft, TopologyLimits};
use num_bigint::BigUint;
use num_integer::Integer as _;
use num_rational::Ratio;
use proptest::prelude::*;

use crate::forests::{CAPACITY, Random, complete_with_switch, number, one_way_ring, path_3, shortest_route, star};
use crate::shapes::random_steps;
use crate::transform::{merged, reversed};

/// Copies of single chunks in turn: step, from, to, chunk.
pub(crate) fn in_turn(
    topology: &Topology,
    kind: CollectiveKind,
    chunks_per_share: u64,
    sent: &[(u32, u32, u32, u64)],
) -> Schedule {
    let mut routes = RouteInterner::default();
    let (mut carriers, mut sends) = (Vec::new(), Vec::new());
    for &(step, from, to, chunk) in sent {
        let carrier = number(carriers.len());
        carriers.push(Carrier { route: routes.intern(&shortest_route(topology, from, to)), chunk_count: 1 });
        let (from, to) = (Rank::new(from), Rank::new(to));
        let (chunks, carriers) = (chunk..chunk + 1, carrier..carrier + 1);
        sends.push(Send { step, action: Action::Copy, from, to, chunks, carriers });
    }
    let root = kind.has_root().then(|| Rank::new(0));
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    let steps = Steps { chunks_per_share, pace: Pace::InTurn, routes: routes.finish(), carriers, sends };
    Schedule { collective, algorithm: "by-hand".to_owned(), shares: Shares::Equal, shape: Shape::Steps(steps) }
}

#[track_caller]
fn algbw(topology: &Topology, graph: &TransferGraph) -> Rate {
    let verdict = check(topology, graph).unwrap();
    assert_eq!(verdict.steps.map(|cost| cost.algbw), Some(verdict.algbw.clone()));
    verdict.algbw
}

/// The rates in turn and with barriers.
#[track_caller]
fn both(topology: &Topology, schedule: &Schedule) -> (Rate, Rate) {
    let graph = compile(topology, schedule).unwrap();
    let barriers = TransferGraph { pace: Pace::Barriers, ..graph.clone() };
    let in_turn = TransferGraph { pace: Pace::InTurn, ..graph };
    (algbw(topology, &in_turn), algbw(topology, &barriers))
}

fn rate(numerator: u64, denominator: u64) -> Rate {
    Rate::new(numerator * CAPACITY, denominator).unwrap()
}

/// One that is numbered late keeps nobody waiting.
#[test]
fn a_step_waits_for_what_it_sends_alone() {
    let topology = one_way_ring(3);
    let sent = [(0, 0, 1, 0), (0, 1, 2, 1), (1, 2, 0, 2), (2, 0, 1, 2), (2, 1, 2, 0), (2, 2, 0, 1)];
    assert_eq!(both(&topology, &in_turn(&topology, CollectiveKind::Allgather, 1, &sent)), (rate(3, 2), rate(1, 1)));
}

/// A message in two chunks along links of which the second is twice as fast: a chunk arrives after 1/2 and goes on in 1/4.
#[test]
fn fast_links_wait_for_slow_ones_and_not_the_other_way_round() {
    let mut draft = TopologyDraft::default();
    (0..3).for_each(|rank| draft.add_compute(format!("r{rank}")));
    for (from, to, capacity) in [("r0", "r1", CAPACITY), ("r1", "r2", 2 * CAPACITY), ("r2", "r0", CAPACITY)] {
        draft.add_link(from, to, Capacity::from_bytes_per_sec(capacity).unwrap(), Latency::default());
    }
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    let sent = [(0, 0, 1, 0), (1, 0, 1, 1), (1, 1, 2, 0), (2, 1, 2, 1)];
    let schedule = in_turn(&topology, CollectiveKind::Broadcast, 2, &sent);
    // Barriers: 1/2 + 1/2 + 1/4. In turn the same, as the second chunk is the last to come.
    assert_eq!(both(&topology, &schedule), (rate(4, 5), rate(4, 5)));
    let early = [(0, 0, 1, 0), (1, 1, 2, 0), (2, 0, 1, 1), (3, 1, 2, 1)];
    let schedule = in_turn(&topology, CollectiveKind::Broadcast, 2, &early);
    assert_eq!(both(&topology, &schedule), (rate(4, 5), rate(2, 3)));
}

/// Two routes share the port of rank 0: each has a half of it, though they follow one another.
#[test]
fn lanes_have_their_parts_of_a_port_all_the_time() {
    let topology = star(3);
    let apart = [(0, 0, 1, 0), (1, 0, 2, 0)];
    assert_eq!(both(&topology, &in_turn(&topology, CollectiveKind::Broadcast, 1, &apart)), (rate(1, 2), rate(1, 2)));
    // The port of rank 2 is not shared, that of rank 1 into the switch neither.
    let chain = [(0, 0, 1, 0), (1, 1, 2, 0)];
    assert_eq!(both(&topology, &in_turn(&topology, CollectiveKind::Broadcast, 1, &chain)), (rate(1, 2), rate(1, 2)));
    // Each lane has a half of some port, so a chunk takes as long as the message would alone; the longest chain has two.
    let mixed = [(0, 0, 1, 0), (0, 0, 2, 1), (1, 0, 1, 1), (1, 1, 2, 0)];
    let (in_turn, barriers) = both(&topology, &in_turn(&topology, CollectiveKind::Broadcast, 2, &mixed));
    assert_eq!((in_turn, barriers), (rate(1, 2), rate(2, 3)));
}

/// Chunks that are sent together over several lanes come one by one, so they stay apart.
#[test]
fn what_is_in_turn_is_not_merged() {
    let topology = path_3();
    let sent = [(0, 0, 1, 0), (1, 0, 1, 1), (1, 1, 2, 0), (2, 1, 2, 1)];
    let schedule = in_turn(&topology, CollectiveKind::Broadcast, 2, &sent);
    assert_eq!(merged(&schedule, 3), schedule);
}

/// Ranks with links to all others and to a switch, at rates that have nothing in common.
fn complete_with_odd_rates(ranks: u32, random: &mut Random) -> Topology {
    let mut draft = TopologyDraft::default();
    (0..ranks).for_each(|rank| draft.add_compute(format!("r{rank}")));
    draft.add_switch("s");
    let ids: Vec<String> = (0..ranks).map(|rank| format!("r{rank}")).chain(["s".to_owned()]).collect();
    for (from, to) in ids.iter().flat_map(|from| ids.iter().map(move |to| (from, to))).filter(|(from, to)| from != to) {
        let bits = 1 + random.below(64);
        let rate = Capacity::from_bytes_per_sec((random.next() >> (64 - bits)).max(1)).unwrap();
        draft.add_link(from, to, rate, Latency::default());
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// The rate of a graph in turn, all times as fractions.
fn by_fractions(topology: &Topology, graph: &TransferGraph) -> Rate {
    let mut lanes = vec![0_u64; topology.links().len()];
    let routes: Vec<_> = graph.routes.iter().collect();
    let is_used = |route: usize| graph.carriers.iter().any(|carrier| carrier.route.index() == route);
    let used = (0..routes.len()).filter(|&route| is_used(route));
    used.for_each(|route| routes[route].iter().for_each(|link| lanes[link.index()] += 1));
    let time = |links: &[canopy_topology::LinkIndex]| {
        let times = links.iter().map(|link| {
            let capacity = topology.link(*link).capacity.bytes_per_sec();
            Ratio::new(BigUint::from(lanes[link.index()]), BigUint::from(capacity))
        });
        times.max().unwrap()
    };
    let mut free_at = vec![Ratio::from(BigUint::from(0_u8)); routes.len()];
    let mut ends: Vec<Ratio<BigUint>> = Vec::new();
    for transfer in &graph.transfers {
        let waited = graph.dependencies_of(transfer).iter().map(|&before| ends[before as usize].clone());
        let ready = waited.max().unwrap_or_default();
        let mut end = ready.clone();
        for carrier in graph.carriers_of(transfer) {
            let lane = carrier.route.index();
            let own =
                free_at[lane].clone().max(ready.clone()) + time(routes[lane]) * BigUint::from(carrier.chunk_count);
            free_at[lane] = own.clone();
            end = end.max(own);
        }
        ends.push(end);
    }
    let (last, size) = (ends.into_iter().max().unwrap(), graph.layout().unwrap().size());
    Rate::new(last.denom() * size.chunks, last.numer() * size.divisor).unwrap()
}

/// Bits of the least common multiple of all rates.
fn common_bits(topology: &Topology) -> u64 {
    let rates = topology.links().iter().map(|link| BigUint::from(link.capacity.bytes_per_sec()));
    rates.fold(BigUint::from(1_u8), |common, rate| common.lcm(&rate)).bits()
}

/// Measured rates have many digits, so their times have no unit that 128 bits can count.
#[test]
fn times_without_a_common_unit_are_exact() {
    let mut random = Random(11);
    let mut beyond = 0;
    for round in 0..60 {
        let topology = complete_with_odd_rates(2 + round % 4, &mut random);
        beyond += u32::from(common_bits(&topology) > 256);
        for kind in CollectiveKind::ALL {
            let graph = compile(&topology, &random_steps(&topology, kind, &mut random)).unwrap();
            let graph = TransferGraph { pace: Pace::InTurn, ..graph };
            assert_eq!(algbw(&topology, &graph), by_fractions(&topology, &graph), "{kind}, round {round}");
        }
    }
    assert!(beyond > 30, "{beyond} networks have no common unit");
}

proptest! {
    /// Nothing is faster than its load, and where no routes share a link barriers only cost time; backwards it is in turn too.
    #[test]
    fn between_barriers_and_the_load(seed: u64, ranks in 2_u32..6, is_star: bool) {
        let topology = if is_star { star(ranks) } else { complete_with_switch(ranks) };
        let mut random = Random(seed);
        for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce] {
            let schedule = random_steps(&topology, kind, &mut random);
            let (in_turn, barriers) = both(&topology, &schedule);
            let graph = compile(&topology, &schedule).unwrap();
            let are_apart = graph.routes.iter().all(|links| links.len() == 1);
            let load = check(&topology, &TransferGraph { steps: Vec::new(), ..graph }).unwrap().algbw;
            prop_assert!(in_turn <= load);
            prop_assert!(!are_apart || in_turn >= barriers);
            let mut turned = schedule.clone();
            if let Shape::Steps(steps) = &mut turned.shape {
                steps.pace = Pace::InTurn;
            }
            let Shape::Steps(steps) = reversed(&topology, &turned).shape else { panic!("steps stay steps") };
            prop_assert_eq!(steps.pace, Pace::InTurn);
        }
    }
}
