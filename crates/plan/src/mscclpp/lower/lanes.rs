//! Lanes: what runs side by side. A lane is a list of groups; at each rank it is one block, or several in a row.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::atoms::{Atom, Atoms, Group, Piece};
use super::draft::{Draft, DraftOp, Notice, Room};

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

/// Piece after piece, so that each is sent on while the next arrives. Copies of a sum follow the sums of later pieces at a
/// distance: by then they have come all the way up.
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
    atoms: &Atoms,
    is_port: impl Fn(u32, u32) -> bool,
    room: Room,
    flushes: bool,
) -> BTreeMap<u32, Draft> {
    let mut writer = Writer {
        lane: number,
        atoms,
        is_port,
        room,
        drafts: BTreeMap::new(),
        coming: BTreeMap::new(),
        ported: BTreeMap::new(),
    };
    writer.greet(lane);
    for atom in lane {
        writer.atom(atom);
    }
    writer.drain();
    if !flushes {
        writer.acknowledge();
    }
    writer.drafts
}

struct Writer<'a, P> {
    lane: usize,
    atoms: &'a Atoms,
    is_port: P,
    room: Room,
    drafts: BTreeMap<u32, Draft>,
    /// By receiver and sender: notices that are sent and not yet waited for, in order, each with how many hops over port
    /// channels the sender had then seen arrive from the receiver.
    coming: BTreeMap<(u32, u32), VecDeque<(Notice, usize)>>,
    /// By sender and receiver: hops over port channels.
    ported: BTreeMap<(u32, u32), Ported>,
}

/// How far hops over port channels from one rank to another have come.
#[derive(Clone, Copy, Default)]
struct Ported {
    /// Handed to the proxy.
    sent: usize,
    /// Waited for by the receiver.
    arrived: usize,
    /// Known by the sender to have arrived: what the receiver has told it since says so.
    known: usize,
}

impl<P: Fn(u32, u32) -> bool> Writer<'_, P> {
    /// At its start a rank tells those who write to it before they hear from it otherwise that they may.
    fn greet(&mut self, lane: &[&Atom]) {
        let mut heard: BTreeSet<(u32, u32)> = BTreeSet::new();
        let mut greeted: BTreeMap<(u32, bool), Vec<u32>> = BTreeMap::new();
        for atom in lane {
            heard.extend(atom.needs.iter().map(|&hop| (atom.rank, self.atoms.hops[hop].from)));
            for &hop in &atom.sends {
                let to = self.atoms.hops[hop].to;
                if heard.insert((atom.rank, to)) {
                    greeted.entry((to, (self.is_port)(to, atom.rank))).or_default().push(atom.rank);
                }
            }
        }
        let lane = self.lane;
        for ((rank, is_port), peers) in greeted {
            for &peer in &peers {
                self.tell((rank, peer), Notice::Ready { lane, from: rank, to: peer });
            }
            self.draft(rank).greet((lane, rank), &peers, is_port);
        }
    }

    /// Notes that a rank tells another something.
    fn tell(&mut self, (from, to): (u32, u32), notice: Notice) {
        let arrived = self.ported.get(&(to, from)).map_or(0, |ported| ported.arrived);
        self.coming.entry((to, from)).or_default().push_back((notice, arrived));
    }

    /// Notes that a rank waits for what another has told it.
    fn hear(&mut self, (rank, peer): (u32, u32), (notice, arrived): (Notice, usize)) -> Notice {
        if let Some(ported) = self.ported.get_mut(&(rank, peer)) {
            ported.known = ported.known.max(arrived);
        }
        if matches!(notice, Notice::Hop(_)) && (self.is_port)(peer, rank) {
            self.ported.entry((peer, rank)).or_default().arrived += 1;
        }
        notice
    }

    fn draft(&mut self, rank: u32) -> &mut Draft {
        let room = self.room;
        self.drafts.entry(rank).or_insert_with(|| Draft::new(room))
    }

    fn atom(&mut self, atom: &Atom) {
        let (rank, lane) = (atom.rank, self.lane);
        let mut awaited: BTreeMap<u32, Vec<Notice>> = BTreeMap::new();
        let needed = atom.needs.iter().map(|&hop| (self.atoms.hops[hop].from, Notice::Hop(hop)));
        let to: Vec<u32> = atom.sends.iter().map(|&hop| self.atoms.hops[hop].to).collect();
        let ready = to.iter().map(|&peer| (peer, Notice::Ready { lane, from: peer, to: rank }));
        for (peer, notice) in needed.chain(ready) {
            // What comes from one peer is waited for in the order in which it is sent.
            let coming = self.coming.entry((rank, peer)).or_default();
            if let Some(position) = coming.iter().position(|&(other, _)| other == notice) {
                let heard: Vec<(Notice, usize)> = coming.drain(..=position).collect();
                let heard = heard.into_iter().map(|heard| self.hear((rank, peer), heard));
                awaited.entry(peer).or_default().extend(heard);
            }
        }
        self.wait(rank, awaited);
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
        for &(peer, _) in &port {
            self.ported.entry((rank, peer)).or_default().sent += 1;
        }
        for (peer, hop) in stored.iter().copied().chain(memory).chain(port) {
            self.tell((rank, peer), Notice::Hop(hop));
        }
    }

    /// Waits for notices: those of different peers together.
    fn wait(&mut self, rank: u32, mut awaited: BTreeMap<u32, Vec<Notice>>) {
        awaited.values_mut().for_each(|notices| notices.reverse());
        loop {
            let next: Vec<(u32, Notice)> =
                awaited.iter_mut().filter_map(|(&peer, notices)| Some((peer, notices.pop()?))).collect();
            if next.is_empty() {
                return;
            }
            let (port, memory): (Vec<_>, Vec<_>) = next.into_iter().partition(|&(peer, _)| (self.is_port)(rank, peer));
            let draft = self.draft(rank);
            memory.chunks(8).for_each(|notices| draft.wait(notices, false));
            port.chunks(8).for_each(|notices| draft.wait(notices, true));
        }
    }

    /// Waits for all that comes last and is not passed on.
    fn drain(&mut self) {
        let mut by_rank: BTreeMap<u32, BTreeMap<u32, Vec<Notice>>> = BTreeMap::new();
        for ((rank, peer), notices) in std::mem::take(&mut self.coming) {
            if !notices.is_empty() {
                let notices = notices.into_iter().map(|heard| self.hear((rank, peer), heard)).collect();
                by_rank.entry(rank).or_default().insert(peer, notices);
            }
        }
        for (rank, awaited) in by_rank {
            self.wait(rank, awaited);
        }
    }

    /// Lets each rank wait until its proxies are done with its memory, where no flush says so: those they have written to
    /// tell it, unless it has heard from them since. All tell before any waits, so nobody waits in a circle.
    fn acknowledge(&mut self) {
        let lane = self.lane;
        let mut told: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut awaited: BTreeMap<u32, BTreeMap<u32, Vec<Notice>>> = BTreeMap::new();
        for (&(rank, peer), ported) in &self.ported {
            if ported.known < ported.sent {
                told.entry(peer).or_default().push(rank);
                awaited.entry(rank).or_default().insert(peer, vec![Notice::Arrived { lane, from: peer, to: rank }]);
            }
        }
        for (rank, peers) in told {
            self.draft(rank).acknowledge((lane, rank), &peers);
        }
        for (rank, awaited) in awaited {
            self.wait(rank, awaited);
        }
    }
}

/// The last put of a block over each channel also waits until the source may change: nobody else does before the launch
/// ends.
pub(super) fn flush_last(block: &mut [DraftOp], atoms: &Atoms) {
    let mut is_flushed: BTreeSet<u32> = BTreeSet::new();
    for op in block.iter_mut().rev() {
        if let DraftOp::PortPut { hops, flushes } = op {
            for &hop in &*hops {
                *flushes |= is_flushed.insert(atoms.hops[hop].to);
            }
        }
    }
}
