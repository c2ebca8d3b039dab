//! Why there are no routes.

/// Why there are no routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PlanError {
    #[error("the network has {ranks} ranks, and the matrix {matrix}; give it a row and a column for each")]
    Ranks { ranks: usize, matrix: usize },
    #[error("no live NICs join box {from} to box {to} directly; mend one, or send nothing from one to the other")]
    NoRail { from: usize, to: usize },
    #[error("rank {from} cannot reach rank {to}: no live NICs join their boxes; mend one, or send nothing there")]
    NoWay { from: usize, to: usize },
    #[error("the link from rank {from} to rank {to} of its box is dead; mend it, or send nothing over it")]
    DeadPair { from: usize, to: usize },
}
