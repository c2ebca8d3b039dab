//! What one rank does, in terms that need no plan: segments in its memory, what it sends and receives, and over which
//! connections.

use serde::{Deserialize, Serialize};

/// Most memory of all ranks together.
pub(crate) const MEMORY_BYTES_MAX: u64 = 4 << 30;
/// Bytes before each piece on a connection: the receiver's number of the receive, and the piece, 4 bytes each.
pub const FRAME_HEAD_BYTES: usize = 8;

/// The program of one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankProgram {
    /// The rank.
    pub rank: u32,
    /// Number of all ranks.
    pub rank_count: u32,
    /// Whether contributions of ranks are added up.
    pub is_sum: bool,
    /// Length of its memory in words of 4 bytes.
    pub words: usize,
    /// Largest piece in bytes.
    pub piece_bytes_max: usize,
    /// Segments that it holds at any time.
    pub segments: Vec<Segment>,
    /// Connections that it opens.
    pub outgoing: Vec<Outgoing>,
    /// Connections that it accepts.
    pub incoming: Vec<Incoming>,
    /// What it sends.
    pub sends: Vec<SendOrder>,
    /// What it receives.
    pub receives: Vec<Receive>,
}

/// A range of the vector that moves as one, cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Its first word in the vector of all ranks.
    pub first_word: u64,
    /// Its first word in the memory of the rank.
    pub place: usize,
    /// Its length in words, at least 1.
    pub words: usize,
    /// Number of its pieces, at least 1: piece `i` of `P` begins at word `⌊i·words/P⌋`.
    pub pieces: u32,
    /// Whether the rank contributes to it.
    pub is_own: bool,
    /// Whether the collective promises it to the rank.
    pub is_wanted: bool,
}

impl Segment {
    /// The words of a piece, counted from the segment's first.
    pub(crate) fn piece(&self, piece: u32) -> std::ops::Range<usize> {
        let at = |number: u64| {
            let words = self.words as u128 * u128::from(number) / u128::from(self.pieces.max(1));
            usize::try_from(words).unwrap_or(self.words)
        };
        at(piece.into())..at(u64::from(piece) + 1)
    }
}

/// A connection to another rank over one route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    /// Its number among all connections of the plan.
    pub id: u32,
    /// The address of the route.
    pub address: String,
    /// Bytes per second at which it may send; 0 for no limit.
    pub pace_bytes_per_sec: u64,
}

/// A connection from another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incoming {
    /// Its number among all connections of the plan.
    pub id: u32,
}

/// A segment that is sent, piece by piece.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendOrder {
    /// In the list of [`RankProgram::outgoing`].
    pub connection: u32,
    /// In the list of [`RankProgram::segments`].
    pub segment: u32,
    /// The receiver's number of it, in its own list.
    pub receive: u32,
    /// Transfers of the longest chain that waits for it: longer ones go first among pieces that are equally far.
    pub height: u32,
    /// Own receives whose piece must have come before this piece goes.
    pub after: Vec<u32>,
}

/// A segment that comes, piece by piece.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receive {
    /// In the list of [`RankProgram::incoming`].
    pub connection: u32,
    /// In the list of [`RankProgram::segments`].
    pub segment: u32,
    /// Whether it is added to what is there.
    pub is_added: bool,
    /// Own sends whose piece must have left before this piece changes its place.
    pub after_sends: Vec<u32>,
    /// Own receives whose piece must have come before this piece changes its place.
    pub after_receives: Vec<u32>,
}
