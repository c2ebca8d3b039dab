//! Why a drawing cannot be made.

/// Each variant says what was found and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum DrawError {
    #[error(
        "the network has {nodes} nodes and {links} links, over the limits of {nodes_max} and {links_max}; draw a part \
         of it, such as fewer boxes"
    )]
    TooLarge { nodes: usize, links: usize, nodes_max: usize, links_max: usize },
    #[error("the trees have {ranks} ranks, over the limit of {ranks_max} in a drawing; plan for fewer ranks")]
    TooManyRanks { ranks: usize, ranks_max: usize },
    #[error("the plan consists of {shape}, not of trees; draw its timeline")]
    NoTrees { shape: &'static str },
    #[error("phase {phase} has no tree with root {root}; leave out the root to draw one tree of each root")]
    NoSuchTree { root: u32, phase: u32 },
    #[error("phase {phase} does not exist; phases are 1 to {phases}")]
    NoSuchPhase { phase: u32, phases: u32 },
}
