//! Makes a file for one runtime of a file for another, and says what it did.
//!
//! Only what can be said differently is changed: spelling, missing attributes, the meaning of the size range, fused
//! operations; and messages so large that queues would fill up for good are left to other files. Whether the result is right is for [`prove`](super::prove) to say; nothing here is to be trusted.

mod bound;
mod split;

use std::fmt;

use super::parse::{Deviation, ForeignFile};
use super::profile::{ByteRange, PlacementRule, Profile};
use super::program::{Operation, Program, Purpose};

/// Label of a file that has none.
const NAME: &str = "converted";
/// Largest message of a file without a bound, where the runtime demands one: 1 GiB.
const BYTES_MAX: u64 = 1 << 30;

/// A converted program, to be proved before it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The program, complete for its runtime.
    pub program: Program,
    /// All that differs from the file, in the order of the format.
    pub changes: Vec<Change>,
}

/// One thing that conversion did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Removed something that every runtime ignores.
    LeftOut(Deviation),
    /// Added an attribute.
    Added {
        /// Its name.
        attribute: &'static str,
        /// Its value.
        value: String,
        /// Where the value comes from.
        reason: &'static str,
    },
    /// Gave an attribute another value.
    Changed {
        /// Its name.
        attribute: &'static str,
        /// As it was.
        from: String,
        /// As it is.
        to: String,
        /// Why.
        reason: &'static str,
    },
    /// Set `s` of steps to their position, by which the runtimes count anyway.
    Renumbered {
        /// How many were wrong.
        count: u64,
    },
    /// Split fused operations, which the runtime does not have.
    Split {
        /// The operation.
        operation: Operation,
        /// How many steps had it.
        count: u64,
    },
    /// Gave ranks scratch memory for what split operations receive.
    Scratch {
        /// Most chunks that one rank needs more than before.
        chunks: u32,
    },
}

/// A phrase without a full stop, such as `added outofplace="0": the opposite of inplace`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeftOut(deviation) => write!(f, "removed {deviation}: runtimes ignore it"),
            Self::Added { attribute, value, reason } => write!(f, "added {attribute}=\"{value}\": {reason}"),
            Self::Changed { attribute, from, to, reason } => {
                write!(f, "changed {attribute} from \"{from}\" to \"{to}\": {reason}")
            }
            Self::Renumbered { count } => {
                write!(f, "set s of {count} steps to their position, which is what runtimes use")
            }
            Self::Split { operation, count } => {
                let into = match operation {
                    Operation::ReceiveCopySend => "`r` and `s`",
                    Operation::ReceiveReduceCopy => "`r` and `re`",
                    _ => "`r`, `re` and `s`",
                };
                write!(f, "split {count} `{}` into {into}, since the runtime has no such operation", operation.name())
            }
            Self::Scratch { chunks } => {
                write!(f, "added up to {chunks} scratch chunks per rank for received data")
            }
        }
    }
}

/// Why a file cannot be made one for another runtime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ConvertError {
    #[error("files for {to} cannot express {purpose}; choose another runtime")]
    Purpose { purpose: Purpose, to: Profile },
    #[error("inplace and outofplace are both 0, so {from} uses the file for no call; set one of them")]
    NoCall { from: Profile },
    #[error("maxBytes is 0, which admits no message in {from}; set a bound")]
    NoMessage { from: Profile },
    #[error("maxBytes {bytes} is too large for {to}; lower it")]
    Bound { bytes: u64, to: Profile },
    #[error("gpu {rank} would need more than {limit} scratch chunks; choose another runtime")]
    Scratch { rank: u32, limit: u32 },
}

/// Rewrites a file for `from` so that `to` runs an equivalent program.
///
/// Defaults where a runtime demands an attribute and the file is silent: `name` is `converted`, `outofplace` the opposite
/// of `inplace` (the calls that msccl uses the file for), `minBytes` 0, `maxBytes` the runtime's own default (2^27 − 1
/// bytes in msccl) or 1 GiB. Where the file admits messages that deadlock, or take more rounds than the runtime counts,
/// `maxBytes` becomes the largest with which it does not. A result with split operations must be proved: between its
/// halves other blocks may act.
///
/// # Errors
/// `to` cannot say it, or the file is for no call or message at all. O(transfers).
pub fn convert(file: &ForeignFile, from: Profile, to: Profile) -> Result<Conversion, ConvertError> {
    let mut program = file.program.clone();
    let mut changes: Vec<Change> = file.deviations.iter().cloned().map(Change::LeftOut).collect();
    rename(&mut program, to, &mut changes);
    respell(&program, from, to, &mut changes)?;
    replace(&mut program, from, to, &mut changes)?;
    rebound(&mut program, from, to, &mut changes)?;
    renumber(&mut program, &mut changes);
    split::split(&mut program, to, &mut changes)?;
    bound::lower(&mut program, to, &mut changes);
    Ok(Conversion { program, changes })
}

fn rename(program: &mut Program, to: Profile, changes: &mut Vec<Change>) {
    if program.name.is_empty() && to.limits().required.contains(&"name") {
        NAME.clone_into(&mut program.name);
        let reason = "the runtime requires it";
        changes.push(Change::Added { attribute: "name", value: NAME.to_owned(), reason });
    }
}

fn respell(program: &Program, from: Profile, to: Profile, changes: &mut Vec<Change>) -> Result<(), ConvertError> {
    let error = ConvertError::Purpose { purpose: program.purpose, to };
    let Purpose::Collective(kind) = program.purpose else {
        let is_known = to.limits().collectives_unjudged.contains(&program.purpose.name());
        return if is_known { Ok(()) } else { Err(error) };
    };
    let word = to.spell(kind).ok_or(error)?;
    if let Some(old) = from.spell(kind).filter(|old| *old != word) {
        let (from, to) = (old.to_owned(), word.to_owned());
        changes.push(Change::Changed { attribute: "coll", from, to, reason: "the runtime's spelling" });
    }
    Ok(())
}

/// Says for which kinds of call the file is, so that it is for no other in the new runtime.
fn replace(program: &mut Program, from: Profile, to: Profile, changes: &mut Vec<Change>) -> Result<(), ConvertError> {
    let (in_place, out_of_place) = match from.limits().placement {
        PlacementRule::InPlaceEquals => (program.in_place, !program.in_place),
        PlacementRule::BothFlags => (program.in_place, program.out_of_place.unwrap_or(!program.in_place)),
    };
    if !in_place && !out_of_place {
        return Err(ConvertError::NoCall { from });
    }
    let stated = match to.limits().placement {
        // Only one kind of call can be said there.
        PlacementRule::InPlaceEquals => !in_place,
        PlacementRule::BothFlags => out_of_place,
    };
    let is_demanded = to.limits().required.contains(&"outofplace");
    let digit = |flag: bool| u8::from(flag).to_string();
    match program.out_of_place {
        None if is_demanded => {
            let reason = "the opposite of inplace";
            changes.push(Change::Added { attribute: "outofplace", value: digit(stated), reason });
        }
        Some(old) if old != stated => {
            let reason = match to.limits().placement {
                PlacementRule::InPlaceEquals => "the runtime uses a file for one kind of call, by its inplace",
                PlacementRule::BothFlags => "the old runtime used the file for one kind of call, by its inplace",
            };
            let (from, to) = (digit(old), digit(stated));
            changes.push(Change::Changed { attribute: "outofplace", from, to, reason });
        }
        None => return Ok(()),
        Some(_) => {}
    }
    program.out_of_place = Some(stated);
    Ok(())
}

/// States the range of message sizes as the new runtime reads it.
fn rebound(program: &mut Program, from: Profile, to: Profile, changes: &mut Vec<Change>) -> Result<(), ConvertError> {
    if program.bytes_min.is_none() && to.limits().required.contains(&"minBytes") {
        program.bytes_min = Some(0);
        changes.push(Change::Added { attribute: "minBytes", value: "0".to_owned(), reason: "no minimum size" });
    }
    if program.bytes_max == Some(0) && matches!(from.limits().byte_range, ByteRange::Exclusive { .. }) {
        return Err(ConvertError::NoMessage { from });
    }
    let largest = from.bytes_max_of(program.bytes_max);
    let reason = match (program.bytes_max, largest) {
        (None, Some(_)) => "the default of the old runtime",
        (Some(_), Some(_)) => "the same sizes as before",
        _ => "1 GiB, as the file has no bound",
    };
    let keeps_zero =
        largest.is_none() && program.bytes_max == Some(0) && to.limits().byte_range == ByteRange::Inclusive;
    let is_demanded = to.limits().required.contains(&"maxBytes") || from != to;
    if keeps_zero || (program.bytes_max.is_none() && !is_demanded) {
        return Ok(());
    }
    let bytes = largest.unwrap_or(BYTES_MAX);
    let attribute = to.bytes_max_attribute(bytes).ok_or(ConvertError::Bound { bytes, to })?;
    match program.bytes_max.replace(attribute) {
        Some(old) if old == attribute => {}
        Some(old) => {
            let (from, to) = (old.to_string(), attribute.to_string());
            changes.push(Change::Changed { attribute: "maxBytes", from, to, reason });
        }
        None => changes.push(Change::Added { attribute: "maxBytes", value: attribute.to_string(), reason }),
    }
    Ok(())
}

fn renumber(program: &mut Program, changes: &mut Vec<Change>) {
    let mut count = 0;
    for block in program.ranks.iter_mut().flat_map(|rank| &mut rank.thread_blocks) {
        for (position, step) in (0_u32..).zip(&mut block.steps) {
            count += u64::from(step.index != position);
            step.index = position;
        }
    }
    if count > 0 {
        changes.push(Change::Renumbered { count });
    }
}

#[cfg(test)]
mod tests;
