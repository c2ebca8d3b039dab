//! Estimates the memory of planning before any is allocated.

mod ways;

use std::num::NonZeroU64;

use canopy_plan::{Needs, Target};
use canopy_schedule::{Collective, CollectiveKind, Shares};
use canopy_synth::{Algorithm, Paths, Solver, are_listed};
use canopy_topology::Topology;

use self::ways::Ways;

/// What every job takes.
const BASE_BYTES: u64 = 4 << 20;
/// For each node.
const NODE_BYTES: u64 = 1 << 10;
/// For each directed link: the flow networks in which the optimum is sought have several arcs per link.
const LINK_BYTES: u64 = 640;
/// For each hop of a tree from its packing to the plan file.
const HOP_BYTES: u64 = 320;
/// For each send of a schedule in steps, from its making to the plan file.
const SEND_BYTES: u64 = 176;
/// For each path of a flow, from its making to the plan file.
const PATH_BYTES: u64 = 128;
/// For each hop of a path.
const PATH_HOP_BYTES: u64 = 16;
/// For each hop of a path where a file of a runtime is made: then the paths have transfers.
const PATH_TRANSFER_BYTES: u64 = 160;
/// For each hop in the file of a runtime, from its lowering to its emulation.
const LOWERED_HOP_BYTES: u64 = 3 << 10;

/// Different trees per root that shares of different sizes lead to, at most: on 1,024 ranks in boxes, with weights drawn at
/// random, 1.6 to 2.8 with two sizes, 2 to 3.8 with four, and 7 to 11 where nearly all are different.
const TREES_PER_ROOT_MAX: u64 = 8;

/// For each hop of one tree per root, where trees are to be flat: several of each root are grown side by side.
const FLAT_HOP_BYTES: u64 = 1_600;
/// Ranks up to which the trees of a single root may pass through relays, one for each.
const RELAYED_RANKS_MAX: u64 = 513;

/// Paths for each pair of ranks in an all-to-all whose paths are chosen for their loads, roughly.
const PATHS_PER_PAIR: u64 = 2;
/// Most hops of the paths of a flow, and so most paths.
const PATH_HOPS_MAX: u64 = 1 << 25;

/// For each variable of concurrent flows, a rank and a link: what the iterations hold, what they propose, whole chunks of it.
const FLOW_VARIABLE_BYTES: u64 = 48;
/// More variables are refused before they are there.
const FLOW_VARIABLES_MAX: u64 = 1 << 25;
/// For each variable of a linear program that is solved whole, path or flow, with its factors.
const WHOLE_VARIABLE_BYTES: u64 = 2_304;
/// Variables up to which concurrent flows are solved whole.
const WHOLE_FLOW_MAX: u64 = 1 << 13;
/// Steps in which flows are sought, roughly, and the most variables of all of them.
const FLOW_STEPS: u64 = 4;
const STEPPED_FLOW_MAX: u64 = 40_000;
/// Most paths of a program over paths.
const SET_PATHS_MAX: u64 = 200_000;
/// For each hop in a route file.
const ROUTED_HOP_BYTES: u64 = 64;
/// For each weight of a block: in the order, the request, the plan and its record, the layout of chunks, as a demand.
const WEIGHT_BYTES: u64 = 128;

/// What an allreduce will look like; of no meaning for other collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A reduce-scatter followed by an allgather.
    Phases,
    /// Trees that are gone up and down, with their roots at their centres: so many, if that is stated.
    Trees(Option<NonZeroU64>),
    /// The same with roots where they are asked for, which cuts trees into parts.
    RootedTrees,
}

/// Bytes of memory that making a plan takes at its peak, roughly: enough to decide whether to begin.
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
/// Sends of schedules in steps take less than hops of trees, paths and their hops still less; programs that choose paths are
/// counted by their variables.
///
/// * **In.** Any topology, collective and shares; whether the depth of trees is limited. **Out.** Bytes, saturating. **Cost.** O(ranks log ranks + links).
pub(crate) fn estimate_bytes(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    (algorithm, form): (Algorithm, Form),
    (outputs, is_flat): (&[Target], bool),
) -> u64 {
    let ranks = u64::from(topology.rank_count());
    let is_listed = are_listed(collective.kind(), topology.rank_count()) || *shares != Shares::Equal;
    if [Algorithm::Stages, Algorithm::Orbits].contains(&algorithm) || (algorithm == Algorithm::Auto && !is_listed) {
        let graphs = if outputs.iter().any(|output| output.needs() == Needs::Transfers) {
            ranks.saturating_mul(ranks)
        } else {
            0
        };
        return network_bytes(topology).saturating_add(graphs.saturating_mul(HOP_BYTES));
    }
    let (roots, forests) = match collective.kind() {
        CollectiveKind::Allgather | CollectiveKind::ReduceScatter => (tree_count(ranks, shares), 1),
        CollectiveKind::AllToAll => {
            let weights = shares.weights().len() as u64;
            return all_to_all_bytes(topology, algorithm, outputs).saturating_add(weights.saturating_mul(WEIGHT_BYTES));
        }
        // One that gathers and one that scatters.
        CollectiveKind::Allreduce => match form {
            Form::Phases => (tree_count(ranks, shares), 2),
            Form::Trees(stated) => (stated.map_or(ranks.div_ceil(2), |count| count.get().min(ranks)), 2),
            Form::RootedTrees => (ranks.saturating_add(ranks.div_ceil(2)), 2),
        },
        CollectiveKind::Broadcast | CollectiveKind::Reduce if ranks <= RELAYED_RANKS_MAX => (ranks, 1),
        CollectiveKind::Broadcast | CollectiveKind::Reduce | CollectiveKind::Gather | CollectiveKind::Scatter => (1, 1),
    };
    let hops = roots.saturating_mul(ranks.saturating_sub(1)).saturating_mul(forests);
    let lowered = outputs.iter().map(|output| output.operations(hops, ranks)).fold(0, u64::saturating_add);
    let hop_bytes = match (algorithm.memory.has_plain_sends, is_flat) {
        (true, _) => SEND_BYTES,
        (false, true) => HOP_BYTES + FLAT_HOP_BYTES,
        (false, false) => HOP_BYTES,
    };
    network_bytes(topology)
        .saturating_add(hops.saturating_mul(hop_bytes))
        .saturating_add(routed_bytes(outputs, hops))
        .saturating_add(lowered.saturating_mul(LOWERED_HOP_BYTES))
}

/// What is known of nodes and links, and what every job takes.
fn network_bytes(topology: &Topology) -> u64 {
    let (nodes, links) = (topology.nodes().len() as u64, topology.links().len() as u64);
    BASE_BYTES.saturating_add(nodes.saturating_mul(NODE_BYTES)).saturating_add(links.saturating_mul(LINK_BYTES))
}

/// Bytes for an all-to-all, which is made of paths.
///
/// By default there are up to [`PATHS_PER_PAIR`] of them for each pair of ranks, each as long as the shortest way; around a
/// ring a block passes half of the ranks at most, and `ewsp` takes all shortest ways. More hops than [`PATH_HOPS_MAX`] are
/// refused before they are there. Networks that look alike from many ranks need a solver for few of them, which is not known before.
fn all_to_all_bytes(topology: &Topology, algorithm: Algorithm, outputs: &[Target]) -> u64 {
    let ranks = u64::from(topology.rank_count());
    let pairs = ranks.saturating_mul(ranks.saturating_sub(1));
    let ways = Ways::of(topology);
    let (paths, hops) = match algorithm.memory.paths {
        Paths::AroundRing => (pairs.saturating_mul(2), pairs.saturating_mul(ranks.div_ceil(2))),
        Paths::OneShortest => (pairs, ways.distance),
        Paths::AllShortest => (ways.paths, ways.hops),
        Paths::Several => (pairs.saturating_mul(PATHS_PER_PAIR), ways.distance.saturating_mul(PATHS_PER_PAIR)),
    };
    let hops = hops.min(PATH_HOPS_MAX);
    let lowered = outputs.iter().map(|output| output.operations(hops, ranks)).fold(0, u64::saturating_add);
    let transfer_bytes = if lowered > 0 { PATH_TRANSFER_BYTES } else { 0 };
    network_bytes(topology)
        .saturating_add(solver_bytes(topology, algorithm.memory.solver, ways))
        .saturating_add(paths.min(PATH_HOPS_MAX).saturating_mul(PATH_BYTES))
        .saturating_add(hops.saturating_mul(PATH_HOP_BYTES + transfer_bytes))
        .saturating_add(routed_bytes(outputs, hops))
        .saturating_add(lowered.saturating_mul(LOWERED_HOP_BYTES))
}

/// Bytes for the program that is solved before there are paths.
fn solver_bytes(topology: &Topology, solver: Solver, ways: Ways) -> u64 {
    let (ranks, links) = (u64::from(topology.rank_count()), topology.links().len() as u64);
    let variables = ranks.saturating_mul(links);
    match solver {
        Solver::Flow => {
            let iterated = variables.min(FLOW_VARIABLES_MAX) * FLOW_VARIABLE_BYTES;
            iterated + if variables <= WHOLE_FLOW_MAX { variables * WHOLE_VARIABLE_BYTES } else { 0 }
        }
        Solver::SteppedFlow => variables.saturating_mul(FLOW_STEPS).min(STEPPED_FLOW_MAX) * WHOLE_VARIABLE_BYTES,
        // Paths without a common link are as many as the links that leave a rank, at most.
        Solver::DisjointPaths => variables.min(SET_PATHS_MAX) * WHOLE_VARIABLE_BYTES,
        Solver::ShortestPaths => ways.paths.min(SET_PATHS_MAX) * WHOLE_VARIABLE_BYTES,
        Solver::None => 0,
    }
}

/// Bytes for route files: ways with their layers, queue pairs, the text and what is read back from it.
fn routed_bytes(outputs: &[Target], hops: u64) -> u64 {
    let files = outputs.iter().filter(|output| matches!(output.needs(), Needs::Layers(_))).count() as u64;
    files.saturating_mul(hops).saturating_mul(ROUTED_HOP_BYTES)
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

    use canopy_plan::{ExecutorProfile, Format, Instances, Profile};
    use canopy_topology::{Rank, TopologyLimits, generate};

    use super::*;

    fn estimate(expression: &str, kind: CollectiveKind, output: Target) -> u64 {
        estimate_of(expression, kind, Form::Phases, output)
    }

    fn estimate_of(expression: &str, kind: CollectiveKind, form: Form, output: Target) -> u64 {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let root = kind.has_root().then(|| Rank::new(0));
        let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
        estimate_bytes(&topology, collective, &Shares::Equal, (Algorithm::Auto, form), (&[output], false))
    }

    /// Growth of the peak resident size, in MiB, of allgathers with `--max-depth`.
    #[test]
    fn flat_trees_take_several_times_as_much() {
        for (expression, measured_mib) in
            [("dgx-a100:boxes=32", 37), ("mi250:boxes=16", 105), ("fat-tree:k=8,oversub=2", 29)]
        {
            let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
            let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count()).unwrap();
            let outputs: (&[Target], bool) = (&[Format::Json.usual()], true);
            let estimated =
                estimate_bytes(&topology, collective, &Shares::Equal, (Algorithm::Auto, Form::Phases), outputs);
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
            ("dgx-a100:boxes=2", Allgather, Format::Json.usual(), 0),
            ("dgx-a100:boxes=16", Allgather, Format::Json.usual(), 2),
            ("dgx-a100:boxes=32", Allgather, Format::Json.usual(), 16),
            ("dgx-a100:boxes=64", Allgather, Format::Json.usual(), 67),
            ("dgx-a100:boxes=32", Allreduce, Format::Json.usual(), 23),
            ("ring:512", Allgather, Format::Json.usual(), 58),
            ("torus:16x16", Allgather, Format::Json.usual(), 15),
            ("hypercube:8", Allgather, Format::Json.usual(), 15),
            ("mesh:20x20", Allgather, Format::Json.usual(), 35),
            ("mi250:boxes=16", Allgather, Format::Json.usual(), 15),
            ("complete:128", Allgather, Format::Json.usual(), 11),
            ("complete:300", Allgather, Format::Json.usual(), 65),
            ("torus:64x64", Broadcast, Format::Json.usual(), 13),
            // Stopped in the search for the optimum or the packing.
            ("complete:500", Broadcast, Format::Json.usual(), 143),
            ("complete:700", Broadcast, Format::Json.usual(), 284),
            ("complete:1000", Broadcast, Format::Json.usual(), 569),
            ("dgx-a100:boxes=8", Allgather, Profile::Msccl.into(), 3),
            ("torus:8x8", Allgather, Profile::Msccl.into(), 12),
            ("hypercube:6", Allreduce, Profile::Msccl.into(), 7),
            ("ring:64", Allgather, Profile::Msccl.into(), 3),
            ("ring:128", Allgather, Profile::Msccl.into(), 19),
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
            let of = |form| estimate_of(expression, CollectiveKind::Allreduce, form, Format::Json.usual());
            let measured: u64 = measured_mib << 20;
            assert!(measured <= of(Form::Trees(None)) && of(Form::Trees(None)) < of(Form::Phases), "{expression}");
            assert!(of(Form::Phases) < of(Form::RootedTrees), "{expression}");
        }
        let slow = "dgx-a100:boxes=512,faults=nics:5@1/2+seed:1";
        assert!(estimate_of(slow, CollectiveKind::Allreduce, Form::Trees(None), Format::Json.usual()) < 8 << 30);
    }

    /// Execution plans of MSCCL++ on 1,024 ranks: eight trees took 391 MiB, and two phases up to 1.9 GB until blocks had no room.
    #[test]
    fn blocks_bound_what_execution_plans_take() {
        let of =
            |form| estimate_of("dgx-h100:boxes=128", CollectiveKind::Allreduce, form, ExecutorProfile::NEWEST.into());
        assert!((391 << 20..600 << 20).contains(&of(Form::Trees(NonZeroU64::new(8)))));
        assert!((2 << 30..8 << 30).contains(&of(Form::Phases)));
    }

    /// The same for schedules that are not made of trees: sends by `bfb`, paths by `direct`.
    #[test]
    fn sends_and_paths_take_less_than_hops_of_trees() {
        use CollectiveKind::{AllToAll, Allgather, Allreduce, ReduceScatter};
        for (expression, kind, algorithm, measured_mib) in [
            ("torus:50x50", Allgather, Algorithm::Bfb, 813),
            ("circulant:n=2048", ReduceScatter, Algorithm::Bfb, 541),
            ("circulant:n=4096", Allgather, Algorithm::Bfb, 2_189),
            ("torus:32x32", Allreduce, Algorithm::Bfb, 304),
            ("genkautz:n=500,d=4", AllToAll, Algorithm::Direct, 33),
            ("genkautz:n=1000,d=4", AllToAll, Algorithm::Direct, 152),
            ("torus:20x20", AllToAll, Algorithm::Direct, 35),
        ] {
            let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
            let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
            let of = |algorithm| {
                let outputs: (&[Target], bool) = (&[Format::Json.usual()], false);
                estimate_bytes(&topology, collective, &Shares::Equal, (algorithm, Form::Phases), outputs)
            };
            let (estimated, measured) = (of(algorithm), measured_mib << 20);
            assert!(measured <= estimated && estimated <= 2 * measured, "{expression}, {kind}: {estimated} estimated");
            // Several paths of each pair fit where one does.
            assert!(kind != AllToAll || (estimated..1 << 30).contains(&of(Algorithm::Auto)), "{expression}");
        }
    }

    /// Growth of the peak resident size, in MiB, over that of a plan for two ranks, of all-to-alls whose making takes more than
    /// their paths do: never above the estimate, nor far below.
    #[test]
    fn solvers_and_sets_of_paths_are_counted() {
        for (expression, algorithm, measured_mib) in [
            ("genkautz:n=45,d=4", Algorithm::Flow, 13),
            ("genkautz:n=64,d=4", Algorithm::Flow, 4),
            ("genkautz:n=200,d=4", Algorithm::Flow, 15),
            ("genkautz:n=500,d=4", Algorithm::Flow, 89),
            ("genkautz:n=40,d=4", Algorithm::Tsmcf, 52),
            ("genkautz:n=100,d=4", canopy_baselines::PMCF, 72),
            ("torus:6x6", canopy_baselines::PMCF_SHORTEST, 17),
            ("genkautz:n=36,d=4", canopy_baselines::ILP_SHORTEST, 8),
            ("torus:8x8", canopy_baselines::EWSP, 10),
            ("hypercube:6", canopy_baselines::EWSP, 16),
            ("hypercube:7", canopy_baselines::EWSP, 222),
        ] {
            let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
            let collective = Collective::new(CollectiveKind::AllToAll, None, topology.rank_count()).unwrap();
            let (form, outputs): (_, (&[Target], bool)) = (Form::Phases, (&[Format::Json.usual()], false));
            let estimated = estimate_bytes(&topology, collective, &Shares::Equal, (algorithm, form), outputs);
            let measured: u64 = measured_mib << 20;
            assert!(measured <= estimated, "{expression}, {algorithm}: {estimated} estimated");
            assert!(estimated <= 2 * measured + (8 << 20), "{expression}, {algorithm}: {estimated} estimated");
        }
    }

    /// As before, with a route file of 96 MB.
    #[test]
    fn route_files_take_little_beside_their_plans() {
        let topology = generate("genkautz:n=1000,d=4", &TopologyLimits::STANDARD).unwrap();
        let collective = Collective::new(CollectiveKind::AllToAll, None, topology.rank_count()).unwrap();
        let outputs: (&[Target], bool) = (&[Format::RoutesXml.usual()], false);
        let what = (Algorithm::Auto, Form::Phases);
        let (estimated, measured) =
            (estimate_bytes(&topology, collective, &Shares::Equal, what, outputs), 430_u64 << 20);
        assert!(measured <= estimated && estimated <= 4 * measured, "{estimated} estimated");
    }

    #[test]
    fn instances_count_like_plans_as_far_as_ranks_can_keep_them() {
        let times = |instances| Target {
            instances: Instances::Exactly(NonZeroU32::new(instances).unwrap()),
            ..Profile::Msccl.into()
        };
        let auto = Target { instances: Instances::Auto, ..Profile::Msccl.into() };
        assert_eq!(Format::Json.usual().operations(240, 16), 0);
        assert_eq!(times(3).operations(240, 16), 720);
        assert_eq!(times(u32::MAX).operations(240, 16), 32 * 240);
        assert_eq!(auto.operations(240, 16), 32 * 240);
        assert_eq!(auto.operations(1 << 20, 1024), 1024 * 4095);
        assert_eq!(auto.operations(1 << 30, 1024), 1 << 30);
    }

    #[test]
    fn what_would_take_more_than_a_machine_has_is_known_at_once() {
        assert!(estimate("ring:5000", CollectiveKind::Allgather, Format::Json.usual()) > 5 << 30);
        // More are planned by a rule, if at all.
        assert!(estimate("ring:10000", CollectiveKind::Allgather, Format::Json.usual()) < 1 << 30);
        assert!(estimate("ring:10000", CollectiveKind::Broadcast, Format::Json.usual()) < 1 << 30);
    }
}
