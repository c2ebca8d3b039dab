//! Messages on given routes with FIFO links: the behaviour of a network without a schedule.
//!
//! Won et al., section 8, compare with schedules that are run so: one chunk at a time on each link, a queue before each, and
//! what passes a node waits until all of it is there.

use std::collections::{BTreeMap, VecDeque};

use canopy_optimize::Stop;

use canopy_tacos::CopyError;

/// A link with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueuedLink {
    /// Ticks from the start of a send until all of the chunk is at the other end.
    pub latency: u64,
    /// Ticks from the start of a send until the next may start, ≤ `latency`.
    pub occupancy: u64,
    /// Whether it leads to a switch, which sends a chunk on while it still comes in: after the last bit came in where the next
    /// link is as fast or slower, and so late that it never waits for bits where that is faster.
    pub is_cut_through: bool,
}

/// A chunk on its route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The links that it takes, in order.
    pub path: Vec<u32>,
    /// The message, by its place in the list, that must have come to its end before.
    pub after: Option<u32>,
    /// How many times the occupancy of each link it takes.
    pub weight: u64,
}

impl QueuedLink {
    /// The same for a message of a weight, whose passage beyond that is as long.
    pub(crate) fn of_weight(self, weight: u64) -> Option<Self> {
        let occupancy = self.occupancy.checked_mul(weight)?;
        let latency = self.latency.saturating_sub(self.occupancy).checked_add(occupancy)?;
        Some(Self { latency, occupancy, ..self })
    }
}

/// For each message, its start on each link of its route.
///
/// Messages that wait for none stand in the queues from the beginning, in the order of the list; those that come to a queue at the same
/// moment, too.
///
/// * **Errors.** [`CopyError`]: stopped, or too long. A message that waits for itself never starts: its times are missing.
/// * **Cost.** O(links of all ways · log of all ways).
/// * **Panics.** For links that there are not.
pub fn queued(links: &[QueuedLink], messages: &[Message], stop: &dyn Stop) -> Result<Vec<Vec<u64>>, CopyError> {
    let mut followers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut events: BTreeMap<u64, Moment> = BTreeMap::new();
    for (number, message) in (0..).zip(messages) {
        match message.after {
            Some(before) => followers.entry(before).or_default().push(number),
            None => events.entry(0).or_default().here.push(number),
        }
    }
    let mut starts: Vec<Vec<u64>> = messages.iter().map(|message| Vec::with_capacity(message.path.len())).collect();
    let mut queues = vec![VecDeque::new(); links.len()];
    let mut busy_until = vec![0; links.len()];
    while let Some((now, mut moment)) = events.pop_first() {
        if stop.is_requested() {
            return Err(CopyError::Stopped);
        }
        moment.here.sort_unstable();
        let mut here = VecDeque::from(moment.here);
        while let Some(number) = here.pop_front() {
            match messages[number as usize].path.get(starts[number as usize].len()) {
                Some(&link) => {
                    queues[link as usize].push_back(number);
                    moment.touched.push(link);
                }
                // In its place whatever waited for it.
                None => followers.remove(&number).into_iter().flatten().rev().for_each(|next| here.push_front(next)),
            }
        }
        for link in moment.touched {
            if busy_until[link as usize] > now {
                continue;
            }
            let Some(number) = queues[link as usize].pop_front() else { continue };
            let Message { path, weight, .. } = &messages[number as usize];
            let of_weight = |link: u32| links[link as usize].of_weight(*weight).ok_or(CopyError::TooLong);
            let (timed, hop) = (of_weight(link)?, starts[number as usize].len());
            starts[number as usize].push(now);
            let ahead = match path.get(hop + 1) {
                Some(&next) if timed.is_cut_through => timed.occupancy.min(of_weight(next)?.occupancy),
                _ => 0,
            };
            let free = now.checked_add(timed.occupancy).ok_or(CopyError::TooLong)?;
            let there = now.checked_add(timed.latency.saturating_sub(ahead)).ok_or(CopyError::TooLong)?;
            busy_until[link as usize] = free;
            events.entry(there).or_default().here.push(number);
            events.entry(free).or_default().touched.push(link);
        }
    }
    Ok(starts)
}

/// What happens at a time.
#[derive(Default)]
struct Moment {
    /// Messages at a node of their ways.
    here: Vec<u32>,
    /// Links that may send.
    touched: Vec<u32>,
}
