//! How many watches of leases there may be, and whose.

use crate::failure::CallFailure;
use crate::peer::{Host, Peer, Shares};

/// Most watches at once: those that nobody reads hold what was sent to them. One host may have half of them; one
/// connection far fewer than it may have calls.
pub(super) const WATCHES_MAX: u64 = 4096;
const WATCHES_PER_HOST_MAX: u64 = WATCHES_MAX / 2;
const WATCHES_PER_CONNECTION_MAX: u64 = 256;

/// Places of watches.
#[derive(Clone, Debug, Default)]
pub(super) struct Watches {
    all: Shares<()>,
    by_host: Shares<Host>,
    by_connection: Shares<Peer>,
}

impl Watches {
    /// A place for a watch over this connection.
    pub(super) fn take(&self, peer: Peer) -> Result<impl Send + use<>, CallFailure> {
        let full = |of, limit| CallFailure::TooManyWatches { of, limit };
        let of_connection = self.by_connection.take(peer, WATCHES_PER_CONNECTION_MAX);
        let of_connection = of_connection.ok_or(full("connection", WATCHES_PER_CONNECTION_MAX))?;
        // Whoever has the Unix socket may have all: there is one host behind it.
        let host_limit = if peer.host == Host::Local { WATCHES_MAX } else { WATCHES_PER_HOST_MAX };
        let of_host = self.by_host.take(peer.host, host_limit).ok_or(full("host", host_limit))?;
        let of_all = self.all.take((), WATCHES_MAX).ok_or(full("server", WATCHES_MAX))?;
        Ok((of_connection, of_host, of_all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_connection_nor_a_host_takes_all_watches() {
        let watches = Watches::default();
        let peer = |last, connection| Peer { host: Host::at([10, 0, 0, last].into()), connection };
        let mut held = Vec::new();
        let mut fill = |last| {
            for connection in 0.. {
                loop {
                    match watches.take(peer(last, connection)) {
                        Ok(place) => held.push(place),
                        Err(CallFailure::TooManyWatches { of: "connection", limit: 256 }) => break,
                        Err(CallFailure::TooManyWatches { of, .. }) => return (of, held.len()),
                        Err(other) => panic!("{other:?}"),
                    }
                }
            }
            unreachable!("there is an end")
        };
        assert_eq!(fill(1), ("host", 2048));
        assert_eq!((fill(2), fill(3)), (("host", 4096), ("server", 4096)));
        held.clear();
        assert!(watches.take(peer(1, 1)).is_ok());
    }
}
