//! What orders gain on fat trees, tori and dragonflies, beside orders by chance.

use std::collections::BTreeSet;

use canopy_order::{Fabric, Job, cost, order, order_times, report};
use canopy_topology::{TopologyLimits, generate};

use crate::{NEVER, fabric, whole};

/// Numbers up to a bound that look like chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % bound as u64).unwrap()
    }

    /// Some of these, in any order.
    fn some<T: Clone>(&mut self, all: &[T], count: usize) -> Vec<T> {
        let mut left = all.to_vec();
        (0..count).map(|_| left.swap_remove(self.below(left.len()))).collect()
    }
}

/// Leaves of machines in pods, with half of the rate at leaves and half of that at pods: one fat link up from each.
fn fat_tree(leaves: usize, machines: usize, per_pod: usize) -> Fabric {
    let names: Vec<String> = (0..leaves * machines).map(|number| format!("n{number}")).collect();
    let hosts =
        names.iter().enumerate().map(|(number, name)| (name.clone(), format!("leaf{}", number / machines), 100));
    let up = 100 * machines as u64 / 2;
    let leaf = (0..leaves).map(|leaf| (format!("leaf{leaf}"), format!("pod{}", leaf / per_pod), up));
    let pod_up = up * per_pod as u64 / 2;
    let pods = (0..leaves / per_pod).map(|pod| (format!("pod{pod}"), "core".to_owned(), pod_up));
    let links: Vec<_> = hosts.chain(leaf).chain(pods).collect();
    fabric(&names, &links)
}

/// Mean times of ten jobs: of the order by chance and of the one found, with links alone and with fair shares.
fn means(whole_fabric: &Fabric, mut job: impl FnMut(&mut Chance) -> Vec<String>) -> [[f64; 2]; 2] {
    let (mut chance, mut sums) = (Chance(1), [[0.0; 2]; 2]);
    for _ in 0..10 {
        let part = whole_fabric.part(&job(&mut chance)).unwrap();
        let job = whole(&part);
        let found = order(&part, &job, NEVER).unwrap();
        assert!(found.is_best);
        let given: Vec<usize> = (0..found.order.len()).collect();
        let of = |order: &[usize]| order_times(&part, &job, order, &found.bound, NEVER).unwrap();
        let (given, new) = (of(&given), of(&found.order));
        assert!(new.hashed <= given.hashed + 1e-9, "{new:?} {given:?}");
        for (sums, times) in sums.iter_mut().zip([given, new]) {
            sums[0] += times.by_kind[0] / 10.0;
            sums[1] += times.fair_share.unwrap() / 10.0;
        }
    }
    sums
}

/// Alone and by fair share: at least so much for orders by chance, at most so much for the one found.
#[track_caller]
fn check(found: [[f64; 2]; 2], [given, new]: [[f64; 2]; 2]) {
    let is_so = (0..2).all(|way| found[0][way] >= given[way] - 1e-6 && found[1][way] <= new[way] + 1e-6);
    assert!(is_so, "{found:?}, expected {given:?} and {new:?}");
}

/// 512 machines, 16 to a leaf and 8 leaves to a pod.
#[test]
fn fat_trees_are_crossed_once() {
    let fabric = fat_tree(32, 16, 8);
    let all = fabric.machines().to_vec();
    check(means(&fabric, |chance| chance.some(&all, 64)), [[1.0, 3.0], [1.0, 4.0]]);
    let racks: Vec<&[String]> = all.chunks(16).collect();
    let of_leaves = |chance: &mut Chance, leaves: usize, machines: usize| {
        let of_all: Vec<String> =
            chance.some(&racks, leaves).iter().flat_map(|rack| chance.some(rack, machines)).collect();
        chance.some(&of_all, of_all.len())
    };
    check(means(&fabric, |chance| of_leaves(chance, 8, 8)), [[1.0, 3.0], [1.0, 1.0]]);
    check(means(&fabric, |chance| of_leaves(chance, 4, 16)), [[1.5, 2.8], [1.0, 1.0]]);
}

/// Four units of sixteen machines with a NIC on each of eight rails: links carry any order, but connections that take one
/// cable each meet others on it.
#[test]
fn rails_are_not_met_twice() {
    for (text, met) in [("pod:boxes=64,su=16,rails=8", 2.5), ("pod:boxes=64,su=16,rails=8,oversub=2", 3.0)] {
        let topology = generate(text, &TopologyLimits::STANDARD).unwrap();
        let pod = Fabric::of(&topology).unwrap();
        let machines = Chance(3).some(pod.machines(), 64);
        let found = report(&topology, Some(&machines), &[], NEVER).unwrap();
        let [given, _, new] = found.times;
        assert!(given.hashed > met, "{text}: {given:?}");
        assert!((new.hashed - 1.0).abs() < 1e-6 && (new.by_kind[0] - 1.0).abs() < 1e-6, "{text}: {new:?}");
    }
}

/// Machines on routers, those of a job by their coordinates in any order.
fn torus(sides: [usize; 3], job: impl Fn([usize; 3]) -> bool) -> Fabric {
    let [x, y, z] = sides;
    let place = move |number: usize| [number % x, number / x % y, number / x / y];
    let router = |at: [usize; 3]| format!("r{}-{}-{}", at[0], at[1], at[2]);
    let count = x * y * z;
    let mut links = Vec::new();
    let mut names = Vec::new();
    for number in 0..count {
        // Any order that goes through all.
        let at = place(number * 389 % count);
        if job(at) {
            names.push(format!("n{}-{}-{}", at[0], at[1], at[2]));
            links.push((names.last().unwrap().clone(), router(at), 100));
        }
        for side in 0..3 {
            let mut next = at;
            next[side] = (at[side] + 1) % sides[side];
            links.push((router(at), router(next), 100));
        }
    }
    fabric(&names, &links)
}

/// The load of the busiest link is that of one flow, and routers are passed so often.
#[track_caller]
fn check_hops(fabric: &Fabric, hops: u64) {
    let found = order(fabric, &whole(fabric), NEVER).unwrap();
    let passed = found.cost.hops - 2 * fabric.machines().len() as u64;
    assert!(found.cost <= found.given && found.is_best, "{:?}", found.cost.times(&found.bound));
    assert!(passed <= hops, "{passed} of {hops}");
}

#[test]
fn tori_are_walked_without_a_shared_link() {
    check_hops(&torus([8, 8, 8], |at| at.iter().all(|&digit| digit < 4)), 76);
    check_hops(&torus([8, 8, 8], |at| at[1] < 4 && at[2] < 2), 66);
    check_hops(&torus([8, 8, 8], |_| true), 520);
    let mut chance = Chance(7);
    let cells: Vec<[usize; 3]> = (0..512).map(|number| [number % 8, number / 8 % 8, number / 64]).collect();
    let some: BTreeSet<[usize; 3]> = chance.some(&cells, 64).into_iter().collect();
    check_hops(&torus([8, 8, 8], |at| some.contains(&at)), 150);
}

/// Nine groups of eight routers with a machine each, all of a group joined, and a cable from each group to each.
#[test]
fn dragonflies_are_walked_group_by_group() {
    let names: Vec<String> = (0..72).map(|number| format!("n{}", number * 31 % 72)).collect();
    let mut links: Vec<(String, String, u64)> =
        (0..72).map(|number| (format!("n{number}"), format!("r{number}"), 100)).collect();
    for group in 0..9 {
        for (a, b) in (0..8).flat_map(|a| (a + 1..8).map(move |b| (a, b))) {
            links.push((format!("r{}", group * 8 + a), format!("r{}", group * 8 + b), 100));
        }
        for other in group + 1..9 {
            links.push((format!("r{}", group * 8 + other - 1), format!("r{}", other * 8 + group), 100));
        }
    }
    let fabric = fabric(&names, &links);
    let found = order(&fabric, &whole(&fabric), NEVER).unwrap();
    assert!(found.cost.hops <= 72 * 2 + 183, "{found:?}");
    assert!((found.cost.times(&found.bound) - 1.0).abs() < 1e-6, "{found:?}");
}

/// Four racks of five and one of twelve, in groups of four: as many groups as there is room for stay in a rack.
#[test]
fn groups_stay_within_racks() {
    let names: Vec<String> = (0..32).map(|number| format!("n{}", number * 13 % 32)).collect();
    let rack = |number: usize| (number / 5).min(4);
    let mut links: Vec<(String, String, u64)> =
        (0..32).map(|number| (format!("n{number}"), format!("rack{}", rack(number)), 100)).collect();
    (0..5).for_each(|rack| links.push((format!("rack{rack}"), "spine".to_owned(), 150)));
    let fabric = fabric(&names, &links);
    let (job, found) = crate::grouped(&fabric, &["ep=4:all-to-all:8", "dp=8"]);
    let of = |order: &[usize]| cost(&fabric, &job, order, NEVER).unwrap();
    assert_eq!(of(&found.order), found.cost);
    let in_one_rack = |group: &[usize]| {
        let racks = |machine: usize| rack(fabric.machines()[machine][1..].parse().unwrap());
        group.iter().all(|&machine| racks(machine) == racks(group[0]))
    };
    let kept = found.order.chunks(4).filter(|group| in_one_rack(group)).count();
    assert!(kept >= 7, "one of each small rack, three of the large one: {kept}, {:?}", found.order);
    assert!(found.cost.times(&found.given) < 0.75, "{found:?}");
    let whole = order(&fabric, &Job::whole(32, 32), NEVER).unwrap();
    assert!(found.cost < of(&whole.order), "one group of all ranks is another job");
}
