//! What a person can do about a plan that does not fit.

/// What a person can do about a plan with too many steps.
pub(super) const FEWER_CHUNKS: &str = "plan with fewer chunks per share, or choose a format without this limit";

/// What a person can do about a plan that is repeated too often.
pub(super) const FEWER_INSTANCES: &str = "use fewer instances of the plan";

/// The same where there is one chunk per share.
pub(super) const FEWER_RANKS: &str = "plan for fewer ranks, or choose a format without this limit";

/// What a person can do about a plan with too many blocks.
pub(super) const FEWER_PEERS: &str = "plan with trees that have fewer neighbours per rank";
