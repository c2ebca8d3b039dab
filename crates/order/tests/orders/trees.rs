//! Trees of switches: what every order loads at least, beside all orders.
//!
//! `CANOPY_CASES=3000 cargo test -p canopy-order --test orders trees -- --nocapture` looks at more of them.

use canopy_order::{Fabric, Group, Job, Ordered, order};

use crate::{NEVER, fabric, least, whole};

/// Numbers that look like chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % bound as u64).unwrap()
    }

    /// Some switches in a tree, machines anywhere on it, and so many links besides.
    fn network(&mut self, machines: usize, more: usize) -> (Vec<String>, Vec<(String, String, u64)>) {
        let switches = 1 + self.below(machines);
        let mut names: Vec<String> = (0..machines).map(|number| format!("n{number}")).collect();
        for place in (1..machines).rev() {
            let other = self.below(place + 1);
            names.swap(place, other);
        }
        let rates = [10, 20, 25, 30, 50, 100, 250];
        let mut links = Vec::new();
        for switch in 1..switches {
            links.push((format!("s{switch}"), format!("s{}", self.below(switch)), rates[self.below(7)]));
        }
        for name in &names {
            links.push((name.clone(), format!("s{}", self.below(switches)), rates[self.below(7)]));
        }
        for _ in 0..more {
            let (from, to) = (self.below(switches), self.below(switches));
            if from != to {
                links.push((format!("s{from}"), format!("s{to}"), rates[self.below(7)]));
            }
        }
        (names, links)
    }

    /// Kinds of groups whose sizes multiplied are the number of machines; none: all are one group.
    fn groups(&mut self, machines: usize) -> Vec<Group> {
        let divisors: Vec<usize> = (2..=machines).filter(|size| machines.is_multiple_of(*size)).collect();
        if self.below(3) == 0 {
            return Vec::new();
        }
        let first = divisors[self.below(divisors.len())];
        let sizes = [first, machines / first];
        let pattern = |number| ["ring", "trees", "all-to-all"][number];
        sizes.iter().map(|size| format!("g{size}={size}:{}", pattern(self.below(3))).parse().unwrap()).collect()
    }
}

/// The number of networks that is asked for, or few.
fn cases(few: usize) -> usize {
    std::env::var("CANOPY_CASES").ok().map_or(few, |text| text.parse().expect("CANOPY_CASES is a number"))
}

fn ordered(fabric: &Fabric, job: &Job) -> Ordered {
    let found = order(fabric, job, NEVER).unwrap();
    let mut sorted = found.order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..fabric.machines().len()).collect::<Vec<_>>());
    found
}

/// The bound is never above the best of all orders; of one ring on a tree it is that.
#[test]
fn no_order_loads_less_than_the_bound() {
    let mut chance = Chance(1);
    let mut tight = [[0_usize; 2]; 4];
    for case in 0..cases(400) {
        let is_tree = case % 2 == 0;
        let machines = 3 + chance.below(4);
        let more = 1 + chance.below(3);
        let (names, links) = chance.network(machines, if is_tree { 0 } else { more });
        let fabric = fabric(&names, &links);
        let groups = chance.groups(machines);
        let job = Job::of(&groups, fabric.rank_count(), machines).unwrap();
        let found = ordered(&fabric, &job);
        let best = least(&fabric, &job);
        assert_eq!(found.cost, best);
        let (bound, best) = (found.bound.busiest, best.busiest);
        assert!(bound <= best + best / 1_000_000 + 1, "{bound} of {best}: {links:?} {groups:?}");
        let is_tight = bound + best / 1_000_000 + 1 >= best;
        assert!(is_tight || !groups.is_empty() || !is_tree, "{bound} of {best}: {links:?}");
        let counts = &mut tight[2 * usize::from(is_tree) + usize::from(groups.is_empty())];
        counts[0] += usize::from(is_tight);
        counts[1] += 1;
    }
    for (what, [reached, all]) in ["groups", "rings", "groups on trees", "rings on trees"].iter().zip(tight) {
        eprintln!("{what}: the bound is reached on {reached} of {all} networks");
        assert!(reached * 100 >= all * 60, "{what}: {reached} of {all}");
    }
}

/// Of two sides of each link that both have machines, the slowest link decides; a walk into the depth reaches that.
#[test]
fn rings_on_trees_are_known_to_be_the_best() {
    let mut chance = Chance(26);
    for _ in 0..cases(60) {
        let machines = 10 + chance.below(60);
        let (names, links) = chance.network(machines, 0);
        let fabric = fabric(&names, &links);
        let found = ordered(&fabric, &whole(&fabric));
        assert!(found.is_best, "{links:?}");
        let divides = |without: usize| {
            let mut met = vec![names[0].as_str()];
            let mut looked = 0;
            while let Some(&node) = met.get(looked) {
                looked += 1;
                for (_, (from, to, _)) in links.iter().enumerate().filter(|(number, _)| *number != without) {
                    let other = if from == node {
                        to
                    } else if to == node {
                        from
                    } else {
                        continue;
                    };
                    if !met.contains(&other.as_str()) {
                        met.push(other);
                    }
                }
            }
            names.iter().any(|name| !met.contains(&name.as_str()))
        };
        let slowest = (0..links.len()).filter(|&link| divides(link)).map(|link| links[link].2).min().unwrap();
        let expected = 2_f64.powi(64) / slowest as f64;
        assert!((found.cost.busiest as f64 / expected - 1.0).abs() < 1e-6, "{links:?}");
    }
}

/// Where some machines do not reach others, nothing is said of all orders.
#[test]
fn networks_that_are_split_have_no_bound() {
    let link = |from: &str, to: &str, rate| (from.to_owned(), to.to_owned(), rate);
    let names: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
    let fabric = fabric(&names, &[link("a", "s", 1), link("b", "s", 9), link("c", "t", 1), link("d", "t", 9)]);
    let found = ordered(&fabric, &whole(&fabric));
    assert_eq!(found.bound.busiest, found.cost.busiest);
}
