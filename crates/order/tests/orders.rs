//! Orders beside all others, on random fabrics and on those that people have.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use canopy_order::{Cost, Fabric, Group, Job, NoMachines, Ordered, PartError, by_number, cost, order, order_times};
use canopy_topology::{Attributes, Capacity, Latency, NodeKind, Topology, TopologyDraft, TopologyLimits, generate};
use proptest::prelude::*;

#[path = "orders/gains.rs"]
mod gains;
#[path = "orders/trees.rs"]
mod trees;

const NEVER: &dyn Fn() -> bool = &|| false;

/// Machines of one rank, named in this order, and links in both directions.
fn fabric(machines: &[String], links: &[(String, String, u64)]) -> Fabric {
    let mut draft = TopologyDraft::default();
    for name in machines {
        let attributes = Attributes { host: Some(name.clone()), ..Attributes::default() };
        draft.add_node(name.clone(), NodeKind::Compute, attributes);
    }
    let mut switches: Vec<&String> =
        links.iter().flat_map(|(a, b, _)| [a, b]).filter(|id| !machines.contains(id)).collect();
    switches.sort_unstable();
    switches.dedup();
    switches.into_iter().for_each(|id| {
        draft.add_switch(id.clone());
    });
    for (a, b, rate) in links {
        draft.add_both(a, b, Capacity::from_bytes_per_sec(*rate).unwrap(), Latency::from_nanos(0));
    }
    Fabric::of(&draft.build(&TopologyLimits::STANDARD).unwrap()).unwrap()
}

/// All ranks as one group.
fn whole(fabric: &Fabric) -> Job {
    Job::whole(fabric.rank_count(), fabric.machines().len())
}

/// The order for such groups.
fn grouped(fabric: &Fabric, groups: &[&str]) -> (Job, Ordered) {
    let groups: Vec<Group> = groups.iter().map(|group| group.parse().unwrap()).collect();
    let job = Job::of(&groups, fabric.rank_count(), fabric.machines().len()).unwrap();
    let found = order(fabric, &job, NEVER).unwrap();
    (job, found)
}

/// The least cost of all orders, by going through them.
fn least(fabric: &Fabric, job: &Job) -> Cost {
    fn extend(fabric: &Fabric, job: &Job, order: &mut Vec<usize>, best: &mut Option<Cost>) {
        let count = fabric.machines().len();
        if order.len() == count {
            let found = cost(fabric, job, order, NEVER).unwrap();
            *best = Some(best.map_or(found, |best| best.min(found)));
        }
        for next in 0..count {
            if !order.contains(&next) {
                order.push(next);
                extend(fabric, job, order, best);
                order.pop();
            }
        }
    }
    let (mut order, mut best) = (vec![0], None);
    extend(fabric, job, &mut order, &mut best);
    best.unwrap()
}

/// Machines at leaves of a random tree of switches, in a random order; or on a random connected graph.
fn fabrics() -> impl Strategy<Value = (bool, Fabric)> {
    let numbers = proptest::collection::vec((any::<u32>(), 1_u64..9), 40);
    (3_usize..7, 1_usize..5, any::<bool>(), numbers, any::<u64>()).prop_map(
        |(count, switches, is_tree, numbers, seed)| {
            let mut numbers = numbers.into_iter();
            let mut machines: Vec<String> = (0..count).map(|number| format!("n{number}")).collect();
            machines.rotate_left(usize::try_from(seed % count as u64).unwrap());
            let at = |number: u32, below: usize| number as usize % below;
            let mut links = Vec::new();
            for switch in 1..switches {
                let (number, rate) = numbers.next().unwrap();
                links.push((format!("s{switch}"), format!("s{}", at(number, switch)), rate * 10));
            }
            for machine in &machines {
                let (number, rate) = numbers.next().unwrap();
                links.push((machine.clone(), format!("s{}", at(number, switches)), rate));
            }
            if !is_tree {
                for _ in 0..3 {
                    let ((a, rate), (b, _)) = (numbers.next().unwrap(), numbers.next().unwrap());
                    let (a, b) = (at(a, switches), at(b, switches));
                    if a != b {
                        links.push((format!("s{a}"), format!("s{b}"), rate));
                    }
                }
            }
            (is_tree, fabric(&machines, &links))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// No order is better, none is worse than the one that was given, and the first machine stays.
    #[test]
    fn few_machines_have_the_best_order((_, fabric) in fabrics()) {
        let job = whole(&fabric);
        let found = order(&fabric, &job, NEVER).unwrap();
        prop_assert!(found.is_best);
        prop_assert_eq!(found.cost, least(&fabric, &job));
        prop_assert_eq!(found.cost, cost(&fabric, &job, &found.order, NEVER).unwrap());
        prop_assert!(found.cost <= found.given && found.order[0] == 0);
        prop_assert!(found.bound.busiest <= found.cost.busiest + found.cost.busiest / 1_000_000 + 1);
        let mut sorted = found.order.clone();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, (0..fabric.machines().len()).collect::<Vec<_>>());
    }
}

/// Groups whose sizes multiplied are the number of machines, in some order.
fn groups() -> impl Strategy<Value = (usize, Vec<String>)> {
    let pattern = || prop::sample::select(vec!["ring", "trees", "all-to-all"]);
    let sizes =
        prop::sample::select(vec![vec![2, 2], vec![2, 3], vec![3, 2], vec![5], vec![6], vec![4], vec![2, 1, 3]]);
    (sizes, pattern(), pattern(), 1_u32..4).prop_map(|(sizes, first, other, weight)| {
        let name = |(number, size): (usize, &usize)| {
            let pattern = if number == 0 { first } else { other };
            format!("g{number}={size}:{pattern}:{weight}")
        };
        (sizes.iter().product(), sizes.iter().enumerate().map(name).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The same for groups.
    #[test]
    fn few_machines_have_the_best_order_for_groups((_, fabric) in fabrics(), (count, groups) in groups()) {
        let names: Vec<String> = fabric.machines().iter().take(count).cloned().collect();
        if names.len() < count {
            return Ok(());
        }
        let part = fabric.part(&names).unwrap();
        let (job, found) = grouped(&part, &groups.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert!(found.is_best && found.order[0] == 0);
        prop_assert_eq!(found.cost, least(&part, &job));
        prop_assert!(found.bound.busiest <= found.cost.busiest + found.cost.busiest / 1_000_000 + 1);
    }
}

/// `racks` leaves of `machines` each, two links to each of two spines, machines in turns over racks.
fn leaf_spine(racks: usize, machines: usize, uplink: u64) -> Fabric {
    let mut names = Vec::new();
    let mut links = Vec::new();
    for machine in 0..machines {
        for rack in 0..racks {
            let name = format!("n{}", machine * racks + rack);
            links.push((name.clone(), format!("leaf{rack}"), 100));
            names.push(name);
        }
    }
    for rack in 0..racks {
        for spine in 0..2 {
            links.push((format!("leaf{rack}"), format!("spine{spine}"), uplink));
        }
    }
    fabric(&names, &links)
}

/// Racks in turns load every uplink with all flows; rack after rack with one.
#[test]
fn racks_follow_one_another() {
    let fabric = leaf_spine(8, 16, 200);
    let found = order(&fabric, &whole(&fabric), NEVER).unwrap();
    assert!(found.is_best);
    assert!((found.given.times(&found.cost) - 4.0).abs() < 1e-6, "16 flows over 400, beside one over 100: {found:?}");
    assert_eq!(found.numbers, (0..128).collect::<Vec<_>>());
    let racks: Vec<usize> = found.order.iter().map(|machine| machine % 8).collect();
    assert!(racks.chunks(16).all(|rack| rack.iter().all(|&one| one == rack[0])), "{racks:?}");
    assert_eq!(found.order[0], 0);
}

/// A thousand machines in three levels.
#[test]
fn a_thousand_machines_are_ordered() {
    let mut names = Vec::new();
    let mut links = Vec::new();
    for machine in 0..1_024_usize {
        // Any order that goes through all.
        let place = machine * 389 % 1_024;
        names.push(format!("n{place}"));
        links.push((format!("n{place}"), format!("leaf{}", place / 16), 100));
    }
    for leaf in 0..64 {
        for agg in 0..4 {
            links.push((format!("leaf{leaf}"), format!("agg{}.{agg}", leaf / 8), 200));
        }
    }
    for pod in 0..8 {
        for agg in 0..4 {
            links.push((format!("agg{pod}.{agg}"), format!("core{agg}"), 800));
        }
    }
    let fabric = fabric(&names, &links);
    let found = order(&fabric, &whole(&fabric), NEVER).unwrap();
    assert!(found.is_best && found.cost < found.given, "{found:?}");
    assert_eq!(found.cost.hops, 2 * (1_024 - 64) + 4 * (64 - 8) + 6 * 8);
}

/// Every machine on a router of a torus: neighbours follow one another.
#[test]
fn tori_are_walked_from_neighbour_to_neighbour() {
    let (mut names, mut links) = (Vec::new(), Vec::new());
    for place in 0..16_usize {
        let shuffled = place * 7 % 16;
        names.push(format!("n{shuffled}"));
        links.push((format!("n{shuffled}"), format!("r{shuffled}"), 100));
        let (row, column) = (place / 4, place % 4);
        links.push((format!("r{place}"), format!("r{}", row * 4 + (column + 1) % 4), 100));
        links.push((format!("r{place}"), format!("r{}", (row + 1) % 4 * 4 + column), 100));
    }
    let fabric = fabric(&names, &links);
    let found = order(&fabric, &whole(&fabric), NEVER).unwrap();
    assert!(found.is_best && found.cost.times(&found.given) < 1.0, "{found:?}");
    assert!(found.cost.hops <= 16 * 3 + 4, "{found:?}");
}

#[test]
fn families_have_machines_and_rings_have_none() {
    let topology = |text: &str| generate(text, &TopologyLimits::STANDARD).unwrap();
    let of = |topology: &Topology| Fabric::of(topology);
    assert_eq!(of(&topology("dgx-h100:boxes=4")).unwrap().machines(), ["b0", "b1", "b2", "b3"]);
    assert_eq!(of(&topology("ring:8")).unwrap_err(), NoMachines);
    let pod = of(&topology("pod:boxes=64,su=16,rails=8,oversub=2")).unwrap();
    let found = order(&pod, &whole(&pod), NEVER).unwrap();
    assert!(found.is_best && found.cost == found.given);
    assert!(order(&pod, &whole(&pod), &|| true).is_err());
}

/// A part of a fabric: its machines in the order that is given, and of an uplink what they are among those below it.
#[test]
fn parts_share_links_with_others() {
    let fabric = leaf_spine(2, 4, 100);
    assert!(!fabric.is_shared());
    let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    // Machines 0, 2, 4 and 6 are in the first rack.
    let part = fabric.part(&names(&["n4", "n1", "n2", "n3"])).unwrap();
    assert_eq!(part.machines(), ["n4", "n1", "n2", "n3"]);
    assert!(part.is_shared());
    let job = whole(&part);
    let found = order(&part, &job, NEVER).unwrap();
    let times = |order: &[usize]| order_times(&part, &job, order, &found.bound, NEVER).unwrap();
    // Two flows each way over 200 of a rack of which the job has half, beside one over 100.
    let given = times(&[0, 1, 2, 3]);
    assert!((given.by_kind[0] - 1.0).abs() < 1e-6 && (given.fair_share.unwrap() - 2.0).abs() < 1e-6, "{given:?}");
    assert_eq!(found.order, [0, 2, 1, 3]);
    assert!((times(&found.order).fair_share.unwrap() - 1.0).abs() < 1e-6);
    let unknown = PartError::Unknown { name: "n9".to_owned() };
    assert_eq!(fabric.part(&names(&["n1", "n9"])).unwrap_err(), unknown);
    assert_eq!(fabric.part(&names(&["n1", "n1"])).unwrap_err(), PartError::Twice { name: "n1".to_owned() });
}

/// Runtimes sort machines as strings; by number they are in another order, which may be better.
#[test]
fn names_are_strings_and_may_be_read_as_numbers() {
    let names: Vec<String> = (1..=12).map(|number| format!("gpu-{number}")).collect();
    let links = |number: usize| (format!("gpu-{number}"), format!("leaf{}", (number - 1) / 4), 100);
    let up = (0..3).map(|leaf| (format!("leaf{leaf}"), "spine".to_owned(), 100));
    let fabric = fabric(&names, &(1..=12).map(links).chain(up).collect::<Vec<_>>());
    let found = order(&fabric, &whole(&fabric), NEVER).unwrap();
    let named = |order: &[usize]| order.iter().map(|&machine| machine + 1).collect::<Vec<usize>>();
    assert_eq!(named(&found.names), [1, 10, 11, 12, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(named(&found.numbers), (1..=12).collect::<Vec<usize>>());
    assert!((found.by_name.times(&found.given) - 2.0).abs() < 1e-6, "{found:?}");
    assert!(found.is_best && found.cost.busiest == found.given.busiest);
}

#[test]
fn names_are_sorted_by_number() {
    let mut names = ["gpu10", "gpu2", "gpu02", "gpu", "a9b10", "a9b9", "A1", "gpu2x"];
    names.sort_by(|a, b| by_number(a, b));
    assert_eq!(names, ["A1", "a9b9", "a9b10", "gpu", "gpu2", "gpu2x", "gpu02", "gpu10"]);
}
