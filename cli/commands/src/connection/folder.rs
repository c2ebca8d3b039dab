//! A server on a data folder: run in this process, or shared with the process that runs one there already.

use std::path::{Path, PathBuf};
use std::time::Duration;

use canopy_client::{Client, ErrorClass, ServerAddress};
#[cfg(feature = "embedded")]
use canopy_server::EmbeddedServer;
use canopy_service::SocketPath;

use crate::exit::Failure;
use crate::messages::detail;

/// Longest wait for a process that holds a folder: to listen, to end, or to let go of it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The failure to wait any longer for a process that holds a folder.
pub(crate) fn held(folder: &Path) -> Failure {
    let message = format!("the data folder {} is held by a process that does not answer", folder.display());
    Failure::new(ErrorClass::Busy, message).help("try again, or name another folder with `--data-dir`")
}

/// A data folder.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

/// The runner of the server, as far as this process must care.
#[derive(Debug)]
pub(super) enum Host {
    /// Somebody who was named.
    Elsewhere,
    /// This process.
    #[cfg(feature = "embedded")]
    Here(EmbeddedServer),
    /// Another process on the folder; the path to its socket must be held open.
    Joined { _socket: SocketPath },
}

impl Folder {
    /// The folder at this path.
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Whether another process runs a server on the folder.
    pub(super) async fn is_served(&self) -> bool {
        self.joined().await.is_some()
    }

    /// A connection to the server that another process runs on the folder, if one does.
    async fn joined(&self) -> Option<(Client, Host)> {
        let socket = SocketPath::of(&self.path).ok()?;
        let client = Client::connect(&ServerAddress::unix(socket.path())).await.ok()?;
        Some((client, Host::Joined { _socket: socket }))
    }

    /// Joins the server that runs on the folder, or starts one if this program has one in it.
    ///
    /// # Errors
    /// [`Failure::NoServer`] if there is none to join and none in this program.
    pub(super) async fn open(&self) -> Result<(Client, Host), Failure> {
        #[cfg(feature = "embedded")]
        let opened = embedded::open(self).await?;
        #[cfg(not(feature = "embedded"))]
        let opened = self.joined().await.ok_or(Failure::NoServer)?;
        if matches!(opened.1, Host::Joined { .. }) {
            detail(|| format!("asking the server of another process on {}", self.path.display()));
        }
        Ok(opened)
    }

    /// Whether [`Folder::open`] finds a server.
    pub(super) async fn has_server(&self) -> bool {
        cfg!(feature = "embedded") || self.is_served().await
    }
}

impl Host {
    /// Whether this process runs the server.
    pub(super) fn is_here(&self) -> bool {
        !matches!(self, Self::Elsewhere | Self::Joined { .. })
    }

    /// Whether another process on the data folder runs the server.
    pub(super) fn is_joined(&self) -> bool {
        matches!(self, Self::Joined { .. })
    }

    /// Ends the server of this process in order.
    pub(super) async fn close(self) {
        #[cfg(feature = "embedded")]
        if let Self::Here(server) = self {
            // Its plan is in the caller's hands already: an error here takes nothing from it.
            let _ended = server.stop().await;
        }
    }
}

/// Servers of this process.
#[cfg(feature = "embedded")]
mod embedded {
    use std::time::Duration;

    use canopy_client::{Client, ErrorClass, ServerAddress};
    use canopy_server::{EmbeddedServer, Options, StartError};
    use tokio::time::{Instant, MissedTickBehavior};

    use super::{Folder, Host, PATIENCE, held};
    use crate::exit::{Failure, words};
    use crate::messages::detail;

    /// Pause between two looks at the folder.
    const PAUSE: Duration = Duration::from_millis(25);

    /// Starts a server on the folder, or joins the one that runs there.
    ///
    /// A process that holds the folder is about to listen, listens, or is about to end: both ways are tried in turn
    /// until one works or patience ends.
    pub(super) async fn open(folder: &Folder) -> Result<(Client, Host), Failure> {
        let options =
            Options::embedded_as_told(folder.path.clone()).map_err(|error| Failure::input(error.to_string()))?;
        let shown = folder.path.display();
        // The runtime's time, which tests can pause.
        let give_up = Instant::now() + PATIENCE;
        let mut pauses = tokio::time::interval(PAUSE);
        pauses.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            pauses.tick().await;
            match EmbeddedServer::start(options.clone()).await {
                Ok(server) => {
                    detail(|| format!("running a server on {shown}"));
                    let client = Client::connect(&ServerAddress::unix(server.socket_path())).await?;
                    return Ok((client, Host::Here(server)));
                }
                Err(error) if error.is_in_use() => {}
                Err(error) => return Err(failure(folder, &error)),
            }
            if let Some(joined) = folder.joined().await {
                return Ok(joined);
            }
            if Instant::now() >= give_up {
                return Err(held(&folder.path));
            }
        }
    }

    fn failure(folder: &Folder, error: &StartError) -> Failure {
        let class = match error {
            StartError::Config(_) | StartError::Credentials(_) => ErrorClass::Input,
            StartError::Store(_)
            | StartError::Audit { .. }
            | StartError::Listen { .. }
            | StartError::Threads(_)
            | StartError::Reflection(_) => ErrorClass::Fault,
        };
        Failure::new(class, format!("cannot start a server on {}: {}", folder.path.display(), words(error)))
            .help("name another folder with `--data-dir`, or a server with `--server`")
    }
}

#[cfg(all(test, feature = "embedded"))]
mod tests {
    use std::process::ExitCode;

    use canopy_client::ErrorClass;
    use canopy_store::open_store;

    use tokio::time::Instant;

    use super::*;

    /// A process that holds the folder, but neither listens nor ends.
    #[tokio::test(start_paused = true)]
    async fn patience_with_a_held_folder_ends() {
        let directory = tempfile::tempdir().unwrap();
        let _held = open_store(directory.path()).unwrap();
        let folder = Folder::at(directory.path());
        let before = Instant::now();
        let failure = folder.open().await.unwrap_err();
        assert!(before.elapsed() >= PATIENCE);
        assert_eq!(failure.report(), ExitCode::from(ErrorClass::Busy.exit_status()));
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_made_is_refused_at_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let folder = Folder::at(&file.path().join("data"));
        assert!(folder.open().await.is_err());
    }
}
