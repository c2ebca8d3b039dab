//! Sends that are decided before, around which others find a place.

use crate::network::TimedNetwork;
use crate::sends::Sent;

/// By link, when what is kept begins on it.
pub(super) struct Kept {
    /// In order, link after link.
    starts: Vec<u64>,
    /// By link, the first of these that is not over; one more at the end.
    next: Vec<usize>,
    /// By link, where its starts end.
    ends: Vec<usize>,
}

impl Kept {
    /// Nothing is kept.
    pub(super) const fn nothing() -> Self {
        Self { starts: Vec::new(), next: Vec::new(), ends: Vec::new() }
    }

    /// By start, no link twice at a time. O(sends + links).
    pub(super) fn of(network: &TimedNetwork, kept: &[Sent]) -> Self {
        let mut ends = vec![0; network.links().len()];
        kept.iter().for_each(|sent| ends[sent.link as usize] += 1);
        let mut total = 0;
        let mut next = Vec::with_capacity(ends.len());
        for end in &mut ends {
            next.push(total);
            total += *end;
            *end = total;
        }
        let (mut starts, mut place) = (vec![0; total], next.clone());
        for sent in kept {
            let place = &mut place[sent.link as usize];
            starts[*place] = sent.start;
            *place += 1;
        }
        Self { starts, next, ends }
    }

    /// Whether what is kept leaves a link free for so long from a moment on; no moment is before one asked for earlier. What is in
    /// the way ends later than then.
    pub(super) fn is_free(&mut self, link: u32, now: u64, ticks: u64) -> bool {
        if self.starts.is_empty() {
            return true;
        }
        let (next, end) = (&mut self.next[link as usize], self.ends[link as usize]);
        while *next < end && self.starts[*next] + ticks <= now {
            *next += 1;
        }
        *next == end || self.starts[*next] >= now + ticks
    }
}
