//! Errors of orbit forests.

/// Why there is no orbit forest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum OrbitsNetworkError {
    #[error("orbits needs a torus of ranks without switches, and this network is not one; use auto")]
    NoTorus,
    #[error("orbits plans equal shares; use forest for shares of different sizes")]
    Shares,
    #[error("the faults leave a rank without another parent in some tree; use forest")]
    Faults,
}
