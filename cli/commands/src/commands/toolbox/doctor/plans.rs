//! The plan files that a runtime would come upon, and what the manifest beside them says.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use canopy_bundle::{PlanFileFacts, Runtime};
use canopy_plan::{
    EXECUTION_PLAN_BYTES_MAX, Format, MSCCL_OWN_BYTES_MAX, oneccl, parse_execution_plan, parse_msccl_xml_until,
};
use canopy_schedule::CollectiveKind;
use serde::Deserialize;

use crate::exit::words;
use crate::material::is_own_plan;
use crate::output::{BUNDLE_KIND, JOB_KIND, MANIFEST};

use super::check::shown;

/// Most files of a folder that are looked at.
const FILES_MAX: usize = 4096;
/// Largest manifest that is read.
const MANIFEST_BYTES_MAX: u64 = 16 << 20;

/// What a manifest of canopy says of its folder.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Manifest {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    pub(super) profile: String,
    /// The job, where it is the folder of one.
    #[serde(default)]
    pub(super) job: Option<String>,
    #[serde(default)]
    files: Vec<Entry>,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Item {
    #[serde(default)]
    collective: String,
    #[serde(default)]
    ranks_per_node: Option<u32>,
    #[serde(default)]
    files: Vec<Entry>,
}

/// A file of a manifest.
#[derive(Clone, Debug, Default, Deserialize)]
struct Entry {
    path: String,
    #[serde(default)]
    plan: String,
    #[serde(default)]
    collective: String,
    #[serde(default)]
    ranks_per_node: Option<u32>,
}

/// A file of a manifest with what is said of the calls it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) path: String,
    pub(super) plan: String,
    pub(super) collective: Option<CollectiveKind>,
    pub(super) ranks_per_node: Option<u32>,
}

impl Manifest {
    /// The manifest of a folder; `None` if it has no readable one.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let path = folder.join(MANIFEST);
        let is_file = std::fs::metadata(&path).is_ok_and(|found| found.is_file());
        let mut text = String::new();
        let file = File::open(&path).ok().filter(|_| is_file)?;
        file.take(MANIFEST_BYTES_MAX).read_to_string(&mut text).ok()?;
        let manifest: Self = serde_json::from_str(&text).ok()?;
        [JOB_KIND, BUNDLE_KIND].contains(&manifest.kind.as_str()).then_some(manifest)
    }

    /// All files that it lists, at most [`FILES_MAX`].
    pub(super) fn listed(&self) -> Vec<Listed> {
        let of = |entry: &Entry, collective: &str, ranks_per_node: Option<u32>| Listed {
            path: entry.path.clone(),
            plan: entry.plan.clone(),
            collective: CollectiveKind::spelt(collective).ok(),
            ranks_per_node,
        };
        let single = self.files.iter().map(|entry| of(entry, &entry.collective, entry.ranks_per_node));
        let ranged = self
            .items
            .iter()
            .flat_map(|item| item.files.iter().map(move |entry| of(entry, &item.collective, item.ranks_per_node)));
        single.chain(ranged).take(FILES_MAX).collect()
    }

    /// Ids of its plans, each once.
    pub(super) fn plan_ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.listed().into_iter().map(|listed| listed.plan).collect();
        ids.retain(|id| id.starts_with("plans/"));
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Where plan files are.
#[derive(Clone, Debug, Default)]
pub(super) struct Plans {
    /// The manifest of the folder, or of the one it lies in.
    pub(super) manifest: Option<Manifest>,
    /// What the manifest says of a file, by path.
    entries: BTreeMap<PathBuf, Listed>,
    /// Paths of regular files in the order in which a list or the folder has them.
    pub(super) paths: Vec<PathBuf>,
    /// Whether there are more files than are looked at.
    pub(super) is_cut: bool,
}

impl Plans {
    /// A plan file, a folder of them, or the folder of a bundle.
    pub(super) fn at(path: &Path) -> std::io::Result<Self> {
        if !std::fs::metadata(path)?.is_dir() {
            let manifest = path.parent().and_then(manifest_above);
            return Ok(Self::of(manifest, vec![path.to_owned()]));
        }
        let manifest = manifest_above(path);
        if let Some((root, manifest)) = &manifest
            && root == path
        {
            // Beside the listed files nothing lies there, unless somebody put it there.
            let mut paths: Vec<PathBuf> = manifest.listed().iter().map(|listed| root.join(&listed.path)).collect();
            let folder =
                paths.first().and_then(|path| path.parent()).map_or_else(|| root.join("plans"), Path::to_owned);
            let (found, is_cut) = files_of(&folder).unwrap_or_default();
            let more: Vec<PathBuf> = found.into_iter().filter(|path| !paths.contains(path)).collect();
            paths.extend(more);
            return Ok(Self { is_cut, ..Self::of(Some((root.clone(), manifest.clone())), paths) });
        }
        let (paths, is_cut) = files_of(path)?;
        Ok(Self { is_cut, ..Self::of(manifest, paths) })
    }

    /// Files of a list, as `MSCCL_XML_FILES` has them.
    pub(super) fn listed(paths: Vec<PathBuf>) -> Self {
        let manifest = paths.first().and_then(|path| manifest_above(path.parent()?));
        Self::of(manifest, paths)
    }

    fn of(manifest: Option<(PathBuf, Manifest)>, paths: Vec<PathBuf>) -> Self {
        let mut entries = BTreeMap::new();
        for (root, listed) in
            manifest.iter().flat_map(|(root, manifest)| manifest.listed().into_iter().map(move |listed| (root, listed)))
        {
            entries.entry(root.join(&listed.path)).or_insert(listed);
        }
        Self { manifest: manifest.map(|(_, manifest)| manifest), entries, paths, is_cut: false }
    }

    /// What the manifest says of a file.
    pub(super) fn entry(&self, path: &Path) -> Option<&Listed> {
        self.entries.get(path)
    }

    /// The folder that runtimes read.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.paths.first().and_then(|path| path.parent())
    }
}

/// The manifest of a folder or of the two that it lies in, with the folder it describes.
fn manifest_above(folder: &Path) -> Option<(PathBuf, Manifest)> {
    folder.ancestors().take(3).find_map(|folder| Some((folder.to_owned(), Manifest::of(folder)?)))
}

/// Regular files of a folder, by name.
fn files_of(folder: &Path) -> std::io::Result<(Vec<PathBuf>, bool)> {
    let mut paths = Vec::new();
    let mut is_cut = false;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if !std::fs::metadata(&path).is_ok_and(|found| found.is_file()) {
            continue;
        }
        if paths.len() == FILES_MAX {
            is_cut = true;
            break;
        }
        paths.push(path);
    }
    paths.sort_unstable();
    Ok((paths, is_cut))
}

/// A file as its runtime reads it.
#[derive(Clone, Debug)]
pub(super) struct PlanFile {
    pub(super) facts: PlanFileFacts,
    /// The protocol of MSCCL files.
    pub(super) protocol: Option<&'static str>,
    /// Channels of MSCCL files.
    pub(super) channels: Option<u32>,
}

/// What a path turns out to be.
#[derive(Debug)]
pub(super) enum Content {
    /// A plan for the runtime.
    Plan(Box<PlanFile>),
    /// A plan of another format.
    OtherFormat(Format),
    /// A plan of the format, which the runtime refuses.
    Refused(String),
    /// No plan.
    Other,
    /// It cannot be read.
    Unreadable(String),
}

/// The format that a runtime reads; none where it reads none.
pub(super) fn format_of(runtime: Runtime) -> Option<Format> {
    match runtime {
        Runtime::OneCcl => Some(Format::OnecclXml),
        _ if runtime.msccl_profile().is_some() => Some(Format::MscclXml),
        _ if runtime.executor_profile().is_some() => Some(Format::MscclppJson),
        _ => None,
    }
}

/// The bytes of a regular file of at most 512 MiB; in words, why not.
pub(super) fn bytes_of(path: &Path) -> Result<Vec<u8>, String> {
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(MSCCL_OWN_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > MSCCL_OWN_BYTES_MAX {
        return Err(format!("it has more than {MSCCL_OWN_BYTES_MAX} bytes"));
    }
    Ok(bytes)
}

/// The format of a file; none where it cannot be read or is no plan.
pub(super) fn format_at(path: &Path) -> Option<Format> {
    Format::of(&bytes_of(path).ok()?)
}

/// Reads a file as a runtime would.
pub(super) fn read(runtime: Runtime, path: &Path) -> Content {
    let bytes = match bytes_of(path) {
        Ok(bytes) => bytes,
        Err(why) => return Content::Unreadable(why),
    };
    let (Some(format), Ok(text)) = (Format::of(&bytes), std::str::from_utf8(&bytes)) else { return Content::Other };
    if Some(format) != format_of(runtime) {
        // Any object could be meant for canopy's own.
        let is_plan = format != Format::Json || is_own_plan(&bytes);
        return if is_plan { Content::OtherFormat(format) } else { Content::Other };
    }
    let name = path.display().to_string();
    let read = match (runtime.msccl_profile(), runtime) {
        (Some(profile), _) => parse_msccl_xml_until(text, profile, MSCCL_OWN_BYTES_MAX, &|| false)
            .map(|program| PlanFile {
                protocol: Some(program.protocol.name()),
                channels: Some(program.channel_count),
                facts: PlanFileFacts::of_msccl(name, &program),
            })
            .map_err(|error| words(&error)),
        (None, Runtime::OneCcl) => oneccl::parse_until(text, oneccl::OWN_BYTES_MAX, &|| false)
            .map(|program| plain(PlanFileFacts::of_oneccl(name, &program)))
            .map_err(|error| words(&error)),
        (None, _) if text.len() > EXECUTION_PLAN_BYTES_MAX => {
            Err(format!("it has more than {EXECUTION_PLAN_BYTES_MAX} bytes"))
        }
        (None, _) => parse_execution_plan(text)
            .map(|plan| plain(PlanFileFacts::of_execution_plan(name, &plan)))
            .map_err(|error| words(&error)),
    };
    match read {
        Ok(file) => Content::Plan(Box::new(file)),
        Err(why) => Content::Refused(shown(&why)),
    }
}

const fn plain(facts: PlanFileFacts) -> PlanFile {
    PlanFile { facts, protocol: None, channels: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_of_both_kinds_name_their_plans() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(folder.path().join(MANIFEST), text).unwrap();
        write(
            r#"{"canopy":1,"kind":"job-bundle","job":"17","profile":"msccl","files":[
            {"path":"files-0/plans/a.xml","plan":"plans/00","collective":"allgather","bytes":1}],"missing":[]}"#,
        );
        let manifest = Manifest::of(folder.path()).unwrap();
        assert_eq!((manifest.job.as_deref(), manifest.plan_ids()), (Some("17"), vec!["plans/00".to_owned()]));
        assert_eq!(manifest.listed()[0].collective, Some(CollectiveKind::Allgather));
        write(
            r#"{"kind":"plan-bundle","profile":"mscclpp-0.10","items":[{"collective":"allreduce","ranks_per_node":8,
            "files":[{"path":"plans/a.json","plan":"plans/01"},{"path":"plans/b.json","plan":"plans/01"}]}]}"#,
        );
        let manifest = Manifest::of(folder.path()).unwrap();
        assert_eq!(manifest.plan_ids(), ["plans/01"]);
        assert_eq!(manifest.listed()[1].ranks_per_node, Some(8));
        for other in ["", "[]", "{}", r#"{"kind":"pod"}"#] {
            write(other);
            assert!(Manifest::of(folder.path()).is_none(), "{other}");
        }
    }

    #[test]
    fn foreign_files_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let written = |text: &str| {
            let path = folder.path().join("x");
            std::fs::write(&path, text).unwrap();
            read(Runtime::Msccl, &path)
        };
        assert!(matches!(written(""), Content::Other));
        assert!(matches!(written("hello"), Content::Other));
        assert!(matches!(written("<algo name="), Content::Refused(_)));
        assert!(matches!(written(r#"{"canopy":1,"kind":"plan"}"#), Content::OtherFormat(Format::Json)));
        assert!(matches!(read(Runtime::Msccl, folder.path()), Content::Unreadable(_)));
    }
}
