//! Classes and repairs of networks where they are known.

use canopy_optimize::Never;
use canopy_schedule::{Bound, Collective, CollectiveKind, Shares};
use canopy_topology::{Topology, TopologyLimits, generate};

use super::*;
use crate::bound::bound;

fn generated(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn bound_of(topology: &Topology) -> Bound {
    let collective = Collective::new(CollectiveKind::Allreduce, None, topology.rank_count()).unwrap();
    bound(topology, collective, &Shares::Equal, &Never).unwrap()
}

fn repaired(expression: &str, whole: Option<&str>) -> (Bound, Vec<Repair>) {
    let topology = generated(expression);
    let bound = bound_of(&topology);
    let whole = whole.map(generated);
    let found = repairs(&topology, whole.as_ref(), &bound, &Never).unwrap();
    (bound, found)
}

#[test]
fn an_odd_box_is_told_from_the_others() {
    let topology = generated("dgx-a100:boxes=4,degrade=b2g3-ib*1/2");
    let classes = part_classes(&topology, &bound_of(&topology).certificate);
    let [usual, odd] = classes.as_slice() else { panic!("{classes:?}") };
    assert_eq!((usual.sets.len(), usual.ranks, usual.capacity), (3, 8, 200_000_000_000));
    assert!(usual.slower.is_empty() && usual.missing.is_empty());
    assert_eq!((odd.sets.len(), odd.ranks, odd.capacity), (1, 8, 187_500_000_000));
    let [(link, usual)] = odd.slower.as_slice() else { panic!("{odd:?}") };
    let link = topology.link(*link);
    assert_eq!((topology.node(link.from).id.as_str(), topology.node(link.to).id.as_str()), ("b2g3", "ib"));
    assert_eq!((link.capacity.bytes_per_sec(), *usual), (12_500_000_000, 25_000_000_000));

    let topology = generated("dgx-a100:boxes=4,nodes-down=b2g3");
    let classes = part_classes(&topology, &bound_of(&topology).certificate);
    let [_, odd] = classes.as_slice() else { panic!("{classes:?}") };
    assert_eq!((odd.ranks, &odd.missing, odd.slower.len()), (7, &vec![25_000_000_000], 0));
}

#[test]
fn ranks_of_a_mesh_differ_by_their_neighbours() {
    let topology = generated("mesh:4x4");
    let classes = part_classes(&topology, &bound_of(&topology).certificate);
    let found: Vec<_> = classes.iter().map(|class| (class.sets.len(), class.missing.len())).collect();
    assert_eq!(found, [(8, 0), (4, 1), (4, 0)]);
}

#[test]
fn what_is_lacking_is_what_has_no_counterpart() {
    let link = LinkIndex::new;
    let own = [(50, link(0)), (50, link(1)), (16, link(2)), (9, link(3))];
    assert_eq!(lacking(&own, &[50, 50, 50, 16, 9]), (vec![], vec![50]));
    assert_eq!(lacking(&own, &[50, 50, 25, 16]), (vec![(link(3), 25)], vec![]));
    assert_eq!(lacking(&own, &[50, 50, 50, 16, 16]), (vec![(link(3), 50)], vec![16]));
    assert_eq!(lacking(&own, &[16, 9]), (vec![], vec![]), "more is no lack");
    assert_eq!(lacking(&[], &[3, 2]), (vec![], vec![3, 2]));
}

/// Every repair brings what the repaired network has.
#[test]
fn repairs_bring_what_the_whole_network_has() {
    for (broken, whole, what) in [
        ("torus:4x4,down=00-01", "torus:4x4", "00 01"),
        ("dgx-a100:boxes=4,degrade=b2g3-ib*1/2", "dgx-a100:boxes=4", "b2g3 ib"),
        ("dgx-a100:boxes=4,nodes-down=b2g3", "dgx-a100:boxes=4", "b2g3"),
        ("mi250:boxes=2,nodes-down=b0g5", "mi250:boxes=2", "b0g5"),
    ] {
        let (_, found) = repaired(broken, Some(whole));
        let [Repair { what: found, rate }] = found.as_slice() else { panic!("{broken}: {found:?}") };
        assert_eq!(*rate, bound_of(&generated(whole)).upper, "{broken}");
        let name = match found {
            Repaired::Link { first, second, .. } => format!("{first} {second}"),
            Repaired::Node { id } => id.clone(),
        };
        assert_eq!(name, what);
    }
    // One of two faults: as if the other were the only one.
    let (_, found) = repaired("dgx-a100:boxes=4,degrade=b2g3-ib*1/2+b3g1-ib*1/2", Some("dgx-a100:boxes=4"));
    let one_left = bound_of(&generated("dgx-a100:boxes=4,degrade=b2g3-ib*1/2")).upper;
    assert_eq!(found.iter().map(|repair| &repair.rate).collect::<Vec<_>>(), [&one_left, &one_left]);
}

#[test]
fn where_nothing_is_broken_weak_links_are_doubled() {
    // Its ends make one part: 23 links of 25 GB/s between 15.
    for whole in [None, Some("mesh:4x4")] {
        let (_, found) = repaired("mesh:4x4", whole);
        for Repair { what, rate } in &found {
            assert!(matches!(what, Repaired::Link { before: 25_000_000_000, after: 50_000_000_000, .. }), "{what:?}");
            assert_eq!(*rate, "287500000000/7".parse().unwrap());
        }
        assert_eq!(found.len(), 2, "one for each class of ranks, where these differ");
    }
    assert_eq!(repaired("mesh:1x3", None).1, [], "the other link limits as much");
}

#[test]
fn nothing_is_said_where_it_is_not_known_what_binds() {
    let topology = generated("mesh:1x3");
    let certificate = Certificate::Cut { direction: canopy_schedule::CutDirection::Out, nodes: Vec::new() };
    let cut = Bound { certificate, ..bound_of(&topology) };
    assert_eq!(part_classes(&topology, &cut.certificate), []);
    assert_eq!(repairs(&topology, None, &cut, &Never), Ok(Vec::new()));
}
