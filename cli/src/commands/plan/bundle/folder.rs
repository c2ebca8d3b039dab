//! The folder of a bundle, which appears whole or not at all.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use tempfile::TempDir;

use super::manifest::is_bundle;
use crate::exit::Failure;
use crate::output::cannot_write;

/// A folder on its way to its name. Dropped before [`commit`](Self::commit), it leaves nothing behind.
#[derive(Debug)]
pub(super) struct NewFolder {
    target: PathBuf,
    temporary: TempDir,
}

impl NewFolder {
    /// Prepares a folder that takes this name, where there is nothing, an empty folder or an earlier bundle.
    pub(super) fn prepare(target: &Path) -> Result<Self, Failure> {
        let target = std::path::absolute(target).map_err(|error| cannot_write(target, &error))?;
        if let Ok(mut entries) = std::fs::read_dir(&target) {
            if entries.next().is_some() && !is_bundle(&target) {
                let message = format!("{} holds something other than a bundle", target.display());
                return Err(Failure::input(message).help("name a folder that is not there yet, or that is empty"));
            }
        } else if std::fs::symlink_metadata(&target).is_ok() {
            let message = format!("{} is not a folder that can be read", target.display());
            return Err(Failure::input(message).help("name a folder that is not there yet"));
        }
        let Some(parent) = target.parent() else {
            return Err(Failure::input("the root folder cannot be a bundle").help("name another folder"));
        };
        let mut builder = tempfile::Builder::new();
        let temporary = builder.prefix(".canopy-").suffix(".tmp").tempdir_in(parent);
        let temporary = temporary.map_err(|error| cannot_write(&target, &error))?;
        Ok(Self { target, temporary })
    }

    /// The name that it will have, from the root.
    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    /// A new file at a path within it.
    pub(super) fn file(&self, path: &str) -> Result<File, Failure> {
        let relative = Path::new(path);
        // A server that names another place is not obeyed.
        if relative.components().any(|part| !matches!(part, Component::Normal(_))) || path.is_empty() {
            return Err(Failure::fault(format!("the server names the file `{path}`, which is not in the folder")));
        }
        let full = self.temporary.path().join(relative);
        let refuse = |error: std::io::Error| cannot_write(&self.target.join(relative), &error);
        if let Some(folder) = full.parent() {
            std::fs::create_dir_all(folder).map_err(refuse)?;
        }
        File::options().write(true).create_new(true).open(&full).map_err(refuse)
    }

    /// A new file with this content.
    pub(super) fn write(&self, path: &str, content: &[u8]) -> Result<(), Failure> {
        use std::io::Write as _;
        let mut file = self.file(path)?;
        file.write_all(content).map_err(|error| cannot_write(&self.target.join(path), &error))
    }

    /// Gives the folder its name; an earlier bundle is gone then.
    pub(super) fn commit(self) -> Result<(), Failure> {
        let Self { target, temporary } = self;
        let refuse = |error: std::io::Error| cannot_write(&target, &error);
        std::fs::set_permissions(temporary.path(), Permissions::from_mode(0o755)).map_err(refuse)?;
        let parent = target.parent().unwrap_or(Path::new("/"));
        let mut builder = tempfile::Builder::new();
        let before = builder.prefix(".canopy-").suffix(".tmp").tempdir_in(parent).map_err(refuse)?;
        if std::fs::symlink_metadata(&target).is_ok() {
            std::fs::rename(&target, before.path().join("before")).map_err(refuse)?;
        }
        std::fs::rename(temporary.keep(), &target).map_err(refuse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_within_the_folder_are_written() {
        let desk = tempfile::tempdir().unwrap();
        let folder = NewFolder::prepare(&desk.path().join("out")).unwrap();
        for wrong in ["", "/etc/x", "../x", "plans/../../x", "./x/.."] {
            assert!(folder.file(wrong).is_err(), "{wrong}");
        }
        folder.write("plans/a.xml", b"a").unwrap();
        assert!(folder.file("plans/a.xml").is_err(), "a file is written once");
        folder.commit().unwrap();
        assert_eq!(std::fs::read(desk.path().join("out/plans/a.xml")).unwrap(), b"a");
        assert_eq!(std::fs::read_dir(desk.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_not_a_bundle_stays() {
        let desk = tempfile::tempdir().unwrap();
        let out = desk.path().join("out");
        std::fs::write(&out, b"mine").unwrap();
        assert!(NewFolder::prepare(&out).is_err());
        std::fs::remove_file(&out).unwrap();
        std::fs::create_dir(&out).unwrap();
        drop(NewFolder::prepare(&out).unwrap());
        std::fs::write(out.join("notes.txt"), b"mine").unwrap();
        assert!(NewFolder::prepare(&out).is_err());
        assert_eq!(std::fs::read_dir(desk.path()).unwrap().count(), 1);
    }
}
