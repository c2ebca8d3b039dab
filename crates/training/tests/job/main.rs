//! Jobs on networks: joint rates, what they compare with, and groups that are planned in their shares by the real
//! planner.
#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

use std::num::NonZeroU64;

use canopy_planner::{Context, Planner, Request, SchedulesInMemory, TopologyInput};
use canopy_schedule::{CollectiveKind, TransferGraph, compile};
use canopy_simulate::{Pieces, SimulateOptions, TogetherPart, simulate_together};
use canopy_topology::{
    Capacity, DraftLink, DraftNode, Ratio, Topology, TopologyDraft, TopologyLimits, Transit, generate, to_yaml,
};
use canopy_training::job::{
    BesideError, Class, Comparison, Job, JobError, JobRates, Layout, Movement, Objective, Patience, RatesError,
    RunningJob, comparison, job_rates, job_rates_for, left_beside,
};

const MEGABYTES: u64 = 1_000_000;

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// Groups of 1 GB for each size, over dimensions with these names.
fn job(layout: &str, classes: &[(&str, CollectiveKind, u64)]) -> Job {
    let class = |&(over, kind, size): &(&str, CollectiveKind, u64)| Class {
        name: format!("{}-{kind}", over.replace('+', "-")),
        over: over.split('+').map(str::to_owned).collect(),
        movement: Movement::Collective(kind),
        size_bytes: NonZeroU64::new(1_000 * MEGABYTES * size).unwrap(),
    };
    Job::new(&layout.parse::<Layout>().unwrap(), classes.iter().map(class).collect()).unwrap()
}

fn rates(topology: &Topology, job: &Job) -> JobRates {
    let rates = job_rates(topology, job, Transit::Forward, Patience::ENDLESS).unwrap();
    assert_eq!(rates.seconds, rates.seconds_min, "the optimum is proven");
    rates
}

/// So many seconds for 1 GB at these rates in GB/s.
fn seconds(below: u32, above: u32) -> Ratio {
    Ratio::new(below, above).unwrap()
}

const REDUCE: CollectiveKind = CollectiveKind::Allreduce;
const RAIL: &str = "rail:boxes=4,gpus=8,nv=300GB/s,nic=25GB/s";

#[test]
fn tensor_and_data_groups_share_boxes_and_rails() {
    let both = job("tp=8 dp=4", &[("tp", REDUCE, 1), ("dp", REDUCE, 1)]);
    assert_eq!(rates(&network(RAIL), &both).seconds, seconds(3, 50));
    let mixed = job("tp=8 dp=4", &[("tp", CollectiveKind::Allgather, 6), ("dp", REDUCE, 1)]);
    assert_eq!(rates(&network(RAIL), &mixed).seconds, seconds(3, 50));
    let Comparison { rings, phases, alone, .. } =
        comparison(&network(RAIL), &mixed, Transit::Forward, Patience::ENDLESS).unwrap();
    assert_eq!(rings, seconds(3, 50));
    // 12.9 GB/s in phases; planned alone, each data group would use all rails of its boxes.
    assert!((phases.to_f64() - 1.0 / 12.9).abs() < 1e-3 && alone > phases, "{phases} {alone}");
}

/// In its shares alone, the planner gives each group what the joint optimum promises, but for a millionth.
#[test]
fn every_group_is_planned_in_its_shares() {
    let planner = Planner::new(TopologyLimits::STANDARD);
    let schedules = SchedulesInMemory::new(64 << 20);
    for (expression, layout, classes) in [
        (RAIL, "tp=8 dp=4", &[("tp", REDUCE, 1), ("dp", REDUCE, 1)][..]),
        (RAIL, "tp=8 dp=4", &[("tp", CollectiveKind::Allgather, 3), ("dp", CollectiveKind::ReduceScatter, 1)]),
        (
            "rail:boxes=4,gpus=8,nv=300GB/s,nic=25GB/s,faults=nics:2+seed:3",
            "tp=8 dp=4",
            &[("tp", REDUCE, 1), ("dp", REDUCE, 1)],
        ),
        ("torus:4x4", "x=4 y=4", &[("x", CollectiveKind::AllToAll, 1), ("y", REDUCE, 2)]),
    ] {
        let (topology, job) = (network(expression), job(layout, classes));
        let rates = rates(&topology, &job);
        for (number, group) in job.groups.iter().enumerate() {
            let share = rates.share_of(&topology, &job, number).unwrap();
            assert_eq!(share.topology.rank_count() as usize, group.ranks.len());
            let input = TopologyInput::Document { kind: None, content: to_yaml(&share.topology).into() };
            let plan = planner.plan(&Request::of(input, group.collective.kind()), Context::new(&schedules)).unwrap();
            let reached = group.size_bytes.get() as f64 / 1e9 / plan.achieved().gigabytes_per_sec();
            let ratio = rates.seconds.to_f64() / reached;
            assert!(ratio > 1.0 - 2e-6, "{expression}, {}: {ratio}", group.name);
        }
    }
}

/// Plans of all groups, started together with the sizes of the job, take what the joint optimum promises, but for 1 %:
/// α, and filling and emptying trees.
#[test]
fn all_plans_together_take_the_joint_time() {
    let planner = Planner::new(TopologyLimits::STANDARD);
    let schedules = SchedulesInMemory::new(64 << 20);
    for (expression, layout, classes) in [
        (RAIL, "tp=8 dp=4", &[("tp", REDUCE, 1), ("dp", REDUCE, 1)][..]),
        (RAIL, "tp=8 dp=4", &[("tp", CollectiveKind::Allgather, 3), ("dp", REDUCE, 1)]),
        (
            "rail:boxes=4,gpus=8,nv=300GB/s,nic=25GB/s,faults=nics:2+seed:3",
            "tp=8 dp=4",
            &[("tp", REDUCE, 1), ("dp", REDUCE, 1)],
        ),
        ("torus:4x4,bw=10GB/s", "x=4 y=4", &[("x", CollectiveKind::AllToAll, 1), ("y", REDUCE, 2)]),
    ] {
        let (topology, job) = (network(expression), job(layout, classes));
        let rates = rates(&topology, &job);
        let planned = job.groups.iter().enumerate().map(|(number, group)| {
            let share = rates.share_of(&topology, &job, number).unwrap().topology;
            let input = TopologyInput::Document { kind: None, content: to_yaml(&share).into() };
            let plan = planner.plan(&Request::of(input, group.collective.kind()), Context::new(&schedules)).unwrap();
            (compile(&share, &plan.plan.schedule).unwrap(), share)
        });
        let planned: Vec<(TransferGraph, Topology)> = planned.collect();
        let parts: Vec<TogetherPart<'_>> = planned
            .iter()
            .zip(&job.groups)
            .map(|((graph, topology), group)| TogetherPart { graph, topology, size_bytes: group.size_bytes.get() })
            .collect();
        let pieces = Pieces::AtMost { bytes: 4 << 20 };
        let options = SimulateOptions { pieces, ..SimulateOptions::usual(1, 1_000_000_000) };
        let together = simulate_together(&topology, &parts, &options, &|| false).unwrap();
        let ratio = rates.seconds.to_f64() * 1e12 / together.outcome.time_ps as f64;
        assert!((0.99..=1.0).contains(&ratio), "{expression} {classes:?}: {ratio}");
        assert!(together.left_ps.iter().all(|&left| left > 0) && together.left_ps.len() == job.groups.len());
    }
}

/// The network with a rate of its own for every link, far from multiples of anything.
fn with_odd_rates(topology: &Topology, seed: u64) -> Topology {
    let mut draft = TopologyDraft::default();
    for (number, node) in (0..).zip(topology.nodes()) {
        let (id, attributes) = (node.id.clone(), node.attributes.clone());
        let rank = Some(number).filter(|&number| number < topology.rank_count());
        draft.nodes.push(DraftNode { id, kind: node.kind, rank, attributes });
    }
    let mut chance = seed;
    for link in topology.links() {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (from, to) = (topology.node(link.from).id.clone(), topology.node(link.to).id.clone());
        let capacity = Capacity::from_bytes_per_sec(10_000_000_019 + (chance >> 33)).unwrap();
        draft.links.push(DraftLink { from, to, capacity, latency: link.latency, count: 1 });
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// By node, bytes per second that enter and do not leave.
fn kept(topology: &Topology) -> Vec<i128> {
    let mut kept = vec![0; topology.nodes().len()];
    for link in topology.links() {
        kept[link.to.index()] += i128::from(link.capacity.bytes_per_sec());
        kept[link.from.index()] -= i128::from(link.capacity.bytes_per_sec());
    }
    kept
}

/// Shares that are no whole numbers of bytes: what is not a member still passes on as much as it gets, on any rates.
#[test]
fn shares_are_balanced_at_all_that_only_forwards() {
    let mut rounded = 0;
    for (expression, layout) in [
        ("dgx-a100:boxes=2", "tp=8 dp=2"),
        ("rail:boxes=4,gpus=4,nv=300GB/s,nic=25GB/s", "tp=4 dp=4"),
        ("leaf-spine:leaves=3,hosts=3,spines=2,oversub=2", "tp=3 dp=3"),
        ("fat-tree:k=4", "tp=4 dp=4"),
        ("torus:3x3", "tp=3 dp=3"),
    ] {
        for seed in 0..4 {
            let topology = with_odd_rates(&network(expression), seed);
            let groups = job(layout, &[("tp", CollectiveKind::Allgather, 3), ("dp", REDUCE, 1), ("tp+dp", REDUCE, 1)]);
            let rates = job_rates(&topology, &groups, Transit::Forward, Patience::ENDLESS).unwrap();
            for number in 0..groups.groups.len() {
                let share = rates.share_of(&topology, &groups, number).unwrap().topology;
                for (node, kept) in share.nodes().iter().zip(kept(&share)).skip(share.rank_count() as usize) {
                    assert_eq!(kept, 0, "{expression} {seed}: {} of group {number}", node.id);
                }
                rounded += u32::from(share.links().iter().any(|link| link.capacity.bytes_per_sec() % 10 != 0));
            }
        }
    }
    assert!(rounded > 20, "{rounded} shares are no multiples of 10 bytes");
}

fn by_levels(topology: &Topology, job: &Job) -> JobRates {
    let rates = job_rates_for(topology, job, Objective::Levels, Transit::Forward, Patience::ENDLESS).unwrap();
    let common = self::rates(topology, job);
    assert_eq!((&rates.seconds, &rates.seconds_min), (&common.seconds, &common.seconds_min));
    assert!(rates.levels.iter().all(|level| level.seconds == level.seconds_min), "levels are proven");
    assert!(rates.levels.is_sorted_by(|slow, fast| slow.seconds >= fast.seconds));
    for level in &rates.levels {
        level.groups.iter().for_each(|&group| assert_eq!(rates.group_seconds[group], level.seconds));
    }
    assert_eq!(rates.levels.iter().map(|level| level.groups.len()).sum::<usize>(), job.groups.len());
    assert!(common.levels.is_empty() && common.group_seconds == vec![common.seconds; job.groups.len()]);
    rates
}

/// On 1,024 ranks: groups in boxes at 171.43 GB/s beside groups on rails at 12.598.
#[test]
fn groups_in_boxes_are_faster_than_those_on_rails() {
    let both = job("tp=8 dp=128", &[("tp", REDUCE, 1), ("dp", REDUCE, 1)]);
    let rates = by_levels(&network("rail:boxes=128,gpus=8,nv=300GB/s,nic=25GB/s"), &both);
    assert_eq!(rates.levels.len(), 2);
    assert_eq!(rates.levels[0].groups, (128..136).collect::<Vec<usize>>());
    assert_eq!([&rates.levels[0].seconds, &rates.levels[1].seconds], [&seconds(127, 1600), &seconds(7, 1200)]);
}

/// In its shares alone, the planner gives each group its own rate, but for a millionth.
#[test]
fn every_group_is_planned_in_the_shares_of_its_level() {
    let planner = Planner::new(TopologyLimits::STANDARD);
    let schedules = SchedulesInMemory::new(64 << 20);
    for (expression, layout, classes) in [
        (RAIL, "tp=8 dp=4", &[("tp", REDUCE, 1), ("dp", REDUCE, 1)][..]),
        (
            "rail:boxes=4,gpus=8,nv=300GB/s,nic=25GB/s,faults=nics:2+seed:3",
            "tp=8 dp=4",
            &[("tp", CollectiveKind::Allgather, 3), ("dp", REDUCE, 1)],
        ),
        ("torus:4x4", "x=4 y=4", &[("x", CollectiveKind::AllToAll, 1), ("y", REDUCE, 2)]),
    ] {
        let (topology, job) = (network(expression), job(layout, classes));
        let rates = by_levels(&topology, &job);
        for (number, group) in job.groups.iter().enumerate() {
            let share = rates.share_of(&topology, &job, number).unwrap();
            let input = TopologyInput::Document { kind: None, content: to_yaml(&share.topology).into() };
            let plan = planner.plan(&Request::of(input, group.collective.kind()), Context::new(&schedules)).unwrap();
            let reached = group.size_bytes.get() as f64 / 1e9 / plan.achieved().gigabytes_per_sec();
            let ratio = rates.group_seconds[number].to_f64() / reached;
            assert!(ratio > 1.0 - 2e-6, "{expression}, {}: {ratio}", group.name);
        }
    }
}

/// When time is up between levels, those that are known are proven, and all others have the last rate at least.
#[test]
fn levels_that_are_known_in_time_are_an_answer() {
    let groups = job("a=2 b=3 c=6", &[("b", REDUCE, 1), ("a+c", CollectiveKind::Allgather, 2)]);
    let network = network("mesh:6x6");
    let proven = by_levels(&network, &groups);
    let mut levels = std::collections::BTreeSet::new();
    for asks in [40, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000] {
        let asked = std::sync::atomic::AtomicU32::new(0);
        let enough = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > asks;
        let patience = Patience { enough: &enough, ..Patience::ENDLESS };
        let rates = job_rates_for(&network, &groups, Objective::Levels, Transit::Forward, patience).unwrap();
        let known = rates.levels.iter().filter(|level| level.seconds == level.seconds_min).count();
        for (level, other) in rates.levels[..known].iter().zip(&proven.levels) {
            assert_eq!((&level.seconds, &level.groups), (&other.seconds, &other.groups));
        }
        if let [level] = &rates.levels[known..] {
            assert!(level.seconds_min < level.seconds);
            let before = known.checked_sub(1).map(|before| &rates.levels[before].seconds);
            assert!(before.is_none_or(|before| level.seconds <= *before));
            level.groups.iter().for_each(|&group| assert_eq!(rates.group_seconds[group], level.seconds));
        }
        levels.insert(known);
    }
    assert!(levels.len() > 1, "{levels:?} of {}", proven.levels.len());
}

/// What all groups get of a link is no more than it has.
#[test]
fn shares_fit_the_links() {
    let topology = network("rail:boxes=4,gpus=8,nv=300GB/s,nic=25GB/s,faults=nics:2+seed:3");
    let job = job("tp=8 dp=4", &[("tp", REDUCE, 1), ("dp", REDUCE, 1), ("tp+dp", CollectiveKind::AllToAll, 1)]);
    let rates = rates(&topology, &job);
    let mut used = std::collections::BTreeMap::new();
    for number in 0..job.groups.len() {
        let share = rates.share_of(&topology, &job, number).unwrap().topology;
        for link in share.links() {
            let ends = [link.from, link.to].map(|node| share.node(node).id.clone());
            *used.entry(ends).or_insert(0) += link.capacity.bytes_per_sec();
        }
    }
    for link in topology.links() {
        let ends = [link.from, link.to].map(|node| topology.node(node).id.clone());
        assert!(used.get(&ends).is_none_or(|&used| used <= link.capacity.bytes_per_sec()), "{ends:?}");
    }
    assert!(!used.is_empty());
}

#[test]
fn what_cannot_be_is_refused() {
    let both = job("tp=8 dp=4", &[("tp", REDUCE, 1)]);
    let refused =
        |expression: &str, transit| job_rates(&network(expression), &both, transit, Patience::ENDLESS).unwrap_err();
    assert_eq!(refused("ring:8", Transit::Forward), RatesError::Ranks { layout: 32, network: 8 });
    assert!(matches!(refused("dgx-h100:boxes=4,nvls=true", Transit::Forward), RatesError::Switch { .. }));
    let far = job("a=2 b=4 c=2", &[("b", REDUCE, 1)]);
    let refused = job_rates(&network("ring:16"), &far, Transit::Unused, Patience::ENDLESS).unwrap_err();
    assert!(matches!(refused, RatesError::NoWay { .. }), "{refused}");
    let stopped = job_rates(&network(RAIL), &both, Transit::Forward, Patience { stop: &|| true, ..Patience::ENDLESS })
        .unwrap_err();
    assert_eq!(stopped, RatesError::Stopped);
}

/// Scattered groups on a grid: whatever is found when time is up holds, with its distance from the limit.
#[test]
fn the_best_so_far_is_an_answer() {
    let groups = job("a=2 b=3 c=6", &[("b", REDUCE, 1), ("a+c", CollectiveKind::Allgather, 2)]);
    let asked = std::sync::atomic::AtomicU32::new(0);
    let enough = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 40;
    let patience = Patience { enough: &enough, ..Patience::ENDLESS };
    let rates = job_rates(&network("mesh:6x6"), &groups, Transit::Forward, patience).unwrap();
    assert!(rates.seconds_min < rates.seconds, "{} {}", rates.seconds_min, rates.seconds);
    let proven = job_rates(&network("mesh:6x6"), &groups, Transit::Forward, Patience::ENDLESS).unwrap();
    assert!(rates.seconds_min <= proven.seconds && proven.seconds <= rates.seconds);
    assert_eq!(proven.seconds, proven.seconds_min);
}

/// A grid with broken links has no symmetry: hundreds of rows, on which prices of a basis alone lead nowhere.
#[test]
fn many_rows_are_solved_exactly() {
    let torus = network("torus:10x10,down=00-01+35-45+72-73");
    let job = job("a=2 b=5 c=2 d=5", &[("b", CollectiveKind::Allreduce, 100), ("c", CollectiveKind::Allgather, 40)]);
    let rates = rates(&torus, &job);
    assert!(rates.classes.0 > 300, "{:?}", rates.classes);
    assert_eq!(rates.seconds, rates.seconds_min);
}

/// A job that uses its links half of the time leaves half of them, and no other job slows it.
#[test]
fn a_newcomer_has_what_running_jobs_leave() {
    let rail = network("rail:boxes=4,gpus=8,nv=300GB/s,nic=25GB/s");
    let both = job("tp=8 dp=4", &[("tp", REDUCE, 1), ("dp", REDUCE, 1)]);
    let alone = rates(&rail, &both).seconds;
    assert_eq!(alone, seconds(3, 50));
    let running = |seconds| RunningJob { job: both.clone(), transit: Transit::Forward, seconds };
    let left = left_beside(&rail, &running(seconds(3, 25)), Patience::ENDLESS).unwrap();
    assert_eq!(rates(&left, &both).seconds, seconds(3, 25));
    // A third of the time, then as much of what that leaves: a third is left for the last one.
    let first = left_beside(&rail, &running(seconds(9, 50)), Patience::ENDLESS).unwrap();
    let second = left_beside(&first, &running(seconds(9, 50)), Patience::ENDLESS).unwrap();
    let third = rates(&second, &both).seconds;
    assert!(third >= seconds(9, 50) && third.to_f64() < 0.18 + 1e-9, "{third}");
    // All of the NICs leaves none; less time than it takes is refused.
    let none = left_beside(&rail, &running(alone.clone()), Patience::ENDLESS).unwrap();
    assert!(matches!(job_rates(&none, &both, Transit::Forward, Patience::ENDLESS), Err(RatesError::NoWay { .. })));
    let fast = left_beside(&rail, &running(seconds(1, 17)), Patience::ENDLESS);
    assert_eq!(fast.unwrap_err(), BesideError::TooFast { least: alone.into(), stated: seconds(1, 17).into() });
}

/// Two tenants on halves of the boxes share rails, and no box.
#[test]
fn a_job_is_placed_on_some_ranks() {
    let rail = network("rail:boxes=4,gpus=8,nv=300GB/s,nic=25GB/s");
    let half = job("tp=8 dp=2", &[("tp", REDUCE, 1), ("dp", REDUCE, 1)]);
    let places: Vec<u32> = (8..16).chain(24..32).collect();
    let placed = half.placed(&places, 32).unwrap();
    let ranks: Vec<u32> = placed.groups[2].ranks.iter().map(|rank| rank.number()).collect();
    assert_eq!(ranks, [8, 24]);
    let two = network("rail:boxes=2,gpus=8,nv=300GB/s,nic=25GB/s");
    assert_eq!(rates(&rail, &placed).seconds, rates(&two, &half).seconds);
    assert_eq!(half.placed(&places[1..], 32), Err(JobError::Places { given: 15, layout: 16 }));
    assert_eq!(half.placed(&places, 31), Err(JobError::NoSuchPlace { rank: 31, network: 31 }));
    assert_eq!(half.placed(&[3; 16], 32), Err(JobError::PlaceTwice { rank: 3 }));
}
