//! Connections: the sockets that are listened on, TLS and its files, limits for each peer, who is at the other end, and
//! middleware around a call.

pub(crate) mod around;
pub(crate) mod listener;
pub(crate) mod peer;
pub(crate) mod socket;
