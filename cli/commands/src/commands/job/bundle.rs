//! The folder of a job: plan files and the manifest that says what they are.
//!
//! ```text
//! manifest.json
//! env                                        what a shell sets
//! loader.py                                  where plans have to be registered
//! files-0123456789ab/plans/00-allgather-0123456789ab.xml
//! ```
//! Plans lie in a folder with nothing else in it, since some runtimes read every file they find. Both have digests in their
//! names, so that a second fetch never changes what a reader of the first manifest reads; the manifest is renamed into
//! place after the files it names. Readers check every digest before they use a file.

use std::fs::{File, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::exit::Failure;
use crate::output::{FORMAT_VERSION, JOB_KIND, MANIFEST, pretty_json};

/// What a shell sets to use the plans.
pub(super) const SHELL: &str = "env";
/// The module that registers the plans.
pub(super) const LOADER: &str = "loader.py";
/// Start of the name of a folder of plans, before a digest.
const FILES: &str = "files-";
/// Folder of plans and nothing else, in one of those.
pub(super) const PLANS: &str = "plans";
/// Largest manifest that is read.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// Start and end of the names that files have until they are whole.
const TEMPORARY: (&str, &str) = (".canopy-", ".tmp");
/// Digits of the digest in the name of a file.
const DIGEST_DIGITS: usize = 12;

/// What is in the folder of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    canopy: u32,
    kind: String,
    pub(super) job: String,
    /// Nodes of the job in the scheduler's order, where they were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) nodes: Option<Vec<String>>,
    /// Runtime profile the files are for.
    pub(super) profile: String,
    /// One per plan. None: the runtime's own algorithms serve the job.
    pub(super) files: Vec<PlanEntry>,
    /// Plans that there are not, and why.
    pub(super) missing: Vec<MissingEntry>,
}

/// A plan file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlanEntry {
    pub(super) collective: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) root: Option<u32>,
    pub(super) plan: String,
    pub(super) format: String,
    /// Path within the folder.
    pub(super) path: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
    pub(super) optimality: String,
    pub(super) ranks: u32,
    /// Ranks of each machine, where they are known and as many on all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ranks_per_node: Option<u32>,
    pub(super) size_bytes_min: u64,
    /// Inclusive.
    pub(super) size_bytes_max: u64,
    /// Messages must be a multiple of so many elements.
    pub(super) alignment_elements: u64,
    pub(super) in_place: bool,
    /// Why it stands in for the plan that was asked for, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fallback: Option<String>,
    /// The ranks whose part alone is in the file; none: all ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) slice: Option<Vec<u32>>,
}

/// A plan that there is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MissingEntry {
    pub(super) collective: String,
    pub(super) reason: String,
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum BundleError {
    #[error("no manifest is in {folder}")]
    Absent { folder: String },
    #[error("cannot read {path}: {error}")]
    Read { path: String, error: std::io::Error },
    #[error("{path} is no manifest of version {FORMAT_VERSION}: {what}")]
    Malformed { path: String, what: String },
    #[error("{path} has not the size and SHA-256 that the manifest says; it is not used")]
    Damaged { path: String },
}

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        Self::input(error.to_string())
    }
}

impl Manifest {
    /// The manifest of a job's folder.
    pub(super) fn new(job: &str, nodes: Option<Vec<String>>, profile: &str) -> Self {
        Self {
            canopy: FORMAT_VERSION,
            kind: JOB_KIND.to_owned(),
            job: job.to_owned(),
            nodes,
            profile: profile.to_owned(),
            files: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Reads the manifest of a folder. Nothing is known of the files it names yet.
    pub(super) fn read(folder: &Path) -> Result<Self, BundleError> {
        let path = folder.join(MANIFEST);
        let shown = || path.display().to_string();
        let file = File::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                BundleError::Absent { folder: folder.display().to_string() }
            }
            _ => BundleError::Read { path: shown(), error },
        })?;
        let mut text = String::new();
        let read = file.take(MANIFEST_BYTES_MAX).read_to_string(&mut text);
        read.map_err(|error| BundleError::Read { path: shown(), error })?;
        let malformed = |what: String| BundleError::Malformed { path: shown(), what };
        let manifest: Self = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        if (manifest.canopy, manifest.kind.as_str()) != (FORMAT_VERSION, JOB_KIND) {
            return Err(malformed(format!("it says canopy {} and kind {}", manifest.canopy, manifest.kind)));
        }
        let first = manifest.files.first().and_then(|file| folder_of(&file.path));
        match manifest.files.iter().find(|file| folder_of(&file.path).is_none_or(|found| Some(found) != first)) {
            Some(file) => Err(malformed(format!("`{}` is not the path of a plan file", file.path))),
            None => Ok(manifest),
        }
    }

    /// Name of the folder with the plans; none where there are none.
    pub(super) fn files_folder(&self) -> Option<&str> {
        self.files.first().and_then(|file| folder_of(&file.path))
    }

    /// Puts the manifest into its folder, in place of an older one.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Failure> {
        write_text(folder, MANIFEST, &pretty_json(self)?)
    }
}

impl PlanEntry {
    /// Confirms that the file is the one that was fetched. O(bytes).
    pub(super) fn check(&self, folder: &Path) -> Result<(), BundleError> {
        let path = folder.join(&self.path);
        let shown = || path.display().to_string();
        let read = |error| BundleError::Read { path: shown(), error };
        let mut file = File::open(&path).map_err(read)?;
        let (mut digest, mut bytes, mut buffer) = (Sha256::new(), 0_u64, vec![0; 128 << 10]);
        // One byte too many is enough to know.
        while bytes <= self.bytes {
            match file.read(&mut buffer).map_err(read)? {
                0 => break,
                length => {
                    digest.update(&buffer[..length]);
                    bytes += length as u64;
                }
            }
        }
        let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let is_whole = bytes == self.bytes && digest.eq_ignore_ascii_case(&self.sha256);
        if is_whole { Ok(()) } else { Err(BundleError::Damaged { path: shown() }) }
    }
}

/// Makes the folder of a job, for all to read; one that exists is used.
pub(super) fn create_folder(folder: &Path) -> Result<(), Failure> {
    let refuse = |error: std::io::Error| Failure::input(format!("cannot make {}: {error}", folder.display()));
    if !std::fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir()) {
        std::fs::DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(refuse)?;
    }
    match std::fs::symlink_metadata(folder).map_err(refuse)? {
        found if found.is_dir() => Ok(()),
        // Whoever may change a link could lead a privileged hook anywhere.
        _ => Err(Failure::input(format!("{} is not a folder itself, but leads to one", folder.display()))),
    }
}

/// Takes the manifest away, if there is one: readers find no plans. Its files stay until the job is released.
pub(super) fn withdraw(folder: &Path) {
    // Where they cannot be removed, they could not have been replaced either.
    for name in [MANIFEST, SHELL] {
        let _removed = std::fs::remove_file(folder.join(name));
    }
}

/// A file in the folder that no reader looks at yet.
pub(super) fn temporary(folder: &Path) -> Result<NamedTempFile, Failure> {
    let mut builder = tempfile::Builder::new();
    let file = builder.prefix(TEMPORARY.0).suffix(TEMPORARY.1).tempfile_in(folder);
    file.map_err(|error| cannot_write(folder, &error))
}

/// Gives a file its name, for all to read and nobody else to write.
pub(super) fn publish(file: NamedTempFile, folder: &Path, name: &str) -> Result<(), Failure> {
    file.as_file().set_permissions(Permissions::from_mode(0o644)).map_err(|error| cannot_write(folder, &error))?;
    file.persist(folder.join(name)).map_err(|error| cannot_write(folder, &error.error))?;
    Ok(())
}

/// Puts a file with this text into its folder, in place of an older one.
pub(super) fn write_text(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let mut file = temporary(folder)?;
    file.write_all(text.as_bytes()).map_err(|error| cannot_write(folder, &error))?;
    publish(file, folder, name)
}

fn cannot_write(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::input(format!("cannot write into {}: {error}", folder.display()))
}

/// Name of a plan file: the position among the job's plans, the collective, and the start of the digest.
pub(super) fn plan_file_name(position: usize, collective: &str, sha256: &str, ending: &str) -> Option<String> {
    let name = format!("{position:02}-{collective}-{}.{ending}", sha256.get(..DIGEST_DIGITS)?);
    is_plan_file(&name).then_some(name)
}

/// Name of the folder for files with these names and digests.
pub(super) fn files_folder_name<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut digest = Sha256::new();
    for (name, sha256) in files {
        digest.update(format!("{name} {sha256}\n"));
    }
    let digits: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).take(DIGEST_DIGITS / 2).collect();
    format!("{FILES}{digits}")
}

/// Whether a name is that of a plan file: nothing else of a folder is read or removed by it.
pub(super) fn is_plan_file(name: &str) -> bool {
    let parts = || {
        let name = name.strip_suffix(".xml").or_else(|| name.strip_suffix(".json"))?;
        let (position, rest) = name.split_once('-')?;
        let (collective, digest) = rest.rsplit_once('-')?;
        Some((position, collective, digest))
    };
    parts().is_some_and(|(position, collective, digest)| {
        position.len() == 2
            && position.bytes().all(|byte| byte.is_ascii_digit())
            && !collective.is_empty()
            && collective.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            && is_digest(digest)
    })
}

fn is_digest(text: &str) -> bool {
    text.len() == DIGEST_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Whether a name is that of a folder of plans.
pub(super) fn is_files_folder(name: &str) -> bool {
    name.strip_prefix(FILES).is_some_and(is_digest)
}

/// The folder in the path of a plan, such as `files-0123456789ab/plans/00-allgather-0123456789ab.xml`; none for others.
fn folder_of(path: &str) -> Option<&str> {
    let (folder, rest) = path.split_once('/')?;
    let (plans, name) = rest.split_once('/')?;
    (is_files_folder(folder) && plans == PLANS && is_plan_file(name)).then_some(folder)
}

/// Whether canopy made the file of this name in the folder of a job, or in one of plans.
pub(super) fn is_ours(name: &str) -> bool {
    [MANIFEST, SHELL, LOADER].contains(&name) || is_temporary(name)
}

/// Whether a name is one that files have until they are whole.
pub(super) fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canopys_own_names_are_taken_for_it() {
        let name = plan_file_name(1, "reduce-scatter", &"ab12".repeat(16), "xml").unwrap();
        assert_eq!(name, "01-reduce-scatter-ab12ab12ab12.xml");
        for ours in ["manifest.json", "env", "loader.py", ".canopy-aB3xQ1.tmp"] {
            assert!(is_ours(ours), "{ours}");
        }
        for foreign in ["", "manifest.json.bak", "plan.xml", &name] {
            assert!(!is_ours(foreign), "{foreign}");
        }
        for foreign in
            ["01-../x-ab12ab12ab12.xml", "01--ab12ab12ab12.xml", "1-a-ab12ab12ab12.xml", "01-a-ab12ab12ab12.py"]
        {
            assert!(!is_plan_file(foreign), "{foreign}");
        }
        assert_eq!(plan_file_name(0, "allgather", "short", "xml"), None);
        assert_eq!(plan_file_name(0, "allgather", &"/etc".repeat(16), "xml"), None);
        let json = plan_file_name(0, "allgather", &"ab12".repeat(16), "json").unwrap();
        let folder = files_folder_name([(json.as_str(), "ab12")].into_iter());
        assert!(is_files_folder(&folder), "{folder}");
        assert_ne!(folder, files_folder_name([(json.as_str(), "ab13")].into_iter()));
        assert_eq!(folder_of(&format!("{folder}/plans/{json}")), Some(folder.as_str()));
        for foreign in
            [json.clone(), format!("{folder}/{json}"), format!("../plans/{json}"), format!("{folder}/plans/x")]
        {
            assert_eq!(folder_of(&foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written_and_otherwise_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Manifest::read(folder.path()), Err(BundleError::Absent { .. })));
        let manifest = Manifest::new("17", Some(vec!["gpu1".to_owned()]), "msccl");
        manifest.write(folder.path()).unwrap();
        assert_eq!(Manifest::read(folder.path()).unwrap(), manifest);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let text = std::fs::read_to_string(folder.path().join(MANIFEST)).unwrap();
        for (from, to) in
            [("\"canopy\": 1", "\"canopy\": 2"), ("job-bundle", "other"), ("\"files\": []", "\"files\": 1")]
        {
            assert!(text.contains(from));
            std::fs::write(folder.path().join(MANIFEST), text.replace(from, to)).unwrap();
            assert!(matches!(Manifest::read(folder.path()), Err(BundleError::Malformed { .. })), "{to}");
        }
    }

    #[test]
    fn a_link_is_no_folder_for_a_privileged_hook() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("link")).unwrap();
        assert!(create_folder(&folder.path().join("link")).is_err());
        assert!(create_folder(&folder.path().join("new/deeper")).is_ok());
    }
}
