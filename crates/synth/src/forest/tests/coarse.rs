//! Rounded capacities.

use canopy_optimize::Never;
use canopy_schedule::Shares;
use canopy_topology::{TopologyLimits, generate};

use crate::forest::clusters::{Detail, find_clusters};
use crate::forest::coarse::coarsen;
use crate::forest::condition::Condition;
use crate::forest::decomposition::take_apart;
use crate::forest::instance::{Instance, Roots};
use crate::forest::network::Network;
use crate::forest::packing::PackingChoice;
use crate::forest::trim::trim;
use crate::progress::Silent;

/// By what pieces can be divided, the trees per root, and how many capacities are multiples of these before and after.
fn coarsened(expression: &str) -> (u128, u64, usize, usize) {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let network = Network::of(&topology);
    let Instance { trees_per_root, demands, capacities } =
        Instance::new(&topology, Roots::All(&Shares::Equal), None, &Never).unwrap();
    let capacities: Vec<i128> = capacities.into_iter().map(|capacity| capacity.try_into().unwrap()).collect();
    let demands: Vec<i128> = demands.into_iter().map(i128::from).collect();
    let condition = |capacities: &[i128]| {
        let edges = network.links.iter().zip(capacities).map(|(link, &capacity)| (link.from, link.to, capacity));
        Condition::new(edges.collect::<Vec<_>>().into_iter(), demands.clone(), network.terminal_count, &Never).unwrap()
    };
    let clusters = find_clusters(&network, &capacities, Detail::Boxes, &Never).unwrap();
    let mut tight = trim(&network, &capacities, clusters, &mut condition(&capacities)).unwrap();
    let multiples =
        |capacities: &[i128]| capacities.iter().filter(|&&capacity| capacity % i128::from(trees_per_root) == 0).count();
    let before = tight.capacities.clone();
    let unit = coarsen(&network, &mut tight, &demands, &Never).unwrap();
    assert!(tight.capacities.iter().zip(&before).all(|(after, before)| after <= before));
    assert!(condition(&tight.capacities).violation().unwrap().is_none());
    (unit, trees_per_root, multiples(&before), multiples(&tight.capacities))
}

/// A dead link makes 83 trees per root or so; the boxes that are whole do with multiples of that.
#[test]
fn whole_boxes_do_with_multiples() {
    let (unit, trees_per_root, before, after) = coarsened("mi250:boxes=16,down=b0g0-b0g1");
    assert!(trees_per_root > 16, "{trees_per_root}");
    assert_eq!(unit, trees_per_root.into());
    // Links inside 15 boxes, at least.
    assert!(after > before + 15 * 16 && after > 15 * 16 * 4, "{before}, then {after}");
}

/// One tree per root can not be divided, and where all of what there is is needed, nothing is rounded.
#[test]
fn nothing_is_rounded_where_all_is_needed() {
    let (unit, trees_per_root, before, after) = coarsened("mi250:boxes=16");
    assert_eq!((unit, before), (trees_per_root.into(), after));
    let (unit, trees_per_root, before, after) = coarsened("torus:4x4");
    assert_eq!((unit, before), (trees_per_root.into(), after));
}

/// Other boxes send to the damaged one in multiples, too, so few trees are divided where they enter it.
#[test]
fn few_trees_are_divided_at_a_damaged_box() {
    let topology = generate("mi250:boxes=32,down=b0g0-b0g1", &TopologyLimits::STANDARD).unwrap();
    let network = Network::of(&topology);
    let Instance { trees_per_root, demands, capacities } =
        Instance::new(&topology, Roots::All(&Shares::Equal), None, &Never).unwrap();
    let capacities: Vec<i128> = capacities.into_iter().map(|capacity| capacity.try_into().unwrap()).collect();
    let demands: Vec<i128> = demands.into_iter().map(i128::from).collect();
    let apart = take_apart(&network, &capacities, &demands, &Never).unwrap();
    let routed = apart.solve(trees_per_root, PackingChoice::First, &Never, &Silent).unwrap();
    let trees = routed.trees.len();
    assert!(
        trees_per_root > 16 && (512..640).contains(&trees),
        "{trees_per_root} trees per root, {trees} different ones"
    );
}
