//! Sends and receives of two ranks belong together in the order in which they are posted.

use std::collections::BTreeMap;

use super::place::{Findings, Place};
use super::{ByRank, number};

/// A message: sender and its step, receiver and its step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) from: (u32, u32),
    pub(super) to: (u32, u32),
}

/// Step and chunks of each end, in the order of posting.
#[derive(Default)]
struct Ends {
    sends: Vec<(u32, u32)>,
    receives: Vec<(u32, u32)>,
}

pub(super) fn check(ranks: &ByRank<'_>, findings: &mut Findings<'_>) -> Vec<Pair> {
    let mut ends: BTreeMap<(u32, u32), Ends> = BTreeMap::new();
    for (rank, own) in ranks.iter().enumerate() {
        let rank = number(rank);
        for (position, step) in (0..).zip(&own.steps) {
            for send in &step.sends {
                ends.entry((rank, send.peer)).or_default().sends.push((position, send.span.count));
            }
            for receive in &step.receives {
                ends.entry((receive.peer, rank)).or_default().receives.push((position, receive.span.count));
            }
            if findings.must_stop(1 + (step.sends.len() + step.receives.len()) as u64) {
                return Vec::new();
            }
        }
    }
    let mut pairs = Vec::new();
    for ((from, to), Ends { sends, receives }) in ends {
        for (index, (&(sent, count), &(received, expected))) in sends.iter().zip(&receives).enumerate() {
            if count != expected {
                let text = format!(
                    "sends {count} chunks to rank {to} in message {index} between the two, but rank {to} receives \
                     {expected} in its step {received}"
                );
                findings.problem(Place::step(from, sent), text);
                break;
            }
            pairs.push(Pair { from: (from, sent), to: (to, received) });
        }
        match sends.len().cmp(&receives.len()) {
            std::cmp::Ordering::Greater => {
                let place = Place::step(from, sends[receives.len()].0);
                findings.problem(place, format!("sends a message that rank {to} never receives"));
            }
            std::cmp::Ordering::Less => {
                let place = Place::step(to, receives[sends.len()].0);
                findings.problem(place, format!("receives a message that rank {from} never sends"));
            }
            std::cmp::Ordering::Equal => {}
        }
    }
    pairs
}
