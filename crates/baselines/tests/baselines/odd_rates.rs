//! Networks whose rates have many digits, or lie far apart: whatever is planned for them is right.
//!
//! `CANOPY_CASES=300 cargo test --workspace --test baselines odd_rates` plans for more of them.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use std::num::NonZeroU64;

use canopy_baselines::{algorithm, algorithms};
use canopy_optimize::Never;
use canopy_schedule::{Collective, CollectiveKind, JointPart, Schedule, Shares, check_joint, judge_until};
use canopy_synth::{
    Algorithm, JointCollective, RepairError, RepairOptions, Silent, SynthesisError, SynthesisRequest, repaired,
    synthesize, synthesize_joint,
};
use canopy_topology::{Capacity, Fault, Latency, Rank, Topology, TopologyDraft, TopologyLimits};

/// The number that `CANOPY_CASES` asks for, or `few`.
pub(crate) fn cases(few: u64) -> u64 {
    let given = std::env::var("CANOPY_CASES").ok();
    given.map_or(few, |text| text.parse().expect("CANOPY_CASES is a number"))
}

pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Eleven digits, odd, round, or of any magnitude up to 2⁶⁰.
    pub(crate) fn rate(&mut self) -> Capacity {
        let rate = match self.below(5) {
            0 => 1_000_000_000 + self.below(1_000_000_000_000),
            1 => self.below(1 << 40) | 1,
            2 => [1_000_000_000, 25_000_000_000, 68_231_165_150, 727_976_749_030]
                [usize::try_from(self.below(4)).unwrap()],
            3 => 1_000_000 * (1 + self.below(1_000_000)),
            _ => self.next() >> (4 + self.below(60)),
        };
        Capacity::from_bytes_per_sec(rate.max(1)).unwrap()
    }
}

/// Ranks and some switches on a one-way cycle in any order, with more links of either kind.
pub(crate) fn network(seed: u64, ranks_max: u64, switches_max: u64) -> Topology {
    let mut random = Random(seed);
    let (ranks, switches) = (2 + random.below(ranks_max - 1), random.below(switches_max + 1));
    let mut draft = TopologyDraft::default();
    let mut ids = Vec::new();
    for rank in 0..ranks {
        draft.add_compute(format!("r{rank}"));
        ids.insert(usize::try_from(random.below(rank + 1)).unwrap(), format!("r{rank}"));
    }
    for switch in 0..switches {
        draft.add_switch(format!("s{switch}"));
        ids.insert(usize::try_from(random.below(ids.len() as u64)).unwrap(), format!("s{switch}"));
    }
    let latency = if random.below(3) == 0 { 700 } else { 0 };
    let mut link = |from: &str, to: &str, random: &mut Random| {
        let latency = Latency::from_nanos(latency * random.below(3));
        if random.below(2) == 0 {
            draft.add_both(from, to, random.rate(), latency)
        } else {
            draft.add_link(from, to, random.rate(), latency)
        }
    };
    for (at, from) in ids.iter().enumerate() {
        link(from, &ids[(at + 1) % ids.len()], &mut random);
    }
    for _ in 0..random.below(2 * ids.len() as u64) {
        let pick = |random: &mut Random| &ids[usize::try_from(random.below(ids.len() as u64)).unwrap()];
        let ends = (pick(&mut random), pick(&mut random));
        if ends.0 != ends.1 {
            link(ends.0, ends.1, &mut random);
        }
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

fn request(topology: &Topology, kind: CollectiveKind, algorithm: Algorithm, seed: u64) -> SynthesisRequest {
    let root = kind.has_root().then(|| Rank::new(u32::try_from(seed).unwrap() % topology.rank_count()));
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    let size_bytes = NonZeroU64::new(1 << (seed % 40));
    SynthesisRequest { size_bytes, ..SynthesisRequest::new(collective, algorithm) }
}

#[track_caller]
fn require_right(topology: &Topology, schedule: &Schedule, what: &str) {
    judge_until(topology, schedule, &|| false).unwrap_or_else(|error| panic!("{what}: {error}"));
}

#[test]
fn schedules_in_time_and_their_repairs_are_right() {
    let tacos = algorithm("tacos").unwrap();
    for seed in 0..cases(24) {
        let topology = network(seed, 6, 2);
        for kind in CollectiveKind::ALL {
            let what = format!("{kind} on network {seed}");
            let request = request(&topology, kind, tacos, seed);
            let schedule =
                synthesize(&topology, &request, &Never, &Silent).unwrap_or_else(|error| panic!("{what}: {error}"));
            require_right(&topology, &schedule, &what);
            let link = topology.links()[usize::try_from(seed).unwrap() % topology.links().len()];
            let id = |node| topology.node(node).id.clone();
            let (from, to) = (id(link.from), id(link.to));
            let fault = match seed % 2 {
                0 => Fault::Link { from, to, both_ways: false },
                _ => Fault::Degrade { from, to, both_ways: false, numerator: 1, denominator: 3 },
            };
            // A rate below 3 has no third.
            let Ok(left) = topology.punctured(&[fault]) else { continue };
            let options = RepairOptions { chunks_max: None, size_bytes: request.size_bytes, is_in_time: true };
            match repaired(&topology, &schedule, &left, options, &Never) {
                Ok(repaired) => require_right(&left, &repaired, &format!("{what}, repaired")),
                Err(RepairError::Disconnected { .. }) => {}
                Err(error) => panic!("{what}, repaired: {error}"),
            }
        }
    }
}

#[test]
fn every_algorithm_plans_what_is_right_or_says_why_not() {
    let (mut planned, mut refused) = (0, 0);
    for seed in 0..cases(6) {
        // Of switches, most algorithms know nothing.
        let topology = network(seed, 4, seed % 2);
        for algorithm in algorithms() {
            // Proofs take their time on all but the smallest networks.
            if algorithm.name() == "tacos-ilp" && topology.links().len() > 6 {
                continue;
            }
            for kind in CollectiveKind::ALL {
                let what = format!("{kind} by {algorithm:?} on network {seed}");
                match synthesize(&topology, &request(&topology, kind, algorithm, seed), &Never, &Silent) {
                    Ok(schedule) => require_right(&topology, &schedule, &what),
                    Err(SynthesisError::Broken { what: fault }) => panic!("{what}: {fault}"),
                    Err(_) => {
                        refused += 1;
                        continue;
                    }
                }
                planned += 1;
            }
        }
    }
    assert!(planned > 0 && refused > 0, "{planned} plans, {refused} refusals");
}

#[test]
fn joint_schedules_are_right() {
    for seed in 0..cases(8) {
        let topology = network(seed, 4, 1);
        let ranks: Vec<Rank> = topology.ranks().collect();
        let collective = |kind: CollectiveKind| JointCollective {
            ranks: ranks.clone(),
            collective: request(&topology, kind, algorithm("tacos").unwrap(), seed).collective,
            shares: Shares::Equal,
            chunks: NonZeroU64::MIN,
            size_bytes: NonZeroU64::new(1 + (seed << 20)).unwrap(),
        };
        let asked = [CollectiveKind::Allgather, CollectiveKind::AllToAll, CollectiveKind::Reduce].map(collective);
        let plans = synthesize_joint(&topology, &asked, true, 2, &Never).unwrap();
        let parts: Vec<JointPart<'_>> = plans
            .plans
            .iter()
            .zip(&asked)
            .map(|(plan, asked)| JointPart {
                topology: &plan.topology,
                schedule: &plan.schedule,
                size_bytes: asked.size_bytes,
            })
            .collect();
        let verdict =
            check_joint(&topology, &parts, &|| false).unwrap_or_else(|error| panic!("network {seed}: {error}"));
        assert_eq!((verdict.shared_links, verdict.steps), (0, plans.steps), "network {seed}");
    }
}
