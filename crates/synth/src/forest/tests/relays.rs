//! Trees of one root by way of relays.

use canopy_optimize::Never;
use canopy_schedule::{Action, Collective, CollectiveKind, Forest, Schedule, Shape, Shares, check, compile};
use canopy_topology::{Rank, Topology, TopologyLimits, generate};
use proptest::prelude::*;

use super::both_ways;
use super::pieces::{depth_max, in_pieces, machines, walks};
use crate::bound::bound;
use crate::forest::assembly::Assembly;
use crate::forest::instance::{Instance, Roots};
use crate::forest::packing::PackingChoice;
use crate::forest::relays::relayed;
use crate::forest::{Effort, solve};
use crate::progress::Silent;

/// Trees of rank 0 with relays, found to deliver everything at the greatest rate; `None` where there are none.
fn checked(topology: &Topology, pieces_from: u32) -> Option<Forest> {
    let root = Rank::new(0);
    let instance = Instance::new(topology, Roots::One(root), None, &Never).unwrap();
    let effort = Effort { pieces_from, choice: PackingChoice::First, ..Effort::FULL };
    let solve = |spread: &Instance| solve(topology, spread, effort, &Never, &Silent);
    let trees = relayed(topology, root, &instance, &solve, &Never).unwrap()?;
    let units = (topology.rank_count(), topology.rank_count().into());
    let mut assembly = Assembly::new([trees.trees_per_root].into_iter(), 1, units, &Never).unwrap();
    assembly.add_phase(Action::Copy, &trees, &[]).unwrap();
    let forest = assembly.finish();
    let collective = Collective::new(CollectiveKind::Broadcast, Some(root), topology.rank_count()).unwrap();
    let (algorithm, shape) = ("forest".to_owned(), Shape::Forest(forest.clone()));
    let schedule = Schedule { collective, algorithm, shares: Shares::Equal, shape };
    let algbw = check(topology, &compile(topology, &schedule).unwrap()).unwrap().algbw;
    assert_eq!(algbw, bound(topology, collective, &Shares::Equal, &Never).unwrap().lower);
    Some(forest)
}

/// One port each: a single tree at the full rate is a chain, relays make it four hops.
#[test]
fn a_star_needs_no_chain() {
    let names: Vec<String> = (0..12).map(|rank| format!("r{rank:02}")).collect();
    let links: Vec<(&str, &str, u64)> = names.iter().map(|name| (name.as_str(), "s", 3)).collect();
    let star = both_ways(&format!("{} s", names.join(" ")), &links);
    let forest = checked(&star, 0).unwrap();
    assert!(depth_max(&forest) <= 4 && forest.phases[0].trees.len() <= 22, "{}", depth_max(&forest));
}

/// What a ring or a torus takes in at its first ranks passes through them to the others.
#[test]
fn no_relays_where_parts_would_be_in_the_way() {
    for expression in ["ring:8", "torus:6x6", "hypercube:4"] {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        assert_eq!(checked(&topology, 0), None, "{expression}");
    }
}

/// Dozens of hops without relays; trees both ways, and no more of them than ranks.
#[test]
fn machines_of_many_boxes_have_flat_trees() {
    for (expression, most) in [
        ("dgx-a100:boxes=16", 5),
        ("rail:boxes=8", 5),
        ("leaf-spine:leaves=8,hosts=8,spines=4,oversub=2", 6),
        ("dragonfly-router:p=2,a=4,h=2", 10),
    ] {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
            let (forest, _) = in_pieces(&topology, kind);
            let is_few = forest.phases[0].trees.len() <= topology.rank_count() as usize;
            let reversed = kind == CollectiveKind::Reduce;
            let depth = if reversed { height_max(&forest) } else { depth_max(&forest) };
            assert!(is_few && depth <= most, "{expression}: {depth} hops");
        }
    }
}

/// Greatest number of hops between a rank and the root its data is reduced to.
fn height_max(forest: &Forest) -> u32 {
    let mut max = 0;
    for tree in forest.phases.iter().flat_map(|phase| &phase.trees) {
        let mut depths = std::collections::BTreeMap::from([(tree.root, 0)]);
        for hop in forest.hops_of(tree).iter().rev() {
            let depth = depths[&hop.to] + 1;
            depths.insert(hop.from, depth);
            max = max.max(depth);
        }
    }
    max
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever relays make is as fast as the network allows, in one piece and in several.
    #[test]
    fn relays_lose_nothing(topology in prop_oneof![machines(), walks()], in_pieces in any::<bool>()) {
        checked(&topology, if in_pieces { 0 } else { u32::MAX });
    }
}
