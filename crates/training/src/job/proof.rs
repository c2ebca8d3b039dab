//! What lengths of links prove of rates, added up again by code that knows no solver.

use canopy_schedule::{JointTask, length_bound};
use canopy_topology::{NodeIndex, Rank, Ratio, Topology, Transit};
use num_rational::BigRational;
use num_traits::{One as _, Signed as _, Zero as _};

use crate::groups::{GroupsError, Patience};
use crate::job::classes::Job;
use crate::job::levels::JobLevel;
use crate::job::posed::{RatesError, fraction, in_seconds};

/// Bytes for each pair of members of a group: its distance, and an arc of the trees that are sought.
const PAIR_BYTES: u64 = 64;

/// The groups of a job on a network.
pub(crate) struct Proofs<'a> {
    topology: &'a Topology,
    job: &'a Job,
    /// By group, the nodes of its ranks.
    members: Vec<Vec<NodeIndex>>,
    transit: Transit,
    patience: Patience<'a>,
}

impl<'a> Proofs<'a> {
    pub(crate) fn new(topology: &'a Topology, job: &'a Job, transit: Transit, patience: Patience<'a>) -> Self {
        let nodes = |ranks: &[Rank]| ranks.iter().map(|rank| NodeIndex::new(rank.number())).collect();
        let members = job.groups.iter().map(|group| nodes(&group.ranks)).collect();
        Self { topology, job, members, transit, patience }
    }

    /// Bytes that adding up takes, roughly, with as many groups at once as there are threads.
    fn bytes(&self) -> u64 {
        let mut pairs: Vec<u64> =
            self.members.iter().map(|members| members.len() as u64).map(|all| all * all).collect();
        pairs.sort_unstable_by(|a, b| b.cmp(a));
        pairs.truncate(rayon::current_num_threads());
        pairs.into_iter().fold(0, u64::saturating_add).saturating_mul(PAIR_BYTES)
    }

    /// The time that all groups take at least, by lengths of links. None: the lengths prove nothing, or it is stopped.
    pub(crate) fn least(&self, lengths: &[u128]) -> Option<Ratio> {
        let all: Vec<usize> = (0..self.job.groups.len()).collect();
        self.alone(lengths, &all).map(|time| in_seconds(&time))
    }

    /// Adds up what the lengths of levels prove, slowest first; it must be what they claim.
    ///
    /// # Errors
    /// Stopped, broken, or no room. O(levels · groups) searches of the network.
    pub(crate) fn require(&self, levels: &[JobLevel]) -> Result<(), RatesError> {
        let (room, needed) = (self.patience.room, self.bytes());
        if !room.take(needed) {
            return Err(RatesError::Groups(GroupsError::NoRoom { needed }));
        }
        let required = self.add_up(levels);
        room.give_back(needed);
        required
    }

    fn add_up(&self, levels: &[JobLevel]) -> Result<(), RatesError> {
        let mut slower: Vec<&JobLevel> = Vec::new();
        let mut is_settled = vec![false; self.job.groups.len()];
        for level in levels {
            let open: Vec<usize> = (0..is_settled.len()).filter(|&group| !is_settled[group]).collect();
            let claimed = &level.seconds_min;
            match self.proven(&level.lengths, &open, level.groups.first().copied(), &slower) {
                None if self.patience.stop.is_requested() => return Err(RatesError::Stopped),
                Some(proven) if proven == *claimed => {}
                found => {
                    return Err(RatesError::Broken {
                        claimed: claimed.to_string(),
                        proven: found.map_or_else(|| "nothing".to_owned(), |proven| proven.to_string()),
                    });
                }
            }
            level.groups.iter().for_each(|&group| is_settled[group] = true);
            slower.push(level);
        }
        Ok(())
    }

    /// The time of open groups at least, where `one` of them pays for its schedules by these lengths.
    fn proven(&self, lengths: &[u128], open: &[usize], one: Option<usize>, slower: &[&JobLevel]) -> Option<Ratio> {
        let open = self.alone(lengths, open)?;
        if slower.is_empty() {
            return Some(in_seconds(&open));
        }
        // What costs nothing has no bound of its own: `one` is added and taken away.
        let one = one?;
        let base = self.alone(lengths, &[one])?;
        let mut left = BigRational::one();
        for level in slower {
            let mut groups = level.groups.clone();
            groups.push(one);
            let part = self.alone(lengths, &groups)? - &base;
            left -= part / fraction(&level.seconds);
        }
        left.is_positive().then(|| in_seconds(&(open / left)))
    }

    /// The time that groups take at least, if there were no others.
    fn alone(&self, lengths: &[u128], groups: &[usize]) -> Option<BigRational> {
        let task = |&number: &usize| {
            let group = self.job.groups.get(number)?;
            let members = self.members.get(number)?;
            Some(JointTask { members, collective: group.collective, size_bytes: group.size_bytes })
        };
        let tasks: Vec<JointTask<'_>> = groups.iter().map(task).collect::<Option<_>>()?;
        let found = length_bound(self.topology, &tasks, lengths, self.transit, &|| self.patience.stop.is_requested())?;
        Some(fraction(&found)).filter(|time| !time.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use canopy_schedule::CollectiveKind;
    use canopy_topology::{TopologyLimits, generate};

    use super::*;
    use crate::job::classes::{Class, Movement};
    use crate::job::rates::{Objective, job_rates_for};

    /// Any claim but what the lengths prove is refused.
    #[test]
    fn altered_levels_are_broken() {
        // In the box without a NIC, the other GPUs forward for one group on rails.
        let expression = "rail:boxes=4,gpus=8,nv=300GB/s,nic=25GB/s,faults=nics:1+seed:3";
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let class = |name: &str| Class {
            name: name.to_owned(),
            over: vec![name.to_owned()],
            movement: Movement::Collective(CollectiveKind::Allreduce),
            size_bytes: NonZeroU64::new(1_000_000_000).unwrap(),
        };
        let job = Job::new(&"tp=8 dp=4".parse().unwrap(), vec![class("tp"), class("dp")]).unwrap();
        let rates = job_rates_for(&topology, &job, Objective::Levels, Transit::Forward, Patience::ENDLESS).unwrap();
        let proofs = Proofs::new(&topology, &job, Transit::Forward, Patience::ENDLESS);
        assert_eq!((rates.levels.len(), proofs.require(&rates.levels)), (3, Ok(())));
        let refuses = |change: &dyn Fn(&mut Vec<JobLevel>)| {
            let mut levels = rates.levels.clone();
            change(&mut levels);
            assert!(matches!(proofs.require(&levels), Err(RatesError::Broken { .. })), "{levels:?}");
        };
        for level in 0..3 {
            refuses(&|levels| levels[level].seconds_min = Ratio::new(1_u32, 7_u32).unwrap());
            refuses(&|levels| levels[level].lengths = (1..).take(topology.links().len()).collect());
        }
        // The rates of slower levels count.
        refuses(&|levels| levels[0].seconds = Ratio::new(1_u32, 7_u32).unwrap());
        refuses(&|levels| levels[0].groups.truncate(1));
    }
}
