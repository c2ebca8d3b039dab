//! Plans in several instances: right, on channels of their own, and as many as a runtime takes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::num::NonZeroU32;

use canopy_plan::{
    Certainty, Instances, LowerError, Lowered, Profile, Program, ProgramFigures, traffic, write_msccl_xml,
};
use canopy_schedule::{Action, CollectiveKind, TransferGraph};
use canopy_synth::Algorithm;
use graphs::{graph, lowered_for, lowered_times, planned, ring_tree, sends, star_tree};
use judge::judge;

use crate::support::graphs;
use crate::support::judge;

fn times(instances: u32) -> Instances {
    Instances::Exactly(NonZeroU32::new(instances).unwrap())
}

fn lowered(profile: Profile, graph: &TransferGraph, instances: u32) -> Program {
    lowered_times(profile, graph, false, times(instances)).unwrap().program
}

#[test]
fn every_collective_of_every_runtime_is_right_in_instances() {
    for expression in ["ring:4", "dgx-a100:boxes=2"] {
        for kind in CollectiveKind::ALL {
            let graph = planned(expression, kind, Algorithm::Direct);
            for profile in Profile::ALL.into_iter().filter(|profile| profile.spell(kind).is_some()) {
                for in_place in [false, true] {
                    let Lowered { program, instances } = lowered_times(profile, &graph, in_place, times(3)).unwrap();
                    judge(&program, profile);
                    assert_eq!((program.channel_count, instances.get()), (3, 3), "{expression} {kind} {profile}");
                    let alone = lowered_for(profile, &graph, in_place);
                    let chunks = traffic(&alone).into_iter().map(|(pair, chunks)| (pair, 3 * chunks)).collect();
                    assert_eq!(traffic(&program), chunks);
                }
            }
        }
    }
}

/// The whole text of a ring of two ranks, twice: half of each share goes over each channel.
#[test]
fn two_instances_as_text() {
    let ring = graph(CollectiveKind::Allgather, 2, 1, 1, |root, _| ring_tree(2, root));
    let text = write_msccl_xml(&lowered(Profile::Msccl, &ring, 2), Profile::Msccl);
    let expected = r#"<algo name="test" proto="Simple" nchannels="2" nchunksperloop="4" ngpus="2" coll="allgather" inplace="0" outofplace="1" minBytes="0" maxBytes="1073741825">
  <gpu id="0" i_chunks="2" o_chunks="4" s_chunks="0">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="2" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
    <tb id="1" send="1" recv="1" chan="1">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="1" dstbuf="o" dstoff="3" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
    <tb id="2" send="-1" recv="-1" chan="0">
      <step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
    <tb id="3" send="-1" recv="-1" chan="1">
      <step s="0" type="cpy" srcbuf="i" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
"#;
    assert!(text.starts_with(expected), "{text}");
}

/// One plan needs several channels by itself: each instance gets as many.
#[test]
fn instances_of_a_plan_on_several_channels_have_as_many_each() {
    // 39 peers, of which a channel serves 32.
    let star = graph(CollectiveKind::Allgather, 40, 1, 1, |root, _| star_tree(40, root));
    assert_eq!(lowered(Profile::Msccl, &star, 1).channel_count, 2);
    let twice = lowered(Profile::Msccl, &star, 2);
    assert_eq!(twice.channel_count, 4);
    judge(&twice, Profile::Msccl);
    // Blocks of 100 steps, of which later runtimes take 64.
    let parts = graph(CollectiveKind::Allgather, 5, 51, 51, |root, _| ring_tree(5, root));
    for profile in [Profile::MscclExecutor, Profile::RcclMsccl] {
        let alone = lowered_for(profile, &parts, true);
        let thrice = lowered_times(profile, &parts, true, times(3)).unwrap().program;
        assert_eq!(thrice.channel_count, 3 * alone.channel_count);
        judge(&thrice, profile);
    }
}

/// Steps that carry neighbouring shares are right, too, though parts of different shares are no neighbours.
#[test]
fn joined_sends_come_apart_where_instances_lie_between() {
    let (ranks, mut list) = (8_u32, Vec::new());
    for step in 0..3 {
        for from in 0..ranks {
            let first = u64::from(from >> step << step);
            list.extend(
                (first..first + (1 << step)).map(|share| (Action::Copy, from, from ^ 1 << step, share..share + 1)),
            );
        }
    }
    let doubling = sends(CollectiveKind::Allgather, ranks, 1, list);
    for profile in Profile::ALL {
        judge(&lowered(profile, &doubling, 4), profile);
    }
}

/// Automatic is the greatest number that fits: one more breaks a limit or has blocks that may not be resident at once. The
/// file says so itself.
#[test]
fn automatic_fills_the_runtime_and_no_more() {
    for expression in ["ring:8", "dgx-a100:boxes=2", "torus:3x3"] {
        for kind in [CollectiveKind::Allgather, CollectiveKind::Allreduce, CollectiveKind::AllToAll] {
            let algorithm = if kind == CollectiveKind::AllToAll { Algorithm::Direct } else { Algorithm::Forest };
            let graph = planned(expression, kind, algorithm);
            for profile in Profile::ALL {
                let Lowered { program, instances } = lowered_times(profile, &graph, true, Instances::Auto).unwrap();
                judge(&program, profile);
                let figures = ProgramFigures::of(&program, profile);
                let resident = u64::from(profile.limits().blocks_resident);
                assert!(figures.blocks.need <= resident, "{expression} {kind} {profile}");
                let room = figures.room(instances.get(), program.rank_count, profile);
                println!("{expression} {kind} {profile}: {instances} instances, {room:?}");
                match lowered_times(profile, &graph, true, times(instances.get() + 1)) {
                    Ok(more) => {
                        let blocks = ProgramFigures::of(&more.program, profile).blocks.need;
                        assert!(blocks > resident, "{expression} {kind} {profile}: {blocks} blocks with one more");
                        assert_eq!((room.stopped_by.need, room.stopped_by.limit), (blocks, resident));
                    }
                    Err(LowerError::OverLimit { limit, need, .. }) => {
                        assert_eq!((room.stopped_by.need, room.stopped_by.limit), (need, limit));
                    }
                    Err(error) => panic!("{error}"),
                }
                assert_eq!(room.instances_max, instances.get(), "{expression} {kind} {profile}: {room:?}");
                // The plan alone foretells no more: other arrangements of its blocks may have more room.
                let alone = lowered_times(profile, &graph, true, Instances::ONE).unwrap().program;
                let foretold = ProgramFigures::of(&alone, profile).room(1, alone.rank_count, profile);
                assert!(foretold.instances_max <= instances.get(), "{expression} {kind} {profile}: {foretold:?}");
            }
        }
    }
}

#[test]
fn too_many_instances_are_refused_with_the_limit_they_break() {
    let refused = |graph: &TransferGraph, profile, instances| {
        let Err(error) = lowered_times(profile, graph, false, times(instances)) else {
            panic!("{instances} instances fit {profile}");
        };
        assert!(matches!(error, LowerError::OverLimit { certainty: Certainty::Proven, .. }), "{error}");
        error.to_string()
    };
    let fewer = "use fewer instances of the plan";
    let ring = graph(CollectiveKind::Allgather, 8, 1, 1, |root, _| ring_tree(8, root));
    let channels = format!("the msccl profile allows 32 channels, but the plan needs 33; {fewer}");
    assert_eq!(refused(&ring, Profile::Msccl, 33), channels);
    assert!(refused(&ring, Profile::Msccl, u32::MAX).ends_with(fewer));
    let star = graph(CollectiveKind::Allgather, 20, 1, 1, |root, _| star_tree(20, root));
    let blocks = format!("the msccl profile allows 216 thread blocks per rank, but rank 0 needs 228; {fewer}");
    assert_eq!(refused(&star, Profile::Msccl, 12), blocks);
    let long = graph(CollectiveKind::Broadcast, 2, 2000, 2000, |root, _| ring_tree(2, root));
    assert!(
        refused(&long, Profile::Msccl, 17)
            .ends_with(&format!("chunks as an offset, but the plan needs 33999; {fewer}"))
    );
    let parts = graph(CollectiveKind::Allgather, 9, 60, 60, |root, part| {
        if part % 2 == 0 { star_tree(9, root) } else { ring_tree(9, root) }
    });
    let nodes = refused(&parts, Profile::Msccl, 10);
    assert!(nodes.starts_with("the msccl profile allows 4095 XML nodes per rank, but rank 0 needs "), "{nodes}");
}

/// A plan whose blocks are more than what is resident for certain is not repeated.
#[test]
fn automatic_leaves_a_plan_alone_that_fills_the_runtime() {
    let star = graph(CollectiveKind::Allgather, 120, 1, 1, |root, _| star_tree(120, root));
    let auto = lowered_times(Profile::Msccl, &star, false, Instances::Auto).unwrap();
    assert_eq!((auto.instances, auto.program), (NonZeroU32::MIN, lowered_for(Profile::Msccl, &star, false)));
}
