//! The plan that is currently valid for a leased one.

use canopy_faults::Loss;

use super::super::FAULTS_NOTED_MAX;
use super::{ValidPlan, digest};

impl ValidPlan {
    /// Whether it is the plan for the sound network.
    pub(crate) fn is_original(&self) -> bool {
        self.avoided.is_empty() && !self.plan.is_empty()
    }

    /// A plan around losses, of so many ranks of which these survive; none: all.
    pub(crate) fn around(losses: &[Loss], plan: String, survivors: &[u32], ranks: u32, is_provisional: bool) -> Self {
        let is_lost = |rank: &u32| !survivors.is_empty() && survivors.binary_search(rank).is_err();
        // Of more than an event would hold, none are noted.
        let noted = Some(losses).filter(|losses| losses.len() <= FAULTS_NOTED_MAX).unwrap_or_default();
        Self {
            plan,
            avoided: digest(losses).to_vec(),
            lost: (0..ranks).filter(is_lost).collect(),
            faults: noted.iter().map(Loss::to_string).collect(),
            is_provisional,
            ..Self::default()
        }
    }

    /// By rank of the plan: its number among so many of the request. Empty where none is lost.
    pub(crate) fn survivors(&self, ranks: u32) -> Vec<u32> {
        match self.lost.is_empty() {
            true => Vec::new(),
            false => (0..ranks).filter(|rank| self.lost.binary_search(rank).is_err()).collect(),
        }
    }
}
