//! What a job runs over its ranks, and which flows between machines that makes.
//!
//! Ranks are numbered machine by machine, in the order of the machines. Groups are nested: the first kind takes neighbouring
//! ranks, the next one takes one rank of each of its groups, and so on, as training frameworks number tensor, data and
//! pipeline parallel groups.

use std::collections::BTreeMap;
use std::str::FromStr;

/// How the ranks of a group exchange data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// From each rank to the next and from the last to the first, as allgathers, reduce-scatters and large allreduces.
    Ring,
    /// NCCL's double binary trees over the machines of the group, each for half of the data, up and down.
    Trees,
    /// From each rank to every other one.
    AllToAll,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ring, Self::Trees, Self::AllToAll];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Trees => "trees",
            Self::AllToAll => "all-to-all",
        }
    }
}

/// A kind of groups: every rank is in one of this kind. All of a kind run at the same time, one kind after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What people call it, such as `tp`.
    pub name: String,
    /// Ranks of each.
    pub size: u32,
    /// What they do.
    pub pattern: Pattern,
    /// How much data each rank has for it, beside other kinds.
    pub weight: u32,
}

/// Most kinds of groups of a job.
pub const GROUPS_MAX: usize = 8;

/// Machines up to which trees decide between rings that are as good.
const TREES_MACHINES_MAX: usize = 2_048;

/// Most flows between machines of one kind.
const FLOWS_MAX: u64 = 1 << 22;

/// Groups that cannot be read, or that do not fit the ranks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum GroupError {
    #[error(
        "`{text}` does not name a group; write NAME=SIZE, NAME=SIZE:PATTERN or NAME=SIZE:PATTERN:WEIGHT, such as `tp=8` or `ep=16:all-to-all:3`"
    )]
    Unreadable { text: String },
    #[error("`{text}` is not a pattern; take ring, trees or all-to-all")]
    Pattern { text: String },
    #[error("group `{name}` needs a size and a weight of at least 1")]
    Zero { name: String },
    #[error(
        "groups have {product} ranks together, sizes multiplied, but the network has {ranks}; name all kinds from the innermost to the outermost"
    )]
    Ranks { product: u64, ranks: u32 },
    #[error("{found} kinds of groups are more than {GROUPS_MAX}; leave out those of one rank")]
    TooMany { found: usize },
    #[error("group `{name}` exchanges data between more than {FLOWS_MAX} pairs of machines; take `ring` for it")]
    TooManyFlows { name: String },
}

/// Most characters of a text that an error repeats.
const REPEATED_MAX: usize = 60;

impl FromStr for Group {
    type Err = GroupError;

    fn from_str(text: &str) -> Result<Self, GroupError> {
        let shortened = |text: &str| text.chars().take(REPEATED_MAX).collect::<String>();
        let unreadable = || GroupError::Unreadable { text: shortened(text) };
        let (name, rest) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(unreadable)?;
        let mut fields = rest.splitn(3, ':');
        let size = fields.next().and_then(|size| size.parse().ok()).ok_or_else(unreadable)?;
        let pattern = match fields.next() {
            None => Pattern::Ring,
            Some(word) => Pattern::ALL
                .into_iter()
                .find(|pattern| pattern.name() == word)
                .ok_or_else(|| GroupError::Pattern { text: shortened(word) })?,
        };
        let weight = fields.next().map_or(Some(1), |weight| weight.parse().ok()).ok_or_else(unreadable)?;
        Ok(Self { name: shortened(name), size, pattern, weight })
    }
}

/// What is compared between orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What counts.
    pub(crate) kinds: Vec<Kind>,
    /// What decides between orders for which the former takes as long.
    pub(crate) ties: Vec<Kind>,
    is_whole: bool,
}

/// Groups of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) pattern: Pattern,
    pub(crate) weight: u32,
    /// Ranks of a group, and how far apart they are.
    pub(crate) size: u64,
    pub(crate) stride: u64,
}

/// Data that goes from one place in an order to another, in parts of [`Kind::per`] of what a rank has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) amount: u64,
}

impl Job {
    /// All ranks together: rings, and among orders that are as good for these, trees, if machines are not too many.
    pub fn whole(ranks: u32, machines: usize) -> Self {
        let kind = |pattern: Pattern| Kind {
            name: pattern.name().to_owned(),
            pattern,
            weight: 1,
            size: u64::from(ranks),
            stride: 1,
        };
        let ties = if machines <= TREES_MACHINES_MAX { vec![kind(Pattern::Trees)] } else { Vec::new() };
        Self { kinds: vec![kind(Pattern::Ring)], ties, is_whole: true }
    }

    /// Kinds of groups from the innermost to the outermost; without any, all ranks together.
    ///
    /// # Errors
    /// Sizes multiplied are not the number of ranks, or there are too many kinds or flows.
    pub fn of(groups: &[Group], ranks: u32, machines: usize) -> Result<Self, GroupError> {
        if groups.is_empty() {
            return Ok(Self::whole(ranks, machines));
        }
        if groups.len() > GROUPS_MAX {
            return Err(GroupError::TooMany { found: groups.len() });
        }
        let mut stride = 1_u64;
        let mut kinds = Vec::new();
        for Group { name, size, pattern, weight } in groups {
            if *size == 0 || *weight == 0 {
                return Err(GroupError::Zero { name: name.clone() });
            }
            let size = u64::from(*size);
            kinds.push(Kind { name: name.clone(), pattern: *pattern, weight: *weight, size, stride });
            stride = stride.saturating_mul(size);
        }
        if stride != u64::from(ranks) {
            return Err(GroupError::Ranks { product: stride, ranks });
        }
        let pairs = |kind: &&Kind| {
            let others = kind.size.min(machines as u64);
            kind.pattern == Pattern::AllToAll && others.saturating_mul(machines as u64) > FLOWS_MAX
        };
        if let Some(kind) = kinds.iter().find(pairs) {
            return Err(GroupError::TooManyFlows { name: kind.name.clone() });
        }
        Ok(Self { kinds, ties: Vec::new(), is_whole: false })
    }

    /// Whether it is one group of all ranks.
    pub(crate) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Numbers of neighbouring ranks that the groups so far have together, from the innermost kind on.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = u64> {
        self.kinds.iter().map(|kind| kind.size.saturating_mul(kind.stride))
    }
}

impl Kind {
    /// What the amounts of its flows are parts of.
    pub(crate) const fn per(&self) -> u64 {
        match self.pattern {
            Pattern::Ring => 1,
            Pattern::Trees => 2,
            Pattern::AllToAll => self.size,
        }
    }

    /// Flows of all groups, if the machines in order have so many ranks. O(ranks), of an all-to-all the pairs of machines.
    pub(crate) fn flows(&self, rank_counts: &[u32]) -> Vec<Flow> {
        let place_of: Vec<usize> =
            rank_counts.iter().enumerate().flat_map(|(place, &count)| (0..count).map(move |_| place)).collect();
        let mut amounts: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        let mut add = |from: usize, to: usize, amount: u64| {
            if from != to {
                let sum = amounts.entry((from, to)).or_default();
                *sum = sum.saturating_add(amount);
            }
        };
        let span = self.size.saturating_mul(self.stride).max(1);
        let groups = (0..place_of.len() as u64).filter(|rank| rank % span < self.stride);
        for first in groups {
            // Machines of the group in order, with its ranks there.
            let mut members: Vec<(usize, u64)> = Vec::new();
            for turn in 0..self.size {
                let rank = usize::try_from(first + turn * self.stride).unwrap_or(usize::MAX);
                let Some(&place) = place_of.get(rank) else { break };
                match members.last_mut() {
                    Some((last, count)) if *last == place => *count += 1,
                    _ => members.push((place, 1)),
                }
            }
            match self.pattern {
                Pattern::Ring => {
                    let next = members.iter().cycle().skip(1);
                    members.iter().zip(next).for_each(|(from, to)| add(from.0, to.0, 1));
                }
                Pattern::Trees => {
                    for (below, above) in double_trees(members.len()) {
                        if let (Some(below), Some(above)) = (members.get(below), members.get(above)) {
                            add(below.0, above.0, 1);
                            add(above.0, below.0, 1);
                        }
                    }
                }
                Pattern::AllToAll => {
                    for from in &members {
                        members.iter().for_each(|to| add(from.0, to.0, from.1 * to.1));
                    }
                }
            }
        }
        amounts.into_iter().map(|((from, to), amount)| Flow { from, to, amount }).collect()
    }
}

/// Each member of NCCL's two binary trees with the one above it.
///
/// In the first tree a member is below the number with its lowest bit moved up by one, or without it where that is not
/// there. The second is its mirror image, of an odd number of members moved by one.
fn double_trees(count: usize) -> impl Iterator<Item = (usize, usize)> {
    let first = move |member: usize| {
        let bit = member & member.wrapping_neg();
        let above = (member ^ bit) | (bit << 1);
        (member, if above >= count { member ^ bit } else { above })
    };
    let other = move |member: usize| if count.is_multiple_of(2) { count - 1 - member } else { (member + 1) % count };
    (1..count).map(first).chain((1..count).map(first).map(move |(below, above)| (other(below), other(above))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(groups: &[&str], ranks: u32, machines: usize) -> Result<Job, GroupError> {
        let groups: Result<Vec<Group>, GroupError> = groups.iter().map(|group| group.parse()).collect();
        Job::of(&groups?, ranks, machines)
    }

    #[test]
    fn groups_are_read() {
        let group: Group = "ep=16:all-to-all:3".parse().unwrap();
        let expected = Group { name: "ep".to_owned(), size: 16, pattern: Pattern::AllToAll, weight: 3 };
        assert_eq!(group, expected);
        assert_eq!("tp=8".parse::<Group>().unwrap().pattern, Pattern::Ring);
        for wrong in ["", "8", "=8", "tp=", "tp=x", "tp=8:ring:", "tp=8:ring:x", "tp=99999999999"] {
            assert!(matches!(wrong.parse::<Group>(), Err(GroupError::Unreadable { .. })), "{wrong}");
        }
        assert!(matches!("tp=8:star".parse::<Group>(), Err(GroupError::Pattern { .. })));
        assert!(matches!(job(&["tp=0"], 8, 1), Err(GroupError::Zero { .. })));
        assert_eq!(job(&["tp=8", "dp=3"], 32, 4), Err(GroupError::Ranks { product: 24, ranks: 32 }));
        assert_eq!(job(&["a=1"; 9], 1, 1), Err(GroupError::TooMany { found: 9 }));
        assert!(matches!(job(&["ep=16384:all-to-all"], 16_384, 16_384), Err(GroupError::TooManyFlows { .. })));
    }

    /// What goes from place to place, and how much of it.
    fn flows(groups: &[&str], rank_counts: &[u32]) -> Vec<Vec<(usize, usize, u64)>> {
        let job = job(groups, rank_counts.iter().sum(), rank_counts.len()).unwrap();
        let of = |kind: &Kind| kind.flows(rank_counts).iter().map(|flow| (flow.from, flow.to, flow.amount)).collect();
        job.kinds.iter().map(of).collect()
    }

    /// Two ranks of each of four machines: pairs inside, rings of two, and all to all between the halves.
    #[test]
    fn kinds_are_nested() {
        let found = flows(&["tp=2", "dp=2", "pp=2:all-to-all"], &[2; 4]);
        assert_eq!(found[0], []);
        assert_eq!(found[1], [(0, 1, 2), (1, 0, 2), (2, 3, 2), (3, 2, 2)]);
        assert_eq!(found[2], [(0, 2, 2), (1, 3, 2), (2, 0, 2), (3, 1, 2)]);
        // Groups that machines of unequal size divide.
        let found = flows(&["tp=4", "dp=2"], &[1, 3, 4]);
        assert_eq!(found[0], [(0, 1, 1), (1, 0, 1)]);
        assert_eq!(found[1], [(0, 2, 1), (1, 2, 3), (2, 0, 1), (2, 1, 3)]);
    }

    #[test]
    fn trees_are_two_and_reach_all() {
        for count in 1..70 {
            let edges: Vec<(usize, usize)> = double_trees(count).collect();
            assert_eq!(edges.len(), 2 * count.saturating_sub(1));
            for tree in edges.chunks(count.saturating_sub(1).max(1)) {
                // Every member but the root has one above it, and from all of them the root is reached.
                let above: BTreeMap<usize, usize> = tree.iter().copied().collect();
                assert_eq!(above.len(), count - 1);
                for member in 0..count {
                    let way = std::iter::successors(Some(member), |at| above.get(at).copied());
                    assert!(way.take(count + 1).count() <= count);
                }
            }
        }
        // The first tree of six: 1 and 3 under 2, 2 under 4, 5 and 4 under 4 and 0.
        let of_six: Vec<(usize, usize)> = double_trees(6).take(5).collect();
        assert_eq!(of_six, [(1, 2), (2, 4), (3, 2), (4, 0), (5, 4)]);
    }
}
