//! Why an exchange in stages was refused.

use crate::stages::SeatError;

/// It does not bring every share to every rank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum StagesError {
    #[error(transparent)]
    Seats(#[from] SeatError),
    #[error("it has the phases {found}, but {collective} takes {expected}")]
    Phases { collective: &'static str, found: String, expected: String },
    #[error("exchanges in stages are for equal shares")]
    Shares,
    #[error("{chunks_per_share} chunks for each of {rank_count} shares are more than can be counted; state 1 to {max}")]
    Chunks { chunks_per_share: u64, rank_count: u32, max: u64 },
    #[error("classes names box {of_box} with class {class}; there are {boxes} boxes and {classes} classes")]
    Class { of_box: u32, class: u32, boxes: u32, classes: usize },
    #[error("inside[{class}], trees[{tree}]: {fault}, as the ranks of box {of_box} are")]
    Tree { class: u32, tree: usize, of_box: u32, fault: TreeFault },
    #[error("inside[{class}] has no tree from place {place}, where data enters box {of_box}")]
    NoTree { class: u32, place: u32, of_box: u32 },
    #[error("inside_first[{stage}] is {chunks}; a run of that stage has at most {max} chunks")]
    InsideFirst { stage: usize, chunks: u64, max: u64 },
    #[error("exceptions name boxes {from} and {to}; two boxes of {boxes} that differ in one digit exchange something")]
    Pair { from: u32, to: u32, boxes: u32 },
    #[error("exceptions of boxes {from} and {to}: {fault}")]
    Piece { from: u32, to: u32, fault: PieceFault },
    #[error("box {to} gets nothing of box {from}: no place has a rank in both; state pieces")]
    NoPieces { from: u32, to: u32 },
    #[error("rank {from} has no way to rank {to} over at most eight switches")]
    NoWay { from: u32, to: u32 },
}

impl StagesError {
    /// Name of the check that failed.
    pub(crate) const fn check(&self) -> &'static str {
        match self {
            Self::Seats(_) | Self::Phases { .. } | Self::Shares | Self::Chunks { .. } | Self::Class { .. } => {
                "structure"
            }
            Self::InsideFirst { .. } | Self::Pair { .. } | Self::NoWay { .. } => "structure",
            Self::Tree { .. } | Self::NoTree { .. } | Self::Piece { .. } | Self::NoPieces { .. } => "meaning",
        }
    }
}

/// Why a tree does not fit its box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TreeFault {
    #[error("its multiplicity is 0")]
    NoChunks,
    #[error("its multiplicities add up to more than 2⁶⁴−1")]
    TooManyChunks,
    #[error("place {place} has no rank")]
    NoRank { place: u32 },
    #[error("place {place} sends before it has anything")]
    Early { place: u32 },
    #[error("place {place} is reached twice")]
    Twice { place: u32 },
    #[error("it reaches {found} places, not {expected}")]
    Missing { found: usize, expected: usize },
}

/// Why pieces are not those of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PieceFault {
    #[error("nothing is exchanged, as one of them has no ranks")]
    Nothing,
    #[error("a piece has no chunks")]
    Empty,
    #[error("box {sender} sends a piece, but does not have the run")]
    Sender { sender: u32 },
    #[error("place {place} of box {of_box} has no rank")]
    NoRank { of_box: u32, place: u32 },
    #[error("pieces have {found} chunks, the run {expected}")]
    Chunks { found: u128, expected: u64 },
}
