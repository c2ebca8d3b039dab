//! Queues of links: who goes first, and when what passes a node goes on.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use canopy_baselines::{Message, QueuedLink, queued};
use canopy_optimize::Never;
use canopy_tacos::CopyError;

fn link(latency: u64, occupancy: u64) -> QueuedLink {
    QueuedLink { latency, occupancy, is_cut_through: false }
}

fn message(path: &[u32], after: Option<u32>) -> Message {
    Message { path: path.to_vec(), after, weight: 1 }
}

#[track_caller]
fn check(links: &[QueuedLink], messages: &[Message], expected: &[&[u64]]) {
    assert_eq!(queued(links, messages, &Never).unwrap(), expected);
}

#[test]
fn who_came_first_goes_first() {
    let links = [link(5, 2), link(1, 1), link(1, 1)];
    // The third comes to link 0 after both others, the fourth waits for the second, which takes 5 ticks after 2.
    let messages = [message(&[0], None), message(&[0, 2], None), message(&[1, 0], None), message(&[1], Some(1))];
    check(&links, &messages, &[&[0], &[2, 7], &[0, 4], &[8]]);
}

#[test]
fn whoever_waits_takes_the_place_of_what_it_waits_for() {
    let links = [link(1, 1), link(1, 1), link(1, 1)];
    let messages = [message(&[0], None), message(&[1, 2], None), message(&[2], Some(0))];
    check(&links, &messages, &[&[0], &[0, 2], &[1]]);
}

/// A switch sends on what still comes in, but never before it is there.
#[test]
fn switches_do_not_wait_for_the_end() {
    for (next, start) in [(4, 10), (1, 13), (9, 10)] {
        let first = QueuedLink { latency: 14, occupancy: 4, is_cut_through: true };
        check(&[first, link(next, next)], &[message(&[0, 1], None)], &[&[0, start]]);
        check(
            &[QueuedLink { is_cut_through: false, ..first }, link(next, next)],
            &[message(&[0, 1], None)],
            &[&[0, 14]],
        );
    }
}

#[test]
fn what_waits_for_itself_never_starts_and_what_takes_too_long_is_refused() {
    check(&[link(1, 1)], &[message(&[0], Some(0)), message(&[], None), message(&[0], Some(1))], &[&[], &[], &[0]]);
    let long = queued(&[link(u64::MAX, 1)], &[message(&[0, 0], None), message(&[0], None)], &Never);
    assert_eq!(long, Err(CopyError::TooLong));
    assert_eq!(queued(&[link(1, 1)], &[message(&[0], None)], &|| true), Err(CopyError::Stopped));
}
