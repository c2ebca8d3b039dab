//! A server on a data folder: run in this process, or shared with the process that runs one there already.

use std::path::PathBuf;
use std::time::Duration;

use canopy_client::{Client, ErrorClass, ServerAddress};
use canopy_server::{EmbeddedServer, Options, StartError};
use canopy_service::{SocketPath, data_dir_default};
use tokio::time::{Instant, MissedTickBehavior};

use crate::exit::{Failure, words};
use crate::messages::detail;

/// How long a process that holds the folder may take to listen, or to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two looks at the folder.
const PAUSE: Duration = Duration::from_millis(25);

/// A data folder.
#[derive(Debug)]
pub(super) struct Folder {
    options: Options,
}

/// Who runs the server, as far as this process must care.
#[derive(Debug)]
pub(super) enum Host {
    /// Somebody who was named.
    Elsewhere,
    /// This process.
    Here(EmbeddedServer),
    /// Another process on the folder; the path to its socket must be held open.
    Joined { _socket: SocketPath },
}

impl Folder {
    /// The folder given, else the user's.
    pub(super) fn new(path: Option<PathBuf>) -> Result<Self, Failure> {
        let given = path.filter(|path| !path.as_os_str().is_empty());
        let path = given.map_or_else(data_dir_default, Ok).map_err(|error| Failure::input(error.to_string()))?;
        let options = Options::embedded_as_told(path).map_err(|error| Failure::input(error.to_string()))?;
        Ok(Self { options })
    }

    /// Whether another process runs a server on the folder.
    pub(super) async fn is_served(&self) -> bool {
        match SocketPath::of(&self.options.data_dir) {
            Ok(socket) => Client::connect(&ServerAddress::unix(socket.path())).await.is_ok(),
            Err(_) => false,
        }
    }

    /// Starts a server on the folder, or joins the one that runs there.
    ///
    /// A process that holds the folder is about to listen, listens, or is about to end: both ways are tried in turn
    /// until one works or patience ends.
    pub(super) async fn open(&self) -> Result<(Client, Host), Failure> {
        // The runtime's time, which tests can pause.
        let give_up = Instant::now() + PATIENCE;
        let mut pauses = tokio::time::interval(PAUSE);
        pauses.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            pauses.tick().await;
            match EmbeddedServer::start(self.options.clone()).await {
                Ok(server) => {
                    detail(|| format!("running a server on {}", self.options.data_dir.display()));
                    let client = Client::connect(&ServerAddress::unix(server.socket_path())).await?;
                    return Ok((client, Host::Here(server)));
                }
                Err(error) if error.is_in_use() => {}
                Err(error) => return Err(self.failure(&error)),
            }
            if let Ok(socket) = SocketPath::of(&self.options.data_dir)
                && let Ok(client) = Client::connect(&ServerAddress::unix(socket.path())).await
            {
                detail(|| format!("asking the server of another process on {}", self.options.data_dir.display()));
                return Ok((client, Host::Joined { _socket: socket }));
            }
            if Instant::now() >= give_up {
                let path = self.options.data_dir.display();
                let message = format!("the data folder {path} is held by a process that does not answer");
                return Err(
                    Failure::new(ErrorClass::Busy, message).help("try again, or name another folder with `--data-dir`")
                );
            }
        }
    }

    fn failure(&self, error: &StartError) -> Failure {
        let class = match error {
            StartError::Config(_) | StartError::Credentials(_) => ErrorClass::Input,
            StartError::Store(_)
            | StartError::Audit { .. }
            | StartError::Listen { .. }
            | StartError::Threads(_)
            | StartError::Reflection(_) => ErrorClass::Fault,
        };
        Failure::new(class, format!("cannot start a server on {}: {}", self.options.data_dir.display(), words(error)))
            .help("name another folder with `--data-dir`, or a server with `--server`")
    }
}

impl Host {
    /// Ends the server of this process in order.
    pub(super) async fn close(self) {
        if let Self::Here(server) = self {
            // Its plan is in the caller's hands already: an error here takes nothing from it.
            let _ended = server.stop().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use canopy_store::open_store;

    use super::*;

    /// A process that holds the folder, but neither listens nor ends.
    #[tokio::test(start_paused = true)]
    async fn patience_with_a_held_folder_ends() {
        let directory = tempfile::tempdir().unwrap();
        let _held = open_store(directory.path()).unwrap();
        let folder = Folder::new(Some(directory.path().to_owned())).unwrap();
        let before = Instant::now();
        let failure = folder.open().await.unwrap_err();
        assert!(before.elapsed() >= PATIENCE);
        assert_eq!(failure.report(), ExitCode::from(ErrorClass::Busy.exit_status()));
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_made_is_refused_at_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let folder = Folder::new(Some(file.path().join("data"))).unwrap();
        assert!(folder.open().await.is_err());
    }
}
