//! What a unit of a box has and needs.

/// What a rank of a box, or a tight set of ranks in it, has and needs, in trees.
#[derive(Clone, Debug)]
pub(super) struct Need {
    /// Its lowest node.
    pub(super) unit: u32,
    /// n: the trees of all others.
    pub(super) wanted: i128,
    /// I: capacity into it from the rest of the box.
    pub(super) inner: i128,
    /// X: from outside.
    pub(super) outer: i128,
}
