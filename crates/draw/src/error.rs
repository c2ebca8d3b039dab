//! Why there is no drawing.

/// Each variant says what was found and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum DrawError {
    #[error(
        "the network has {nodes} nodes and {links} links, and at most {nodes_max} and {links_max} are drawn; draw a part of \
         it, such as fewer boxes of the same kind"
    )]
    TooLarge { nodes: usize, links: usize, nodes_max: usize, links_max: usize },
}
