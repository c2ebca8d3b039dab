//! Why ways have no layers.

/// Each variant says what was found and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum LayersError {
    #[error(
        "routes are those of a flow, and the plan's shape is {shape}; plan gather, scatter or all-to-all by flow or by a \
         routing such as sssp"
    )]
    NotAFlow { shape: &'static str },
    #[error(
        "the routes need {needed} layers to be free of deadlocks, over the limit of {limit}, and some ranks reach each other \
         on no other way within it; allow {needed}, or state links in both directions"
    )]
    TooMany { needed: u32, limit: u32 },
    #[error("the flow has a path whose links do not lead from rank to rank")]
    Malformed,
    #[error("the routes have more hops than there is room for; plan for fewer ranks, or with fewer chunks")]
    TooManyHops,
    #[error("stopped before all routes had a layer")]
    Stopped,
}
