//! A connection between a server and its database that can be cut: nothing passes, and neither side hears of it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::support::spawn;

/// The wire of one server. It forwards connections to the socket of the database.
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    /// Whether it is cut, and how often it has been mended: connections from before stay dead.
    state: Arc<watch::Sender<(bool, u64)>>,
    forwarding: JoinHandle<()>,
}

impl Wire {
    pub(crate) async fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(watch::Sender::new((false, 0)));
        let watched = Arc::clone(&state);
        let forwarding = spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (socket, state) = (socket.clone(), watched.subscribe());
                drop(spawn(async move {
                    let mut state = state;
                    let (_, born) = *state.borrow();
                    // While it is cut nothing answers.
                    if state.wait_for(|(is_cut, _)| !is_cut).await.is_err() || state.borrow().1 != born {
                        return;
                    }
                    // A database that is gone refuses.
                    let Ok(far) = UnixStream::connect(&socket).await else { return };
                    let ((near_reads, near_writes), (far_reads, far_writes)) = (near.into_split(), far.into_split());
                    tokio::select! {
                        () = pass(near_reads, far_writes, state.clone(), born) => {}
                        () = pass(far_reads, near_writes, state.clone(), born) => {}
                        _ = state.wait_for(|(_, mended)| *mended != born) => {}
                    }
                }));
            }
        });
        Self { address, state, forwarding }
    }

    /// Nothing passes from now on.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|(is_cut, _)| *is_cut = true);
    }

    /// New connections pass; those from before are closed.
    pub(crate) fn mend(&self) {
        self.state.send_modify(|state| *state = (false, state.1 + 1));
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.forwarding.abort();
    }
}

/// Forwards bytes one way while the wire is whole.
async fn pass(
    mut from: impl tokio::io::AsyncRead + Unpin,
    mut to: impl tokio::io::AsyncWrite + Unpin,
    mut state: watch::Receiver<(bool, u64)>,
    born: u64,
) {
    let mut piece = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        if state.wait_for(|(is_cut, mended)| !is_cut || *mended != born).await.is_err() || state.borrow().1 != born {
            return;
        }
        if to.write_all(&piece[..count]).await.is_err() {
            return;
        }
    }
}
