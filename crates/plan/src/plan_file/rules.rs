//! What the rules of plan files have in common: phases, and ranks on seats.

use canopy_schedule::{Action, Seats};
use serde::{Deserialize, Serialize};

/// What the receivers of a phase do.
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ActionName {
    Copy,
    Reduce,
}

/// Ranks on seats.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SeatsDocument {
    /// Seats without ranks; the others have the ranks in their order.
    Empty(Vec<u32>),
    /// The same where ranks count the digits in this order.
    Turned { order: Vec<u32>, empty: Vec<u32> },
    /// The seat of each rank.
    Listed(Vec<u32>),
}

impl From<Action> for ActionName {
    fn from(action: Action) -> Self {
        match action {
            Action::Copy => Self::Copy,
            Action::Reduce => Self::Reduce,
        }
    }
}

impl From<ActionName> for Action {
    fn from(name: ActionName) -> Self {
        match name {
            ActionName::Copy => Self::Copy,
            ActionName::Reduce => Self::Reduce,
        }
    }
}

impl From<&Seats> for SeatsDocument {
    fn from(seats: &Seats) -> Self {
        match seats {
            Seats::InOrder { empty } => Self::Empty(empty.clone()),
            Seats::Turned { order, empty } => Self::Turned { order: order.clone(), empty: empty.clone() },
            Seats::Listed(listed) => Self::Listed(listed.clone()),
        }
    }
}

impl From<SeatsDocument> for Seats {
    fn from(document: SeatsDocument) -> Self {
        match document {
            SeatsDocument::Empty(empty) => Self::InOrder { empty },
            SeatsDocument::Turned { order, empty } => Self::Turned { order, empty },
            SeatsDocument::Listed(listed) => Self::Listed(listed),
        }
    }
}
