//! What is stated of a file that comes from elsewhere.

use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::{Rank, TopologyLimits};

/// The facts that a plan states about itself and one of its files.
#[derive(Clone, Copy, Debug)]
pub struct Stated<'a> {
    /// The runtime of the file.
    pub profile: &'a str,
    /// Instances of the plan in it; 0 if the format has none, or the file predates instances.
    pub instances: u32,
    /// Layers of its routes; 0 if the format has none.
    pub layers: u32,
    /// The collective, if it is known, and its root; `None` if nothing is stated.
    pub collective: Option<(Option<CollectiveKind>, Option<u32>)>,
    /// How many ranks take part.
    pub ranks: Option<u32>,
    /// The devices of the ranks, as files state them; `None` if none are known.
    pub rank_map: Option<&'a str>,
    /// The algorithm of the schedule.
    pub algorithm: &'a str,
    /// Weights of the shares; empty if all are equal.
    pub shares: &'a [u64],
    /// Bound, rate and their ratio.
    pub quality: Option<[&'a str; 3]>,
    /// Limits on a plan file.
    pub limits: &'a TopologyLimits,
}

impl Stated<'_> {
    /// The collective, if there is one of that number, and its root.
    ///
    /// # Errors
    /// Nothing is stated.
    pub(super) fn collective(&self) -> Result<(Option<CollectiveKind>, Option<u32>), String> {
        self.collective.ok_or_else(|| "it states no collective".to_owned())
    }

    /// Whether the statement matches this collective, its root and this number of ranks.
    ///
    /// # Errors
    /// Nothing is stated.
    pub(super) fn is_of(&self, collective: Collective, rank_count: u32) -> Result<bool, String> {
        let stated = (self.collective()?, self.ranks);
        Ok(stated == ((Some(collective.kind()), collective.root().map(Rank::number)), Some(rank_count)))
    }
}
