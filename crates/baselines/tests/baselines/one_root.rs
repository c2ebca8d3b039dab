//! Trees of one root, and exchanges of a power of two of ranks, by name.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use canopy_baselines::{BINE, BLINK, SWING};
use canopy_optimize::Never;
use canopy_schedule::{Collective, CollectiveKind, Schedule, Shape, Shares, judge_until};
use canopy_synth::{Algorithm, Silent, SynthesisError, SynthesisRequest, synthesize};
use canopy_topology::{Rank, Rate, Topology, TopologyLimits, generate};

use crate::odd_rates::{Random, cases, network};

fn of(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn planned(
    topology: &Topology,
    kind: CollectiveKind,
    algorithm: Algorithm,
    shares: Shares,
) -> Result<Schedule, SynthesisError> {
    let root = kind.has_root().then(|| Rank::new(0));
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    synthesize(topology, &SynthesisRequest { shares, ..SynthesisRequest::new(collective, algorithm) }, &Never, &Silent)
}

#[track_caller]
fn rate(topology: &Topology, kind: CollectiveKind, algorithm: Algorithm) -> Rate {
    let schedule = planned(topology, kind, algorithm, Shares::Equal).unwrap();
    assert_eq!(schedule.algorithm, algorithm.name());
    judge_until(topology, &schedule, &|| false).unwrap().algbw
}

/// Zhao 2026, section 4.6: one root adds up less than all do, which is why an allreduce of several roots is faster.
#[test]
fn one_root_is_slower_than_all() {
    use CollectiveKind::{Allreduce, Broadcast, Reduce};
    for expression in ["mi250:boxes=2", "mi250:boxes=2,gpus=8", "dgx-a100:boxes=2", "torus:3x4", "fat-tree:k=4"] {
        let topology = of(expression);
        for kind in [Broadcast, Reduce] {
            assert_eq!(
                rate(&topology, kind, BLINK),
                rate(&topology, kind, Algorithm::Forest),
                "{kind} on {expression}"
            );
        }
        let (own, all) = (rate(&topology, Allreduce, BLINK), rate(&topology, Allreduce, Algorithm::Forest));
        assert!(own <= all, "{expression}: {own} against {all}");
    }
}

/// All is added up at one rank: that with the greatest share, or with the widest links.
#[test]
fn the_root_is_where_the_most_links_are() {
    let star = of("mesh:1x3,bw=1GB/s");
    let root = |shares: Shares| {
        let schedule = planned(&star, CollectiveKind::Allreduce, BLINK, shares).unwrap();
        judge_until(&star, &schedule, &|| false).unwrap();
        let Shape::Forest(forest) = &schedule.shape else { panic!("trees expected") };
        let mut roots: Vec<u32> =
            forest.phases.iter().flat_map(|phase| &phase.trees).map(|tree| tree.root.number()).collect();
        roots.dedup();
        roots
    };
    assert_eq!(root(Shares::Equal), [1]);
    assert_eq!(root(Shares::Weighted(vec![1, 2, 5])), [2]);
}

/// Any connected network: what is planned is right, and what is refused has a number of ranks that is no power of two.
#[test]
fn exchanges_are_right_on_any_network_of_a_power_of_two() {
    let mut planned_count = 0;
    for seed in 0..cases(24) {
        let topology = network(seed, 8, 3);
        let count = topology.rank_count();
        let mut random = Random(seed);
        let weights = (0..count).map(|_| random.below(4)).collect::<Vec<u64>>();
        for algorithm in [BINE, SWING, BLINK] {
            for &kind in algorithm.collectives {
                let collective = Collective::new(kind, kind.has_root().then(|| Rank::new(0)), count).unwrap();
                let weighted = Shares::in_proportion(collective, count, weights.clone());
                for shares in [Some(Shares::Equal), weighted.ok()].into_iter().flatten() {
                    let what = format!("{kind} by {algorithm} on network {seed}");
                    match planned(&topology, kind, algorithm, shares) {
                        Ok(schedule) => {
                            judge_until(&topology, &schedule, &|| false)
                                .unwrap_or_else(|error| panic!("{what}: {error}"));
                            planned_count += 1;
                        }
                        Err(SynthesisError::Broken { what: fault }) => panic!("{what}: {fault}"),
                        Err(error) => assert!(
                            !count.is_power_of_two() || algorithm == BLINK || error.to_string().contains("nothing"),
                            "{what}: {error}"
                        ),
                    }
                }
            }
        }
    }
    assert!(planned_count > 100, "{planned_count}");
}
