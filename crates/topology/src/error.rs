//! Errors of building a topology.

/// Each variant says where the error is, what was found and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TopologyError {
    #[error("the topology has {found} {what}, over the limit of {limit}; send a smaller one or raise the limit")]
    TooLarge { what: &'static str, found: String, limit: usize },
    #[error("a topology needs at least two compute nodes, and this one has {found}")]
    TooFewRanks { found: usize },
    #[error("nodes[{position}].id `{id}` is not usable; use 1 to 255 bytes of text without white space and `: > = ,`")]
    BadId { position: usize, id: String },
    #[error("{field} holds characters that are not shown, such as marks of direction; leave them out")]
    Invisible { field: String },
    #[error("`{name}` cannot name a cluster; use 1 to 63 letters, digits and `- _ .`, a letter or digit first")]
    BadCluster { name: String },
    #[error("node id `{id}` is given twice; give each node its own")]
    DuplicateId { id: String },
    #[error("node `{id}` is a switch and has a rank; leave out the rank, which only compute nodes have")]
    RankOnSwitch { id: String },
    #[error("node `{id}` only forwards and has a rank; leave out its rank or `forwards`")]
    RankOnForwarder { id: String },
    #[error("node `{id}` has no rank, but {stated} others have one; give every compute node a rank, or none")]
    RankMissing { id: String, stated: usize },
    #[error("node `{id}` has rank {rank}, but there are {rank_count} compute nodes; use ranks 0 to {} without gaps", rank_count - 1)]
    RankGap { id: String, rank: u32, rank_count: usize },
    #[error("rank {rank} is given to both {first} and {second}; give each node its own")]
    DuplicateRank { rank: u32, first: String, second: String },
    #[error("links[{position}].{end} `{id}` is not the id of a node")]
    UnknownNode { position: usize, end: &'static str, id: String },
    #[error("links[{position}] connects `{id}` to itself; name two different nodes")]
    SelfLink { position: usize, id: String },
    #[error("links[{position}].count is 0; leave it out or give at least 1")]
    ZeroCount { position: usize },
    #[error("the links {from} -> {to} add up to more than 18446744073709551615 bytes/s; use smaller rates")]
    CapacityOverflow { from: String, to: String },
}

impl TopologyError {
    /// Path of the field at fault, such as `links[3].count`; without an index where the whole list is at fault.
    pub fn field(&self) -> Option<String> {
        Some(match self {
            Self::TooLarge { what, .. } => (*what).to_owned(),
            Self::TooFewRanks { .. } => "nodes".to_owned(),
            Self::BadId { position, .. } => format!("nodes[{position}].id"),
            Self::Invisible { field } => field.clone(),
            Self::DuplicateId { .. } => "nodes.id".to_owned(),
            Self::RankOnSwitch { .. }
            | Self::RankOnForwarder { .. }
            | Self::RankMissing { .. }
            | Self::RankGap { .. }
            | Self::DuplicateRank { .. } => "nodes.rank".to_owned(),
            Self::UnknownNode { position, end, .. } => format!("links[{position}].{end}"),
            Self::SelfLink { position, .. } => format!("links[{position}].to"),
            Self::ZeroCount { position } => format!("links[{position}].count"),
            Self::CapacityOverflow { .. } => "links.bandwidth".to_owned(),
            Self::BadCluster { .. } => "cluster".to_owned(),
        })
    }

    /// Whether the topology is refused for its size, not for what it says.
    pub fn is_over_limit(&self) -> bool {
        matches!(self, Self::TooLarge { .. })
    }
}
