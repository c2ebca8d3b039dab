//! Listens to the health monitors of NVSentinel, in the place of its platform connector.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use canopy_client::ServerAddress;
use canopy_faults::feeds::{Entity, FeedOptions, HealthEvent, read_health};
use canopy_proto::nvsentinel::platform_connector_server::{PlatformConnector, PlatformConnectorServer};
use canopy_proto::nvsentinel::{self, HealthEvents, ProcessingStrategy};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use super::Received;
use crate::clock;
use crate::exit::{Failure, words};
use crate::messages::say;

/// Calls of one monitor that are answered at a time.
const CALLS_MAX: usize = 16;

/// Takes health events until the process ends.
pub(super) async fn serve(address: &str, options: FeedOptions, sender: mpsc::Sender<Received>) -> Result<(), Failure> {
    let cannot = |error: &dyn std::fmt::Display| Failure::input(format!("cannot listen at {address}: {error}"));
    let router = Server::builder()
        .concurrency_limit_per_connection(CALLS_MAX)
        .add_service(PlatformConnectorServer::new(Connector { options, sender }));
    let parsed: ServerAddress = address.parse().map_err(|error: canopy_client::AddressError| cannot(&error))?;
    let served = match parsed.unix_path() {
        Some(path) => {
            let listener = bind(path).await.map_err(|error| cannot(&error))?;
            let _removed_at_the_end = SocketFile(path.to_owned());
            say(&format!("listening at {parsed}"));
            router.serve_with_incoming(UnixListenerStream::new(listener)).await
        }
        None => {
            let listener = TcpListener::bind(parsed.to_string()).await.map_err(|error| cannot(&error))?;
            let at = listener.local_addr().map_err(|error| cannot(&error))?;
            say(&format!("listening at {at}"));
            router.serve_with_incoming(TcpListenerStream::new(listener)).await
        }
    };
    served.map_err(|error| Failure::fault(format!("listening ended: {error}")))
}

/// Listens at a path. A socket at which nobody listens was left by a process that could not remove it.
async fn bind(path: &Path) -> io::Result<UnixListener> {
    let bound = UnixListener::bind(path);
    if !bound.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse) {
        return bound;
    }
    // A file that is no socket refuses, too, and is not to be removed.
    let is_socket = fs::symlink_metadata(path)?.file_type().is_socket();
    let connected = UnixStream::connect(path).await;
    if !is_socket || !connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
        return bound;
    }
    fs::remove_file(path)?;
    UnixListener::bind(path)
}

/// The file of a socket, which nobody else removes.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // If it is gone already, so much the better.
        let _gone = fs::remove_file(&self.0);
    }
}

/// Passes events on, in the order in which they come.
struct Connector {
    options: FeedOptions,
    sender: mpsc::Sender<Received>,
}

#[tonic::async_trait]
impl PlatformConnector for Connector {
    /// Answers when the events wait for their report; a monitor whose events find no room waits.
    async fn health_event_occurred_v1(&self, request: Request<HealthEvents>) -> Result<Response<()>, Status> {
        let now_ms = clock::since_1970_ms();
        for event in request.into_inner().events {
            let said = match read_health(&plain(event), &self.options, now_ms) {
                Ok(items) => items.into_iter().map(Received::Item).chain([Received::End]).collect(),
                Err(error) => vec![Received::Unreadable(words(&error))],
            };
            for received in said {
                let ended = |_| Status::unavailable("the feed ends; send it again");
                self.sender.send(received).await.map_err(ended)?;
            }
        }
        Ok(Response::new(()))
    }
}

/// An event without its transport.
fn plain(event: nvsentinel::HealthEvent) -> HealthEvent {
    let is_store_only = event.processing_strategy() == ProcessingStrategy::StoreOnly;
    let generated_ms = event.generated_timestamp.and_then(|time| {
        let (seconds, millis) = (u64::try_from(time.seconds).ok()?, u64::try_from(time.nanos / 1_000_000).ok()?);
        seconds.checked_mul(1_000)?.checked_add(millis)
    });
    let entity = |entity: nvsentinel::Entity| Entity { kind: entity.entity_type, value: entity.entity_value };
    HealthEvent {
        check_name: event.check_name,
        is_fatal: event.is_fatal,
        is_healthy: event.is_healthy,
        entities: event.entities_impacted.into_iter().map(entity).collect(),
        generated_ms,
        node_name: event.node_name,
        is_store_only,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_sockets_that_nobody_listens_at_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let held = bind(&path).await.unwrap();
        assert_eq!(bind(&path).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(held);
        assert!(path.exists(), "a dropped listener leaves its file behind");
        drop(bind(&path).await.unwrap());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "words").unwrap();
        assert_eq!(bind(&path).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(fs::read(&path).unwrap(), b"words");
    }
}
