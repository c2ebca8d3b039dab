//! The last look at a folder before it is handed over: every call gets the file that is meant for it, and no other.

use canopy_schedule::CollectiveKind;

use crate::file::{Folder, PlanFileFacts};
use crate::operator::Operator;
use crate::range::ByteRange;
use crate::runtime::{Indivisible, Runtime};
use crate::select::{Call, Selection, select};

/// A file and the calls it is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intended<'a> {
    /// Its position in [`Folder::files`].
    pub file: usize,
    /// What is called.
    pub collective: CollectiveKind,
    /// Ranks of the communicator.
    pub ranks: u32,
    /// Ranks of the communicator on each machine.
    pub ranks_per_node: u32,
    /// The devices of the communicator's ranks as files state them; `None`: any.
    pub rank_map: Option<&'a str>,
    /// Whether input and output share memory.
    pub in_place: bool,
    /// Sizes of the whole message.
    pub range: ByteRange,
}

/// Why a finished folder is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum AuditError {
    #[error("{collective} on {ranks} ranks, {bytes} bytes{}: {path} is meant for this call, but {runtime} {found}", in_place(*is_in_place))]
    NotPicked {
        runtime: Runtime,
        collective: CollectiveKind,
        ranks: u32,
        bytes: u64,
        is_in_place: bool,
        path: String,
        found: String,
    },
    #[error(
        "{collective} on {ranks} ranks, {bytes} bytes{}: {path} is not meant for this call, but {runtime} picks it",
        in_place(*is_in_place)
    )]
    Picked { runtime: Runtime, collective: CollectiveKind, ranks: u32, bytes: u64, is_in_place: bool, path: String },
    #[error("{first} and {second} both serve {collective} on {ranks} ranks from {from} to {to} bytes")]
    Overlap { collective: CollectiveKind, ranks: u32, first: String, second: String, from: u64, to: u64 },
    #[error("{path} needs messages that are a multiple of {count}, and none from {min} to {last} bytes is")]
    NoMessage { path: String, min: u64, last: u64, count: u64 },
    #[error("file {position} is meant for calls, but is missing from the folder")]
    Missing { position: usize },
}

fn in_place(is_in_place: bool) -> &'static str {
    if is_in_place { ", in place" } else { ", out of place" }
}

/// Runs a finished folder through the rules of its runtime: at both ends of each range and in its middle, one message below
/// and above it, where messages do not divide, and in the other in-place state.
///
/// * **In.** The files as they were read back from what is handed over. For a runtime that runs no plans nothing is asked.
/// * **Errors.** The first call that gets another file than is meant, and two files for the same calls.
/// * **Cost.** O(intended · files log files).
pub fn audit(runtime: Runtime, folder: &Folder, intended: &[Intended<'_>]) -> Result<(), AuditError> {
    let Some(rules) = runtime.rules() else { return Ok(()) };
    for (position, first) in intended.iter().enumerate() {
        for second in intended.iter().skip(position + 1) {
            let same = |of: &Intended<'_>| (of.collective, of.ranks, of.ranks_per_node, of.in_place);
            let is_one = same(first) == same(second) && (!rules.tells_devices || first.rank_map == second.rank_map);
            if is_one && first.file != second.file && first.range.overlaps(second.range) {
                return Err(overlap(folder, first, second));
            }
        }
    }
    for meant in intended {
        let file = folder.files.get(meant.file).ok_or(AuditError::Missing { position: meant.file })?;
        let unit = match rules.indivisible {
            Indivisible::Allowed => 1,
            Indivisible::PassedOver | Indivisible::Fails => file.divisor.count().max(1),
        };
        let (lowest, highest) = ends(file, unit, meant.range)?;
        let middle = lowest + (highest - lowest) / unit / 2 * unit;
        for bytes in [lowest, middle, highest] {
            require(runtime, folder, meant, call(meant, bytes))?;
        }
        // By itself, so that no other file hides what it would take.
        let alone = Folder { files: vec![file.clone()], others: Vec::new() };
        let others = [lowest.checked_sub(unit), highest.checked_add(unit)];
        for bytes in others.into_iter().flatten().filter(|&bytes| bytes > 0 && !meant.range.contains(bytes)) {
            refuse(runtime, &alone, call(meant, bytes))?;
        }
        let is_also_meant = |of: &Intended<'_>| of.file == meant.file && of.in_place != meant.in_place;
        if !intended.iter().any(is_also_meant) {
            refuse(runtime, &alone, Call { in_place: !meant.in_place, ..call(meant, lowest) })?;
        }
        if rules.tells_ranks {
            refuse(runtime, &alone, Call { ranks: meant.ranks.saturating_add(1), ..call(meant, lowest) })?;
        }
        if rules.tells_devices && meant.rank_map.is_some() {
            refuse(runtime, &alone, Call { rank_map: Some(""), ..call(meant, lowest) })?;
        }
        if unit > 1 && rules.indivisible == Indivisible::PassedOver && meant.range.contains(lowest + 1) {
            // The runtime's own algorithm, not somebody else's plan.
            match select(runtime, folder, &call(meant, lowest + 1)) {
                Selection::Stock { .. } => {}
                found => return Err(not_picked(runtime, folder, meant, &call(meant, lowest + 1), &found)),
            }
        }
    }
    Ok(())
}

/// A call that a file is meant for, of single bytes, so that all sizes can be asked for.
const fn call<'a>(meant: &Intended<'a>, bytes: u64) -> Call<'a> {
    let Intended { collective, ranks, ranks_per_node, rank_map, in_place, .. } = *meant;
    Call { collective, ranks, ranks_per_node, rank_map, bytes, in_place, element_bytes: 1, operator: Operator::Sum }
}

/// The smallest and the largest message of a range that are multiples of what a file divides by.
fn ends(file: &PlanFileFacts, count: u64, range: ByteRange) -> Result<(u64, u64), AuditError> {
    let lowest = range.first().div_ceil(count).checked_mul(count);
    let highest = range.last() / count * count;
    lowest.filter(|&lowest| lowest <= highest).map(|lowest| (lowest, highest)).ok_or_else(|| AuditError::NoMessage {
        path: file.path.clone(),
        min: range.first(),
        last: range.last(),
        count,
    })
}

fn require(runtime: Runtime, folder: &Folder, meant: &Intended<'_>, call: Call<'_>) -> Result<(), AuditError> {
    match select(runtime, folder, &call) {
        Selection::File(found) if found == meant.file => Ok(()),
        found => Err(not_picked(runtime, folder, meant, &call, &found)),
    }
}

/// A call that a file is not meant for, the only one of its folder.
fn refuse(runtime: Runtime, alone: &Folder, call: Call<'_>) -> Result<(), AuditError> {
    match select(runtime, alone, &call) {
        Selection::File(_) | Selection::Fails(_) => {
            let Call { collective, ranks, bytes, in_place: is_in_place, .. } = call;
            Err(AuditError::Picked { runtime, collective, ranks, bytes, is_in_place, path: path_of(alone, 0) })
        }
        _ => Ok(()),
    }
}

fn not_picked(
    runtime: Runtime,
    folder: &Folder,
    meant: &Intended<'_>,
    call: &Call<'_>,
    found: &Selection,
) -> AuditError {
    let found = match found {
        Selection::File(other) => format!("picks {}", path_of(folder, *other)),
        Selection::Fails(other) => format!("picks {} and fails", path_of(folder, *other)),
        Selection::Stock { reasons } => match reasons.get(meant.file) {
            Some(reason) => format!("skips it: {reason}"),
            None => "skips it".to_owned(),
        },
        Selection::Undetermined { files } => {
            let paths: Vec<String> = files.iter().map(|&file| path_of(folder, file)).collect();
            format!("may pick any of {}", paths.join(", "))
        }
        Selection::Broken { path, attribute: Some(attribute) } => format!("fails: {path} has no {attribute}"),
        Selection::Broken { path, attribute: None } => format!("fails: {path} is not a plan"),
        Selection::AdviceOnly => "cannot load plans".to_owned(),
    };
    let Call { collective, ranks, bytes, in_place: is_in_place, .. } = *call;
    AuditError::NotPicked { runtime, collective, ranks, bytes, is_in_place, path: path_of(folder, meant.file), found }
}

fn overlap(folder: &Folder, first: &Intended<'_>, second: &Intended<'_>) -> AuditError {
    AuditError::Overlap {
        collective: first.collective,
        ranks: first.ranks,
        first: path_of(folder, first.file),
        second: path_of(folder, second.file),
        from: first.range.first().max(second.range.first()),
        to: first.range.last().min(second.range.last()),
    }
}

fn path_of(folder: &Folder, position: usize) -> String {
    folder.files.get(position).map_or_else(|| format!("file {position}"), |file| file.path.clone())
}

#[cfg(test)]
mod tests;
