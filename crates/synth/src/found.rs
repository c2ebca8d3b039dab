//! What a bound was found with.

use crate::symmetric::BoxNetwork;

use crate::concurrent::AllToAllFlow;

/// What a bound was found with, and plans are made of as well, so that it need not be found twice.
#[derive(Clone, Debug)]
pub enum Found {
    /// A flow of an all-to-all.
    Flow(Box<AllToAllFlow>),
    /// The first boxes that a network may be made of.
    Boxes(Vec<BoxNetwork>),
}
