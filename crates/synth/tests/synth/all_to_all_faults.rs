//! All-to-all on networks at random, some of their links gone or slower: certified plans or clear refusals.

#![expect(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test fails by panicking")]

use canopy_schedule::{Collective, CollectiveKind, Shares, certified_bound, check, compile};
use canopy_synth::{Algorithm, AllToAllFlow, Never, Silent, SynthesisError, SynthesisRequest, synthesize};
use canopy_topology::{Capacity, Latency, Rate, Topology, TopologyDraft, TopologyLimits};

const NETWORKS: u64 = 500;

/// Numbers that look random and are the same every time (Steele, Lea and Flood 2014, splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// Ranks and switches on a cycle with chords; then up to three links are down, and up to three at a part of their rate.
fn network(seed: u64) -> Topology {
    let mut numbers = Numbers(seed);
    let (ranks, switches) = (2 + numbers.below(5), numbers.below(3));
    let mut draft = TopologyDraft::default();
    let mut ids: Vec<String> = (0..ranks).map(|rank| format!("r{rank}")).collect();
    ids.iter().for_each(|id| draft.add_compute(id));
    for switch in 0..switches {
        let id = format!("s{switch}");
        draft.add_switch(&id);
        ids.insert(numbers.below(ids.len() as u64 + 1) as usize, id);
    }
    let count = ids.len() as u64;
    let mut links: Vec<(u64, u64, u64)> =
        (0..count).map(|node| (node, (node + 1) % count, 1 + numbers.below(9))).collect();
    for _ in 0..numbers.below(3 * count) {
        let (from, to, rate) = (numbers.below(count), numbers.below(count), 1 + numbers.below(99));
        if from != to {
            links.push((from, to, rate));
        }
    }
    for _ in 0..numbers.below(4).min(links.len() as u64 - 1) {
        let dead = numbers.below(links.len() as u64);
        links.swap_remove(dead as usize);
    }
    for _ in 0..numbers.below(4) {
        let slow = numbers.below(links.len() as u64);
        links[slow as usize].2 = 1 + links[slow as usize].2 / 2;
    }
    for (from, to, rate) in links {
        let capacity = Capacity::from_bytes_per_sec(rate * 1_000_000).unwrap();
        draft.add_link(&ids[from as usize], &ids[to as usize], capacity, Latency::default());
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

#[test]
fn networks_with_faults_get_certified_plans_or_are_refused() {
    let (mut planned, mut refused) = (0, 0);
    for seed in 0..NETWORKS {
        let topology = network(seed);
        let collective = Collective::new(CollectiveKind::AllToAll, None, topology.rank_count()).unwrap();
        let request = SynthesisRequest::new(collective, Algorithm::Auto);
        let schedule = synthesize(&topology, &request, &Never, &Silent);
        if topology.first_unreachable().is_some() {
            assert!(matches!(schedule, Err(SynthesisError::Disconnected { .. })), "network {seed}: {schedule:?}");
            refused += 1;
            continue;
        }
        let schedule = schedule.unwrap();
        let bound = AllToAllFlow::of(&topology, &Shares::Equal, None, &Never, &Silent).unwrap().bound(&topology);
        let proven = certified_bound(&topology, collective, &Shares::Equal, &bound.certificate);
        assert_eq!(proven.as_ref(), Ok(&bound.upper), "network {seed}");
        let verdict = check(&topology, &compile(&topology, &schedule).unwrap()).unwrap();
        assert!(verdict.algbw <= bound.upper, "network {seed}");
        // No more is lost than whole chunks and floats can be blamed for.
        let (top, bottom) = bound.upper.parts();
        let least = Rate::new(top * 999_996_u32, bottom * 1_000_000_u32).unwrap();
        assert!(verdict.algbw >= least, "network {seed}: {} of {}", verdict.algbw, bound.upper);
        planned += 1;
    }
    assert_eq!(planned + refused, NETWORKS);
    assert!(planned > 200 && refused > 50, "{planned} planned, {refused} refused: the networks test little");
}
