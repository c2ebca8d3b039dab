//! What single faults of a network cost a collective.

use canopy_canonical::families::with_boxes;
use canopy_canonical::{Budget, WORK_STANDARD};
use canopy_faults::{Directory, EquivalentFaults, Loss, singles};
use canopy_schedule::{Bound, Collective, Shares};
use canopy_synth::{BoundError, Stop, bound};
use canopy_topology::{FaultError, FaultKind, Rank, Rate, Topology};

use crate::bounded::proven;
use crate::error::PlanError;

/// A network, and the collective whose bound counts.
#[derive(Debug)]
pub struct WhatIf {
    topology: Topology,
    /// The same with the boxes that it does not state, if it has any.
    boxed: Option<Topology>,
    collective: Collective,
}

/// What a fault leaves of the bound. In order of harm: the worst is the least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// Fewer than two ranks.
    TooFewRanks,
    /// Ranks that cannot reach each other, in this many components.
    Apart(u32),
    /// The root of the collective is lost.
    RootLost,
    /// The best rate of the remaining ranks.
    Bound(Rate),
}

impl Left {
    /// Sorts by harm: the worst first, of networks in parts that with the most parts, of bounds the lowest.
    pub fn harm(&self) -> impl Ord + use<> {
        match self {
            Self::TooFewRanks => (0, 0, Rate::zero()),
            Self::Apart(components) => (1, u32::MAX - components, Rate::zero()),
            Self::RootLost => (2, 0, Rate::zero()),
            Self::Bound(rate) => (3, 0, rate.clone()),
        }
    }
}

impl WhatIf {
    /// # Errors
    /// Stopped. **Cost.** That of [`with_boxes`].
    pub fn new(topology: Topology, collective: Collective, stop: &dyn Stop) -> Result<Self, PlanError> {
        let boxed = with_boxes(&topology, budget(&|| stop.is_requested())).map_err(|_| PlanError::Stopped)?;
        Ok(Self { topology, boxed: boxed.map(|boxed| boxed.topology), collective })
    }

    /// The healthy network.
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The collective.
    pub const fn collective(&self) -> Collective {
        self.collective
    }

    /// The bound of the healthy network.
    ///
    /// # Errors
    /// No bound exists, its certificate does not hold, or stopped.
    pub fn sound(&self, stop: &dyn Stop) -> Result<Rate, PlanError> {
        let found = proven_on(self.network(), self.collective, stop);
        found.map(|bound| bound.upper).map_err(|failure| failure.with_parts(&self.topology))
    }

    /// All single faults of some kinds: those of a group leave the same.
    ///
    /// # Errors
    /// Stopped. **Cost.** That of [`singles`].
    pub fn groups(&self, kinds: &[FaultKind], stop: &dyn Stop) -> Result<Vec<EquivalentFaults>, PlanError> {
        let root = self.collective.root();
        let roles: Vec<u32> = self.topology.ranks().map(|rank| u32::from(root == Some(rank))).collect();
        let stop = || stop.is_requested();
        singles(&self.directory(), kinds, &roles, budget(&stop)).map_err(|_| PlanError::Stopped)
    }

    /// The names of the network's elements, for [`WhatIf::left`]. Cost: that of [`Directory::new`].
    pub fn directory(&self) -> Directory<'_> {
        Directory::new(&self.topology)
    }

    /// What a fault leaves of the network that the directory is of.
    ///
    /// # Errors
    /// The network has no such element, the certificate of the bound does not hold, or stopped. **Cost.** That of one bound.
    pub fn left(&self, directory: &Directory<'_>, loss: &Loss, stop: &dyn Stop) -> Result<Left, PlanError> {
        let faults = directory.resolve(std::slice::from_ref(loss));
        let puncture = match self.network().puncture(&faults.map_err(PlanError::FaultMeaning)?) {
            Ok(puncture) => puncture,
            Err(FaultError::TooFewRanks { .. }) => return Ok(Left::TooFewRanks),
            Err(error) => return Err(PlanError::Fault(error)),
        };
        let rest = &puncture.topology;
        let root = match self.collective.root() {
            None => None,
            Some(root) => match puncture.survivors.iter().position(|survivor| *survivor == root) {
                None => return Ok(Left::RootLost),
                Some(position) => u32::try_from(position).ok().map(Rank::new),
            },
        };
        let collective = Collective::new(self.collective.kind(), root, rest.rank_count())?;
        match proven_on(rest, collective, stop) {
            Ok(found) => Ok(Left::Bound(found.upper)),
            Err(PlanError::Bound(BoundError::Disconnected { .. })) => {
                Ok(Left::Apart(u32::try_from(rest.components().len()).unwrap_or(u32::MAX)))
            }
            Err(failure) => Err(failure),
        }
    }

    fn network(&self) -> &Topology {
        self.boxed.as_ref().unwrap_or(&self.topology)
    }
}

fn budget<'a>(stop: &'a (dyn Fn() -> bool + 'a)) -> Budget<'a> {
    Budget { work_max: WORK_STANDARD, stop }
}

fn proven_on(topology: &Topology, collective: Collective, stop: &dyn Stop) -> Result<Bound, PlanError> {
    let found = bound(topology, collective, &Shares::Equal, stop).map_err(PlanError::Bound)?;
    proven(topology, collective, &Shares::Equal, found)
}

#[cfg(test)]
mod tests {
    use canopy_faults::{Remaining, SINGLE_KINDS};
    use canopy_schedule::CollectiveKind;
    use canopy_synth::Never;
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    fn asked(expression: &str, kind: CollectiveKind, root: Option<u32>) -> WhatIf {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let collective = Collective::new(kind, root.map(Rank::new), topology.rank_count()).unwrap();
        WhatIf::new(topology, collective, &Never).unwrap()
    }

    fn left(asked: &WhatIf, loss: &str) -> Left {
        asked.left(&asked.directory(), &loss.parse().unwrap(), &Never).unwrap()
    }

    #[test]
    fn a_fault_leaves_the_bound_of_the_network_without_its_element() {
        let ring = asked("ring:6", CollectiveKind::Allgather, None);
        let sound = ring.sound(&Never).unwrap();
        let groups = ring.groups(&[FaultKind::Links], &Never).unwrap();
        assert_eq!(groups.iter().map(|group| group.targets.len()).collect::<Vec<_>>(), [6], "of a ring all are alike");
        let loss = Loss { target: groups[0].targets[0].clone(), remaining: Remaining::GONE };
        let Left::Bound(rest) = ring.left(&ring.directory(), &loss, &Never).unwrap() else {
            panic!("a line is connected")
        };
        assert_eq!(rest.ratio_to(&sound).unwrap().to_string(), "1/2", "its ends have one link instead of two");
        let id = &ring.topology().nodes()[0].id;
        assert_eq!(left(&ring, &format!("gpu:{id}")), left(&ring, &format!("node:{id}")));
    }

    #[test]
    fn what_cannot_be_done_any_more_is_worse_than_any_bound() {
        let pair = asked("ring:3", CollectiveKind::Broadcast, Some(1));
        let [kept, root] = [0, 1].map(|rank: usize| format!("gpu:{}", pair.topology().nodes()[rank].id));
        assert_eq!(left(&pair, &root), Left::RootLost);
        assert!(matches!(left(&pair, &kept), Left::Bound(_)));
        let mut found = [Left::Bound(Rate::zero()), Left::RootLost, Left::Apart(2), Left::Apart(3), Left::TooFewRanks];
        found.sort_by_key(Left::harm);
        let worst = [Left::TooFewRanks, Left::Apart(3), Left::Apart(2), Left::RootLost, Left::Bound(Rate::zero())];
        assert_eq!(found, worst);
    }

    #[test]
    fn all_kinds_of_faults_are_weighed() {
        let boxes = asked("dgx-a100:boxes=2", CollectiveKind::Allreduce, None);
        let groups = boxes.groups(&SINGLE_KINDS, &Never).unwrap();
        let first =
            |kind| groups.iter().find(|group| group.kind == kind).map(|group| group.targets[0].clone()).unwrap();
        let weigh = |kind| {
            boxes.left(&boxes.directory(), &Loss { target: first(kind), remaining: Remaining::GONE }, &Never).unwrap()
        };
        let sound = Left::Bound(boxes.sound(&Never).unwrap());
        assert!(weigh(FaultKind::Nics).harm() < sound.harm(), "a card is missed");
        assert!(weigh(FaultKind::Boxes).harm() > sound.harm(), "one box alone is as fast as its own links");
    }
}
