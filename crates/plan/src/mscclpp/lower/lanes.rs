//! Lanes: what runs side by side. A lane is a list of groups; at each rank it is one block, or several in a row.

use std::collections::BTreeMap;

use super::atoms::{Atom, Atoms, Group, Piece};
use super::draft::{Draft, Notice, Room};
use super::pairs::{Pair, Pairs};

/// Divides groups among lanes: each to the one with least to move.
pub(super) fn divide(atoms: &Atoms, lane_count: usize) -> Vec<Vec<&Atom>> {
    let mut lanes: Vec<(u64, Vec<&Group>)> = vec![(0, Vec::new()); lane_count.max(1)];
    for group in &atoms.groups {
        let all = group.pieces.iter().flat_map(|piece| piece.up.iter().chain(&piece.down));
        let moved = all.map(|atom| atom.moved(atoms)).sum::<u64>();
        let lightest = lanes.iter_mut().min_by_key(|(load, _)| *load).expect("there is always a lane");
        lightest.0 += moved;
        lightest.1.push(group);
    }
    lanes.iter().map(|(_, groups)| in_turns(groups)).filter(|lane| !lane.is_empty()).collect()
}

impl Atom {
    /// Chunks that the rank writes, those of a store once.
    fn moved(&self, atoms: &Atoms) -> u64 {
        let plain = self.sends.iter().map(|&hop| &atoms.hops[hop]).filter(|hop| !hop.is_stored);
        let stored = self.stores.iter().map(|&(store, _)| u64::from(atoms.stores[store].count));
        plain.map(|hop| u64::from(hop.count)).chain(stored).sum()
    }
}

/// Piece after piece, so that each is sent on while the next arrives. Copies of a sum follow the sums of later pieces
/// at a distance: by then they have come all the way up.
fn in_turns<'a>(groups: &[&'a Group]) -> Vec<&'a Atom> {
    let turns = groups.iter().map(|group| group.pieces.len() + group.depth).max().unwrap_or(0);
    let mut lane = Vec::new();
    for turn in 0..turns {
        for group in groups {
            let up: fn(&Piece) -> &[Atom] = |piece| &piece.up;
            lane.extend(group.pieces.get(turn).map_or(&[][..], up));
            let behind = turn.checked_sub(group.depth.min(group.pieces.len()));
            let down: fn(&Piece) -> &[Atom] = |piece| &piece.down;
            lane.extend(behind.and_then(|turn| group.pieces.get(turn)).map_or(&[][..], down));
        }
    }
    lane
}

/// The drafts of a lane by rank.
pub(super) fn draft(
    number: usize,
    lane: &[&Atom],
    (atoms, pairs): (&Atoms, &mut Pairs),
    is_port: impl Fn(u32, u32) -> bool,
    room: Room,
) -> BTreeMap<u32, Draft> {
    let mut writer = Writer { lane: number, atoms, pairs, is_port, room, drafts: BTreeMap::new() };
    writer.greet(lane);
    for atom in lane {
        writer.atom(atom);
    }
    let in_use = writer.pairs.in_use();
    writer.drain(&in_use);
    writer.acknowledge(&in_use);
    let Writer { pairs, drafts, .. } = writer;
    pairs.forget(&in_use);
    drafts
}

struct Writer<'a, P> {
    lane: usize,
    atoms: &'a Atoms,
    pairs: &'a mut Pairs,
    is_port: P,
    room: Room,
    drafts: BTreeMap<u32, Draft>,
}

impl<P: Fn(u32, u32) -> bool> Writer<'_, P> {
    /// At its start a rank tells those who write to it before they hear from it otherwise that they may.
    fn greet(&mut self, lane: &[&Atom]) {
        let mut greeted: BTreeMap<(u32, bool), Vec<Pair>> = BTreeMap::new();
        for atom in lane {
            for &hop in &atom.needs {
                self.pairs.meet(self.pairs.of_hop(hop));
            }
            for &hop in &atom.sends {
                let pair = self.pairs.of_hop(hop).back();
                if self.pairs.meet(pair) {
                    let to = self.atoms.hops[hop].to;
                    greeted.entry((to, (self.is_port)(to, atom.rank))).or_default().push(pair);
                }
            }
        }
        let lane = self.lane;
        for ((rank, is_port), pairs) in greeted {
            let peers: Vec<u32> = pairs.iter().map(|&pair| self.pairs.ends(pair).1).collect();
            for (&to, pair) in peers.iter().zip(pairs) {
                self.pairs.tell(pair, Notice::Ready { lane, from: rank, to });
            }
            self.draft(rank).greet((lane, rank), &peers, is_port);
        }
    }

    fn draft(&mut self, rank: u32) -> &mut Draft {
        let room = self.room;
        self.drafts.entry(rank).or_insert_with(|| Draft::new(room))
    }

    fn atom(&mut self, atom: &Atom) {
        let (rank, lane) = (atom.rank, self.lane);
        let mut awaited: Vec<(u32, Vec<Notice>)> = Vec::new();
        let needed = atom.needs.iter().map(|&hop| (hop, true));
        for (hop, is_needed) in needed.chain(atom.sends.iter().map(|&hop| (hop, false))) {
            let pair = self.pairs.of_hop(hop);
            let (pair, notice) = match is_needed {
                true => (pair, Notice::Hop(hop)),
                false => (pair.back(), Notice::Ready { lane, from: self.atoms.hops[hop].to, to: rank }),
            };
            let heard = self.hear_until(pair, notice);
            let (peer, _) = self.pairs.ends(pair);
            match awaited.iter_mut().find(|(other, _)| *other == peer) {
                _ if heard.is_empty() => {}
                Some((_, notices)) => notices.extend(heard),
                None => awaited.push((peer, heard)),
            }
        }
        self.wait(rank, awaited);
        self.send(atom);
    }

    /// A notice, if it is still to come, after all that the same rank has told before: what comes from one peer is
    /// waited for in the order in which it is sent.
    fn hear_until(&mut self, pair: Pair, notice: Notice) -> Vec<Notice> {
        let position = self.pairs.coming(pair).position(|other| other == notice);
        (0..position.map_or(0, |position| position + 1)).filter_map(|_| self.hear(pair)).collect()
    }

    fn hear(&mut self, pair: Pair) -> Option<Notice> {
        let (from, to) = self.pairs.ends(pair);
        self.pairs.hear(pair, (self.is_port)(from, to))
    }

    /// What an atom does once all that it needs is there.
    fn send(&mut self, atom: &Atom) {
        let rank = atom.rank;
        let sends: Vec<(u32, usize)> = atom.sends.iter().map(|&hop| (self.atoms.hops[hop].to, hop)).collect();
        let (stored, plain) = sends.split_at(atom.stores.iter().map(|&(_, count)| count).sum());
        let (port, memory): (Vec<_>, Vec<_>) = plain.iter().partition(|&&(peer, _)| (self.is_port)(rank, peer));
        let draft = self.draft(rank);
        let mut rest = stored;
        for &(store, count) in &atom.stores {
            let (own, others) = rest.split_at(count);
            draft.store(store, own);
            rest = others;
        }
        let sends_sum = !atom.sums.is_empty() && !memory.is_empty() && memory.len() <= 7;
        for (position, &sum) in atom.sums.iter().enumerate() {
            let is_last = position + 1 == atom.sums.len();
            draft.sum(sum, if is_last && sends_sum { &memory } else { &[] });
        }
        if !sends_sum {
            memory.chunks(8).for_each(|sends| draft.put(sends));
        }
        port.chunks(8).for_each(|sends| draft.port_put(sends));
        for &(_, hop) in &port {
            self.pairs.hand_over(self.pairs.of_hop(hop));
        }
        for (_, hop) in stored.iter().copied().chain(memory).chain(port) {
            self.pairs.tell(self.pairs.of_hop(hop), Notice::Hop(hop));
        }
    }

    /// Waits for notices: those of different peers together.
    fn wait(&mut self, rank: u32, mut awaited: Vec<(u32, Vec<Notice>)>) {
        awaited.sort_unstable_by_key(|&(peer, _)| peer);
        let rounds = awaited.iter().map(|(_, notices)| notices.len()).max().unwrap_or(0);
        for round in 0..rounds {
            let next = awaited.iter().filter_map(|(peer, notices)| Some((*peer, *notices.get(round)?)));
            let (port, memory): (Vec<_>, Vec<_>) = next.partition(|&(peer, _)| (self.is_port)(rank, peer));
            let draft = self.draft(rank);
            memory.chunks(8).for_each(|notices| draft.wait(notices, false));
            port.chunks(8).for_each(|notices| draft.wait(notices, true));
        }
    }

    /// Waits for all that comes last and is not passed on.
    fn drain(&mut self, in_use: &[Pair]) {
        let mut by_rank: BTreeMap<u32, Vec<(u32, Vec<Notice>)>> = BTreeMap::new();
        for &pair in in_use {
            let (from, to) = self.pairs.ends(pair);
            let notices: Vec<Notice> = std::iter::from_fn(|| self.hear(pair)).collect();
            if !notices.is_empty() {
                by_rank.entry(to).or_default().push((from, notices));
            }
        }
        for (rank, awaited) in by_rank {
            self.wait(rank, awaited);
        }
    }

    /// Lets each rank wait until its proxies are done with its memory: those they have written to notify it, unless it
    /// has heard from them since. A flush would do in releases that execute it right, but what has left a rank may still
    /// be on its way when the launch ends. All notify before any waits, so no wait closes a circle.
    fn acknowledge(&mut self, in_use: &[Pair]) {
        let lane = self.lane;
        let mut told: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut awaited: BTreeMap<u32, Vec<(u32, Vec<Notice>)>> = BTreeMap::new();
        for &pair in in_use.iter().filter(|&&pair| self.pairs.has_unconfirmed(pair)) {
            let (rank, peer) = self.pairs.ends(pair);
            told.entry(peer).or_default().push(rank);
            awaited.entry(rank).or_default().push((peer, vec![Notice::Arrived { lane, from: peer, to: rank }]));
        }
        for (rank, peers) in told {
            self.draft(rank).acknowledge((lane, rank), &peers);
        }
        for (rank, awaited) in awaited {
            self.wait(rank, awaited);
        }
    }
}
