//! Several collectives on one network, judged, and against what each takes alone.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use canopy_optimize::Never;
use canopy_tacos::{
    Claim, CopyError, CopyTask, Demand, Joint, JointError, JointOptions, Tenant, TenantError, TimedLink, TimedNetwork,
    Work, joint_schedule,
};
use proptest::prelude::*;

use crate::joint_judge::{JointFault, judge_joint};
use crate::support::mesh;

const OPTIONS: JointOptions = JointOptions { seed: 0, attempts: 64 };

/// One chunk of each of these nodes for all of them.
fn among(node_count: u32, members: &[u32]) -> CopyTask {
    let is_member = (0..node_count).map(|node| members.contains(&node)).collect();
    CopyTask::new(members.to_vec(), is_member).unwrap()
}

/// Chunks of one node for these.
fn from(node_count: u32, (root, chunks): (u32, usize), members: &[u32]) -> CopyTask {
    let is_member = (0..node_count).map(|node| members.contains(&node)).collect();
    CopyTask::new(vec![root; chunks], is_member).unwrap()
}

fn planned(network: &TimedNetwork, works: Vec<Vec<Work>>) -> (Vec<Tenant>, Joint) {
    let tenants: Vec<Tenant> = works.into_iter().map(|works| Tenant::on(network, works).unwrap()).collect();
    let joint = joint_schedule(&tenants, OPTIONS, &Never).unwrap();
    judge_joint(&tenants, &joint).unwrap();
    (tenants, joint)
}

/// The three collectives of Won et al., figure 22(b), on parts of the mesh that are our own: no longer than the allgather
/// alone, 23 steps one after the other.
#[test]
fn three_tenants_of_a_mesh_take_no_longer_than_the_longest() {
    let mesh = mesh(&[6, 6]);
    let (upper, lower): (Vec<u32>, Vec<u32>) = ((0..18).collect(), (18..36).collect());
    let (_, joint) = planned(
        &mesh,
        vec![
            vec![Work::Copy(among(36, &upper))],
            vec![Work::Copy(from(36, (35, 1), &lower))],
            vec![Work::Sum(from(36, (18, 1), &lower))],
        ],
    );
    assert_eq!(joint.bounds, [9, 7, 7]);
    assert_eq!((joint.alone.clone(), joint.end, joint.one_by_one()), (vec![9, 7, 7], 9, 23));
}

/// Both begin and end where the other does, and have no time to lose on the way between. One after the other, the first leaves no way
/// to the second.
#[test]
fn a_broadcast_and_a_reduction_of_the_same_nodes_take_no_longer_than_either() {
    for (sides, from_root, to_root, steps) in
        [([3, 6], 17, 0, 7), ([3, 6], 0, 17, 7), ([4, 4], 15, 0, 6), ([6, 6], 35, 0, 10)]
    {
        let nodes = sides[0] * sides[1];
        let all: Vec<u32> = (0..nodes).collect();
        let works =
            vec![vec![Work::Copy(from(nodes, (from_root, 1), &all))], vec![Work::Sum(from(nodes, (to_root, 1), &all))]];
        let (_, joint) = planned(&mesh(&sides), works);
        assert_eq!((joint.alone, joint.end), (vec![steps, steps], steps), "{sides:?}");
    }
}

/// Two tenants that have the middle rows in common: an allgather of rows 0 to 3, an allreduce of rows 2 to 5.
#[test]
fn overlapping_tenants_save_time() {
    let mesh = mesh(&[6, 6]);
    let (upper, lower): (Vec<u32>, Vec<u32>) = ((0..24).collect(), (12..36).collect());
    let sums = vec![Work::Sum(from(36, (12, 1), &lower)), Work::Copy(from(36, (12, 1), &lower))];
    let (_, joint) = planned(&mesh, vec![vec![Work::Copy(among(36, &upper))], sums]);
    assert_eq!(joint.bounds, [12, 16]);
    assert!(joint.end <= 17 && joint.one_by_one() >= 28, "{} and {}", joint.end, joint.one_by_one());
}

/// What is bound by links of its own nodes cannot save anything, but loses nothing either.
#[test]
fn tenants_of_the_same_nodes_take_no_longer_than_one_by_one() {
    let mesh = mesh(&[3, 3]);
    let all: Vec<u32> = (0..9).collect();
    let copies = || vec![Work::Copy(among(9, &all))];
    let (_, joint) = planned(&mesh, vec![copies(), copies()]);
    // A corner lacks 16 chunks and has two links.
    assert_eq!((joint.end, joint.one_by_one()), (8, 8));
    let pairs = all.iter().flat_map(|&from| all.iter().map(move |&to| Demand { from, to }));
    let pairs: Vec<Demand> = pairs.filter(|demand| demand.from != demand.to).collect();
    let (_, joint) = planned(&mesh, vec![vec![Work::Deliver(pairs)], vec![Work::Sum(from(9, (4, 2), &all))]]);
    assert!(joint.end <= joint.one_by_one());
}

/// Two ways of two tenants that both take one wire: never at a time, though each has links of its own.
#[test]
fn what_links_of_two_tenants_share_is_taken_once() {
    let link = |from, to, occupancy| TimedLink { from, to, latency: occupancy, occupancy };
    let tenant = |ticks: u64| {
        let network = TimedNetwork::new(2, vec![link(0, 1, ticks), link(1, 0, ticks)]).unwrap();
        let claims =
            vec![vec![Claim { thing: 0, ticks }], vec![Claim { thing: 1, ticks }, Claim { thing: 2, ticks: 1 }]];
        Tenant::new(network, claims, vec![Work::Copy(CopyTask::allgather(2, 3).unwrap())]).unwrap()
    };
    let tenants = [tenant(2), tenant(5)];
    let joint = joint_schedule(&tenants, OPTIONS, &Never).unwrap();
    judge_joint(&tenants, &joint).unwrap();
    assert_eq!((joint.alone.as_slice(), joint.end), ([6, 15].as_slice(), 21));
}

#[test]
fn refusals_say_who_is_at_fault() {
    let network = mesh(&[1, 3]);
    let one_way = TimedLink { from: 0, to: 1, latency: 1, occupancy: 1 };
    let one_way = TimedNetwork::new(2, vec![one_way]).unwrap();
    let works = || vec![Work::Copy(CopyTask::allgather(2, 1).unwrap())];
    let other = Tenant::on(&network, vec![Work::Copy(CopyTask::allgather(3, 1).unwrap())]).unwrap();
    let tenants = [other, Tenant::on(&one_way, works()).unwrap()];
    assert_eq!(joint_schedule(&tenants, OPTIONS, &Never), Err(JointError::Unreachable { tenant: 1 }));
    assert_eq!(
        joint_schedule(&tenants[..1], OPTIONS, &|| true),
        Err(JointError::Copy(CopyError::Stopped)),
        "stopped at once"
    );
    assert_eq!(Tenant::on(&network, works()), Err(TenantError::Sizes { found: 2, nodes: 3 }));
    assert_eq!(Tenant::new(one_way.clone(), vec![], works()), Err(TenantError::ClaimCount { found: 0, links: 1 }));
    assert_eq!(Tenant::new(one_way, vec![vec![]], works()), Err(TenantError::Claim { link: 0 }));
    let none = joint_schedule(&[], OPTIONS, &Never).unwrap();
    assert_eq!((none.end, none.one_by_one()), (0, 0));
}

/// The judge objects to whatever is changed.
#[test]
fn changed_schedules_are_refused() {
    let mesh = mesh(&[3, 3]);
    let all: Vec<u32> = (0..9).collect();
    let works = vec![vec![Work::Copy(among(9, &all))], vec![Work::Sum(from(9, (0, 2), &all))]];
    let (tenants, joint) = planned(&mesh, works);
    let refused = |change: &dyn Fn(&mut Joint)| {
        let mut changed = joint.clone();
        change(&mut changed);
        judge_joint(&tenants, &changed).unwrap_err()
    };
    for tenant in 0..2 {
        for send in 0..joint.sends[tenant][0].sends.len() {
            refused(&|joint| {
                joint.sends[tenant][0].sends.remove(send);
            });
            refused(&|joint| {
                let sends = &mut joint.sends[tenant][0].sends;
                sends.insert(send, sends[send]);
            });
            refused(&|joint| joint.sends[tenant][0].sends[send].start += 100);
            refused(&|joint| joint.sends[tenant][0].sends[send].link = u32::MAX);
        }
    }
    assert!(matches!(refused(&|joint| joint.end += 1), JointFault::End { .. }));
    assert!(matches!(refused(&|joint| joint.sends.truncate(1)), JointFault::Count { found: 1, expected: 2 }));
    // The same schedule for two tenants takes every link twice.
    let twins = [tenants[0].clone(), tenants[0].clone()];
    let both = Joint { sends: vec![joint.sends[0].clone(), joint.sends[0].clone()], ..joint.clone() };
    assert!(matches!(judge_joint(&twins, &both), Err(JointFault::Taken { first: 0, second: 1, .. })));
}

proptest! {
    /// Whoever takes part, nothing is taken twice, and nobody waits longer than one after the other.
    #[test]
    fn any_tenants_of_a_mesh_get_on(
        sizes in (2_u32..5, 2_u32..5),
        groups in proptest::collection::vec((any::<u32>(), 0_u8..4, 1_usize..3), 1..5),
        seed: u64,
    ) {
        let network = mesh(&[sizes.0, sizes.1]);
        let nodes = network.node_count();
        let works = |&(bits, kind, chunks): &(u32, u8, usize)| {
            let mut members: Vec<u32> = (0..nodes).filter(|node| bits >> node & 1 == 1).collect();
            if members.is_empty() {
                members.push(0);
            }
            let root = members[members.len() / 2];
            match kind {
                0 => vec![Work::Copy(among(nodes, &members))],
                1 => vec![Work::Sum(from(nodes, (root, chunks), &members))],
                2 => vec![Work::Sum(among(nodes, &members)), Work::Copy(among(nodes, &members))],
                _ => {
                    let others = members.iter().filter(|&&to| to != root);
                    vec![Work::Deliver(others.map(|&to| Demand { from: root, to }).collect())]
                }
            }
        };
        let tenants: Vec<Tenant> = groups.iter().map(|group| Tenant::on(&network, works(group)).unwrap()).collect();
        let options = JointOptions { seed, attempts: 6 };
        let joint = joint_schedule(&tenants, options, &Never).unwrap();
        prop_assert_eq!(judge_joint(&tenants, &joint), Ok(()));
        prop_assert!(joint.end >= joint.bounds.iter().copied().max().unwrap_or(0));
        prop_assert!(joint.end <= joint.one_by_one());
        prop_assert!(joint.alone.iter().zip(&joint.bounds).all(|(alone, bound)| alone >= bound));
        let again = joint_schedule(&tenants, options, &Never).unwrap();
        prop_assert_eq!(joint, again);
    }
}
