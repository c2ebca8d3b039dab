//! The spaces of a database as a server uses them.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::change::{Change, Expecting, make};
use crate::clock::Clock;
use crate::copies::{Shared, Space, SpaceNumber};
use crate::database::Database;
use crate::error::DatabaseError;
use crate::mirror::Entry;
use crate::{Key, body, feed};

/// All spaces. Clones share them.
#[derive(Clone)]
pub struct SharedRecords {
    shared: Arc<Shared>,
}

/// One space. Clones share it.
#[derive(Clone)]
pub struct SharedSpace {
    shared: Arc<Shared>,
    number: SpaceNumber,
}

impl SharedRecords {
    /// Reads what is in these spaces, small records too where that is stated, and follows the changes of others from then
    /// on. O(records).
    ///
    /// # Errors
    /// The database failed.
    pub fn open(database: &Database, spaces: &[(SpaceNumber, bool)]) -> Result<Self, DatabaseError> {
        let space = |&(number, keeps_small)| (number, Space { mirror: Mutex::default(), keeps_small });
        let spaces = spaces.iter().map(space).collect();
        let shared = Arc::new(Shared {
            database: database.clone(),
            spaces,
            news: watch::Sender::new(0),
            clock: Clock::default(),
            asked: watch::Sender::new(0),
            looked: watch::Sender::new(0),
        });
        let place = database.call(async |client| feed::read_all(client, &shared).await)?;
        for space in shared.spaces.values() {
            space.mirror.lock().catch_up();
        }
        let follow = feed::follow(Arc::downgrade(&shared), place);
        database.begin_to_watch();
        database.runtime().spawn(follow);
        Ok(Self { shared })
    }

    /// One of the spaces.
    ///
    /// # Panics
    /// If it is none of those that were opened.
    pub fn space(&self, number: SpaceNumber) -> SharedSpace {
        assert!(self.shared.spaces.contains_key(&number), "space {number} was opened");
        SharedSpace { shared: Arc::clone(&self.shared), number }
    }

    /// The database that they are in.
    pub fn database(&self) -> &Database {
        &self.shared.database
    }

    /// The time that all servers go by, in milliseconds since about 1970 UTC, whatever their clocks say.
    pub fn now_ms(&self) -> u64 {
        self.shared.clock.now_ms()
    }

    /// How often this server saw, as the first one, that the clock of the database was set.
    pub fn clock_jumps(&self) -> u64 {
        self.shared.clock.jump_count()
    }

    /// Waits until all that has changed up to now is heard of. Not to be called from the async runtime.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub fn hear_of_all(&self) -> Result<(), DatabaseError> {
        self.shared.database.wait(self.shared.hear_of_all())
    }

    /// The same on the async runtime.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn heard_of_all(&self) -> Result<(), DatabaseError> {
        self.shared.hear_of_all().await
    }

    /// Is told whenever others have changed something.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.shared.news.subscribe()
    }
}

impl SharedSpace {
    /// What is known of a key. Waits for nobody.
    pub fn entry(&self, key: &Key) -> Option<Entry> {
        self.own().mirror.lock().get(key).cloned()
    }

    /// At most `limit` keys with what is known of them, in rising order, from the first after `after`, of those that are
    /// `wanted`. Waits for nobody.
    pub fn entries(&self, after: Option<&Key>, limit: usize, wanted: impl Fn(&Entry) -> bool) -> Vec<(Key, Entry)> {
        let mirror = self.own().mirror.lock();
        let found = mirror.after(after).filter(|(_, entry)| wanted(entry)).take(limit);
        found.map(|(key, entry)| (*key, entry.clone())).collect()
    }

    /// The record under a key as it is in the database, or here.
    ///
    /// # Errors
    /// The database failed, or the record is damaged.
    pub fn record(&self, key: &Key) -> Result<Option<Vec<u8>>, DatabaseError> {
        match self.entry(key) {
            None | Some(Entry { record: None, .. }) => Ok(None),
            Some(Entry { small: Some(small), .. }) => Ok(Some(small.to_vec())),
            Some(_) => self.shared.database.call(async |client| body::read(client, self.number, key).await),
        }
    }

    /// Changes records, all or none, if they are still as is known here; returns once that survives a crash of the database.
    /// Each key once.
    ///
    /// # Errors
    /// [`DatabaseError::Overtaken`]: others have changed one of them, of which this server has heard by now; catch up, and
    /// decide again. Or the database failed.
    pub fn change(&self, changes: Vec<Change>) -> Result<(), DatabaseError> {
        self.change_with(changes, None)
    }

    /// The same with changes in another space of the database: all or none, if all are still as is known here.
    ///
    /// # Errors
    /// As [`SharedSpace::change`].
    pub fn change_with(&self, changes: Vec<Change>, beside: Option<(&Self, Change)>) -> Result<(), DatabaseError> {
        let mut expecting = self.expecting(changes);
        if let Some((space, change)) = beside {
            expecting.extend(space.expecting(vec![change]));
        }
        if expecting.is_empty() {
            return Ok(());
        }
        let made = make(&self.shared.database, &expecting);
        self.settle(&made, expecting)?;
        made.map(drop)
    }

    /// Changes with the versions at which their records are as far as is known here.
    pub(crate) fn expecting(&self, changes: Vec<Change>) -> Vec<Expecting> {
        // Records are hashed before others have to wait.
        let mut expecting: Vec<Expecting> =
            changes.into_iter().map(|change| Expecting::of(self.number, change)).collect();
        let mirror = self.own().mirror.lock();
        expecting.iter_mut().for_each(|one| one.version = mirror.version_of(&one.change.key));
        drop(mirror);
        expecting
    }

    /// Learns what has become of changes that were attempted.
    pub(crate) fn settle(
        &self,
        made: &Result<i64, DatabaseError>,
        changes: Vec<Expecting>,
    ) -> Result<(), DatabaseError> {
        let version = match made {
            Ok(version) => *version,
            Err(DatabaseError::Overtaken) => return self.hear_of_all(),
            Err(_) => return Ok(()),
        };
        let (own, beside): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.space == self.number);
        for changes in [own, beside] {
            let Some(space) = changes.first().and_then(|change| self.shared.spaces.get(&change.space)) else {
                continue;
            };
            let mut mirror = space.mirror.lock();
            for change in changes {
                let key = change.change.key;
                let entry = change.after(version, mirror.get(&key), space.keeps_small);
                mirror.wrote(key, version, entry);
            }
        }
        Ok(())
    }

    /// Waits until all that has changed up to now is heard of.
    pub(crate) fn hear_of_all(&self) -> Result<(), DatabaseError> {
        self.shared.database.wait(self.shared.hear_of_all())
    }

    /// Learns what others have changed; returns the keys of which other things hold now. Whoever decides by this space does so
    /// in turn with this.
    pub fn catch_up(&self) -> Vec<Key> {
        self.own().mirror.lock().catch_up()
    }

    /// Number of records in quarantine.
    ///
    /// # Errors
    /// The database failed.
    pub fn quarantined_count(&self) -> Result<u64, DatabaseError> {
        let count: i64 = self.shared.database.call(async |client| {
            let row = client.query_one("select count(*) from quarantine where space = $1", &[&self.number]).await?;
            Ok(row.try_get(0)?)
        })?;
        Ok(count.unsigned_abs())
    }

    /// The database that it is in.
    pub fn database(&self) -> &Database {
        &self.shared.database
    }

    fn own(&self) -> &Space {
        self.shared.spaces.get(&self.number).expect("it was there when this was made")
    }
}
