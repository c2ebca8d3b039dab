//! What is counted beforehand is never more than what is made.

use std::cell::OnceCell;

use canopy_schedule::{Action, Collective, Pace, RouteTable, Shares, Transfer, TransferGraph, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Rank, TopologyLimits, generate};
use proptest::prelude::*;

use super::*;
use crate::msccl::lower::arrange::Lowering;
use crate::msccl::lower::{LowerOptions, Trees};
use crate::msccl::{Instances, prove};

/// Numbers that are compared, and the sum of the counted ones over that of the made ones, in percent.
#[derive(Default)]
struct Compared {
    count: u64,
    counted: u64,
    made: u64,
}

/// Compares in both orders, for all runtimes, for one and for two instances, with all waits and with the fewest.
fn compare(graph: &TransferGraph, in_place: bool, compared: &mut Compared) {
    for profile in Profile::ALL {
        let options =
            LowerOptions { in_place, bytes_max: 1 << 20, profile, name: "t".to_owned(), instances: Instances::ONE };
        if profile.spell(graph.collective.kind()).is_none() {
            continue;
        }
        let plan = Message::new(graph, &options).unwrap();
        let trees = Trees::read(graph, &plan, &|| false).unwrap();
        for instances in [1, 2] {
            let (message, least) = (plan.times(instances, profile).unwrap(), OnceCell::new());
            let lowering = Lowering {
                plan: &plan,
                message: &message,
                trees: &trees,
                least: &least,
                options: &options,
                stop: &|| false,
            };
            for (foretold, made) in lowering.foretold_and_made() {
                // Whatever its waits, it is right.
                let proof = prove(&made.program, profile);
                assert!(proof.is_ok(), "{profile}, {instances}: {:?}", proof.problems);
                for figure in foretold {
                    let found = made.figures.limited().into_iter().find(|made| made.name == figure.name).unwrap();
                    assert!(figure.need <= found.need, "{profile}, {instances}: {figure:?} counted, {found:?} made");
                    compared.count += 1;
                    compared.counted += figure.need;
                    compared.made += found.need;
                }
            }
        }
    }
}

/// Plans of trees, of steps and of paths. What is counted is most of what is made, or it would be of no use.
#[test]
fn plans_need_at_least_what_is_counted() {
    let mut compared = Compared::default();
    for network in ["torus:3x3", "dgx-a100:boxes=1", "ring:5", "kautz:d=2,n=2"] {
        let topology = generate(network, &TopologyLimits::STANDARD).unwrap();
        for kind in CollectiveKind::ALL {
            for algorithm in [Algorithm::Auto, Algorithm::Direct, Algorithm::Bfb, Algorithm::Tacos, Algorithm::Bruck] {
                let root = kind.has_root().then_some(Rank::new(0));
                let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
                let request = SynthesisRequest::new(collective, algorithm);
                let Ok(schedule) = synthesize(&topology, &request, &Never, &Silent) else { continue };
                let graph = compile(&topology, &schedule).unwrap();
                if graph.shares == Shares::Equal || kind == CollectiveKind::Allreduce {
                    compare(&graph, kind == CollectiveKind::Allreduce, &mut compared);
                }
            }
        }
    }
    assert!(compared.count > 1_000, "{}", compared.count);
    assert!(compared.counted * 10 > compared.made * 7, "{} of {}", compared.counted, compared.made);
}

/// One tree for each root and action, in which each rank after the root hangs below one of those before it.
fn random_trees(kind: CollectiveKind, ranks: u32, chunks: u64, numbers: &[u32]) -> TransferGraph {
    let (mut batches, mut transfers) = (Vec::new(), Vec::new());
    let actions: &[Action] = match kind {
        CollectiveKind::Allreduce => &[Action::Reduce, Action::Copy],
        CollectiveKind::ReduceScatter => &[Action::Reduce],
        _ => &[Action::Copy],
    };
    for &action in actions {
        for root in 0..ranks {
            let at = |distance: u32| Rank::new((root + distance) % ranks);
            let above = |distance: u32| at(numbers[((root + distance) as usize) % numbers.len()] % distance);
            let mut hops: Vec<(Rank, Rank)> = (1..ranks).map(|distance| (above(distance), at(distance))).collect();
            if action == Action::Reduce {
                hops = hops.into_iter().rev().map(|(near, far)| (far, near)).collect();
            }
            let first = u32::try_from(transfers.len()).unwrap();
            transfers.extend(hops.into_iter().map(|(from, to)| Transfer {
                from,
                to,
                carriers: 0..0,
                dependencies: 0..0,
            }));
            batches.push(canopy_schedule::Batch {
                action,
                root: Rank::new(root),
                chunk_first: u64::from(root) * chunks,
                chunk_count: chunks,
                transfers: first..u32::try_from(transfers.len()).unwrap(),
            });
        }
    }
    TransferGraph {
        collective: Collective::new(kind, None, ranks).unwrap(),
        rank_count: ranks,
        chunks_per_share: chunks,
        shares: Shares::Equal,
        routes: RouteTable::default(),
        carriers: Vec::new(),
        dependencies: Vec::new(),
        batches,
        transfers,
        steps: Vec::new(),
        pace: Pace::Barriers,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_trees_need_at_least_what_is_counted(
        kind in prop::sample::select(vec![
            CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce,
        ]),
        ranks in 2_u32..12,
        chunks in 1_u64..3,
        in_place: bool,
        numbers in prop::collection::vec(any::<u32>(), 11..29),
    ) {
        compare(&random_trees(kind, ranks, chunks, &numbers), in_place, &mut Compared::default());
    }
}
