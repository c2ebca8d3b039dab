//! A folder of plans, which appears whole or not at all, and how the plans come into it.

use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use canopy_client::{ClientError, Retries, RetryPolicy};
use canopy_proto::v1::{self, PlanBundleRequest, PlanBundleResponse, Progress};
use canopy_service::bundle::{Bundled, Contents};
use serde::Serialize;
use tempfile::TempDir;

use super::Common;
use crate::clock::{self, Deadline};
use crate::connection::{Connection, Session};
use crate::exit::Failure;
use crate::local;
use crate::output::{self, BUNDLE_KIND, FORMAT_VERSION, GROUPS_KIND, JOINT_KIND, MANIFEST, ManifestKind};
use crate::progress::ProgressLine;
use crate::stored_plan::file_name;
use crate::whole_file::cannot_write;

/// Longest manifest that is looked at.
const BYTES_MAX: u64 = 64 << 20;

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

    /// Where its files are until then.
    pub(super) fn path(&self) -> &Path {
        self.temporary.path()
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
        let mut file = self.file(path)?;
        file.write_all(content).map_err(|error| cannot_write(&self.target.join(path), &error))
    }

    /// A new file with this in JSON.
    pub(super) fn write_json(&self, path: &str, content: &impl Serialize) -> Result<(), Failure> {
        self.write(path, output::pretty_json(content)?.as_bytes())
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

/// Whether a folder is one that was written here, of either kind.
fn is_bundle(folder: &Path) -> bool {
    let path = folder.join(MANIFEST);
    let is_short = std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= BYTES_MAX);
    let text = is_short.then(|| std::fs::read(&path).ok()).flatten().unwrap_or_default();
    serde_json::from_slice::<ManifestKind>(&text).is_ok_and(|found| {
        found.canopy == FORMAT_VERSION && [BUNDLE_KIND, GROUPS_KIND, JOINT_KIND].contains(&found.kind.as_str())
    })
}

/// Asks for the plans of a folder until there is an answer, or no use in asking, and has them written. Opening a store does not
/// count towards the deadline.
pub(super) async fn made<T>(
    common: &Common,
    request: &PlanBundleRequest,
    in_users_words: impl FnOnce(ClientError) -> ClientError,
    write: impl AsyncFnOnce(Files<'_>, &PlanBundleResponse) -> Result<T, Failure>,
) -> Result<(PlanBundleResponse, T), Failure> {
    if let Some(folder) = common.server.folder()? {
        let line = ProgressLine::start();
        let said = &mut |progress: &Progress| line.progress(progress);
        let bundled = local::plan_bundle(&folder, request, common.deadline, said).await;
        drop(line);
        match bundled {
            Ok(Some(bundled)) => {
                let Bundled { reply, files } = *bundled;
                let written = write(Files::Here(files), &reply).await?;
                return Ok((reply, written));
            }
            Ok(None) => {}
            Err(error) => return Err(error.told(in_users_words)),
        }
    }
    let mut session = Session::open(&common.server).await?;
    let calls =
        async |connection: &Connection, left| Ok(connection.shared().plan_bundle(request.clone(), left).await?);
    let made = match session.ask(Deadline::after(common.deadline), calls).await {
        Ok(reply) => write(Files::Server(session.connection()), &reply).await.map(|written| (reply, written)),
        Err(error) => Err(error.told(in_users_words)),
    };
    session.close().await;
    made
}

/// Source of the content of files.
pub(super) enum Files<'a> {
    /// At a server.
    Server(&'a Connection),
    /// In this process.
    Here(Contents),
}

/// Brings files into a folder.
pub(super) struct Fetch<'a> {
    files: Files<'a>,
    folder: &'a NewFolder,
    retries: Retries,
}

impl<'a> Fetch<'a> {
    pub(super) fn new(files: Files<'a>, folder: &'a NewFolder) -> Self {
        Self { files, folder, retries: Retries::new(RetryPolicy::STANDARD, clock::jitter()) }
    }

    /// Brings a file of a plan, which must be the one that was described.
    pub(super) async fn file(&mut self, path: &str, plan: &str, artifact: &v1::Artifact) -> Result<(), Failure> {
        let connection = match &self.files {
            Files::Server(connection) => connection,
            Files::Here(files) => {
                let missing = || Failure::fault(format!("{path} was not kept when its plan was made"));
                return self.folder.write(path, files.of(plan, artifact).ok_or_else(missing)?);
            }
        };
        let name = file_name(plan, artifact);
        let mut content = self.folder.file(path)?;
        let mut put = |data: &[u8]| content.write_all(data);
        let found = connection.shared().download(&name, None, &mut self.retries, &mut put).await?;
        if found.sha256 != artifact.sha256 {
            let what = format!("{path} is not the file that the bundle was checked with");
            return Err(Failure::fault(what).help("ask for the bundle again"));
        }
        Ok(())
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
