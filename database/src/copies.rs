//! What a server has of all spaces.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::clock::Clock;
use crate::database::{Database, State};
use crate::error::DatabaseError;
use crate::mirror::{Heard, Mirror};

/// Longest time that is waited for news of others.
const HEARING_LIMIT: Duration = Duration::from_secs(10);

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
    /// How often anybody has asked for what has changed up to then.
    pub(crate) asked: watch::Sender<u64>,
    /// The last of those who asked for whom it was looked.
    pub(crate) looked: watch::Sender<u64>,
}

impl Shared {
    /// Hears of records that changed, in the order of their changes; returns whether any of it is news.
    pub(crate) fn hear(&self, heard: BTreeMap<SpaceNumber, Vec<Heard>>) -> bool {
        let mut is_news = false;
        for (number, heard) in heard {
            let Some(space) = self.spaces.get(&number) else { continue };
            let mut mirror = space.mirror.lock();
            for Heard { key, version, entry } in heard {
                is_news |= mirror.heard(key, version, entry);
            }
        }
        is_news
    }

    /// Waits until all that has changed up to now is heard of. One look serves all who asked before it.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub(crate) async fn hear_of_all(&self) -> Result<(), DatabaseError> {
        let mut looked = self.looked.subscribe();
        let mut number = 0;
        self.asked.send_modify(|asked| {
            *asked += 1;
            number = *asked;
        });
        let looked = async { looked.wait_for(|looked| *looked >= number).await.is_ok() };
        let heard = tokio::select! {
            heard = timeout(HEARING_LIMIT, looked) => heard.unwrap_or(false),
            () = self.database.until_away() => false,
        };
        heard.then_some(()).ok_or_else(|| DatabaseError::Away {
            reason: match self.database.state() {
                State::Away(reason) => reason,
                State::There => "changes of other servers cannot be read".to_owned(),
            },
        })
    }
}

/// One of them.
pub(crate) struct Space {
    pub(crate) mirror: Mutex<Mirror>,
    /// Whether small records are at hand, and not read when they are asked for.
    pub(crate) keeps_small: bool,
}
