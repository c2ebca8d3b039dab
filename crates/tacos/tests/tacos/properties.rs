//! What holds on any network.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use std::collections::BTreeMap;

use canopy_optimize::Never;
use canopy_tacos::{
    CopyError, CopyTask, Fault, FreeGroup, Preference, Sends, TimedLink, TimedNetwork, copy_all, judge, lower_bound,
};
use proptest::prelude::*;

use crate::support::{mesh, networks, ring_fc_switch, torus};

fn copied(network: &TimedNetwork, task: &CopyTask, seed: u64, preference: Preference) -> Sends {
    copy_all(network, task, &FreeGroup::trivial(network.node_count()), seed, preference, &Never).unwrap()
}

/// Adds up what members have at the owners, send after send: by owner's chunk, how many contributions it has in the end. Each
/// send is of all that its sender has of a chunk, which must be there, and none may come after.
fn summed_up(network: &TimedNetwork, task: &CopyTask, sends: &Sends) -> Vec<u64> {
    let mut arrivals: BTreeMap<(u64, bool, usize), (u32, u32, u64)> = BTreeMap::new();
    let mut held = vec![vec![1_u64; task.owners().len()]; network.node_count() as usize];
    let mut busy = vec![0; network.links().len()];
    for (index, sent) in sends.sends.iter().enumerate() {
        // All that has arrived by now.
        while let Some(entry) = arrivals.first_entry().filter(|entry| entry.key().0 <= sent.start) {
            let (node, chunk, amount) = entry.remove();
            assert_ne!(held[node as usize][chunk as usize], 0, "a contribution comes after its node has sent");
            held[node as usize][chunk as usize] += amount;
        }
        let link = network.link(sent.link);
        // The links of the network turned around carry what these sends say.
        let (from, to) = (link.to, link.from);
        assert!(busy[sent.link as usize] <= sent.start);
        busy[sent.link as usize] = sent.start + link.occupancy;
        let amount = std::mem::take(&mut held[from as usize][sent.chunk as usize]);
        assert_ne!(amount, 0, "a node sends twice");
        arrivals.insert((sent.start + link.latency, false, index), (to, sent.chunk, amount));
    }
    for (node, chunk, amount) in arrivals.into_values() {
        assert_ne!(held[node as usize][chunk as usize], 0);
        held[node as usize][chunk as usize] += amount;
    }
    task.owners().iter().zip(0_usize..).map(|(&owner, chunk)| held[owner as usize][chunk]).collect()
}

proptest! {
    #[test]
    fn everything_arrives_once_and_not_before_the_bound(network in networks(), chunks in 1_u32..4, seed: u64) {
        let task = CopyTask::allgather(network.node_count(), chunks).unwrap();
        for preference in [Preference::Neighbours, Preference::Holders] {
            let sends = copied(&network, &task, seed, preference);
            judge(&network, &task, &sends).unwrap();
            prop_assert!(lower_bound(&network, &task).unwrap() <= sends.end);
            prop_assert_eq!(&copied(&network, &task, seed, preference), &sends);
        }
    }

    #[test]
    fn groups_get_their_chunks_by_way_of_others(network in networks(), members: [bool; 8], seed: u64) {
        let is_member: Vec<bool> = (0..network.node_count() as usize).map(|node| members[node]).collect();
        let owners = (0..network.node_count()).filter(|&node| is_member[node as usize]).collect();
        let task = CopyTask::new(owners, is_member).unwrap();
        let sends = copied(&network, &task, seed, Preference::Neighbours);
        judge(&network, &task, &sends).unwrap();
        // Nobody is sent what it neither wants nor passes on.
        for (index, sent) in sends.sends.iter().enumerate() {
            let to = network.link(sent.link).to;
            let is_passed_on = sends.sends[index..].iter().any(|later| {
                later.chunk == sent.chunk && network.link(later.link).from == to
            });
            prop_assert!(task.is_member(to) || is_passed_on);
        }
    }

    #[test]
    fn backwards_everything_is_added_up_once(network in networks(), chunks in 1_u32..3, seed: u64) {
        let task = CopyTask::allgather(network.node_count(), chunks).unwrap();
        let sends = copied(&network, &task, seed, Preference::Neighbours).reversed(&network);
        let sums = summed_up(&network, &task, &sends);
        prop_assert!(sums.iter().all(|&sum| sum == u64::from(network.node_count())));
    }
}

#[test]
fn the_judge_objects_to_every_change() {
    for network in [mesh(&[4, 4]), torus(&[4, 4]), ring_fc_switch(2, 1_000_000)] {
        let task = CopyTask::allgather(16, 2).unwrap();
        let sends = copied(&network, &task, 1, Preference::Neighbours);
        judge(&network, &task, &sends).unwrap();
        let changed = |change: &dyn Fn(&mut Sends)| {
            let mut other = sends.clone();
            change(&mut other);
            judge(&network, &task, &other).unwrap_err()
        };
        for index in 0..sends.sends.len() {
            // A chunk that is passed on is missed when it should be, any other in the end.
            let lost = changed(&|other| {
                other.sends.remove(index);
            });
            assert!(matches!(lost, Fault::Early { .. } | Fault::Missing { .. }), "{lost}");
            changed(&|other| other.sends[index].chunk = (other.sends[index].chunk + 1) % 32);
            let doubled = changed(&|other| other.sends.insert(index, other.sends[index]));
            assert!(matches!(doubled, Fault::Busy { .. }), "{doubled}");
        }
        let end = changed(&|other| other.end += 1);
        assert!(matches!(end, Fault::End { .. }));
        let unknown = changed(&|other| other.sends[0].link = 1 << 20);
        assert!(matches!(unknown, Fault::Unknown { .. }));
    }
}

#[test]
fn what_cannot_be_reached_is_named() {
    let links = vec![TimedLink { from: 0, to: 1, latency: 1, occupancy: 1 }];
    let network = TimedNetwork::new(3, links).unwrap();
    let task = CopyTask::broadcast(3, 0, 1).unwrap();
    assert_eq!(lower_bound(&network, &task), None);
    let refused = copy_all(&network, &task, &FreeGroup::trivial(3), 0, Preference::Neighbours, &Never);
    assert_eq!(refused, Err(CopyError::Unreachable { node: 2, chunk: 0, owner: 0 }));
}

#[test]
fn what_is_no_symmetry_is_refused() {
    let network = mesh(&[2, 2]);
    let task = CopyTask::allgather(4, 1).unwrap();
    let of = |permutation: [u32; 4]| FreeGroup::generated_by(&network, &task, [permutation.as_slice()]);
    assert_eq!(of([1, 0, 3, 2]).map(|group| group.order()), Some(2));
    assert_eq!(of([1, 3, 0, 2]).map(|group| group.order()), Some(4));
    // A reflection that leaves a corner in its place; no automorphism; no permutation.
    assert_eq!(of([0, 2, 1, 3]), None);
    assert_eq!(of([1, 2, 3, 0]), None);
    assert_eq!(of([1, 1, 3, 2]), None);
    let weighted = CopyTask::new(vec![0, 0, 1, 2, 3], vec![true; 4]).unwrap();
    assert_eq!(FreeGroup::generated_by(&network, &weighted, [[1, 0, 3, 2].as_slice()]), None);
}
