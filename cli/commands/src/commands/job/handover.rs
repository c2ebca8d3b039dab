//! Files on their way into the folder of a job: judged by the rules of their runtime before anybody is pointed to them.
//!
//! A runtime passes over a file that does not match without a word, and some fail with one that they cannot read. So what
//! was fetched is read as the runtime reads it, and asked for the calls that it is meant for and for others beside.

use std::path::Path;

use canopy_bundle::{ByteRange, Folder, Intended, PlanFileFacts, Runtime, audit};
use canopy_schedule::CollectiveKind;
use tempfile::NamedTempFile;

use super::bundle::{self, LOADER, Manifest, PLANS, PlanEntry, SHELL};
use super::variables::{shell, variables};
use super::wanted::Wanted;
use crate::commands::plan::loader;
use crate::exit::{Failure, words};

/// A plan with its file, which has no name yet.
pub(super) struct Brought {
    pub(super) entry: PlanEntry,
    /// What the runtime reads of the file.
    pub(super) facts: PlanFileFacts,
    pub(super) file: NamedTempFile,
}

/// What a runtime reads of a file.
pub(super) fn facts(
    runtime: Runtime,
    kind: CollectiveKind,
    entry: &PlanEntry,
    file: &Path,
) -> Result<PlanFileFacts, Failure> {
    let unreadable = |error: std::io::Error| Failure::fault(format!("cannot read the plan back: {error}"));
    let text = std::fs::read_to_string(file).map_err(unreadable)?;
    let facts = PlanFileFacts::read(runtime, entry.path.clone(), &text, &|| false)
        .map_err(|error| Failure::fault(format!("what the server sent is not handed over: {}", words(&error))))?;
    // Files that are registered are so by a module that goes by the manifest.
    Ok(if runtime.is_registered() { facts.registered(kind, entry.ranks_per_node) } else { facts })
}

/// Whether the runtime picks a file for the calls it is meant for and for no others, and whether it is for what was
/// asked for.
pub(super) fn judged(
    wanted: &Wanted,
    kind: CollectiveKind,
    in_place: Option<bool>,
    brought: &Brought,
) -> Result<(), Failure> {
    let PlanEntry { ranks, in_place: found, .. } = brought.entry;
    let wrong = |what: String| Err(Failure::fault(format!("the {kind} is not handed over: {what}")));
    if let Some(expected) = wanted.rank_count.filter(|&expected| expected != ranks) {
        return wrong(format!("it is for {ranks} ranks, and the job has {expected}"));
    }
    if in_place.is_some_and(|asked| asked != found) {
        return wrong(format!(
            "it is for calls {}, which was not asked for",
            if found { "in place" } else { "out of place" }
        ));
    }
    all_judged(wanted.runtime, std::slice::from_ref(brought), &[kind])
}

/// The same for all files together: none takes the calls of another.
pub(super) fn all_judged(runtime: Runtime, all: &[Brought], kinds: &[CollectiveKind]) -> Result<(), Failure> {
    let files = all.iter().map(|brought| brought.facts.clone()).collect();
    let intended = |(file, (Brought { entry, .. }, &collective)): (usize, (&Brought, &CollectiveKind))| {
        let range = ByteRange::new(entry.size_bytes_min.max(1), entry.size_bytes_max.saturating_add(1));
        let range = range.ok_or_else(|| {
            let (min, max) = (entry.size_bytes_min, entry.size_bytes_max);
            Failure::fault(format!("the {collective} is for no message: from {min} to {max} bytes"))
        })?;
        let ranks_per_node = entry.ranks_per_node.unwrap_or(0);
        let (ranks, in_place) = (entry.ranks, entry.in_place);
        Ok(Intended { file, collective, ranks, ranks_per_node, rank_map: None, in_place, range })
    };
    let intended: Vec<Intended<'_>> =
        all.iter().zip(kinds).enumerate().map(intended).collect::<Result<_, Failure>>()?;
    audit(runtime, &Folder { files, others: Vec::new() }, &intended)
        .map_err(|error| Failure::fault(format!("the plans are not handed over: {error}")))
}

/// Gives files their names, in a folder of their own, and returns what the manifest says of them.
pub(super) fn named(folder: &Path, all: Vec<Brought>) -> Result<Vec<PlanEntry>, Failure> {
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let names = all.iter().map(|brought| (brought.entry.path.as_str(), brought.entry.sha256.as_str()));
    let files = bundle::files_folder_name(names);
    bundle::create_folder(&folder.join(&files))?;
    let plans = folder.join(&files).join(PLANS);
    bundle::create_folder(&plans)?;
    let name = |Brought { mut entry, file, .. }: Brought| {
        bundle::publish(file, &plans, &entry.path)?;
        entry.path = format!("{files}/{PLANS}/{}", entry.path);
        Ok(entry)
    };
    all.into_iter().map(name).collect()
}

/// Points readers to the files of a manifest: the module and the variables first, the manifest last.
pub(super) fn announce(folder: &Path, runtime: Runtime, manifest: &Manifest) -> Result<(), Failure> {
    let text = folder.to_str().ok_or_else(|| Failure::input("the path of the folder is not UTF-8"))?;
    if runtime.is_registered() {
        bundle::write_text(folder, LOADER, loader::LOADER)?;
    }
    bundle::write_text(folder, SHELL, &shell(runtime, &variables(runtime, manifest, text)))?;
    manifest.write(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brought(kind: &str, text: &str) -> Brought {
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let entry = PlanEntry {
            collective: kind.to_owned(),
            root: None,
            plan: "plans/x".to_owned(),
            format: "msccl-xml".to_owned(),
            path: format!("00-{kind}-0123456789ab.xml"),
            bytes: text.len() as u64,
            sha256: "0123456789abcdef".to_owned(),
            optimality: "1/1".to_owned(),
            ranks: 2,
            ranks_per_node: None,
            size_bytes_min: 0,
            size_bytes_max: 1024,
            alignment_elements: 1,
            in_place: true,
            fallback: None,
            slice: Some(vec![0]),
        };
        let facts = facts(Runtime::Msccl, CollectiveKind::Allreduce, &entry, file.path()).unwrap();
        Brought { entry, facts, file }
    }

    /// The head of a file and ranks without blocks.
    fn text(ranks: u32, in_place: u32, bytes_end: u32) -> String {
        let stub = |rank| format!("  <gpu id=\"{rank}\" i_chunks=\"2\" o_chunks=\"0\" s_chunks=\"0\"/>\n");
        let ids: String = (0..ranks).map(stub).collect();
        format!(
            "<algo name=\"x\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"2\" ngpus=\"{ranks}\" coll=\"allreduce\" \
             inplace=\"{in_place}\" minBytes=\"0\" maxBytes=\"{bytes_end}\">\n{ids}</algo>\n"
        )
    }

    #[test]
    fn only_files_that_are_picked_as_meant_are_handed_over() {
        let judged = |text: &str| {
            let kinds = [CollectiveKind::Allreduce];
            all_judged(Runtime::Msccl, &[brought("allreduce", text)], &kinds).map_err(|failure| failure.sentence())
        };
        assert_eq!(judged(&text(2, 1, 1025)), Ok(()));
        for (text, words) in [
            (text(4, 1, 1025), "it is for 4 ranks"),
            (text(2, 0, 1025), "not for calls in place"),
            (text(2, 1, 1024), "it ends at 1023 bytes"),
            (text(2, 1, 1 << 20), "is not meant for this call, but msccl picks it"),
        ] {
            let refused = judged(&text).unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn files_that_take_each_others_calls_are_not_handed_over() {
        let same = || brought("allreduce", &text(2, 1, 1025));
        let kinds = [CollectiveKind::Allreduce; 2];
        let refused = all_judged(Runtime::RcclMsccl, &[same(), same()], &kinds).unwrap_err().sentence();
        assert!(refused.contains("both serve"), "{refused}");
    }

    #[test]
    fn no_message_is_refused_before_the_rules_are_asked() {
        let mut none = brought("allreduce", &text(2, 1, 1025));
        none.entry.size_bytes_min = 2048;
        let refused = all_judged(Runtime::Msccl, &[none], &[CollectiveKind::Allreduce]).unwrap_err().sentence();
        assert!(refused.contains("is for no message"), "{refused}");
    }
}
