//! What a server has of all spaces.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::database::Database;
use crate::mirror::Mirror;

/// Tells the spaces of a database apart.
pub type SpaceNumber = i16;

/// All of them.
pub(crate) struct Shared {
    pub(crate) database: Database,
    pub(crate) spaces: BTreeMap<SpaceNumber, Space>,
    /// Is told when there is something to catch up with.
    pub(crate) news: watch::Sender<u64>,
    /// The time of the servers.
    pub(crate) clock: Clock,
    /// The number of the last change that was heard of.
    pub(crate) heard: watch::Sender<i64>,
}

/// One of them.
pub(crate) struct Space {
    pub(crate) mirror: Mutex<Mirror>,
    /// Whether small records are at hand, and not read when they are asked for.
    pub(crate) keeps_small: bool,
}
