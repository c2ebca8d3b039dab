//! Blocks of one rank as they grow: operations whose channels have no numbers yet.

use super::atoms::Sum;
use super::layout::{Spot, SpotCopy};

/// Something that is signalled and waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Notice {
    /// The rank's memory may be written: sent to those who will.
    Ready {
        /// The lane in which it does.
        lane: usize,
        /// Who may be written.
        from: u32,
        /// Who will write.
        to: u32,
    },
    /// A hop has arrived.
    Hop(usize),
    /// All that one rank has written over port channels in a lane has arrived, so its sources may change.
    Arrived {
        /// The lane.
        lane: usize,
        /// Who was written to.
        from: u32,
        /// Who has written.
        to: u32,
    },
}

/// An operation before its channels are numbered.
#[derive(Clone, Debug)]
pub(super) enum DraftOp {
    Nop,
    Barrier,
    Acquire,
    Release,
    Signal { notices: Vec<Notice>, is_port: bool, is_relaxed: bool },
    Wait { notices: Vec<Notice>, is_port: bool, is_relaxed: bool },
    Put(Vec<usize>),
    Store(usize),
    PortPut(Vec<usize>),
    Sum { sum: Sum, sends: Vec<usize> },
    Copy { from: Spot, to: Spot, count: u32 },
}

/// What a block has done since its threads last met, as far as it matters for what comes.
///
/// Peers are few and listed in any order, some twice.
#[derive(Default)]
struct Since {
    waited: Vec<u32>,
    signalled: Vec<u32>,
    has_moved: bool,
    has_written: bool,
}

/// Numbers of the runtime that a block keeps to.
#[derive(Clone, Copy)]
pub(super) struct Room {
    pub(super) operations: usize,
    pub(super) channels: usize,
}

/// The blocks of one lane at one rank, one after the other: each begins when the one before has ended.
pub(super) struct Draft {
    room: Room,
    pub(super) blocks: Vec<Vec<DraftOp>>,
    /// Peers of the last block over memory channels, and over port channels.
    peers: [Vec<u32>; 2],
    since: Since,
}

impl Draft {
    pub(super) fn new(room: Room) -> Self {
        Self { room, blocks: vec![Vec::new()], peers: [Vec::new(), Vec::new()], since: Since::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    fn push(&mut self, op: DraftOp) {
        self.blocks.last_mut().expect("there is always a block").push(op);
    }

    pub(super) fn meet(&mut self) {
        self.push(DraftOp::Nop);
        let Since { waited, signalled, has_moved, has_written } = &mut self.since;
        waited.clear();
        signalled.clear();
        (*has_moved, *has_written) = (false, false);
    }

    /// Makes sure that the last block has room for so many operations with these peers, else begins another.
    fn need(&mut self, operations: usize, is_port: bool, peers: &[u32]) {
        let used = self.blocks.last().map_or(0, Vec::len);
        let of_type = &self.peers[usize::from(is_port)];
        let more = peers.iter().filter(|peer| !of_type.contains(peer)).count();
        // Two operations pass on to the next block.
        let is_full = used + operations + 2 > self.room.operations || of_type.len() + more > self.room.channels;
        if is_full && (used > 2 || self.peers.iter().any(|peers| !peers.is_empty())) {
            self.push(DraftOp::Nop);
            self.push(DraftOp::Release);
            self.blocks.push(vec![DraftOp::Acquire]);
            self.peers.iter_mut().for_each(Vec::clear);
            self.meet();
        }
        let of_type = &mut self.peers[usize::from(is_port)];
        for peer in peers {
            if !of_type.contains(peer) {
                of_type.push(*peer);
            }
        }
    }

    /// Tells peers that they may write.
    pub(super) fn greet(&mut self, (lane, own): (usize, u32), peers: &[u32], is_port: bool) {
        for peers in peers.chunks(8) {
            self.need(1, is_port, peers);
            let notices = peers.iter().map(|&to| Notice::Ready { lane, from: own, to }).collect();
            self.since.signalled.extend(peers);
            self.push(DraftOp::Signal { notices, is_port, is_relaxed: !is_port });
        }
    }

    /// Waits for notices of as many different peers, at most 8.
    pub(super) fn wait(&mut self, notices: &[(u32, Notice)], is_port: bool) {
        let peers: Vec<u32> = notices.iter().map(|(peer, _)| *peer).collect();
        self.need(2, is_port, &peers);
        if peers.iter().any(|peer| self.since.waited.contains(peer)) {
            self.meet();
        }
        self.since.waited.extend(&peers);
        let is_relaxed = !is_port && notices.iter().all(|(_, notice)| matches!(notice, Notice::Ready { .. }));
        let notices = notices.iter().map(|(_, notice)| *notice).collect();
        self.push(DraftOp::Wait { notices, is_port, is_relaxed });
    }

    /// Sums, and writes the result to peers over memory channels, too.
    pub(super) fn sum(&mut self, sum: Sum, sends: &[(u32, usize)]) {
        let peers: Vec<u32> = sends.iter().map(|(peer, _)| *peer).collect();
        self.need(if sends.is_empty() { 2 } else { 4 }, false, &peers);
        if !self.since.waited.is_empty() || self.since.has_moved {
            self.meet();
        }
        let hops: Vec<usize> = sends.iter().map(|(_, hop)| *hop).collect();
        self.push(DraftOp::Sum { sum, sends: hops.clone() });
        self.since.has_moved = true;
        self.since.has_written = true;
        if !hops.is_empty() {
            self.signal(&peers, &hops);
        }
    }

    /// Writes to as many peers over memory channels, at most 8, and signals.
    pub(super) fn put(&mut self, sends: &[(u32, usize)]) {
        let peers: Vec<u32> = sends.iter().map(|(peer, _)| *peer).collect();
        self.need(4, false, &peers);
        if !self.since.waited.is_empty() || self.since.has_written {
            self.meet();
        }
        let hops: Vec<usize> = sends.iter().map(|(_, hop)| *hop).collect();
        self.push(DraftOp::Put(hops.clone()));
        self.signal(&peers, &hops);
    }

    /// Stores at a group at once, and signals its members.
    pub(super) fn store(&mut self, store: usize, sends: &[(u32, usize)]) {
        self.need(3, false, &[]);
        if !self.since.waited.is_empty() || self.since.has_written || self.since.has_moved {
            self.meet();
        }
        self.push(DraftOp::Store(store));
        self.meet();
        for sends in sends.chunks(8) {
            let peers: Vec<u32> = sends.iter().map(|(peer, _)| *peer).collect();
            self.need(1, false, &peers);
            let notices = sends.iter().map(|&(_, hop)| Notice::Hop(hop)).collect();
            self.push(DraftOp::Signal { notices, is_port: false, is_relaxed: false });
            self.since.signalled.extend(peers);
        }
    }

    fn signal(&mut self, peers: &[u32], hops: &[usize]) {
        self.meet();
        let notices = hops.iter().map(|&hop| Notice::Hop(hop)).collect();
        self.push(DraftOp::Signal { notices, is_port: false, is_relaxed: false });
        self.since.signalled.extend(peers);
    }

    /// Writes to as many peers over port channels, at most 8; proxies signal.
    pub(super) fn port_put(&mut self, sends: &[(u32, usize)]) {
        let peers: Vec<u32> = sends.iter().map(|(peer, _)| *peer).collect();
        self.need(2, true, &peers);
        let is_used = peers.iter().any(|peer| self.since.signalled.contains(peer));
        if !self.since.waited.is_empty() || self.since.has_written || is_used {
            self.meet();
        }
        self.push(DraftOp::PortPut(sends.iter().map(|(_, hop)| *hop).collect()));
        self.since.signalled.extend(&peers);
        self.since.has_moved = true;
    }

    /// Tells peers that all they wrote over port channels, and was waited for, has arrived.
    pub(super) fn acknowledge(&mut self, (lane, own): (usize, u32), peers: &[u32]) {
        for peers in peers.chunks(8) {
            self.need(2, true, peers);
            self.meet();
            let notices = peers.iter().map(|&to| Notice::Arrived { lane, from: own, to }).collect();
            self.push(DraftOp::Signal { notices, is_port: true, is_relaxed: false });
            self.since.signalled.extend(peers);
        }
    }

    /// A copy that nothing else depends on.
    pub(super) fn own_copy(&mut self, SpotCopy { from, to, count }: SpotCopy) {
        self.need(1, false, &[]);
        self.push(DraftOp::Copy { from, to, count });
        self.since.has_moved = true;
    }

    /// Meets all blocks of the rank, then copies.
    pub(super) fn barrier(&mut self, copies: &[SpotCopy]) {
        self.need(3 + copies.len().min(16), false, &[]);
        self.meet();
        self.push(DraftOp::Barrier);
        copies.iter().for_each(|&SpotCopy { from, to, count }| self.push(DraftOp::Copy { from, to, count }));
    }
}
