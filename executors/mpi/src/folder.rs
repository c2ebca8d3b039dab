//! The folder of plans: its files, their digest, and the programs in them.
//!
//! All ranks must see the same bytes in the same order; what they choose follows from these bytes alone.

mod manifest;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use canopy_plan::oneccl::{BYTES_MAX, Program, parse, prove};
use sha2::{Digest as _, Sha256};

/// Most files of a folder.
pub(crate) const FILES_MAX: usize = 4096;

/// Most bytes of all files together.
const ALL_BYTES_MAX: u64 = 1 << 30;

/// Why a folder of plans cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("{path}: cannot be read: {problem}")]
    Unreadable { path: PathBuf, problem: String },
    #[error("{path}: has no plans; help: write some there with `canopy plan bundle … --format oneccl-xml -o {path}`")]
    Empty { path: PathBuf },
    #[error(
        "{path}: has over {FILES_MAX} files or {ALL_BYTES_MAX} bytes; help: make a bundle of the plans of this job"
    )]
    TooLarge { path: PathBuf },
    #[error("{path}: {problem}; help: make the bundle again with `canopy plan bundle … --format oneccl-xml`")]
    Manifest { path: PathBuf, problem: String },
    #[error("{path}: is not the file that manifest.json describes; help: copy the bundle again")]
    Changed { path: PathBuf },
}

/// The plans of a folder.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    files: Vec<PlanFile>,
    digest: [u64; 2],
}

/// A plan that was read, and whether it was proved.
#[derive(Debug)]
pub(crate) struct PlanFile {
    name: String,
    program: Result<Program, String>,
    proof: OnceLock<Option<String>>,
}

impl Folder {
    /// Reads the files that `manifest.json` names, or without one all files that end in `.xml`, by name.
    ///
    /// A file that is not a plan stays in the folder with the reason. Nothing is proved yet.
    ///
    /// # Errors
    /// The folder cannot be read, is too large, or its manifest does not describe it. O(bytes).
    pub(crate) fn read(path: &Path) -> Result<Self, FolderError> {
        let manifest = path.join("manifest.json");
        let listed = if manifest.is_file() { manifest::files(&manifest)? } else { plain_files(path)? };
        if listed.len() > FILES_MAX {
            return Err(FolderError::TooLarge { path: path.to_owned() });
        }
        let mut digest = Sha256::new();
        let (mut files, mut left) = (Vec::new(), ALL_BYTES_MAX);
        for manifest::Listed { name, sha256 } in listed {
            let text = text_of(&path.join(&name), &mut left, path)?;
            let own: [u8; 32] = Sha256::digest(&text).into();
            if sha256.is_some_and(|expected| expected != own) {
                return Err(FolderError::Changed { path: path.join(&name) });
            }
            digest.update(own);
            files.push(PlanFile::parse(name, &text));
        }
        if files.is_empty() {
            return Err(FolderError::Empty { path: path.to_owned() });
        }
        let digest: [u8; 32] = digest.finalize().into();
        let half =
            |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| digest.get(at + byte).copied().unwrap_or(0)));
        Ok(Self { files, digest: [half(0), half(8)] })
    }

    /// What all ranks must agree on.
    pub(crate) fn digest(&self) -> [u64; 2] {
        self.digest
    }

    /// All files, in the order in which they are tried.
    pub(crate) fn files(&self) -> &[PlanFile] {
        &self.files
    }
}

impl PlanFile {
    fn parse(name: String, bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).map_err(|_| "not text in UTF-8".to_owned());
        let program = text.and_then(|text| parse(text).map_err(|error| error.to_string()));
        Self { name, program, proof: OnceLock::new() }
    }

    /// Name within the folder.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The number of ranks of the plan, if it can be read.
    pub(crate) fn rank_count(&self) -> Option<u32> {
        self.program.as_ref().ok().map(|program| program.rank_count)
    }

    /// The program, proved when it is first asked for.
    ///
    /// # Errors
    /// Why it may not be run: it cannot be read, or is not proved to do what it says.
    pub(crate) fn proved(&self) -> Result<&Program, String> {
        let program = self.program.as_ref().map_err(Clone::clone)?;
        let refused = self.proof.get_or_init(|| prove(program).problems.first().map(ToString::to_string));
        match refused {
            None => Ok(program),
            Some(problem) => Err(problem.clone()),
        }
    }
}

fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> FolderError {
    move |error| FolderError::Unreadable { path: path.to_owned(), problem: error.to_string() }
}

fn plain_files(path: &Path) -> Result<Vec<manifest::Listed>, FolderError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable(path))?.take(4 * FILES_MAX) {
        let name = entry.map_err(unreadable(path))?.file_name();
        // A name that is not text is not one that canopy writes.
        names.extend(name.into_string().ok().filter(|name| name.ends_with(".xml")));
    }
    names.sort();
    Ok(names.into_iter().map(|name| manifest::Listed { name, sha256: None }).collect())
}

/// The bytes of a file, counted against those that are left.
fn text_of(path: &Path, left: &mut u64, folder: &Path) -> Result<Vec<u8>, FolderError> {
    if !fs::metadata(path).map_err(unreadable(path))?.is_file() {
        let problem = "is not a file".to_owned();
        return Err(FolderError::Unreadable { path: path.to_owned(), problem });
    }
    let file = fs::File::open(path).map_err(unreadable(path))?;
    let mut bytes = Vec::new();
    let most = (*left).min(BYTES_MAX as u64);
    file.take(most + 1).read_to_end(&mut bytes).map_err(unreadable(path))?;
    if bytes.len() as u64 > most {
        return Err(FolderError::TooLarge { path: folder.to_owned() });
    }
    *left -= bytes.len() as u64;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
