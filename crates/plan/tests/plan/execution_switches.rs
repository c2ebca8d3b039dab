//! Execution plans that let switches write to several ranks at once, and add up: lowered, read back, proved and run.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use canopy_plan::{
    ChannelType, ExecutionBlock, ExecutionPlan, ExecutorProfile, OpName, RankChannels, RefPlace,
    emulate_execution_plan, parse_execution_plan, prove_execution_plan, write_execution_plan,
};
use canopy_schedule::{Collective, CollectiveKind};
use canopy_synth::Algorithm;
use canopy_topology::Rank;
use capable::capable;
use execution::{graph, lowered, topology};

use crate::support::capable;
use crate::support::execution;

/// Reads back, proves, and runs in several interleavings.
#[track_caller]
fn judge(plan: &ExecutionPlan, asked: Collective, profile: ExecutorProfile) {
    let text = write_execution_plan(plan);
    let read = parse_execution_plan(&text).unwrap();
    assert_eq!(&read, plan);
    let proof = prove_execution_plan(&read, Some(asked), profile, &|| false).unwrap();
    assert!(proof.is_ok(), "{profile} {}: {:#?}\n{text}", asked.kind(), proof.problems);
    let has_switches = plan.ranks.iter().any(|rank| !groups(plan, rank.id as usize).is_empty());
    // What switches need, and that the runtime's shim has no all-to-all.
    let is_all_to_all = asked.kind() == CollectiveKind::AllToAll && profile == ExecutorProfile::V10;
    let expected = usize::from(has_switches) + usize::from(is_all_to_all);
    assert_eq!(proof.warnings.len(), expected, "{:#?}", proof.warnings);
    emulate_execution_plan(&read, Some(asked), profile, [1], &|| false).unwrap();
}

fn count(plan: &ExecutionPlan, name: OpName) -> usize {
    let blocks = plan.ranks.iter().flat_map(|rank| &rank.blocks);
    blocks.flat_map(|block| &block.operations).filter(|operation| operation.name == name).count()
}

fn groups(plan: &ExecutionPlan, rank: usize) -> Vec<(char, Vec<u32>)> {
    let of = |entry: &RankChannels| match entry {
        RankChannels::Switch { buffer, groups } => {
            groups.iter().map(|group| (buffer.letter().chars().next().unwrap(), group.ranks.clone())).collect()
        }
        RankChannels::Peers { .. } => Vec::new(),
    };
    plan.ranks[rank].channels.iter().flat_map(of).collect()
}

#[test]
fn every_collective_is_lowered_where_switches_can_more() {
    for expression in
        ["dgx-h100:boxes=1", "dgx-h100:boxes=2,gpus=4", "leaf-spine:leaves=1,hosts=5,spines=1", "mi250:boxes=1"]
    {
        for aggregate in [false, true] {
            let topology = capable(expression, aggregate);
            for kind in CollectiveKind::ALL {
                let graph = graph(&topology, kind, None, Algorithm::Auto);
                for profile in ExecutorProfile::ALL {
                    for in_place in [false, true] {
                        judge(&lowered(&topology, &graph, profile, in_place), graph.collective, profile);
                    }
                }
            }
        }
    }
}

/// Each share is stored once instead of being put seven times, into the rank's own output, too.
#[test]
fn an_allgather_in_one_box_stores_each_share_once() {
    let topology = capable("dgx-h100:boxes=1", true);
    let graph = graph(&topology, CollectiveKind::Allgather, None, Algorithm::Auto);
    for in_place in [false, true] {
        let plan = lowered(&topology, &graph, ExecutorProfile::V10, in_place);
        assert_eq!(count(&plan, OpName::Put) + count(&plan, OpName::Copy), 0);
        // In eight pieces, each by a block of its own.
        let trees = graph.batches.len();
        assert_eq!((trees, count(&plan, OpName::GroupStore)), (8, 8 * 8));
        let stores =
            |block: &&ExecutionBlock| block.operations.iter().any(|operation| operation.name == OpName::GroupStore);
        assert!(plan.ranks.iter().all(|rank| rank.blocks.iter().filter(stores).count() == 8));
        for rank in 0..8 {
            assert_eq!(groups(&plan, rank), [('o', (0..8).collect())]);
            assert_eq!(plan.ranks[rank].remote_buffers, []);
        }
    }
}

/// Older loaders know sums in switches, and no stores.
#[test]
fn older_loaders_get_sums_in_switches_alone() {
    let topology = capable("dgx-h100:boxes=1", true);
    let allgather = graph(&topology, CollectiveKind::Allgather, None, Algorithm::Auto);
    for profile in [ExecutorProfile::V08, ExecutorProfile::V09] {
        let plan = lowered(&topology, &allgather, profile, false);
        assert_eq!(count(&plan, OpName::GroupStore), 0);
        assert_eq!(groups(&plan, 0), []);
    }
    let allreduce = graph(&topology, CollectiveKind::Allreduce, None, Algorithm::Auto);
    for profile in ExecutorProfile::ALL {
        for (in_place, buffers) in [(true, "i"), (false, "io")] {
            let plan = lowered(&topology, &allreduce, profile, in_place);
            assert!(count(&plan, OpName::GroupReduceStore) >= 1);
            assert_eq!(count(&plan, OpName::Put) + count(&plan, OpName::Reduce) + count(&plan, OpName::ReduceSend), 0);
            let found: String = groups(&plan, 3).iter().map(|(buffer, _)| *buffer).collect();
            assert_eq!(found, buffers);
        }
    }
}

/// The sums of an allreduce over two boxes come up by memory and ports; on the way down a box is fed at once.
#[test]
fn boxes_are_fed_at_once_and_summed_one_by_one() {
    let topology = capable("dgx-h100:boxes=2", true);
    let graph = graph(&topology, CollectiveKind::Allreduce, None, Algorithm::Auto);
    let plan = lowered(&topology, &graph, ExecutorProfile::V10, true);
    assert_eq!(count(&plan, OpName::GroupReduceStore), 0);
    assert!(count(&plan, OpName::GroupStore) >= 8);
    assert!(count(&plan, OpName::PutSignal) > 0);
    let box_of = |rank: u32| rank / 8;
    for rank in 0..16 {
        for (_, members) in groups(&plan, rank) {
            assert!(members.iter().all(|&member| box_of(member) == box_of(u32::try_from(rank).unwrap())));
        }
    }
}

#[test]
fn any_rank_may_be_the_root() {
    let topology = capable("dgx-h100:boxes=1,gpus=6", false);
    for root in [0, 5] {
        let graph = graph(&topology, CollectiveKind::Broadcast, Some(Rank::new(root)), Algorithm::Direct);
        for in_place in [false, true] {
            let plan = lowered(&topology, &graph, ExecutorProfile::V10, in_place);
            assert!(count(&plan, OpName::GroupStore) >= 1);
            assert_eq!(count(&plan, OpName::Copy), 0);
            judge(&plan, graph.collective, ExecutorProfile::V10);
        }
    }
}

/// 36 ranks on one switch: more peers than a block has channels.
#[test]
fn a_large_domain_is_fed_by_one_store_and_told_by_several_blocks() {
    let topology = capable("leaf-spine:leaves=1,hosts=36,spines=1", true);
    for (kind, name) in
        [(CollectiveKind::Broadcast, OpName::GroupStore), (CollectiveKind::Allreduce, OpName::GroupReduceStore)]
    {
        let graph = graph(&topology, kind, None, Algorithm::Direct);
        let plan = lowered(&topology, &graph, ExecutorProfile::V10, true);
        assert!(count(&plan, name) >= 1, "{kind}");
        judge(&plan, graph.collective, ExecutorProfile::V10);
    }
}

/// What a switch cannot do stays as it is.
#[test]
fn plain_networks_are_lowered_as_before() {
    let plan = |topology: &canopy_topology::Topology| {
        let graph = graph(topology, CollectiveKind::ReduceScatter, None, Algorithm::Auto);
        lowered(topology, &graph, ExecutorProfile::V10, false)
    };
    assert_eq!(plan(&topology("dgx-h100:boxes=1")), plan(&capable("dgx-h100:boxes=1", true)));
    let has_switch = |plan: &ExecutionPlan| {
        let blocks = plan.ranks.iter().flat_map(|rank| &rank.blocks);
        blocks.flat_map(|block| &block.channels).any(|(kind, _)| *kind == ChannelType::Switch)
    };
    assert!(!has_switch(&plan(&capable("dgx-h100:boxes=1", true))));
}

/// Chunks that leave each rank and that reach it, at most, and chunks of the whole message: a store leaves once and reaches all others,
/// a sum in a switch leaves all others first.
fn traffic(plan: &ExecutionPlan) -> (u32, u32, u32) {
    let mut moved = vec![(0, 0); plan.ranks.len()];
    for rank in &plan.ranks {
        let groups = groups(plan, rank.id as usize);
        for block in &rank.blocks {
            let listed = |of: ChannelType| {
                let lists = block.channels.iter().filter(move |(kind, _)| *kind == of);
                lists.flat_map(|(_, ids)| ids.clone()).collect::<Vec<u32>>()
            };
            let switches = listed(ChannelType::Switch);
            for operation in &block.operations {
                for target in &operation.targets {
                    let to: Vec<u32> = match target.place {
                        RefPlace::Local(_) => continue,
                        RefPlace::Remote(id) => {
                            let (_, ids) = block
                                .remote_buffers
                                .iter()
                                .find(|(kind, _)| Some(*kind) == operation.channel_type)
                                .unwrap();
                            vec![rank.remote_buffers[ids[id as usize] as usize].rank]
                        }
                        RefPlace::Switch(id) => groups[switches[id as usize] as usize].1.clone(),
                    };
                    let others = || to.iter().filter(|&&to| to != rank.id).map(|&to| to as usize);
                    moved[rank.id as usize].0 += target.size;
                    others().for_each(|to| moved[to].1 += target.size);
                    if operation.name == OpName::GroupReduceStore {
                        moved[rank.id as usize].1 += target.size;
                        others().for_each(|to| moved[to].0 += target.size);
                    }
                }
            }
        }
    }
    let most = |of: fn(&(u32, u32)) -> u32| moved.iter().map(of).max().unwrap();
    (most(|moved| moved.0), most(|moved| moved.1), plan.ranks[0].output_chunks)
}

/// In a box of eight, what leaves a rank and what reaches it, in eighths of the message.
#[test]
fn switches_relieve_the_links_of_a_box() {
    for (kind, plain, switched) in
        [(CollectiveKind::Allgather, (7, 7), (1, 7)), (CollectiveKind::Allreduce, (14, 14), (8, 8))]
    {
        for (topology, expected) in
            [(topology("dgx-h100:boxes=1"), plain), (capable("dgx-h100:boxes=1", true), switched)]
        {
            let graph = graph(&topology, kind, None, Algorithm::Auto);
            let (left, reached, whole) = traffic(&lowered(&topology, &graph, ExecutorProfile::V10, false));
            assert_eq!((8 * left, 8 * reached), (expected.0 * whole, expected.1 * whole), "{kind}");
        }
    }
}
