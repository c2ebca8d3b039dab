//! A rank but for its sockets and its clock: which piece goes next on each connection, and what a piece that comes lets
//! go.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use crate::data::value;
use crate::program::{RankProgram, Segment};

/// A piece that came and waits until its place may be changed.
type Held = BTreeMap<(u32, u32), Vec<u8>>;

/// Memory and progress of a rank.
#[derive(Debug)]
pub struct RankState {
    program: RankProgram,
    /// Words, little-endian.
    memory: Vec<u8>,
    /// By send and piece: receives that have not come.
    send_waits: Table,
    /// By receive and piece: sends that have not left and receives that have not come.
    receive_waits: Table,
    /// By receive: sends that wait for it, receives that do.
    after_receive: Vec<(Vec<u32>, Vec<u32>)>,
    /// By send: receives that wait for it.
    after_send: Vec<Vec<u32>>,
    /// By connection: pieces that can go.
    ready: Vec<BinaryHeap<Reverse<Ready>>>,
    held: Held,
    pieces_to_send: u64,
    pieces_to_come: u64,
}

/// A piece that can go. Those of which the smaller part of the segment went go first, so that all segments move on
/// evenly; then those with the longest chain behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    /// In parts of 2³².
    progress: u64,
    height: Reverse<u32>,
    send: u32,
    piece: u32,
}

/// What comes before a piece on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The receiver's number of the receive.
    pub receive: u32,
    /// The piece.
    pub piece: u32,
}

/// Why a rank cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum StateError {
    #[error("the program is malformed: {what}")]
    Malformed { what: &'static str },
    #[error("piece {piece} of receive {receive} came on another connection, twice, or not as agreed")]
    Unexpected { receive: u32, piece: u32 },
}

impl RankState {
    /// The rank of a program, not yet [prepared](Self::prepare).
    ///
    /// # Errors
    /// A program whose numbers do not fit together.
    pub fn new(program: RankProgram) -> Result<Self, StateError> {
        check(&program)?;
        let mut after_receive = vec![(Vec::new(), Vec::new()); program.receives.len()];
        let mut after_send = vec![Vec::new(); program.sends.len()];
        for (send, number) in program.sends.iter().zip(0_u32..) {
            for &receive in &send.after {
                after_receive[receive as usize].0.push(number);
            }
        }
        for (receive, number) in program.receives.iter().zip(0_u32..) {
            for &send in &receive.after_sends {
                after_send[send as usize].push(number);
            }
            for &other in &receive.after_receives {
                after_receive[other as usize].1.push(number);
            }
        }
        let pieces = |segment: u32| program.segments[segment as usize].pieces;
        let send_waits = Table::new(program.sends.iter().map(|send| pieces(send.segment)));
        let receive_waits = Table::new(program.receives.iter().map(|receive| pieces(receive.segment)));
        Ok(Self {
            memory: vec![0; program.words * 4],
            ready: vec![BinaryHeap::new(); program.outgoing.len()],
            held: BTreeMap::new(),
            pieces_to_send: 0,
            pieces_to_come: 0,
            program,
            send_waits,
            receive_waits,
            after_receive,
            after_send,
        })
    }

    /// The program.
    pub fn program(&self) -> &RankProgram {
        &self.program
    }

    /// Fills the memory with what the rank contributes, and forgets all that went before. O(memory + pieces).
    pub fn prepare(&mut self) {
        let times = if self.program.is_sum { self.program.rank + 1 } else { 1 };
        for segment in &self.program.segments {
            let bytes = &mut self.memory[segment.place * 4..(segment.place + segment.words) * 4];
            if segment.is_own {
                for (word, index) in bytes.chunks_exact_mut(4).zip(segment.first_word..) {
                    word.copy_from_slice(&value(index).wrapping_mul(times).to_le_bytes());
                }
            } else {
                bytes.fill(0);
            }
        }
        self.held.clear();
        self.ready.iter_mut().for_each(BinaryHeap::clear);
        self.send_waits.fill(self.program.sends.iter().map(|send| send.after.len()));
        let waits = self.program.receives.iter().map(|own| own.after_sends.len() + own.after_receives.len());
        self.receive_waits.fill(waits);
        (self.pieces_to_send, self.pieces_to_come) = (self.send_waits.len(), self.receive_waits.len());
        for number in 0..self.program.sends.len() {
            let send = &self.program.sends[number];
            if send.after.is_empty() {
                for piece in 0..self.program.segments[send.segment as usize].pieces {
                    self.make_ready(number, piece);
                }
            }
        }
    }

    /// Whether everything has left and come.
    pub const fn is_done(&self) -> bool {
        self.pieces_to_send == 0 && self.pieces_to_come == 0
    }

    /// Whether everything has come.
    pub const fn has_received_all(&self) -> bool {
        self.pieces_to_come == 0
    }

    /// Whether a piece can go on a connection.
    pub fn has_ready(&self, connection: usize) -> bool {
        self.ready.get(connection).is_some_and(|ready| !ready.is_empty())
    }

    /// Takes the next piece of a connection and appends it, with what comes before it, to `out`. From then on its place
    /// may change. Returns whether there was one.
    pub fn take_ready(&mut self, connection: usize, out: &mut Vec<u8>) -> bool {
        let Some(Reverse(Ready { send, piece, .. })) = self.ready.get_mut(connection).and_then(BinaryHeap::pop) else {
            return false;
        };
        let order = &self.program.sends[send as usize];
        out.extend_from_slice(&order.receive.to_le_bytes());
        out.extend_from_slice(&piece.to_le_bytes());
        let place = bytes_of(&self.program.segments[order.segment as usize], piece);
        out.extend_from_slice(&self.memory[place]);
        self.pieces_to_send -= 1;
        for index in 0..self.after_send[send as usize].len() {
            let receive = self.after_send[send as usize][index];
            self.let_change(receive, piece);
        }
        true
    }

    /// Bytes of the piece that is announced on a connection.
    ///
    /// # Errors
    /// A piece that does not belong there.
    pub fn piece_bytes(&self, connection: usize, arrival: Arrival) -> Result<usize, StateError> {
        let Arrival { receive, piece } = arrival;
        let found = self.program.receives.get(receive as usize).filter(|own| own.connection as usize == connection);
        let segment = found.and_then(|own| self.program.segments.get(own.segment as usize));
        let segment = segment.filter(|segment| piece < segment.pieces);
        segment.map(|segment| bytes_of(segment, piece).len()).ok_or(StateError::Unexpected { receive, piece })
    }

    /// Takes a piece that came, of the bytes that [`piece_bytes`](Self::piece_bytes) says.
    ///
    /// # Errors
    /// A piece that does not belong there, or came before.
    pub fn arrived(&mut self, connection: usize, arrival: Arrival, bytes: &[u8]) -> Result<(), StateError> {
        let Arrival { receive, piece } = arrival;
        let expected = self.piece_bytes(connection, arrival)?;
        let is_new = !self.receive_waits.is_settled(receive, piece) && !self.held.contains_key(&(receive, piece));
        if expected != bytes.len() || !is_new {
            return Err(StateError::Unexpected { receive, piece });
        }
        if self.receive_waits.get(receive, piece) == 0 {
            self.change(receive, piece, bytes);
        } else {
            self.held.insert((receive, piece), bytes.to_vec());
        }
        Ok(())
    }

    /// Words of the result that are wrong. O(memory).
    pub fn wrong_words(&self) -> u64 {
        let ranks = self.program.rank_count;
        let times = if self.program.is_sum { ranks.wrapping_mul(ranks + 1) / 2 } else { 1 };
        let wanted = self.program.segments.iter().filter(|segment| segment.is_wanted);
        let wrong = |segment: &Segment| {
            let bytes = &self.memory[segment.place * 4..(segment.place + segment.words) * 4];
            let words = bytes.chunks_exact(4).zip(segment.first_word..);
            words.filter(|(word, index)| **word != value(*index).wrapping_mul(times).to_le_bytes()).count() as u64
        };
        wanted.map(wrong).sum()
    }

    fn make_ready(&mut self, send: usize, piece: u32) {
        let order = &self.program.sends[send];
        let pieces = self.program.segments[order.segment as usize].pieces;
        let progress = (u64::from(piece) << 32) / u64::from(pieces.max(1));
        let send = u32::try_from(send).unwrap_or(u32::MAX);
        let ready = Ready { progress, height: Reverse(order.height), send, piece };
        self.ready[order.connection as usize].push(Reverse(ready));
    }

    /// One thing less keeps a piece from changing its place.
    fn let_change(&mut self, receive: u32, piece: u32) {
        if self.receive_waits.settle_one(receive, piece)
            && let Some(bytes) = self.held.remove(&(receive, piece))
        {
            self.change(receive, piece, &bytes);
        }
    }

    /// Puts a piece in its place, and lets go what waited for it.
    fn change(&mut self, receive: u32, piece: u32, bytes: &[u8]) {
        let own = &self.program.receives[receive as usize];
        let place = bytes_of(&self.program.segments[own.segment as usize], piece);
        let memory = &mut self.memory[place];
        if own.is_added {
            for (sum, word) in memory.chunks_exact_mut(4).zip(bytes.chunks_exact(4)) {
                let number = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
                let added = number(sum).wrapping_add(number(word));
                sum.copy_from_slice(&added.to_le_bytes());
            }
        } else {
            memory.copy_from_slice(bytes);
        }
        self.receive_waits.close(receive, piece);
        self.pieces_to_come -= 1;
        for index in 0..self.after_receive[receive as usize].0.len() {
            let send = self.after_receive[receive as usize].0[index];
            if self.send_waits.settle_one(send, piece) {
                self.make_ready(send as usize, piece);
            }
        }
        for index in 0..self.after_receive[receive as usize].1.len() {
            let other = self.after_receive[receive as usize].1[index];
            self.let_change(other, piece);
        }
    }
}

/// The bytes of a piece in the memory.
fn bytes_of(segment: &Segment, piece: u32) -> Range<usize> {
    let words = segment.piece(piece);
    (segment.place + words.start) * 4..(segment.place + words.end) * 4
}

/// Numbers by item and piece.
#[derive(Debug)]
struct Table {
    starts: Vec<usize>,
    numbers: Vec<u32>,
}

/// What a [`Table`] has for a piece that has come.
const CLOSED: u32 = u32::MAX;

impl Table {
    fn new(pieces: impl Iterator<Item = u32>) -> Self {
        let mut starts = vec![0];
        let mut end = 0;
        starts.extend(pieces.map(|pieces| {
            end += pieces as usize;
            end
        }));
        Self { numbers: vec![0; end], starts }
    }

    fn len(&self) -> u64 {
        self.numbers.len() as u64
    }

    fn fill(&mut self, numbers: impl Iterator<Item = usize>) {
        for (ends, number) in self.starts.windows(2).zip(numbers) {
            self.numbers[ends[0]..ends[1]].fill(u32::try_from(number).unwrap_or(CLOSED - 1));
        }
    }

    fn at(&self, item: u32, piece: u32) -> usize {
        self.starts[item as usize] + piece as usize
    }

    fn get(&self, item: u32, piece: u32) -> u32 {
        self.numbers[self.at(item, piece)]
    }

    fn is_settled(&self, item: u32, piece: u32) -> bool {
        self.get(item, piece) == CLOSED
    }

    fn close(&mut self, item: u32, piece: u32) {
        let at = self.at(item, piece);
        self.numbers[at] = CLOSED;
    }

    /// Counts one down; returns whether nothing is left.
    fn settle_one(&mut self, item: u32, piece: u32) -> bool {
        let at = self.at(item, piece);
        let number = &mut self.numbers[at];
        *number = number.saturating_sub(1);
        *number == 0
    }
}

/// Whether all numbers of a program are within its lists, and what waits for each other has as many pieces.
fn check(program: &RankProgram) -> Result<(), StateError> {
    let require = |is_right: bool, what| if is_right { Ok(()) } else { Err(StateError::Malformed { what }) };
    for segment in &program.segments {
        let end = segment.place.checked_add(segment.words);
        let is_within = end.is_some_and(|end| end <= program.words) && segment.words > 0;
        require(is_within && segment.pieces > 0 && segment.pieces as usize <= segment.words, "a segment")?;
    }
    require(program.words.checked_mul(4).is_some() && program.rank_count < 1 << 16, "the memory")?;
    let send_segment = |number: &u32| program.sends.get(*number as usize).map(|send| send.segment);
    let receive_segment = |number: &u32| program.receives.get(*number as usize).map(|own| own.segment);
    for send in &program.sends {
        let is_within = (send.segment as usize) < program.segments.len()
            && (send.connection as usize) < program.outgoing.len()
            && send.after.iter().all(|number| receive_segment(number) == Some(send.segment));
        require(is_within, "a send")?;
    }
    for receive in &program.receives {
        let is_within = (receive.segment as usize) < program.segments.len()
            && (receive.connection as usize) < program.incoming.len()
            && receive.after_sends.iter().all(|number| send_segment(number) == Some(receive.segment))
            && receive.after_receives.iter().all(|number| receive_segment(number) == Some(receive.segment));
        require(is_within, "a receive")?;
    }
    Ok(())
}
