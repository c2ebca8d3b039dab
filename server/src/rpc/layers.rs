//! The layers that every call passes on its way to a service, and the connections that it comes by.

pub(crate) mod answered;
pub(crate) mod audited;
pub(crate) mod connection_threads;
pub(crate) mod gate;
pub(crate) mod guard;
pub(crate) mod malformed;
pub(crate) mod oversize;
pub(crate) mod record;
pub(crate) mod revoked;
pub(crate) mod timeout;
pub(crate) mod web;
