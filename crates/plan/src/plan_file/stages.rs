//! The member `stages`: the rule of an exchange between boxes.

use std::collections::BTreeMap;

use canopy_schedule::{BoxGrid, BoxTree, Inside, Piece, Stages};
use serde::{Deserialize, Serialize};

use super::PlanFileError;
use super::rules::{ActionName, SeatsDocument};

/// A rule, as short as it can be told.
#[derive(Deserialize, Serialize)]
pub(super) struct StagesDocument {
    actions: Vec<ActionName>,
    places: u32,
    digits: Vec<u32>,
    seats: SeatsDocument,
    inside: Vec<InsideDocument>,
    /// By stage, the chunks of a run that go in the box first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inside_first: Vec<u64>,
    /// Boxes of other classes than the first, with their class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    classes: Vec<(u32, u32)>,
    /// From which box, to which, and how much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pieces: Vec<(u32, u32, PiecesDocument)>,
}

/// Root, multiplicity, and hops from place to place.
type TreeDocument = (u32, u64, Vec<(u32, u32)>);

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum InsideDocument {
    Star,
    Trees(Vec<TreeDocument>),
}

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum PiecesDocument {
    /// By place: what the place of the one box sends to the same place of the other.
    Rails(Vec<u64>),
    /// Sending box, place there, place where it enters, chunks.
    Listed(Vec<(u32, u32, u32, u64)>),
}

impl From<&Stages> for StagesDocument {
    fn from(stages: &Stages) -> Self {
        let BoxGrid { places, digits, seats } = &stages.grid;
        let inside = stages.inside.iter().map(|inside| match inside {
            Inside::Star => InsideDocument::Star,
            Inside::Trees(trees) => InsideDocument::Trees(
                trees.iter().map(|tree| (tree.root, tree.multiplicity, tree.hops.clone())).collect(),
            ),
        });
        let pieces = stages.exceptions.iter().map(|(&(from, to), pieces)| (from, to, PiecesDocument::of(from, pieces)));
        Self {
            actions: stages.actions.iter().copied().map(ActionName::from).collect(),
            places: *places,
            digits: digits.clone(),
            seats: SeatsDocument::from(seats),
            inside: inside.collect(),
            inside_first: stages.inside_first.clone(),
            classes: stages.classes.iter().map(|(&of_box, &class)| (of_box, class)).collect(),
            pieces: pieces.collect(),
        }
    }
}

impl PiecesDocument {
    fn of(from: u32, pieces: &[Piece]) -> Self {
        let is_on_rail = |piece: &Piece| piece.sender == from && piece.leaves == piece.enters && piece.chunk_count > 0;
        let are_rising = pieces.windows(2).all(|pair| pair[0].leaves < pair[1].leaves);
        let places = pieces.last().map_or(0, |last| last.leaves as usize + 1);
        if !are_rising || !pieces.iter().all(is_on_rail) || places > RAILS_PER_PIECE * pieces.len() {
            let listed = pieces.iter().map(|piece| (piece.sender, piece.leaves, piece.enters, piece.chunk_count));
            return Self::Listed(listed.collect());
        }
        let mut rails = vec![0; places];
        for piece in pieces {
            rails[piece.leaves as usize] = piece.chunk_count;
        }
        Self::Rails(rails)
    }

    fn pieces(self, from: u32) -> Vec<Piece> {
        match self {
            Self::Rails(rails) => (0..)
                .zip(rails)
                .filter(|&(_, chunk_count)| chunk_count > 0)
                .map(|(place, chunk_count)| Piece { sender: from, leaves: place, enters: place, chunk_count })
                .collect(),
            Self::Listed(listed) => listed
                .into_iter()
                .map(|(sender, leaves, enters, chunk_count)| Piece { sender, leaves, enters, chunk_count })
                .collect(),
        }
    }
}

/// Most places, used or not, for each piece where these are listed by place.
const RAILS_PER_PIECE: usize = 8;

impl StagesDocument {
    /// The rule, for the checker to judge.
    pub(super) fn into_stages(self, chunks_per_share: u64) -> Result<Stages, PlanFileError> {
        let inside = self.inside.into_iter().map(|inside| match inside {
            InsideDocument::Star => Inside::Star,
            InsideDocument::Trees(trees) => Inside::Trees(
                trees.into_iter().map(|(root, multiplicity, hops)| BoxTree { root, multiplicity, hops }).collect(),
            ),
        });
        let mut exceptions = BTreeMap::new();
        for (from, to, pieces) in self.pieces {
            if exceptions.insert((from, to), pieces.pieces(from)).is_some() {
                return Err(PlanFileError::Twice { from, to });
            }
        }
        Ok(Stages {
            chunks_per_share,
            actions: self.actions.into_iter().map(Into::into).collect(),
            grid: BoxGrid { places: self.places, digits: self.digits, seats: self.seats.into() },
            inside: inside.collect(),
            inside_first: self.inside_first,
            classes: self.classes.into_iter().collect(),
            exceptions,
        })
    }
}
