//! What a runtime would do with a call: the file it picks, or why it picks none.

use canopy_plan::{PlacementRule, SelectionOrder};
use canopy_schedule::CollectiveKind;

use crate::file::{Folder, PlanFileFacts};
use crate::operator::Operator;
use crate::runtime::{Indivisible, OtherFiles, Rules, Runtime};

/// A call of a collective, as the runtime gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// What is called.
    pub collective: CollectiveKind,
    /// Ranks of the communicator.
    pub ranks: u32,
    /// Its ranks on each machine.
    pub ranks_per_node: u32,
    /// The devices of its ranks as files state them; `None`: not known, and no file is refused for them.
    pub rank_map: Option<&'a str>,
    /// Bytes of the whole message, as in [`ByteRange`](crate::ByteRange).
    pub bytes: u64,
    /// Whether input and output share memory.
    pub in_place: bool,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// How elements are combined; of no meaning to collectives that only move data.
    pub operator: Operator,
}

/// What a runtime does with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Runs this file, by its position in [`Folder::files`].
    File(usize),
    /// Runs its own algorithm, without a word; why not each of the files.
    Stock {
        /// By position in [`Folder::files`].
        reasons: Vec<Mismatch>,
    },
    /// Runs one of these files; which one is not defined.
    Undetermined {
        /// By position in [`Folder::files`], rising.
        files: Vec<usize>,
    },
    /// Fails, whatever is called.
    Broken {
        /// The file with which it does.
        path: String,
        /// What it lacks; `None`: it is no plan.
        attribute: Option<&'static str>,
    },
    /// Picks this file, by its position, and fails.
    Fails(usize),
    /// Cannot load external plans.
    AdviceOnly,
}

/// Why a runtime does not use a file for a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum Mismatch {
    #[error("it is not among the first {limit} files, and only those are loaded")]
    NotLoaded { limit: usize },
    #[error("it is for another collective")]
    Collective,
    #[error("it is for {found} ranks")]
    Ranks { found: u32 },
    #[error("it is for {found} ranks on each machine")]
    RanksPerNode { found: u32 },
    #[error("it is for other devices")]
    Devices,
    #[error("it is not for calls {}", if *call_is_in_place { "in place" } else { "out of place" })]
    InPlace { call_is_in_place: bool },
    #[error("it starts at {min} bytes")]
    TooSmall { min: u64 },
    #[error("it ends at {last} bytes")]
    TooLarge { last: u64 },
    #[error("the message is not a multiple of its {count}")]
    Indivisible { count: u64 },
    #[error("the runtime uses no plans for this reduction operator")]
    Operator,
    #[error("another file comes first")]
    Later,
}

/// Selects the file that a runtime uses for a call.
///
/// * **In.** Any files, including wrong ones. **Cost.** O(files log files).
pub fn select(runtime: Runtime, folder: &Folder, call: &Call<'_>) -> Selection {
    let Some(rules) = runtime.rules() else { return Selection::AdviceOnly };
    if let Some(broken) = broken(&rules, folder) {
        return broken;
    }
    let mut order: Vec<usize> = (0..folder.files.len()).collect();
    if rules.order == SelectionOrder::Sorted {
        order.sort_by(|&a, &b| path(folder, a).cmp(&path(folder, b)));
    }
    let mut reasons = vec![Mismatch::Later; folder.files.len()];
    let mut matching = Vec::new();
    for (place, &position) in order.iter().enumerate() {
        let (Some(file), Some(reason)) = (folder.files.get(position), reasons.get_mut(position)) else { continue };
        match mismatch(&rules, file, call)
            .or((place >= rules.files_max).then_some(Mismatch::NotLoaded { limit: rules.files_max }))
        {
            Some(found) => *reason = found,
            None => matching.push((position, file)),
        }
    }
    match (matching.as_slice(), rules.order) {
        ([], _) => Selection::Stock { reasons },
        ([_, _, ..], SelectionOrder::Directory) => {
            let mut files: Vec<usize> = matching.iter().map(|&(position, _)| position).collect();
            files.sort_unstable();
            Selection::Undetermined { files }
        }
        ([(position, file), ..], _) => match rules.indivisible {
            Indivisible::Fails if !file.divisor.divides(call.bytes, call.element_bytes) => Selection::Fails(*position),
            _ => Selection::File(*position),
        },
    }
}

fn path(folder: &Folder, position: usize) -> Option<&[u8]> {
    folder.files.get(position).map(|file| file.path.as_bytes())
}

/// What makes a runtime fail before any call.
fn broken(rules: &Rules, folder: &Folder) -> Option<Selection> {
    let lacks = |file: &PlanFileFacts, attribute: &str| match attribute {
        "outofplace" => file.out_of_place.is_none(),
        "minBytes" => file.bytes_min.is_none(),
        "maxBytes" => file.bytes_max.is_none(),
        _ => false,
    };
    let incomplete = folder.files.iter().find_map(|file| {
        let attribute = rules.required.iter().find(|attribute| lacks(file, attribute))?;
        Some((&file.path, Some(*attribute)))
    });
    let others = folder.others.first().filter(|_| rules.others == OtherFiles::Fatal).map(|path| (path, None));
    let (path, attribute) = incomplete.or(others)?;
    Some(Selection::Broken { path: path.clone(), attribute })
}

/// The first rule by which a file does not match.
fn mismatch(rules: &Rules, file: &PlanFileFacts, call: &Call<'_>) -> Option<Mismatch> {
    if file.collective != Some(call.collective) {
        return Some(Mismatch::Collective);
    }
    if rules.tells_ranks && file.ranks != call.ranks {
        return Some(Mismatch::Ranks { found: file.ranks });
    }
    if let Some(found) = file.ranks_per_node.filter(|&found| rules.tells_ranks_per_node && found != call.ranks_per_node)
    {
        return Some(Mismatch::RanksPerNode { found });
    }
    if let (true, Some(found), Some(wanted)) = (rules.tells_devices, &file.rank_map, call.rank_map)
        && found != wanted
    {
        return Some(Mismatch::Devices);
    }
    let takes = match rules.placement {
        PlacementRule::InPlaceEquals => file.in_place == call.in_place,
        PlacementRule::BothFlags if call.in_place => file.in_place,
        PlacementRule::BothFlags => file.out_of_place == Some(true),
    };
    if !takes {
        return Some(Mismatch::InPlace { call_is_in_place: call.in_place });
    }
    let min = file.bytes_min.unwrap_or(0);
    if call.bytes < min {
        return Some(Mismatch::TooSmall { min });
    }
    if let Some(last) = rules.largest(file.bytes_max).filter(|&last| call.bytes > last || last == 0) {
        return Some(Mismatch::TooLarge { last });
    }
    if rules.indivisible == Indivisible::PassedOver && !file.divisor.divides(call.bytes, call.element_bytes) {
        return Some(Mismatch::Indivisible { count: file.divisor.count() });
    }
    let reduces =
        matches!(call.collective, CollectiveKind::ReduceScatter | CollectiveKind::Allreduce | CollectiveKind::Reduce);
    (reduces && !rules.operators.contains(&call.operator)).then_some(Mismatch::Operator)
}

#[cfg(test)]
mod tests;
