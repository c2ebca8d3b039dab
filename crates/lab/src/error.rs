//! Why a network or a plan cannot be brought into the lab.

use canopy_schedule::SharesError;

/// Why a lab cannot be made, or a plan not run in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum LabError {
    #[error("the network has {found} nodes; a lab holds at most {limit}")]
    TooManyNodes { found: usize, limit: usize },
    #[error("the plan uses {found} routes; a lab holds at most {limit} at a time")]
    TooManyRoutes { found: usize, limit: u32 },
    #[error("the plan sends {what} {found} pieces, more than {limit}; use larger pieces or a smaller size")]
    TooManyPieces { what: &'static str, found: u64, limit: u64 },
    #[error("the ranks need {found} bytes of memory in all, over the limit of {limit}; use a smaller size")]
    TooMuchMemory { found: u64, limit: u64 },
    #[error("size {size_bytes} has no whole word of 4 bytes for every transfer; use a larger size")]
    TooSmall { size_bytes: u64 },
    #[error("transfer {transfer} {what}; check the plan with `canopy verify`")]
    Malformed { transfer: u32, what: &'static str },
    #[error(
        "the links of this network differ too much: with {slowest} bit/s for the slowest, all links together carry \
         {total} bit/s, and one machine emulates at most {limit}"
    )]
    TooUneven { slowest: u64, total: u64, limit: u64 },
    #[error(
        "a link at this scale has {found} bit/s, and rate limits hold from {least} to {most} bit/s; choose another \
         scale"
    )]
    Rate { found: u128, least: u64, most: u64 },
    #[error(transparent)]
    Shares(#[from] SharesError),
}
