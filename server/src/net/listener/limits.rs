//! How many connections there may be: fewer than the process may have open files, and of them not all for one host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::metrics::{GoingOn, Metrics};
use crate::net::peer::{Host, Peer, Share, Shares};

/// Open files that a process asks for, if the system allows.
const DESCRIPTORS_WANTED: u64 = 65_536;
/// What is assumed where the system does not say.
const DESCRIPTORS_USUAL: u64 = 1024;

/// Most connections of each port. The Unix socket and the port for operators have places of their own, so that the way
/// in stays open when callers have taken all others; a quarter of the open files is left to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    pub(crate) tcp: u64,
    pub(crate) unix: u64,
    pub(crate) admin: u64,
}

impl ConnectionLimits {
    /// Those of this process.
    pub(crate) fn of_process() -> Self {
        Self::within(getrlimit(Resource::Nofile).current.unwrap_or(DESCRIPTORS_WANTED))
    }

    /// Those of a process with so many open files.
    fn within(descriptors: u64) -> Self {
        let eighth = descriptors / 8;
        Self { tcp: (eighth * 4).clamp(16, 8192), unix: eighth.clamp(8, 1024), admin: eighth.clamp(8, 128) }
    }
}

/// Raises the number of files that this process may have open as far as the system allows and is of use: the usual one
/// is for programs that know no more.
pub(crate) fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(DESCRIPTORS_WANTED).min(DESCRIPTORS_WANTED);
    if current.is_some_and(|current| current < wanted) {
        // Where that is refused, fewer connections fit.
        let _refused = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(DESCRIPTORS_WANTED);
    if descriptors < DESCRIPTORS_USUAL {
        tracing::warn!(descriptors, "the limit of open files allows few connections; raise it (ulimit -n)");
    }
}

/// The places of one port; clones share them.
#[derive(Clone)]
pub(crate) struct Places {
    port: &'static str,
    limit: u64,
    taken: Shares<()>,
    by_host: Shares<Host>,
    metrics: Metrics,
    numbers: Arc<AtomicU64>,
}

/// A place of one connection; dropping it frees it.
pub(crate) struct Place {
    _all: Share<()>,
    _of_host: Share<Host>,
    _open: GoingOn,
}

/// There is no place.
#[derive(Debug, thiserror::Error)]
#[error("{}", if host.is_some() { "one host has reached its limit" } else { "the limit of connections is reached" })]
pub(crate) struct Full {
    pub(crate) limit: u64,
    /// The host whose share is used up; `None` if the limit of connections is reached.
    pub(crate) host: Option<Host>,
}

impl Full {
    /// As metrics name it.
    pub(crate) const fn reason(&self) -> &'static str {
        if self.host.is_some() { "host" } else { "full" }
    }
}

impl Places {
    /// So many places of a port with this name.
    pub(crate) fn new(port: &'static str, limit: u64, metrics: Metrics) -> Self {
        let (taken, by_host) = (Shares::default(), Shares::default());
        for reason in ["full", "host", "silent"] {
            metrics.none_yet("canopy_connections_refused_total", &[("port", port.into()), ("reason", reason.into())]);
        }
        Self { port, limit, taken, by_host, metrics, numbers: Arc::default() }
    }

    /// A place for a connection from this host, which may have three quarters of all.
    ///
    /// # Errors
    /// There is none, or none for this host.
    pub(crate) fn take(&self, host: Host) -> Result<(Place, Peer), Full> {
        self.take_beyond(host, 0)
    }

    /// The place of a connection that was ended to make room, and may not have left yet.
    ///
    /// # Errors
    /// Too many of those have not left yet.
    pub(crate) fn take_over(&self, host: Host) -> Result<(Place, Peer), Full> {
        self.count_refusal("silent");
        self.take_beyond(host, (self.limit / 8).max(1))
    }

    /// Counts a connection that is closed for this reason.
    pub(crate) fn count_refusal(&self, reason: &'static str) {
        let labels = [("port", self.port.into()), ("reason", reason.into())];
        self.metrics.count("canopy_connections_refused_total", &labels);
    }

    fn take_beyond(&self, host: Host, beyond: u64) -> Result<(Place, Peer), Full> {
        let full = |limit, host| Full { limit, host };
        let all = self.taken.take((), self.limit + beyond).ok_or(full(self.limit, None))?;
        // Who runs the server gets in, whatever other users of the machine have.
        let share = if host == Host::Local { self.limit } else { self.limit - self.limit / 4 };
        let of_host = self.by_host.take(host, share + beyond).ok_or(full(share, Some(host)))?;
        let open = self.metrics.going_on("canopy_connections", &[("port", self.port.into())]);
        let connection = self.numbers.fetch_add(1, Ordering::Relaxed);
        Ok((Place { _all: all, _of_host: of_host, _open: open }, Peer { host, connection }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_a_quarter_of_the_open_files_to_the_store() {
        for descriptors in [128, 256, 1024, 65_536] {
            let ConnectionLimits { tcp, unix, admin } = ConnectionLimits::within(descriptors);
            assert!(tcp + unix + admin <= descriptors - descriptors / 4, "{descriptors}");
        }
        assert_eq!(ConnectionLimits::within(1 << 20).tcp, 8192);
        assert!(ConnectionLimits::within(0).admin > 0);
    }

    #[test]
    fn one_host_leaves_places_to_others_and_places_come_back() {
        let places = Places::new("tcp", 8, Metrics::off());
        let host = |last| Host::at([10, 0, 0, last].into());
        let mut held: Vec<_> = (0..6).map(|_| places.take(host(1)).unwrap()).collect();
        assert_eq!(places.take(host(1)).err().unwrap().host, Some(host(1)));
        held.extend((0..2).map(|_| places.take(host(2)).unwrap()));
        assert!(places.take(host(3)).err().unwrap().host.is_none());
        let numbers: std::collections::HashSet<u64> = held.iter().map(|(_, peer)| peer.connection).collect();
        assert_eq!(numbers.len(), 8);
        held.clear();
        assert!(places.take(host(1)).is_ok());
    }
}
