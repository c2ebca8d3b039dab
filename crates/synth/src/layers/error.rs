//! Errors of dividing routes into layers.

/// Each variant says what is wrong and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum LayersError {
    #[error(
        "routes need a flow, and the shape of this plan is {shape}; plan gather, scatter or all-to-all with flow or a \
         routing such as sssp"
    )]
    NotAFlow { shape: &'static str },
    #[error(
        "the routes need {needed} layers to be free of deadlocks, over the limit of {limit}, and no other routes need \
         fewer; allow {needed}, or give links in both directions"
    )]
    TooMany { needed: u32, limit: u32 },
    #[error("the flow has a path that does not lead from rank to rank")]
    Malformed,
    #[error("the routes have too many hops; plan for fewer ranks, or with fewer chunks")]
    TooManyHops,
    #[error("stopped before every route had a layer")]
    Stopped,
}
