//! What operators set and see: configuration, logs, the administrative port, the figures that are shown there.

pub(crate) mod admin;
pub(crate) mod audit;
pub(crate) mod config;
pub(crate) mod maintenance;
pub(crate) mod notify;
pub(crate) mod observed;
pub(crate) mod reload;
pub(crate) mod statistics;
pub(crate) mod telemetry;
