//! Why an orbit forest was refused.

use crate::stages::SeatError;

/// It does not bring every share to every rank, or its symmetries are none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum OrbitsError {
    #[error(transparent)]
    Seats(#[from] SeatError),
    #[error("it has the phases {found}, but {collective} takes {expected}")]
    Phases { collective: &'static str, found: String, expected: String },
    #[error("orbit forests are for equal shares")]
    Shares,
    #[error("{chunks_per_share} chunks for each of {seat_count} shares are more than can be counted; state 1 to {max}")]
    Chunks { chunks_per_share: u64, seat_count: u32, max: u64 },
    #[error("generators[{generator}]: {fault}")]
    Generator { generator: usize, fault: GeneratorFault },
    #[error("generators {first} and {second} do not commute: they move node {node} to different places")]
    Order { first: usize, second: usize, node: u32 },
    #[error("the generators make more than {seat_count} symmetries, the number of seats")]
    TooManySymmetries { seat_count: u32 },
    #[error("two symmetries move seat {root}, the root of a template, to seat {seat}; each must move it elsewhere")]
    NotRegular { root: u32, seat: u32 },
    #[error("seat {seat} is in no orbit of a template's root, so it has no trees")]
    NoTemplate { seat: u32 },
    #[error("templates[{template}]: {fault}")]
    Template { template: usize, fault: TemplateFault },
    #[error("the templates of seat {root} have {found} chunks; its share has {expected}")]
    Weights { root: u32, found: u128, expected: u64 },
    #[error("patches[{patch}]: {fault}")]
    Patch { patch: usize, fault: PatchFault },
    #[error("seats without ranks and patches are for trees over links alone; a template has a switch on a route")]
    Switches,
    #[error("{lost} seats have no ranks; that is more than patches can mend")]
    TooManyLost { lost: u64 },
    #[error("in the tree of template {template} from seat {root}, the patch of seat {child} closes a circle")]
    Circle { template: usize, root: u32, child: u32 },
    #[error("the tree of template {template} from seat {root} has {found} patches; at most {max} are accepted")]
    TooManyPatches { template: usize, root: u32, found: usize, max: usize },
    #[error("trees take a link from node {from} to node {to} of the healthy network, which does not exist")]
    NoLink { from: u32, to: u32 },
    #[error("trees would take {found} links that do not exist; that is more than patches can mend")]
    TooManyGaps { found: usize },
}

impl OrbitsError {
    /// Name of the check that failed.
    pub(crate) const fn check(&self) -> &'static str {
        match self {
            Self::Seats(_) | Self::Phases { .. } | Self::Shares | Self::Chunks { .. } | Self::Switches => "structure",
            Self::Generator { .. } | Self::Order { .. } | Self::TooManySymmetries { .. } => "structure",
            Self::NoLink { .. } | Self::TooManyGaps { .. } | Self::TooManyPatches { .. } | Self::TooManyLost { .. } => {
                "structure"
            }
            Self::NotRegular { .. } | Self::NoTemplate { .. } | Self::Template { .. } | Self::Weights { .. } => {
                "meaning"
            }
            Self::Patch { .. } | Self::Circle { .. } => "meaning",
        }
    }
}

/// Why a generator is no symmetry of the healthy network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum GeneratorFault {
    #[error("its order is {order}; state 2 or more")]
    Order { order: u32 },
    #[error("its table has {found} nodes, the healthy network {expected}")]
    Length { found: usize, expected: usize },
    #[error("it turns digits of {found} ranges of nodes; at most {max} are accepted, a table does the same")]
    TooManyTurns { found: usize, max: usize },
    #[error("it moves node {node} to no node")]
    NoNode { node: u32 },
    #[error("it moves a second node to node {image}")]
    Twice { image: u32 },
    #[error("it moves node {node} to node {image}, of which one is a seat and one a switch")]
    Kind { node: u32, image: u32 },
    #[error("it brings node {node} back after {found} times, which does not divide its order")]
    Cycle { node: u32, found: u32 },
}

/// Why a template is no tree of the healthy network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TemplateFault {
    #[error("its weight is 0")]
    NoChunks,
    #[error("it has parents of {found} seats, of {expected}")]
    Length { found: usize, expected: u32 },
    #[error("its root, seat {root}, does not exist or has another parent")]
    Root { root: u32 },
    #[error("the parent of seat {seat}, seat {parent}, does not exist")]
    NoParent { seat: u32, parent: u32 },
    #[error("seat {seat} does not get anything from the root")]
    Unreached { seat: u32 },
    #[error("the route into seat {seat}, which is no root, passes 1 to {max} switches; state no others")]
    Route { seat: u32, max: usize },
    #[error("the route into seat {seat} passes node {node}, which is no switch")]
    NoSwitch { seat: u32, node: u32 },
}

/// Why a patch cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PatchFault {
    #[error("template {template} does not exist")]
    NoTemplate { template: u32 },
    #[error("seat {seat} does not exist or has no rank")]
    NoRank { seat: u32 },
    #[error("no link leads from seat {parent} to seat {child}")]
    NoLink { parent: u32, child: u32 },
    #[error("root {root} is listed after a greater or equal one")]
    Unsorted { root: u32 },
    #[error("seat {root} is no root of a tree that this template makes")]
    NoTree { root: u32 },
    #[error("seat {root} is the root, which has no parent")]
    Root { root: u32 },
    #[error("the parent in the tree from seat {root} is this one without a patch")]
    Unchanged { root: u32 },
    #[error("the seat has two patches in the tree from seat {root}")]
    Twice { root: u32 },
}
