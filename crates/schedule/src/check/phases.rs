//! Whether the phases of a rule are those of its collective.

use crate::collective::CollectiveKind;
use crate::forest::{Action, actions_of};

/// The first phases that are stated, and those that are expected, in words; `None` where they are the same.
pub(super) fn difference(kind: CollectiveKind, actions: &[Action]) -> Option<(String, String)> {
    let expected = actions_of(kind);
    if expected == Some(actions) {
        return None;
    }
    Some((words(actions), expected.map_or_else(|| "other shapes".to_owned(), words)))
}

fn words(actions: &[Action]) -> String {
    let name = |action: &Action| match action {
        Action::Copy => "copy",
        Action::Reduce => "reduce",
    };
    actions.iter().take(3).map(name).collect::<Vec<_>>().join(", ")
}
