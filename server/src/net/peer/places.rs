//! Places of streams that go on as long as their callers like: how many there may be, and whose.

use super::{Host, Peer, Shares};

/// Places of streams of one kind. One host may have half of them.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    max: u64,
    per_connection: u64,
    all: Shares<()>,
    by_host: Shares<Host>,
    by_connection: Shares<Peer>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    /// Who has as many as it may: a connection, a host, or the server.
    pub(crate) of: &'static str,
    pub(crate) limit: u64,
}

impl Places {
    pub(crate) fn new(max: u64, per_connection: u64) -> Self {
        let (all, by_host, by_connection) = (Shares::default(), Shares::default(), Shares::default());
        Self { max, per_connection, all, by_host, by_connection }
    }

    /// A place for a stream over this connection.
    pub(crate) fn take(&self, peer: Peer) -> Result<impl Send + use<>, Full> {
        let full = |of, limit| Full { of, limit };
        let of_connection = self.by_connection.take(peer, self.per_connection);
        let of_connection = of_connection.ok_or(full("connection", self.per_connection))?;
        // Whoever has the Unix socket may have all: there is one host behind it.
        let host_limit = if peer.host == Host::Local { self.max } else { self.max / 2 };
        let of_host = self.by_host.take(peer.host, host_limit).ok_or(full("host", host_limit))?;
        let of_all = self.all.take((), self.max).ok_or(full("server", self.max))?;
        Ok((of_connection, of_host, of_all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_connection_nor_a_host_takes_all_places() {
        for (max, per_connection) in [(4096, 256), (32, 8)] {
            let places = Places::new(max, per_connection);
            let peer = |last, connection| Peer { host: Host::at([10, 0, 0, last].into()), connection };
            let mut held = Vec::new();
            let mut fill = |last| {
                for connection in 0.. {
                    loop {
                        match places.take(peer(last, connection)) {
                            Ok(place) => held.push(place),
                            Err(Full { of: "connection", limit }) => {
                                assert_eq!(limit, per_connection);
                                break;
                            }
                            Err(Full { of, .. }) => return (of, held.len() as u64),
                        }
                    }
                }
                unreachable!("there is an end")
            };
            assert_eq!(fill(1), ("host", max / 2));
            assert_eq!((fill(2), fill(3)), (("host", max), ("server", max)));
            held.clear();
            assert!(places.take(peer(1, 1)).is_ok());
        }
    }
}
