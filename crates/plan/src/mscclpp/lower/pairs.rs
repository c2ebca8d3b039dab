//! Who has told whom what in a lane: notices on their way from one rank to another.

use std::collections::{HashMap, VecDeque};
use std::mem;

use super::atoms::Atoms;
use super::draft::Notice;

/// Two ranks, of which the first tells the second something: one number for each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair(usize);

impl Pair {
    /// The same two in the other direction.
    pub(super) const fn back(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// All pairs that hops are between, and what they have told each other in the lane that is being drafted.
pub(super) struct Pairs {
    of_hops: Vec<Pair>,
    /// By pair: who tells, and who is told.
    ends: Vec<(u32, u32)>,
    /// By pair.
    told: Vec<Told>,
    /// Those of which something was told.
    in_use: Vec<Pair>,
}

/// What one rank has told another.
#[derive(Default)]
struct Told {
    /// Whether something will be told before that one writes back.
    is_met: bool,
    is_in_use: bool,
    /// Notices that are sent and not yet waited for, in order, each with how many hops over port channels in the other
    /// direction had then arrived.
    coming: VecDeque<(Notice, usize)>,
    /// Hops over port channels that were handed to the proxy, that were waited for, and that are known by the sender to
    /// have arrived: what the receiver has told it since says so.
    sent: usize,
    arrived: usize,
    known: usize,
}

impl Pairs {
    /// O(hops).
    pub(super) fn of(atoms: &Atoms) -> Self {
        // Looked up, never listed.
        let mut numbers: HashMap<(u32, u32), usize> = HashMap::new();
        let mut ends = Vec::new();
        let of_hops = atoms.hops.iter().map(|hop| {
            let (low, high) = (hop.from.min(hop.to), hop.from.max(hop.to));
            let number = *numbers.entry((low, high)).or_insert_with(|| {
                ends.extend([(low, high), (high, low)]);
                ends.len() - 2
            });
            Pair(number + usize::from(hop.from == high))
        });
        let of_hops = of_hops.collect();
        Self { of_hops, told: ends.iter().map(|_| Told::default()).collect(), ends, in_use: Vec::new() }
    }

    /// Who makes a hop, and who gets it.
    pub(super) fn of_hop(&self, hop: usize) -> Pair {
        self.of_hops[hop]
    }

    /// Who tells, and who is told.
    pub(super) fn ends(&self, pair: Pair) -> (u32, u32) {
        self.ends[pair.0]
    }

    /// Notes that one will hear of the other; whether that is new.
    pub(super) fn meet(&mut self, pair: Pair) -> bool {
        !mem::replace(&mut self.told[pair.0].is_met, true)
    }

    /// Notes that one tells the other something.
    pub(super) fn tell(&mut self, pair: Pair, notice: Notice) {
        let arrived = self.told[pair.back().0].arrived;
        let told = &mut self.told[pair.0];
        told.coming.push_back((notice, arrived));
        if !mem::replace(&mut told.is_in_use, true) {
            self.in_use.push(pair);
        }
    }

    /// What is still to be waited for, in order.
    pub(super) fn coming(&self, pair: Pair) -> impl Iterator<Item = Notice> {
        self.told[pair.0].coming.iter().map(|&(notice, _)| notice)
    }

    /// The next that is waited for, if there is one.
    pub(super) fn hear(&mut self, pair: Pair, is_port: bool) -> Option<Notice> {
        let (notice, arrived) = self.told[pair.0].coming.pop_front()?;
        let back = &mut self.told[pair.back().0];
        back.known = back.known.max(arrived);
        self.told[pair.0].arrived += usize::from(is_port && matches!(notice, Notice::Hop(_)));
        Some(notice)
    }

    /// Notes that a hop over a port channel is handed to the proxy.
    pub(super) fn hand_over(&mut self, pair: Pair) {
        self.told[pair.0].sent += 1;
    }

    /// Whether some hop over a port channel is not known to have arrived.
    pub(super) fn has_unconfirmed(&self, pair: Pair) -> bool {
        let Told { sent, known, .. } = self.told[pair.0];
        known < sent
    }

    /// Those of which something was told, by who is told and then by who tells.
    pub(super) fn in_use(&self) -> Vec<Pair> {
        let mut pairs = self.in_use.clone();
        pairs.sort_unstable_by_key(|&pair| {
            let (from, to) = self.ends(pair);
            (to, from)
        });
        pairs
    }

    /// Forgets all that was told, so that another lane can be drafted.
    pub(super) fn forget(&mut self, in_use: &[Pair]) {
        for pair in in_use {
            let told = &mut self.told[pair.0];
            told.coming.clear();
            *told = Told { coming: mem::take(&mut told.coming), ..Told::default() };
        }
        self.in_use.clear();
    }
}
