//! A server inside another process, such as the command line's.

use std::path::Path;
use std::sync::Arc;

use canopy_service::SocketPath;
use tokio::sync::oneshot;

use crate::ops::config::Options;
use crate::ops::statistics::Statistics;
use crate::server::{RunError, Server, StartError};
use crate::tasks::{self, Task};

/// A running server in this process. Dropping it stops the server at once; [`EmbeddedServer::stop`] shuts it down in
/// order.
pub struct EmbeddedServer {
    socket: Arc<SocketPath>,
    statistics: Statistics,
    stop: oneshot::Sender<()>,
    task: Task<Result<(), RunError>>,
}

impl std::fmt::Debug for EmbeddedServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedServer").finish_non_exhaustive()
    }
}

impl EmbeddedServer {
    /// Starts a server on the Unix socket of the data directory, and on TCP if the options say so.
    ///
    /// # Errors
    /// Any [`StartError`]. If [`StartError::is_in_use`], another process serves the directory: connect to the socket at
    /// [`SocketPath::of`] instead. That process may be about to bind it or to end, so try both for a moment.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let server = Server::build(options).await?;
        let socket = server.socket();
        let statistics = server.statistics();
        let (stop, stopped) = oneshot::channel();
        let task = tasks::spawn(
            "embedded-server",
            server.run(async {
                // A handle that was dropped means stop as well.
                let _said = stopped.await;
            }),
        );
        Ok(Self { socket, statistics, stop, task })
    }

    /// A path to the socket, usable in this process while the server lives.
    pub fn socket_path(&self) -> &Path {
        self.socket.path()
    }

    /// Counters of the server.
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Shuts the server down: calls of other processes are refused as UNAVAILABLE after the drain time-out of the
    /// options.
    ///
    /// # Errors
    /// The transport failed.
    pub async fn stop(self) -> Result<(), RunError> {
        let _gone = self.stop.send(());
        self.task.join().await.map_err(RunError::from)?
    }
}
