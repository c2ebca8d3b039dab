//! The fastest at each size, against all others.

use canopy_topology::{TopologyLimits, generate};

use super::*;
use crate::advice::mpi::{OPENMPI_COLLECTIVES, openmpi_choices, patterns};

const fn whole(name: &'static str, pattern: fn(u64) -> Option<Pattern>) -> Candidate {
    Candidate { id: 0, name, segment: 0, sends: Sends::Whole(pattern) }
}

/// On a switch, a ring takes 2(n − 1) messages of S/n, doubling log n of S: they are equal at a size with a closed form.
#[test]
fn a_crossing_is_found_to_the_byte() {
    let topology = generate("dims:switch8,bw=50GB/s", &TopologyLimits::STANDARD).unwrap();
    let paths = Paths::new(&topology, 8, 1_000);
    let both = [whole("doubling", patterns::doubling_allreduce), whole("ring", patterns::ring_allreduce)];
    let found = choices(&paths, CollectiveKind::Allreduce, both);
    let names: Vec<&str> = found.iter().map(|choice| choice.candidate.name).collect();
    assert_eq!(names, ["doubling", "ring"]);
    let link = &topology.links()[0];
    // 3 (a + S/B) = 14 (a + S/8B)
    let start = 1_000 + 2 * link.latency.nanos();
    let crossing = 11.0 * start as f64 * 1e-9 * link.capacity.bytes_per_sec() as f64 / (3.0 - 14.0 / 8.0);
    assert!((found[1].first as f64 - crossing).abs() < 2.0, "{} {crossing}", found[1].first);
    assert_eq!((found[0].first, found[0].last + 1, found[1].last), (0, found[1].first, u64::MAX));
}

/// At powers of two nothing of the library is faster, and ranges follow one another.
#[test]
fn what_is_chosen_is_fastest() {
    for (expression, ranks) in
        [("dgx-a100:boxes=2", 16), ("dgx-a100:boxes=2", 8), ("torus:3x4", 12), ("dims:switch7,bw=50GB/s", 7)]
    {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let paths = Paths::new(&topology, ranks, 1_000);
        for kind in OPENMPI_COLLECTIVES {
            let found = openmpi_choices(&paths, kind);
            assert_eq!((found.first().unwrap().first, found.last().unwrap().last), (0, u64::MAX));
            assert!(found.windows(2).all(|pair| pair[0].last + 1 == pair[1].first));
            let time = |candidate: Candidate, bytes| {
                let pattern = match candidate.sends {
                    Sends::Whole(sends) => sends(paths.ranks()),
                    Sends::Segments(sends) => sends(paths.ranks(), candidate.segment),
                };
                Clock::of(&paths, pattern.unwrap()).time_ps(bytes)
            };
            let all: Vec<Candidate> = found.iter().map(|choice| choice.candidate).collect();
            for power in 0..=POWER_MAX {
                let bytes = 1 << power;
                let chosen = found.iter().find(|choice| (choice.first..=choice.last).contains(&bytes)).unwrap();
                let best = all.iter().map(|&candidate| time(candidate, bytes)).min().unwrap();
                assert_eq!(time(chosen.candidate, bytes), best, "{expression} {kind} {bytes}");
            }
        }
    }
}
