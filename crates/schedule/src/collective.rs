//! Collective operations and what each promises.

use std::fmt;
use std::str::FromStr;

use canopy_topology::{Rank, same_word};

/// The kinds of collectives, by canopy's own names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectiveKind {
    /// Every rank ends with every rank's share.
    Allgather,
    /// Rank `r` ends with the sum over all ranks of their `r`-th share.
    ReduceScatter,
    /// Every rank ends with the sum of all ranks' vectors.
    Allreduce,
    /// Every rank ends with the root's message.
    Broadcast,
    /// The root ends with the sum of all ranks' messages.
    Reduce,
    /// The root ends with every rank's share.
    Gather,
    /// Rank `r` ends with the root's `r`-th share.
    Scatter,
    /// Rank `r` ends with the `r`-th block of every rank.
    AllToAll,
}

impl CollectiveKind {
    /// All kinds, in the order documents list them.
    pub const ALL: [Self; 8] = [
        Self::Allgather,
        Self::ReduceScatter,
        Self::Allreduce,
        Self::Broadcast,
        Self::Reduce,
        Self::Gather,
        Self::Scatter,
        Self::AllToAll,
    ];

    /// The name used everywhere in canopy's text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allgather => "allgather",
            Self::ReduceScatter => "reduce-scatter",
            Self::Allreduce => "allreduce",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::AllToAll => "all-to-all",
        }
    }

    /// Whether one rank plays a role of its own.
    pub const fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce | Self::Gather | Self::Scatter)
    }

    /// Whether a message consists of one share for each rank.
    pub const fn has_shares(self) -> bool {
        matches!(self, Self::Allgather | Self::ReduceScatter | Self::AllToAll | Self::Gather | Self::Scatter)
    }
}

impl fmt::Display for CollectiveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name of an unknown collective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown collective `{name}`; use allgather, reduce-scatter, allreduce, broadcast, reduce, gather, scatter or \
     all-to-all"
)]
pub struct UnknownCollective {
    /// The name, shortened.
    pub name: String,
}

/// Other names that libraries use, besides canopy's own in any case, with or without hyphens and underscores.
const OTHER_NAMES: [(&str, CollectiveKind); 5] = [
    ("allgatherintotensor", CollectiveKind::Allgather),
    ("reducescattertensor", CollectiveKind::ReduceScatter),
    ("reducescatterblock", CollectiveKind::ReduceScatter),
    ("bcast", CollectiveKind::Broadcast),
    ("alltoallsingle", CollectiveKind::AllToAll),
];

impl CollectiveKind {
    /// Reads a name as people and libraries spell it: `all_reduce`, `AllReduce`, `ncclAllReduce`, `MPI_Bcast`,
    /// `all_gather_into_tensor`. Files are read with [`FromStr`], which accepts canopy's own names only.
    ///
    /// # Errors
    /// Unknown name.
    pub fn spelt(name: &str) -> Result<Self, UnknownCollective> {
        let kept = name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase);
        let word: String = kept.take(80).collect();
        let word =
            ["nccl", "mpi", "rccl", "dist."].iter().find_map(|library| word.strip_prefix(library)).unwrap_or(&word);
        let own = Self::ALL.into_iter().find(|kind| same_word(kind.name(), word));
        let other = || OTHER_NAMES.iter().find(|(known, _)| *known == word).map(|&(_, kind)| kind);
        own.or_else(other).ok_or_else(|| UnknownCollective { name: name.chars().take(80).collect() })
    }
}

impl FromStr for CollectiveKind {
    type Err = UnknownCollective;

    fn from_str(name: &str) -> Result<Self, UnknownCollective> {
        let error = || UnknownCollective { name: name.chars().take(80).collect() };
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(error)
    }
}

/// A collective with its root, where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Collective {
    kind: CollectiveKind,
    root: Option<Rank>,
}

impl Collective {
    /// Pairs a kind with its root: rank 0 where the kind needs one and none is given.
    ///
    /// # Errors
    /// A root outside `0 … rank_count−1`, or one for a collective that has none.
    pub fn new(kind: CollectiveKind, root: Option<Rank>, rank_count: u32) -> Result<Self, RootError> {
        match root {
            Some(root) if !kind.has_root() => Err(RootError::NotRooted { kind, root: root.number() }),
            Some(root) if root.number() >= rank_count => Err(RootError::NoSuchRank { root: root.number(), rank_count }),
            _ if kind.has_root() => Ok(Self { kind, root: Some(root.unwrap_or(Rank::new(0))) }),
            _ => Ok(Self { kind, root: None }),
        }
    }

    /// What is done.
    pub const fn kind(self) -> CollectiveKind {
        self.kind
    }

    /// The rank with a role of its own, where the kind has one.
    pub const fn root(self) -> Option<Rank> {
        self.root
    }
}

/// A root that does not fit the collective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RootError {
    #[error("{kind} has no root; remove root {root}")]
    NotRooted { kind: CollectiveKind, root: u32 },
    #[error("root {root} is not a rank; ranks are 0 to {}", rank_count - 1)]
    NoSuchRank { root: u32, rank_count: u32 },
}
