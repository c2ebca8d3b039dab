//! What the groups of a job send, by classes of groups that do the same.

use std::num::NonZeroU64;

use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::Rank;

use crate::job::layout::{Layout, LayoutError};

/// Most groups of a job.
const GROUPS_MAX: usize = 1 << 16;

/// What ranks that differ in some dimensions do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// All of them, in one collective; those with a root have it at the first.
    Collective(CollectiveKind),
    /// Each sends to the next one, as the stages of a pipeline do.
    Next,
}

/// Groups that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// A name for reports and files: letters, digits and `- _ .`.
    pub name: String,
    /// The dimensions in which the ranks of a group differ.
    pub over: Vec<String>,
    /// What they do.
    pub movement: Movement,
    /// *Size* of each collective in bytes.
    pub size_bytes: NonZeroU64,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobGroup {
    /// Name of its class, and its number in it, as `dp.3`.
    pub name: String,
    /// Position of its class.
    pub class: usize,
    /// What it does; the ranks of the collective are positions among `ranks`.
    pub collective: Collective,
    /// Its ranks.
    pub ranks: Vec<Rank>,
    /// *Size* of the collective in bytes.
    pub size_bytes: NonZeroU64,
}

/// Why a job is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum JobError {
    #[error("groups[{class}]: {problem}")]
    Layout { class: usize, problem: LayoutError },
    #[error("groups[{class}] is called `{name}`; use letters, digits and - _ . only, at most 64")]
    Name { class: usize, name: String },
    #[error("two groups are called `{name}`; give each a name of its own")]
    NameTwice { name: String },
    #[error("groups[{class}] has one rank in each group; take it away, or state dimensions of at least 2")]
    OneRank { class: usize },
    #[error("the job has no groups; state one at least")]
    NoGroups,
    #[error("the job has more than {max} groups; state fewer")]
    TooMany { max: usize },
    #[error("faults leave two ranks in none of the groups; mend the network")]
    NothingLeft,
    #[error("the layout has {layout} ranks, and the network has {network}; change one of them, or name the ranks")]
    Network { layout: u32, network: u32 },
    #[error("{given} ranks are named, and the layout has {layout}; name one for each, or none")]
    Places { given: usize, layout: u32 },
    #[error("rank {rank} is named, and the network has {network} ranks, numbered from 0")]
    NoSuchPlace { rank: u32, network: u32 },
    #[error("rank {rank} is named twice; name each once")]
    PlaceTwice { rank: u32 },
}

impl JobError {
    /// Path of the field at fault.
    pub fn field(&self) -> String {
        match self {
            Self::Layout { class, .. } | Self::OneRank { class } => format!("groups[{class}].over"),
            Self::Name { class, .. } => format!("groups[{class}].name"),
            Self::Network { .. } => "layout".to_owned(),
            Self::Places { .. } | Self::NoSuchPlace { .. } | Self::PlaceTwice { .. } => "ranks".to_owned(),
            Self::NameTwice { .. } | Self::NoGroups | Self::TooMany { .. } | Self::NothingLeft => "groups".to_owned(),
        }
    }
}

/// The groups of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What they do, by class.
    pub classes: Vec<Class>,
    /// All groups, class by class.
    pub groups: Vec<JobGroup>,
    /// Number of ranks.
    pub rank_count: u32,
}

impl Job {
    /// The groups of a layout.
    ///
    /// # Errors
    /// Names or dimensions that cannot be; no groups, or too many. O(classes · ranks).
    pub fn new(layout: &Layout, classes: Vec<Class>) -> Result<Self, JobError> {
        let mut groups = Vec::new();
        for (number, class) in classes.iter().enumerate() {
            require_name(&classes[..number], number, &class.name)?;
            let over =
                layout.groups_over(&class.over).map_err(|problem| JobError::Layout { class: number, problem })?;
            let members = over.into_iter().flat_map(|ranks| match class.movement {
                Movement::Collective(_) => vec![ranks],
                Movement::Next => ranks.windows(2).map(<[u32]>::to_vec).collect(),
            });
            let kind = match class.movement {
                Movement::Collective(kind) => kind,
                Movement::Next => CollectiveKind::Broadcast,
            };
            for (place, ranks) in members.enumerate() {
                let count = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
                let root = kind.has_root().then(|| Rank::new(0));
                let collective = Collective::new(kind, root, count).ok().filter(|_| count > 1);
                groups.push(JobGroup {
                    name: format!("{}.{place}", class.name),
                    class: number,
                    collective: collective.ok_or(JobError::OneRank { class: number })?,
                    ranks: ranks.into_iter().map(Rank::new).collect(),
                    size_bytes: class.size_bytes,
                });
                if groups.len() > GROUPS_MAX {
                    return Err(JobError::TooMany { max: GROUPS_MAX });
                }
            }
        }
        if groups.is_empty() {
            return Err(JobError::NoGroups);
        }
        Ok(Self { classes, groups, rank_count: layout.rank_count() })
    }

    /// The job on some ranks of a network.
    ///
    /// * **In.** `places`: by rank of the layout, the rank of the network.
    /// * **Errors.** [`JobError::Places`], [`JobError::NoSuchPlace`], [`JobError::PlaceTwice`].
    /// * **Cost.** O(ranks of the network and of all groups).
    pub fn placed(&self, places: &[u32], network: u32) -> Result<Self, JobError> {
        if places.len() != self.rank_count as usize {
            return Err(JobError::Places { given: places.len(), layout: self.rank_count });
        }
        let mut is_taken = vec![false; network as usize];
        for &rank in places {
            match is_taken.get_mut(rank as usize) {
                None => return Err(JobError::NoSuchPlace { rank, network }),
                Some(true) => return Err(JobError::PlaceTwice { rank }),
                Some(is_taken) => *is_taken = true,
            }
        }
        let place = |rank: &Rank| places.get(rank.index()).copied().map(Rank::new);
        let group =
            |group: &JobGroup| JobGroup { ranks: group.ranks.iter().filter_map(place).collect(), ..group.clone() };
        Ok(Self { classes: self.classes.clone(), groups: self.groups.iter().map(group).collect(), rank_count: network })
    }

    /// The job on the ranks that faults have left. A group keeps its members among them, in their order, and the first
    /// is its root; groups with fewer than two are gone, as are pairs of stages that lost one. Names stay.
    ///
    /// * **In.** `survivors`: by new number, the number of a rank in this job, ascending.
    /// * **Errors.** [`JobError::NothingLeft`].
    /// * **Cost.** O(ranks of all groups · log survivors).
    pub fn left_on(&self, survivors: &[Rank]) -> Result<Self, JobError> {
        let left = |group: &JobGroup| {
            let place = |rank: &Rank| survivors.binary_search(rank).ok().map(|place| Rank::new(number(place)));
            let ranks: Vec<Rank> = group.ranks.iter().filter_map(place).collect();
            let root = group.collective.root().map(|_| Rank::new(0));
            let collective = Collective::new(group.collective.kind(), root, number(ranks.len())).ok();
            let collective = collective.filter(|_| ranks.len() > 1)?;
            Some(JobGroup { collective, ranks, ..group.clone() })
        };
        let groups: Vec<JobGroup> = self.groups.iter().filter_map(left).collect();
        if groups.is_empty() {
            return Err(JobError::NothingLeft);
        }
        Ok(Self { classes: self.classes.clone(), groups, rank_count: number(survivors.len()) })
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn require_name(before: &[Class], class: usize, name: &str) -> Result<(), JobError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.bytes().all(is_plain) {
        return Err(JobError::Name { class, name: name.chars().take(80).collect() });
    }
    if before.iter().any(|other| other.name == name) {
        return Err(JobError::NameTwice { name: name.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, over: &[&str], movement: Movement) -> Class {
        let over = over.iter().map(|&one| one.to_owned()).collect();
        Class { name: name.to_owned(), over, movement, size_bytes: NonZeroU64::MIN }
    }

    #[test]
    fn stages_send_to_the_next_one() {
        let layout: Layout = "tp=2 pp=3".parse().unwrap();
        let job = Job::new(&layout, vec![class("pp", &["pp"], Movement::Next)]).unwrap();
        let pairs: Vec<(u32, u32)> =
            job.groups.iter().map(|group| (group.ranks[0].number(), group.ranks[1].number())).collect();
        assert_eq!(pairs, [(0, 2), (2, 4), (1, 3), (3, 5)]);
        assert_eq!(job.groups[2].name, "pp.2");
    }

    #[test]
    fn groups_go_on_with_the_ranks_that_are_left() {
        let layout: Layout = "tp=2 pp=3".parse().unwrap();
        let over = |name| class(name, &[name], Movement::Collective(CollectiveKind::Broadcast));
        let job = Job::new(&layout, vec![over("tp"), over("pp"), class("next", &["pp"], Movement::Next)]).unwrap();
        let left = job.left_on(&[0, 1, 3, 4, 5].map(Rank::new)).unwrap();
        let groups: Vec<(&str, Vec<u32>)> = left
            .groups
            .iter()
            .map(|group| (group.name.as_str(), group.ranks.iter().map(|rank| rank.number()).collect()))
            .collect();
        // Rank 2 is gone: with it tp.1, and two pairs of stages; pp.0 has ranks 0 and 4, which is number 3 now.
        let expected: [(&str, &[u32]); 6] = [
            ("tp.0", &[0, 1]),
            ("tp.2", &[3, 4]),
            ("pp.0", &[0, 3]),
            ("pp.1", &[1, 2, 4]),
            ("next.2", &[1, 2]),
            ("next.3", &[2, 4]),
        ];
        assert_eq!(groups, expected.map(|(name, ranks)| (name, ranks.to_vec())));
        assert_eq!(left.rank_count, 5);
        assert_eq!(left.groups[3].collective.root(), Some(Rank::new(0)));
        assert_eq!(job.left_on(&[Rank::new(0)]), Err(JobError::NothingLeft));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let layout: Layout = "tp=2 dp=1".parse().unwrap();
        let reduce = Movement::Collective(CollectiveKind::Allreduce);
        let refused = |classes| Job::new(&layout, classes).unwrap_err();
        assert_eq!(refused(vec![]), JobError::NoGroups);
        assert_eq!(refused(vec![class("dp", &["dp"], reduce)]), JobError::OneRank { class: 0 });
        assert!(matches!(refused(vec![class("a/b", &["tp"], reduce)]), JobError::Name { class: 0, .. }));
        let twice = vec![class("a", &["tp"], reduce), class("a", &["tp"], reduce)];
        assert_eq!(refused(twice), JobError::NameTwice { name: "a".to_owned() });
        assert!(matches!(refused(vec![class("a", &["xp"], reduce)]), JobError::Layout { class: 0, .. }));
    }
}
