//! Tables against the record of places, on random schedules.

use canopy_topology::Rank;
use proptest::prelude::*;

use super::Once;
use crate::compile::steps::{arrange, arrange_by_places};
use crate::forest::{Action, Carrier};
use crate::route::{RouteIndex, RouteTable};
use crate::schedule::{Pace, Send, Steps};

const RANKS: u32 = 4;
/// Of each rank's share.
const CHUNKS: u64 = 3;
/// More than any step of one phase.
const STEPS_MAX: u32 = 9;

/// A tree for each chunk of each rank: by position, the root first, a number that chooses the parent, and steps of rest.
type Trees = Vec<Vec<(usize, u32)>>;

fn trees() -> impl Strategy<Value = Trees> {
    let tree = prop::collection::vec((0..60_usize, 0..2_u32), RANKS as usize);
    prop::collection::vec(tree, usize::try_from(u64::from(RANKS) * CHUNKS).unwrap())
}

/// Chunks down their trees: `(step, from, to, chunk)`.
fn hops(trees: &Trees) -> Vec<(u32, u32, u32, u64)> {
    let mut hops = Vec::new();
    for (chunk, tree) in (0_u64..).zip(trees) {
        let root = u32::try_from(chunk / CHUNKS).unwrap();
        let rank = |position: usize| (root + u32::try_from(position).unwrap()) % RANKS;
        let mut ready = vec![0; tree.len()];
        for (position, &(choice, rest)) in tree.iter().enumerate().skip(1) {
            let parent = choice % position;
            let step = ready[parent] + rest;
            ready[position] = step + 1;
            hops.push((step, rank(parent), rank(position), chunk));
        }
    }
    hops
}

/// The sends in the order of their steps, neighbouring chunks that travel alike in one.
fn steps(mut sent: Vec<(u32, Action, u32, u32, u64)>) -> Steps {
    sent.sort_unstable();
    let mut sends: Vec<Send> = Vec::new();
    for (step, action, from, to, chunk) in sent {
        let (from, to) = (Rank::new(from), Rank::new(to));
        match sends.last_mut() {
            Some(last)
                if (last.step, last.action, last.from, last.to, last.chunks.end) == (step, action, from, to, chunk)
                    && chunk % CHUNKS > 0 =>
            {
                last.chunks.end += 1;
            }
            _ => sends.push(Send { step, action, from, to, chunks: chunk..chunk + 1, carriers: 0..1 }),
        }
    }
    let carriers = vec![Carrier { route: RouteIndex::new(0), chunk_count: 1 }];
    Steps { chunks_per_share: CHUNKS, pace: Pace::Barriers, routes: RouteTable::default(), carriers, sends }
}

proptest! {
    /// For sums, copies, and copies after sums, some of them with a send that does not belong there.
    #[test]
    fn tables_find_what_the_record_does(
        (up, down) in (trees(), trees()),
        kind in 0..3,
        other in prop::option::of((0..RANKS, 1..RANKS, 0..CHUNKS * u64::from(RANKS), 0..3 * STEPS_MAX, any::<bool>())),
    ) {
        let sums = hops(&up).into_iter().map(|(step, from, to, chunk)| (STEPS_MAX - step, Action::Reduce, to, from, chunk));
        let copies = hops(&down).into_iter();
        let copies = copies.map(|(step, from, to, chunk)| (STEPS_MAX + 1 + step, Action::Copy, from, to, chunk));
        let mut sent: Vec<_> = match kind {
            0 => sums.collect(),
            1 => copies.collect(),
            _ => sums.chain(copies).collect(),
        };
        if let Some((from, apart, chunk, step, is_copy)) = other {
            let action = if is_copy { Action::Copy } else { Action::Reduce };
            sent.push((step, action, from, (from + apart) % RANKS, chunk));
        }
        let steps = steps(sent);
        prop_assert_eq!(arrange(&steps, RANKS, &|| false), arrange_by_places(&steps, RANKS, &|| false));
        if other.is_none() {
            let once = Once::of(&steps, RANKS).expect("every place is used once");
            prop_assert!((0..steps.sends.len()).all(|send| once.waits_of(send, &mut Vec::new()).is_some()));
        }
    }
}
