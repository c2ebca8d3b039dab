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
    #[error("the trees have {ranks} ranks, and at most {ranks_max} are drawn; plan for fewer ranks")]
    TooManyRanks { ranks: usize, ranks_max: usize },
    #[error("the plan is made of {shape}, not of trees; draw its timeline")]
    NoTrees { shape: &'static str },
    #[error("no tree of phase {phase} has rank {root} as its root; leave the root out to see those that there are")]
    NoSuchTree { root: u32, phase: u32 },
    #[error("there is no phase {phase}; the plan has {phases}, counted from 1")]
    NoSuchPhase { phase: u32, phases: u32 },
}
