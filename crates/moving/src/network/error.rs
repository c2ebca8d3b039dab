//! Why a topology is not a network of two tiers.

use canopy_topology::FaultError;

use super::NETWORK_RANKS_MAX;
use crate::tiers::{RATE_MAX, TiersError};

/// What does not fit. Nodes are named by id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum NetworkError {
    #[error("the network has {ranks} ranks; {NETWORK_RANKS_MAX} is the limit, so divide it")]
    TooManyRanks { ranks: u32 },
    #[error("`{node}` forwards and has no rank; use ranks and switches alone")]
    Forwarder { node: String },
    #[error(transparent)]
    Fault(#[from] FaultError),
    #[error(
        "`{node}` is in a box of {found} ranks and `{other}` in one of {expected}; use boxes of the same number of ranks"
    )]
    UnevenBoxes { node: String, found: usize, other: String, expected: usize },
    #[error(
        "`{node}` and `{other}` are in one box, and ranks between them are not; number the ranks of a box in a row"
    )]
    Scattered { node: String, other: String },
    #[error(
        "no link leads from `{from}` to `{to}` of its box, and no switch joins them; join a box by a switch or all pairs"
    )]
    NotJoined { from: String, to: String },
    #[error("switch `{switch}` and links between ranks both join the box of `{node}`; use one of the two")]
    Mixed { switch: String, node: String },
    #[error(
        "no switch joins `{node}` with `{other}`; give each rank a link to the switch of its rail, or to that of all ranks"
    )]
    NoFabric { node: String, other: String },
    #[error(
        "switch `{switch}` joins `{node}` and `{other}`, which are at different places of their boxes, and others join \
         boxes, too; use a rail for each place, or one fabric"
    )]
    Places { switch: String, node: String, other: String },
    #[error("switches `{first}` and `{second}` both join ranks at one place of boxes; join them all by one")]
    SecondRail { first: String, second: String },
    #[error(
        "switches `{first}` and `{second}` both join `{node}` with other boxes; use one fabric, or a rail for each place"
    )]
    SecondFabric { node: String, first: String, second: String },
    #[error("`{node}` is linked with two switches of one fabric, `{first}` and `{second}`; link it with one")]
    TwoLinks { node: String, first: String, second: String },
    #[error(
        "switches `{first}` and `{second}` of a fabric are linked, and both have ranks; join them by switches above"
    )]
    SameLevel { first: String, second: String },
    #[error(
        "switch `{switch}` has {found} B/s {way} the switches above it and {needed} B/s {way} those above from its ranks; \
         a fabric of several switches must block nowhere"
    )]
    Blocks { switch: String, way: &'static str, found: u128, needed: u128 },
    #[error("`{node}` divides its links among switches otherwise than `{other}`; use the same proportions everywhere")]
    Proportions { node: String, other: String },
    #[error("`{node}` has {rate} B/s {way}; {RATE_MAX} is the limit of all such links of a rank together")]
    TooFast { node: String, way: &'static str, rate: u128 },
    #[error(transparent)]
    Tiers(#[from] TiersError),
}
