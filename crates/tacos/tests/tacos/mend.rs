//! Sends of a sound network made to fit what is left of it.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use std::collections::BTreeSet;

use canopy_optimize::Never;
use canopy_tacos::{
    CopyError, CopyTask, Demand, FreeGroup, Mended, Preference, Sends, Sent, TimedLink, TimedNetwork, Ways, copy_all,
    deliver, delivery_bound, judge, judge_delivery, lower_bound, mend, mend_delivery,
};
use proptest::prelude::*;

use crate::support::{mesh, networks, torus};

const SEED: u64 = 0;
const PREFERENCE: Preference = Preference::Neighbours;

fn copied(network: &TimedNetwork, task: &CopyTask) -> Sends {
    copy_all(network, task, &FreeGroup::trivial(network.node_count()), SEED, PREFERENCE, &Never).unwrap()
}

/// A network some of whose links are slower or gone, and by link of the sound one its number there.
fn broken(
    sound: &TimedNetwork,
    is_dead: impl Fn(u32) -> bool,
    slower: &[(u32, u64)],
) -> (TimedNetwork, Vec<Option<u32>>) {
    let (mut links, mut numbers) = (Vec::new(), Vec::new());
    for (number, &link) in (0..).zip(sound.links()) {
        let factor = slower.iter().find(|(slow, _)| *slow == number).map_or(1, |&(_, factor)| factor);
        let alpha = link.latency - link.occupancy;
        let occupancy = link.occupancy * factor;
        numbers.push((!is_dead(number)).then(|| u32::try_from(links.len()).unwrap()));
        if !is_dead(number) {
            links.push(TimedLink { latency: occupancy + alpha, occupancy, ..link });
        }
    }
    (TimedNetwork::new(sound.node_count(), links).unwrap(), numbers)
}

fn renamed(sends: &[Sent], numbers: &[Option<u32>]) -> Vec<Sent> {
    sends.iter().filter_map(|sent| Some(Sent { link: numbers[sent.link as usize]?, ..*sent })).collect()
}

/// Sends of chunks that have passed none of these links so far, nor pass one then.
fn untouched(network: &TimedNetwork, sends: &Sends, links: &[u32]) -> Vec<Sent> {
    let mut touched: BTreeSet<(u32, u32)> = BTreeSet::new();
    let mut found = Vec::new();
    for &sent in &sends.sends {
        let link = network.link(sent.link);
        if links.contains(&sent.link) || touched.contains(&(link.from, sent.chunk)) {
            touched.insert((link.to, sent.chunk));
        } else {
            found.push(sent);
        }
    }
    found
}

proptest! {
    /// All that has nothing to do with what broke stays as it is, and everything arrives.
    #[test]
    fn what_can_stay_does_and_the_rest_is_found_again(
        sound in networks(),
        chunks in 1_u32..4,
        dead in prop::collection::vec(any::<u32>(), 0..3),
        slow in prop::collection::vec((any::<u32>(), 2_u64..4), 0..3),
    ) {
        let count = u32::try_from(sound.links().len()).unwrap();
        let dead: Vec<u32> = dead.into_iter().map(|pick| pick % count).collect();
        let slow: Vec<(u32, u64)> = slow.into_iter().map(|(pick, factor)| (pick % count, factor)).collect();
        let (left, numbers) = broken(&sound, |link| dead.contains(&link), &slow);
        let task = CopyTask::allgather(sound.node_count(), chunks).unwrap();
        let before = copied(&sound, &task);
        let known = renamed(&before.sends, &numbers);
        let mended = mend(&left, &task, known.clone(), SEED, PREFERENCE, &Never);
        prop_assert_eq!(lower_bound(&left, &task).is_none(), matches!(mended, Err(CopyError::Unreachable { .. })));
        let Ok(Mended { sends, kept }) = mended else { return Ok(()) };
        judge(&left, &task, &sends).unwrap();
        let broken: Vec<u32> = dead.iter().copied().chain(slow.iter().map(|&(link, _)| link)).collect();
        let untouched = renamed(&untouched(&sound, &before, &broken), &numbers);
        prop_assert!(untouched.len() <= kept && kept <= known.len());
        prop_assert!(untouched.iter().all(|sent| sends.sends.contains(sent)));
        if broken.is_empty() {
            prop_assert_eq!((sends.end, kept), (before.end, before.sends.len()));
        }
    }

    /// The same of chunks that go to one node each.
    #[test]
    fn what_is_under_way_goes_on(
        sound in networks(),
        dead in prop::collection::vec(any::<u32>(), 0..3),
        slow in prop::collection::vec((any::<u32>(), 2_u64..4), 0..3),
        seed: u64,
    ) {
        let count = u32::try_from(sound.links().len()).unwrap();
        let dead: Vec<u32> = dead.into_iter().map(|pick| pick % count).collect();
        let slow: Vec<(u32, u64)> = slow.into_iter().map(|(pick, factor)| (pick % count, factor)).collect();
        let (left, numbers) = broken(&sound, |link| dead.contains(&link), &slow);
        let nodes = 0..sound.node_count();
        let demands = nodes.clone().flat_map(|from| nodes.clone().map(move |to| Demand { from, to }));
        let demands: Vec<Demand> = demands.filter(|demand| demand.from != demand.to).collect();
        let before = deliver(&sound, &demands, Ways::Shortest, seed, &Never).unwrap();
        let known = renamed(&before.sends, &numbers);
        let mended = mend_delivery(&left, &demands, known.clone(), &Never);
        let is_apart = delivery_bound(&left, &demands).is_none();
        prop_assert_eq!(is_apart, matches!(mended, Err(CopyError::Unreachable { .. })));
        let Ok(Mended { sends, kept }) = mended else { return Ok(()) };
        judge_delivery(&left, &demands, &sends).unwrap();
        prop_assert!(kept <= known.len());
        let broken: Vec<u32> = dead.iter().copied().chain(slow.iter().map(|&(link, _)| link)).collect();
        // What passes nothing broken.
        for chunk in 0..u32::try_from(demands.len()).unwrap() {
            let way: Vec<Sent> = before.sends.iter().filter(|sent| sent.chunk == chunk).copied().collect();
            if way.iter().all(|sent| !broken.contains(&sent.link)) {
                prop_assert!(renamed(&way, &numbers).iter().all(|sent| sends.sends.contains(sent)));
            }
        }
        if broken.is_empty() {
            prop_assert_eq!((sends.end, kept), (before.end, before.sends.len()));
        }
    }

    /// A node that is gone leaves nothing behind, and what is known of another network does no harm.
    #[test]
    fn nonsense_is_dropped(network in networks(), sends in prop::collection::vec((0_u64..20, 0_u32..40, 0_u32..12), 0..30)) {
        let task = CopyTask::allgather(network.node_count(), 1).unwrap();
        let known = sends.into_iter().map(|(start, link, chunk)| Sent { start, link, chunk }).collect();
        let mended = mend(&network, &task, Vec::clone(&known), SEED, PREFERENCE, &Never).unwrap();
        judge(&network, &task, &mended.sends).unwrap();
        let demands: Vec<Demand> = (1..network.node_count()).map(|to| Demand { from: 0, to }).collect();
        let mended = mend_delivery(&network, &demands, known, &Never).unwrap();
        judge_delivery(&network, &demands, &mended.sends).unwrap();
    }
}

/// Links into the ends of a dead one have to bring more, which sets the bound; all else is as it was but for what passed it.
#[test]
fn one_dead_link_of_a_torus_costs_no_more_than_it_must() {
    let sound = torus(&[16, 16]);
    let task = CopyTask::allgather(256, 1).unwrap();
    let before = copied(&sound, &task);
    assert_eq!(before.end, 64);
    for dimension in [1, 16] {
        for both_ways in [false, true] {
            let (from, to) = (5 * 16 + 7, 5 * 16 + 7 + dimension);
            let is_dead = |link: u32| {
                let link = sound.link(link);
                (link.from, link.to) == (from, to) || both_ways && (link.from, link.to) == (to, from)
            };
            let (left, numbers) = broken(&sound, is_dead, &[]);
            let bound = lower_bound(&left, &task).unwrap();
            let mended = mend(&left, &task, renamed(&before.sends, &numbers), SEED, PREFERENCE, &Never).unwrap();
            judge(&left, &task, &mended.sends).unwrap();
            let (end, total) = (mended.sends.end, before.sends.len());
            assert_eq!(bound, 85);
            assert!(end <= 90, "{dimension} {both_ways}: {end} ticks");
            assert!(mended.kept * 100 >= total * 96, "{dimension} {both_ways}: {} of {total} kept", mended.kept);
        }
    }
}

/// A link at half of its rate carries half of what it did at the time it did; the rest comes by others.
#[test]
fn one_slow_link_of_a_mesh_is_used_as_far_as_it_goes() {
    let sound = mesh(&[8, 8]);
    let task = CopyTask::allgather(64, 1).unwrap();
    let before = copied(&sound, &task);
    let slow = (0..).zip(sound.links()).find(|(_, link)| (link.from, link.to) == (27, 28)).unwrap().0;
    let (left, numbers) = broken(&sound, |_| false, &[(slow, 2)]);
    let bound = lower_bound(&left, &task).unwrap();
    let mended = mend(&left, &task, renamed(&before.sends, &numbers), SEED, PREFERENCE, &Never).unwrap();
    judge(&left, &task, &mended.sends).unwrap();
    assert!(mended.sends.end * 4 <= bound * 5, "{} for a bound of {bound}", mended.sends.end);
    assert!(mended.kept * 10 >= before.sends.len() * 8, "{} of {} kept", mended.kept, before.sends.len());
    assert!(mended.sends.sends.iter().filter(|sent| sent.link == slow).count() > 1);
}
