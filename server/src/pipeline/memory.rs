//! How much memory the making of a plan takes, told before any of it is taken.

use canopy_plan::Instances;
use canopy_schedule::{Collective, CollectiveKind, Shares};
use canopy_topology::Topology;

use crate::order::Output;

/// What every job takes.
const BASE_BYTES: u64 = 4 << 20;
/// For each node.
const NODE_BYTES: u64 = 1 << 10;
/// For each directed link: the flow networks in which the optimum is sought have several arcs per link.
const LINK_BYTES: u64 = 640;
/// For each hop of a tree from its packing to the plan file.
const HOP_BYTES: u64 = 320;
/// For each hop in the file of a runtime, from its lowering to its emulation.
const LOWERED_HOP_BYTES: u64 = 3 << 10;

/// Different trees per root that shares of different sizes lead to, at most: on 1,024 ranks in boxes, with weights drawn at
/// random, 1.6 to 2.8 with two sizes, 2 to 3.8 with four, and 7 to 11 where nearly all are different.
const TREES_PER_ROOT_MAX: u64 = 8;

/// For each hop of one tree per root, where trees are to be flat: several of each root are grown side by side.
const FLAT_HOP_BYTES: u64 = 1_600;
/// Ranks up to which the trees of a single root may pass through relays, one for each.
const RELAYED_RANKS_MAX: u64 = 513;

/// What an allreduce will look like; of no meaning for other collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A reduce-scatter followed by an allgather.
    Phases,
    /// Trees that are gone up and down, with their roots at their centres.
    Trees,
    /// The same with roots where they are asked for, which cuts trees into parts.
    RootedTrees,
}

/// Bytes of memory that the forest pipeline takes at its peak, roughly: enough to decide whether to begin.
///
/// Three things grow with the network: what is known of its nodes and links; the flow networks on them; and the trees,
/// one per root, each of which has a hop to every other rank. The figure for each is the greatest that was measured,
/// rounded up: the growth of the peak resident size over that of an idle process (release build, x86-64 Linux), as the
/// tests below list it.
///
/// A network of uneven capacities may need several trees per root, which is not known before: then it takes more. Shares of
/// different sizes do need several, about as many as there are sizes, up to some eight; ranks without share need none.
/// Trees with roots anywhere are one for seven ranks in boxes, for ten in tori and up to one for each with several rails,
/// whose hops take half as much as is assumed.
///
/// * **In.** Any topology, collective and shares; whether the depth of trees is limited. **Out.** Bytes, saturating. **Cost.** O(ranks log ranks).
pub(super) fn estimate_bytes(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    form: Form,
    (outputs, is_flat): (&[Output], bool),
) -> u64 {
    let (nodes, links) = (topology.nodes().len() as u64, topology.links().len() as u64);
    let ranks = u64::from(topology.rank_count());
    let (roots, forests) = match collective.kind() {
        CollectiveKind::Allgather | CollectiveKind::ReduceScatter => (tree_count(ranks, shares), 1),
        CollectiveKind::AllToAll => (ranks, 1),
        // One that gathers and one that scatters.
        CollectiveKind::Allreduce => match form {
            Form::Phases => (tree_count(ranks, shares), 2),
            Form::Trees => (ranks.div_ceil(2), 2),
            Form::RootedTrees => (ranks.saturating_add(ranks.div_ceil(2)), 2),
        },
        CollectiveKind::Broadcast | CollectiveKind::Reduce if ranks <= RELAYED_RANKS_MAX => (ranks, 1),
        CollectiveKind::Broadcast | CollectiveKind::Reduce | CollectiveKind::Gather | CollectiveKind::Scatter => (1, 1),
    };
    let hops = roots.saturating_mul(ranks.saturating_sub(1)).saturating_mul(forests);
    let lowered = outputs.iter().map(|output| lowered_hops(*output, hops, ranks)).fold(0, u64::saturating_add);
    BASE_BYTES
        .saturating_add(nodes.saturating_mul(NODE_BYTES))
        .saturating_add(links.saturating_mul(LINK_BYTES))
        .saturating_add(hops.saturating_mul(HOP_BYTES + if is_flat { FLAT_HOP_BYTES } else { 0 }))
        .saturating_add(lowered.saturating_mul(LOWERED_HOP_BYTES))
}

/// Hops in a file of a runtime: those of the plan in each instance. More instances than channels are refused before they
/// take any memory, and an automatic number of them stays within the nodes that ranks keep.
fn lowered_hops(output: Output, hops: u64, ranks: u64) -> u64 {
    let (profile, instances) = match output {
        Output::Json => return 0,
        // Operations and instructions take about as much as steps of an MSCCL file; of the former there are at most eight pieces.
        Output::OnecclXml => return hops,
        Output::MscclppJson(..) => return hops.saturating_mul(8),
        Output::MscclXml(profile, instances) => (profile, instances),
    };
    let limits = profile.limits();
    let channels = u64::from(limits.channels);
    match instances {
        Instances::Exactly(instances) => hops.saturating_mul(u64::from(instances.get()).min(channels)),
        Instances::Auto => {
            let kept = ranks.saturating_mul(limits.nodes.into());
            hops.saturating_mul(channels).min(kept).max(hops)
        }
    }
}

/// Different trees of all roots, roughly.
fn tree_count(ranks: u64, shares: &Shares) -> u64 {
    let Shares::Weighted(weights) = shares else { return ranks };
    let mut sizes: Vec<u64> = weights.iter().copied().filter(|&weight| weight > 0).collect();
    let roots = sizes.len() as u64;
    sizes.sort_unstable();
    sizes.dedup();
    roots.saturating_mul(TREES_PER_ROOT_MAX.min(sizes.len() as u64))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use canopy_plan::Profile;
    use canopy_topology::{Rank, TopologyLimits, generate};

    use super::*;

    const MSCCL: Output = Output::MscclXml(Profile::Msccl, Instances::ONE);

    fn estimate(expression: &str, kind: CollectiveKind, output: Output) -> u64 {
        estimate_of(expression, kind, Form::Phases, output)
    }

    fn estimate_of(expression: &str, kind: CollectiveKind, form: Form, output: Output) -> u64 {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let root = kind.has_root().then(|| Rank::new(0));
        let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
        estimate_bytes(&topology, collective, &Shares::Equal, form, (&[output], false))
    }

    /// Growth of the peak resident size, in MiB, of allgathers with `--max-depth`.
    #[test]
    fn flat_trees_take_several_times_as_much() {
        for (expression, measured_mib) in
            [("dgx-a100:boxes=32", 37), ("mi250:boxes=16", 105), ("fat-tree:k=8,oversub=2", 29)]
        {
            let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
            let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count()).unwrap();
            let outputs: (&[Output], bool) = (&[Output::Json], true);
            let estimated = estimate_bytes(&topology, collective, &Shares::Equal, Form::Phases, outputs);
            let measured: u64 = measured_mib << 20;
            assert!(measured <= estimated && estimated <= 4 * measured + (16 << 20), "{expression}: {estimated}");
        }
    }

    #[test]
    fn trees_are_counted_by_sizes_of_shares() {
        let count = |weights: &[u64]| tree_count(weights.len() as u64, &Shares::Weighted(weights.to_vec()));
        assert_eq!(tree_count(5, &Shares::Equal), 5);
        assert_eq!(count(&[3, 3, 0, 3]), 3);
        assert_eq!(count(&[1, 2, 2, 0]), 6);
        assert_eq!(count(&(1..=100).collect::<Vec<_>>()), 800);
    }

    /// Growth of the peak resident size, in MiB, beside the estimate: never above it, and not far below.
    #[test]
    fn estimates_are_above_what_was_measured_and_within_a_small_factor() {
        use CollectiveKind::{Allgather, Allreduce, Broadcast};
        for (expression, kind, output, measured_mib) in [
            ("dgx-a100:boxes=2", Allgather, Output::Json, 0),
            ("dgx-a100:boxes=16", Allgather, Output::Json, 2),
            ("dgx-a100:boxes=32", Allgather, Output::Json, 16),
            ("dgx-a100:boxes=64", Allgather, Output::Json, 67),
            ("dgx-a100:boxes=32", Allreduce, Output::Json, 23),
            ("ring:512", Allgather, Output::Json, 58),
            ("torus:16x16", Allgather, Output::Json, 15),
            ("hypercube:8", Allgather, Output::Json, 15),
            ("mesh:20x20", Allgather, Output::Json, 35),
            ("mi250:boxes=16", Allgather, Output::Json, 15),
            ("complete:128", Allgather, Output::Json, 11),
            ("complete:300", Allgather, Output::Json, 65),
            ("torus:64x64", Broadcast, Output::Json, 13),
            // Stopped in the search for the optimum or the packing.
            ("complete:500", Broadcast, Output::Json, 143),
            ("complete:700", Broadcast, Output::Json, 284),
            ("complete:1000", Broadcast, Output::Json, 569),
            ("dgx-a100:boxes=8", Allgather, MSCCL, 3),
            ("torus:8x8", Allgather, MSCCL, 12),
            ("hypercube:6", Allreduce, MSCCL, 7),
            ("ring:64", Allgather, MSCCL, 3),
            ("ring:128", Allgather, MSCCL, 19),
        ] {
            let estimated = estimate(expression, kind, output);
            let measured: u64 = measured_mib << 20;
            assert!(measured <= estimated, "{expression}, {kind}: {estimated} estimated");
            assert!(estimated <= 4 * measured + (16 << 20), "{expression}, {kind}: {estimated} estimated");
        }
    }

    /// The same for an allreduce with roots anywhere. The number of its trees is not known before: what has few gets more
    /// than it needs.
    #[test]
    fn trees_with_roots_anywhere_take_less_than_two_phases() {
        for (expression, measured_mib) in [
            ("dgx-a100:boxes=512,faults=nics:5@1/2+seed:1", 740),
            ("dgx-a100:boxes=128,faults=nics:3@1/2+gpus:2+seed:1", 52),
            ("rail:boxes=128,faults=gpus:3+seed:1", 287),
            ("mi250:boxes=64,nodes-down=b0g5", 38),
            ("torus:32x32,down=0.0-0.1", 19),
        ] {
            let of = |form| estimate_of(expression, CollectiveKind::Allreduce, form, Output::Json);
            let measured: u64 = measured_mib << 20;
            assert!(measured <= of(Form::Trees) && of(Form::Trees) < of(Form::Phases), "{expression}");
            assert!(of(Form::Phases) < of(Form::RootedTrees), "{expression}");
        }
        let slow = "dgx-a100:boxes=512,faults=nics:5@1/2+seed:1";
        assert!(estimate_of(slow, CollectiveKind::Allreduce, Form::Trees, Output::Json) < 8 << 30);
    }

    #[test]
    fn instances_count_like_plans_as_far_as_ranks_can_keep_them() {
        let times =
            |instances| Output::MscclXml(Profile::Msccl, Instances::Exactly(NonZeroU32::new(instances).unwrap()));
        let auto = Output::MscclXml(Profile::Msccl, Instances::Auto);
        assert_eq!(lowered_hops(Output::Json, 240, 16), 0);
        assert_eq!(lowered_hops(times(3), 240, 16), 720);
        assert_eq!(lowered_hops(times(u32::MAX), 240, 16), 32 * 240);
        assert_eq!(lowered_hops(auto, 240, 16), 32 * 240);
        assert_eq!(lowered_hops(auto, 1 << 20, 1024), 1024 * 4095);
        assert_eq!(lowered_hops(auto, 1 << 30, 1024), 1 << 30);
    }

    #[test]
    fn what_would_take_more_than_a_machine_has_is_known_at_once() {
        assert!(estimate("ring:10000", CollectiveKind::Allgather, Output::Json) > 20 << 30);
        assert!(estimate("ring:10000", CollectiveKind::Broadcast, Output::Json) < 1 << 30);
    }
}
