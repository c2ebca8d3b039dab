//! An all-to-all in slots: every rank has a slot of one size for every other, and each slot is filled from its start as
//! far as there are bytes for it.
//!
//! A slot has so many *units* of so many bytes. [`Slots`] says what must arrive: it is made from a matrix of bytes, and
//! knows no routes. [`slot_transfers`] makes a transfer graph of routes that were found elsewhere. Neither knows a
//! runtime.

mod transfers;

pub use self::transfers::{SlotRoute, SlotRouteError, slot_transfers};

/// Most units in the slots of all ranks together: what the proof of a plan can follow, with scratch.
const UNITS_MAX: u64 = 1 << 22;
/// Most ranks.
const RANKS_MAX: u32 = 1_024;
/// Bytes that kernels move at once: what a unit must be a multiple of.
const MOVED_BYTES: u64 = 16;

/// What an all-to-all in slots must do.
///
/// The input of rank `s` has a slot for each rank, in their order; that for rank `t` arrives as slot `s` of the output
/// of rank `t`. Of each slot, only units that are filled move, and the rest of the output stays as it is. The slot of a
/// rank for itself is copied whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    ranks: u32,
    unit_bytes: u64,
    slot_units: u64,
    /// Units that are filled, row by row; the whole slot on the diagonal.
    filled: Vec<u64>,
}

/// Why there can be no slots for a matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SlotsError {
    #[error("`ranks` is {ranks}; state 2 to {RANKS_MAX}")]
    Ranks { ranks: u32 },
    #[error("`bytes` has {found} entries for {ranks} ranks; state {expected}, row by row")]
    EntryCount { ranks: u32, found: usize, expected: usize },
    #[error("the unit has {unit_bytes} bytes; use a multiple of {MOVED_BYTES}")]
    Unit { unit_bytes: u64 },
    #[error("no rank has bytes for another one, so there is nothing to plan; state some")]
    NothingMoves,
    #[error(
        "slots of {slot_units} units for each of {ranks} ranks are more than the {} that a proof can follow; use units of at \
         least {unit_bytes_min} bytes", slot_units_max(*ranks)
    )]
    TooManyUnits { ranks: u32, slot_units: u64, unit_bytes_min: u64 },
}

/// Most units of a slot.
fn slot_units_max(ranks: u32) -> u64 {
    UNITS_MAX / (u64::from(ranks) * u64::from(ranks)).max(1)
}

impl Slots {
    /// Slots for a matrix of bytes, row by row: each is as large as the greatest entry needs, in whole units. What
    /// ranks have for themselves counts nowhere.
    ///
    /// * **Errors.** [`SlotsError`].
    /// * **Cost.** O(ranks²).
    pub fn new(ranks: u32, bytes: &[u64], unit_bytes: u64) -> Result<Self, SlotsError> {
        if !(2..=RANKS_MAX).contains(&ranks) {
            return Err(SlotsError::Ranks { ranks });
        }
        let expected = ranks as usize * ranks as usize;
        if bytes.len() != expected {
            return Err(SlotsError::EntryCount { ranks, found: bytes.len(), expected });
        }
        if unit_bytes == 0 || !unit_bytes.is_multiple_of(MOVED_BYTES) {
            return Err(SlotsError::Unit { unit_bytes });
        }
        let is_own = |index: usize| index.is_multiple_of(ranks as usize + 1);
        let others = bytes.iter().enumerate().filter(|&(index, _)| !is_own(index)).map(|(_, &bytes)| bytes);
        let most = others.max().filter(|&most| most > 0).ok_or(SlotsError::NothingMoves)?;
        let slot_units = most.div_ceil(unit_bytes);
        if slot_units > slot_units_max(ranks) {
            let unit_bytes_min = most.div_ceil(slot_units_max(ranks)).next_multiple_of(MOVED_BYTES);
            return Err(SlotsError::TooManyUnits { ranks, slot_units, unit_bytes_min });
        }
        let units = |(index, bytes): (usize, &u64)| if is_own(index) { slot_units } else { bytes.div_ceil(unit_bytes) };
        let filled = bytes.iter().enumerate().map(units).collect();
        Ok(Self { ranks, unit_bytes, slot_units, filled })
    }

    /// Ranks.
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Bytes of a unit.
    pub const fn unit_bytes(&self) -> u64 {
        self.unit_bytes
    }

    /// Units of a slot.
    pub const fn slot_units(&self) -> u64 {
        self.slot_units
    }

    /// Units that are filled of the slot that one rank has for another; 0 if there are no such ranks.
    pub fn filled(&self, from: u32, to: u32) -> u64 {
        if from >= self.ranks || to >= self.ranks {
            return 0;
        }
        self.filled.get(from as usize * self.ranks as usize + to as usize).copied().unwrap_or(0)
    }

    /// Bytes of every rank's input, and of its output; none where 64 bits do not suffice.
    pub fn buffer_bytes(&self) -> Option<u64> {
        self.slot_units.checked_mul(self.unit_bytes)?.checked_mul(self.ranks.into())
    }

    /// Units of a chunk where every slot has so many chunks, and no chunk is filled in part; else why not, in words.
    pub(crate) fn units_of_chunk(&self, slot_chunks: u64) -> Result<u64, String> {
        let units = self.slot_units.checked_div(slot_chunks).unwrap_or(0);
        let is_whole = units > 0
            && self.slot_units.is_multiple_of(slot_chunks)
            && self.filled.iter().all(|filled| filled.is_multiple_of(units));
        let why =
            || format!("a slot of {slot_chunks} chunks cannot be filled as slots of {} units are", self.slot_units);
        if is_whole { Ok(units) } else { Err(why()) }
    }
}

#[cfg(test)]
mod tests;
