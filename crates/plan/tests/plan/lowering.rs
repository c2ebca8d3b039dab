//! Every collective is lowered for every runtime that can say it, in place and out of place, and is right.

use canopy_plan::{
    Certainty, Instances, LowerError, LowerOptions, Lowered, Profile, ProgramFigures, lower, require_own_routes,
    write_msccl_xml,
};
use canopy_schedule::{Action, CollectiveKind, TransferGraph};
use canopy_synth::Algorithm;
use canopy_topology::{Rank, TopologyLimits, Transit, generate};
use graphs::{around, graph, heap_tree, paths, planned, planned_on, ring_tree, sends, star_tree, synthesized};
use judge::judge;

use crate::support::graphs;
use crate::support::judge;

fn options(profile: Profile, in_place: bool) -> LowerOptions {
    LowerOptions { in_place, bytes_max: 1 << 30, profile, name: "test".to_owned(), instances: Instances::ONE }
}

/// Lowers for all runtimes, in place and out of place.
#[track_caller]
fn judge_all(graph: &TransferGraph) {
    for profile in Profile::ALL {
        for in_place in [false, true] {
            match lower(graph, &options(profile, in_place), &|| false) {
                Ok(lowered) => judge(&lowered.program, profile),
                Err(LowerError::Unsupported { collective, .. }) => assert_eq!(profile.spell(collective), None),
                Err(error) => panic!("{profile}: {error}"),
            }
        }
    }
}

const ALONG_TREES: [CollectiveKind; 5] = [
    CollectiveKind::Allgather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::Allreduce,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
];

const ALONG_PATHS: [CollectiveKind; 3] = [CollectiveKind::Gather, CollectiveKind::Scatter, CollectiveKind::AllToAll];

#[test]
fn trees_of_all_kinds() {
    for kind in ALONG_TREES {
        judge_all(&graph(kind, 2, 3, 1, |root, _| ring_tree(2, root)));
        judge_all(&graph(kind, 5, 2, 1, |root, _| ring_tree(5, root)));
        judge_all(&graph(kind, 5, 3, 2, |root, part| if part == 0 { star_tree(5, root) } else { ring_tree(5, root) }));
        judge_all(&graph(kind, 9, 100, 1, |root, _| heap_tree(9, root, 2)));
    }
}

#[test]
fn paths_through_relays_use_scratch() {
    for kind in ALONG_PATHS {
        judge_all(&paths(kind, 2, 1, |from, to| vec![from, to]));
        judge_all(&paths(kind, 6, 2, |from, to| vec![from, to]));
        judge_all(&paths(kind, 7, 3, |from, to| around(7, from, to)));
        let through_1 = |from, to| if from == 1 || to == 1 { vec![from, to] } else { vec![from, 1, to] };
        judge_all(&paths(kind, 5, 80, through_1));
    }
}

/// Relays of a ring hold a few chunks at a time, not all that ever pass.
#[test]
fn scratch_is_used_again() {
    for profile in [Profile::MscclExecutor, Profile::RcclMsccl] {
        let ring = paths(CollectiveKind::AllToAll, 12, 1, |from, to| around(12, from, to));
        let program = lower(&ring, &options(profile, false), &|| false).unwrap().program;
        let most = program.ranks.iter().map(|rank| rank.scratch_chunks).max().unwrap();
        // 25 chunks pass each rank.
        assert!(most <= 13, "{profile}: {most} chunks of scratch");
        judge(&program, profile);
    }
}

/// Recursive doubling of an allgather: what a rank has grows from neighbouring shares, so steps carry several.
#[test]
fn sends_of_one_step_are_joined() {
    let ranks = 8_u32;
    let mut list = Vec::new();
    for step in 0..3 {
        for from in 0..ranks {
            let first = u64::from(from >> step << step);
            list.extend(
                (first..first + (1 << step)).map(|share| (Action::Copy, from, from ^ 1 << step, share..share + 1)),
            );
        }
    }
    let doubling = sends(CollectiveKind::Allgather, ranks, 1, list);
    judge_all(&doubling);
    let program = lower(&doubling, &options(Profile::RcclMsccl, true), &|| false).unwrap().program;
    // One send and one receive in each of three steps, and a nop: the last send waits for two receives.
    assert_eq!(ProgramFigures::of(&program, Profile::RcclMsccl).steps_per_rank, 7);
}

/// Recursive halving, then doubling: partial sums move on while others are still added.
#[test]
fn sums_in_steps() {
    let ranks = 8_u32;
    let mut list = Vec::new();
    for step in (0..3).rev() {
        for from in 0..ranks {
            let to = from ^ 1 << step;
            let first = u64::from(to >> step << step);
            list.extend((first..first + (1 << step)).map(|share| (Action::Reduce, from, to, share..share + 1)));
        }
    }
    judge_all(&sends(CollectiveKind::ReduceScatter, ranks, 1, list.clone()));
    for step in 0..3 {
        for from in 0..ranks {
            let first = u64::from(from >> step << step);
            list.extend(
                (first..first + (1 << step)).map(|share| (Action::Copy, from, from ^ 1 << step, share..share + 1)),
            );
        }
    }
    judge_all(&sends(CollectiveKind::Allreduce, ranks, 1, list));
}

/// A root must not hand a sum on in the step that completes it: who gets it is busy with sums that come before, and more
/// than one transfer fills the queue. Found by chance.
#[test]
fn a_complete_sum_is_not_sent_in_the_same_step() {
    let hops = "32 20 10 30 21 10 03 32 21 01 32 21 13 02 32 12 02 32 23 10 03 20 13 03 \
                01 02 23 01 12 03 12 23 30 12 23 10 23 20 31 23 20 21 30 01 32 30 31 02";
    let mut allreduce = graph(CollectiveKind::Allreduce, 4, 45, 2, |root, _| ring_tree(4, root));
    for (transfer, hop) in allreduce.transfers.iter_mut().zip(hops.split_whitespace()) {
        let rank = |digit: &str| Rank::new(digit.parse().unwrap());
        (transfer.from, transfer.to) = (rank(&hop[..1]), rank(&hop[1..]));
    }
    judge_all(&allreduce);
}

/// Optimal and direct plans of small networks.
#[test]
fn planned_schedules() {
    for expression in ["ring:8", "torus:3x3", "dgx-a100:boxes=2", "hypercube:4"] {
        for kind in ALONG_TREES {
            judge_all(&synthesized(expression, kind));
        }
        for kind in CollectiveKind::ALL {
            judge_all(&planned(expression, kind, Algorithm::Direct));
        }
    }
}

/// Several chunks at a time over a link: as over parallel ones in the place of a wide one.
#[test]
fn chunks_side_by_side_over_wide_links() {
    for kind in ALONG_TREES {
        let graph = planned("dims:ring3+ring3,bw=50GB/s+25GB/s", kind, Algorithm::Tacos);
        judge_all(&graph);
    }
}

/// Allreduces of real machines keep to few blocks, and to the shorter blocks of later runtimes.
#[test]
fn allreduce_of_real_machines_fits() {
    for expression in ["dgx-a100:boxes=2", "mi250:boxes=2,gpus=8"] {
        let graph = synthesized(expression, CollectiveKind::Allreduce);
        for profile in Profile::ALL {
            for in_place in [false, true] {
                let program = lower(&graph, &options(profile, in_place), &|| false).unwrap().program;
                let figures = ProgramFigures::of(&program, profile);
                println!("{expression} {profile} in place {in_place}: {figures:?}");
                assert!(profile != Profile::Msccl || figures.blocks.need <= 24, "{expression}: {figures:?}");
                judge(&program, profile);
            }
        }
    }
}

/// What a runtime's tables cannot hold is refused with a bound that any arrangement meets.
#[test]
fn the_largest_plan_fits_or_cannot() {
    let graph = synthesized("mi250:boxes=2", CollectiveKind::Allgather);
    for profile in Profile::ALL {
        match lower(&graph, &options(profile, false), &|| false) {
            Ok(Lowered { program, .. }) => {
                println!("{profile}: {:?}", ProgramFigures::of(&program, profile));
                judge(&program, profile);
            }
            Err(error) => {
                println!("{profile}: {error}");
                let LowerError::OverLimit { certainty, .. } = error else { panic!("{error}") };
                assert!(certainty == Certainty::Proven && profile == Profile::RcclMsccl, "{error}");
            }
        }
    }
}

/// Neither threads nor what was lowered before have a say in the text.
#[test]
fn the_same_request_gives_the_same_bytes_in_any_thread() {
    let graph = synthesized("dgx-a100:boxes=2", CollectiveKind::Allreduce);
    for profile in Profile::ALL {
        let text = || write_msccl_xml(&lower(&graph, &options(profile, true), &|| false).unwrap().program, profile);
        let alone = text();
        let together: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(text)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(together.iter().all(|text| *text == alone), "{profile}");
    }
}

/// The parts of the vector that ranks add up may differ, and some be empty: what an allreduce promises is the vector.
#[test]
fn sums_may_be_made_anywhere() {
    for expression in ["mesh:1x3", "mesh:4x4", "torus:4x4,down=00-01", "dgx-a100:boxes=2,degrade=b0g3-ib*1/2"] {
        let graph = synthesized(expression, CollectiveKind::Allreduce);
        assert_ne!(graph.shares, canopy_schedule::Shares::Equal, "{expression}");
        for profile in Profile::ALL {
            for in_place in [false, true] {
                judge(&lower(&graph, &options(profile, in_place), &|| false).unwrap().program, profile);
            }
        }
    }
}

#[test]
fn unequal_shares_are_refused() {
    let mut weighted = graph(CollectiveKind::Allgather, 3, 1, 1, |root, _| ring_tree(3, root));
    weighted.shares = canopy_schedule::Shares::Weighted(vec![1, 2, 3]);
    let error = lower(&weighted, &options(Profile::Msccl, false), &|| false).unwrap_err();
    assert!(error.to_string().contains("cannot express shares of unequal size"), "{error}");
}

/// Two of a ring of four have no other way than past the others, which run no program; two of a box do not need them.
#[test]
fn routes_past_devices_that_only_forward_are_refused() {
    let on = |expression, ranks: [u32; 2]| {
        let whole = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let group = whole.group(&ranks.map(Rank::new), Transit::Forward).unwrap();
        let graph = planned_on(&group, CollectiveKind::Allgather, Algorithm::Auto);
        require_own_routes(&group, &graph, Profile::Msccl)
    };
    let id = "1".to_owned();
    assert_eq!(on("ring:4", [0, 2]), Err(LowerError::Forwarder { profile: Profile::Msccl, id }));
    assert_eq!(on("ring:4", [0, 1]), Err(LowerError::Forwarder { profile: Profile::Msccl, id: "3".to_owned() }));
    assert_eq!(on("dgx-a100:boxes=1", [2, 5]), Ok(()));
}

#[test]
fn a_request_to_stop_is_heeded() {
    let graph = graph(CollectiveKind::Allgather, 64, 1, 1, |root, _| ring_tree(64, root));
    assert_eq!(lower(&graph, &options(Profile::Msccl, false), &|| true), Err(LowerError::Stopped));
}
