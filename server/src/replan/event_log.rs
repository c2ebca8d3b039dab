//! Changes to leases, in order, for watchers: synced to disk before watchers are notified.
//!
//! An event is the truth about its lease: what a lease itself says of its plans is written after it, and made to agree with it
//! at the next start.

mod moved;

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use canopy_planner::{PlanKey, chain};
use canopy_wire::timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::event::Event;
use crate::clock;
use crate::store::{DamagedRecord, SpaceOf, Store, StoreError, Stored, deciding, decode_message, encode_message};

/// Where it is written which log this is, and how far it has come: behind every event.
const HEAD: PlanKey = PlanKey::from_bytes([0xff; 32]);

/// Most logs that one knows to go on from.
const EARLIER_MAX: usize = 16;

/// How much is kept, and where the time comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventOptions {
    /// Most events; beyond, the oldest go.
    pub(crate) count_max: usize,
    /// Age at which they go, in milliseconds.
    pub(crate) age_max_ms: u64,
    /// Milliseconds, by a clock that nobody sets.
    pub(crate) now_ms: fn() -> u64,
}

impl EventOptions {
    /// 10,000 events of a day, by the clock that nobody sets.
    pub(crate) const STANDARD: Self = Self { count_max: 10_000, age_max_ms: 24 * 3_600_000, now_ms: clock::steady_ms };
}

/// An event as it is kept.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct KeptEvent {
    /// As it is sent.
    #[prost(message, required, tag = "1")]
    pub(crate) event: Event,
    /// What its plan avoids, see [`Avoided`](super::leases::Avoided).
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) avoided: Vec<u8>,
    /// Its time in milliseconds, by the clock of the log.
    #[prost(uint64, tag = "3")]
    pub(crate) unix_ms: u64,
    /// The tenant of its lease; empty: everybody's.
    #[prost(string, tag = "4")]
    pub(crate) tenant: String,
}

impl KeptEvent {
    /// Its place in the log.
    pub(crate) fn sequence(&self) -> u64 {
        self.event.sequence
    }
}

impl Stored for KeptEvent {
    fn decode(key: &PlanKey, record: Bytes) -> Result<Self, DamagedRecord> {
        let event = decode_message(&record)?;
        if PlanKey::numbered(Self::sequence(&event)) == *key { Ok(event) } else { Err(DamagedRecord::Payload) }
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct Head {
    /// Tells this log from one of another data directory.
    #[prost(uint64, tag = "1")]
    epoch: u64,
    /// The last event there was.
    #[prost(uint64, tag = "2")]
    last: u64,
    /// The logs that this one goes on from, the latest last.
    #[prost(message, repeated, tag = "3")]
    earlier: Vec<Earlier>,
}

/// A log of which this one was a copy once.
#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Earlier {
    #[prost(uint64, tag = "1")]
    epoch: u64,
    /// The last event that both have.
    #[prost(uint64, tag = "2")]
    until: u64,
}

impl Head {
    /// None if there is none; a damaged one is made anew when the log is opened.
    fn read(store: &dyn Store) -> Result<Option<Self>, StoreError> {
        Ok(store.get(&HEAD)?.and_then(|record| decode_message(&record).ok()))
    }

    /// Whether this log has had the event that a log of this epoch had under this number.
    fn has(&self, epoch: u64, sequence: u64) -> bool {
        let earlier = self.earlier.iter().any(|earlier| earlier.epoch == epoch && sequence <= earlier.until);
        earlier || (epoch == self.epoch && sequence <= self.last)
    }
}

/// The log. Clones share it.
#[derive(Clone)]
pub(crate) struct EventLog {
    shared: Arc<Shared>,
}

/// An event that is to be told of.
pub(crate) struct Draft {
    /// Makes it when it is its turn, and again where another server was first; none: there is nothing to tell any more.
    pub(crate) make: Box<dyn Fn() -> Option<KeptEvent> + Send>,
    /// Is called with it once it is on the disk, before anybody is told and before the next one is made.
    pub(crate) follow: Box<dyn FnOnce(&KeptEvent) + Send>,
}

/// Whether an event was there to be told of, or why it could not be written.
type Told = Result<bool, Arc<StoreError>>;

/// A draft that waits for its turn.
struct Waiting {
    draft: Draft,
    told: Arc<OnceLock<Told>>,
}

/// Is called with an event of another server.
type Heard = Box<dyn Fn(&KeptEvent) + Send + Sync>;

struct Shared {
    space: SpaceOf<KeptEvent>,
    options: EventOptions,
    log: Mutex<Log>,
    waiting: Mutex<Vec<Waiting>>,
    /// Held by who writes; taken before `log` and `waiting`. Whether others have changed something that is not known here yet.
    writing: Mutex<bool>,
    /// The last event that is on the disk.
    latest: watch::Sender<u64>,
    /// Is called with each event of another server before anybody is told.
    heard: OnceLock<Heard>,
}

#[derive(Clone)]
struct Log {
    head: Head,
    /// In order, without gaps.
    events: VecDeque<Arc<KeptEvent>>,
}

/// Events that are on the disk, and that nobody has been told of.
struct Written {
    /// The head of the log with them.
    head: Head,
    kept: Vec<Arc<KeptEvent>>,
    now_ms: u64,
}

impl Waiting {
    fn settle(self, told: Told) {
        self.told.set(told).expect("it is set in one turn");
    }
}

impl Log {
    /// Whether the events are not the last ones, one after the other.
    fn has_gap(&self) -> bool {
        let mut numbers = self.events.iter().rev().zip((0..=self.head.last).rev());
        numbers.any(|(event, number)| event.sequence() != number)
    }

    /// Reads what is kept, and the head as it is written down.
    fn read(space: &SpaceOf<KeptEvent>, options: EventOptions) -> Result<(Option<Head>, Self), StoreError> {
        let (mut events, mut unreadable) = (VecDeque::<Arc<KeptEvent>>::new(), Vec::new());
        for entry in space.all() {
            match entry? {
                (HEAD, _) => {}
                (_, Some(event)) => {
                    let follows = events.back().is_none_or(|last| last.sequence() + 1 == event.sequence());
                    if !follows {
                        unreadable.extend(events.drain(..).map(|old| PlanKey::numbered(old.sequence())));
                    }
                    events.push_back(Arc::new(event));
                }
                (key, None) => unreadable.push(key),
            }
        }
        let found = Head::read(&**space)?;
        let last = events.back().map_or(0, |event| event.sequence());
        if found.as_ref().is_some_and(|head: &Head| head.last > last) {
            // The last ones are missing: what comes next would not follow.
            unreadable.extend(events.drain(..).map(|old| PlanKey::numbered(old.sequence())));
        }
        if !unreadable.is_empty() {
            tracing::error!(
                count = unreadable.len(),
                "unreadable events, and all events before them, are dropped; watchers list the leases again"
            );
            space.remove(&unreadable)?;
        }
        // Without a head it is a new log: tokens of whatever was here before mean nothing in it.
        let head = found.clone().unwrap_or_else(|| Head { epoch: (options.now_ms)(), ..Head::default() });
        let head = Head { last: head.last.max(last), ..head };
        Ok((found, Self { head, events }))
    }
}

/// A token that is none of this log, or whose successors are kept no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the resume token is unknown to this server, or later events are no longer kept; list the leases and start a new watch"
)]
pub(crate) struct Expired;

impl EventLog {
    /// Reads what is kept. An event that cannot be read ends what can be resumed from before it.
    ///
    /// # Errors
    /// The engine failed.
    pub(crate) fn open(store: Arc<dyn Store>, options: EventOptions) -> Result<Self, StoreError> {
        let space = SpaceOf::<KeptEvent>::new(store);
        let log = deciding(|| {
            space.catch_up();
            let (found, log) = Log::read(&space, options)?;
            if found.as_ref() != Some(&log.head) {
                space.put_all(&[(HEAD, encode_message(&log.head))])?;
            }
            Ok::<_, StoreError>(log)
        })?;
        let latest = watch::Sender::new(log.head.last);
        let (log, waiting, writing, heard) = (Mutex::new(log), Mutex::default(), Mutex::new(false), OnceLock::new());
        Ok(Self { shared: Arc::new(Shared { space, options, log, waiting, writing, latest, heard }) })
    }

    /// Has this called with each event of another server, in order and before anybody is told; once.
    pub(crate) fn when_heard(&self, heard: impl Fn(&KeptEvent) + Send + Sync + 'static) {
        let _known_already = self.shared.heard.set(Box::new(heard));
    }

    /// Learns what other servers have told.
    ///
    /// # Errors
    /// The engine failed.
    pub(crate) fn follow(&self) -> Result<(), StoreError> {
        self.hear(&mut self.shared.writing.lock())
    }

    /// The same, in turn.
    fn hear(&self, is_behind: &mut bool) -> Result<(), StoreError> {
        let changed = self.shared.space.catch_up();
        if changed.is_empty() && !*is_behind {
            return Ok(());
        }
        let was_behind = std::mem::replace(is_behind, true);
        let (mut log, mut gone) = (self.shared.log.lock().clone(), HashSet::new());
        let last = log.head.last;
        for key in changed.iter().filter(|key| **key != HEAD) {
            match self.shared.space.get(key)?.found() {
                Some(event) => log.events.push_back(Arc::new(event)),
                None => drop(gone.insert(*key)),
            }
        }
        log.events.retain(|event| !gone.contains(&PlanKey::numbered(event.sequence())));
        log.head = Head::read(&*self.shared.space)?.unwrap_or_default();
        if was_behind || log.has_gap() {
            // Some were missed, or it is another log: what there is is read again.
            log = Log::read(&self.shared.space, self.shared.options)?.1;
        }
        if let Some(heard) = self.shared.heard.get() {
            log.events.iter().filter(|event| event.sequence() > last).for_each(|event| heard(event));
        }
        let last = log.head.last;
        *self.shared.log.lock() = log;
        self.shared.latest.send_replace(last);
        *is_behind = false;
        Ok(())
    }

    /// Keeps an event, and tells those who watch once it survives a crash. True: there was one. Those that wait for the disk are
    /// written together.
    ///
    /// # Errors
    /// The engine failed; nobody is told.
    pub(crate) fn append(&self, draft: Draft) -> Told {
        let told = Arc::new(OnceLock::new());
        self.shared.waiting.lock().push(Waiting { draft, told: Arc::clone(&told) });
        let mut is_behind = self.shared.writing.lock();
        if let Some(told) = told.get() {
            return told.clone();
        }
        let waiting = std::mem::take(&mut *self.shared.waiting.lock());
        let written = deciding(|| {
            self.hear(&mut is_behind)?;
            let made: Vec<Option<KeptEvent>> = waiting.iter().map(|one| (one.draft.make)()).collect();
            let is_told: Vec<bool> = made.iter().map(Option::is_some).collect();
            let written = self.write(made.into_iter().flatten().collect())?;
            Ok((is_told, written))
        });
        let (is_told, written) = match written {
            Ok(written) => written,
            Err(error) => {
                let error = Arc::new(error);
                waiting.into_iter().for_each(|one| one.settle(Err(Arc::clone(&error))));
                return Err(error);
            }
        };
        let mut kept = written.kept.iter().peekable();
        for (waiting, is_told) in waiting.into_iter().zip(is_told) {
            let Waiting { draft, told } = waiting;
            if let Some(event) = kept.next_if(|_| is_told) {
                (draft.follow)(event);
            }
            told.set(Ok(is_told)).expect("it is set in one turn");
        }
        self.publish(written);
        told.get().cloned().unwrap_or(Ok(false))
    }

    /// Writes events, which it numbers and dates. In turn.
    fn write(&self, new: Vec<KeptEvent>) -> Result<Written, StoreError> {
        let now = (self.shared.options.now_ms)();
        // Who reads the log need not wait for the disk.
        let mut head = self.shared.log.lock().head.clone();
        let (mut kept, mut records) = (Vec::new(), Vec::new());
        for mut event in new {
            head.last += 1;
            event.unix_ms = now;
            event.event.sequence = head.last;
            event.event.resume_token = token(head.epoch, head.last);
            event.event.time = Some(timestamp(clock::shown_ms(now)));
            records.push((PlanKey::numbered(head.last), encode_message(&event)));
            kept.push(Arc::new(event));
        }
        if !kept.is_empty() {
            records.push((HEAD, encode_message(&head)));
            self.shared.space.put_all(&records)?;
        }
        Ok(Written { head, kept, now_ms: now })
    }

    /// Tells of events that were written and followed, and lets old ones go.
    fn publish(&self, Written { head, kept, now_ms }: Written) {
        if kept.is_empty() {
            return;
        }
        let EventOptions { count_max, age_max_ms, .. } = self.shared.options;
        let last = head.last;
        let mut log = self.shared.log.lock();
        log.head = head;
        log.events.extend(kept);
        let outdated = now_ms.saturating_sub(age_max_ms);
        let mut gone = Vec::new();
        while log.events.len() > count_max || log.events.front().is_some_and(|oldest| oldest.unix_ms < outdated) {
            gone.extend(log.events.pop_front().map(|oldest| PlanKey::numbered(oldest.sequence())));
        }
        drop(log);
        self.shared.latest.send_replace(last);
        if !gone.is_empty()
            && let Err(error) = self.shared.space.remove(&gone)
        {
            // The new ones are told of all the same. The old ones are read at the next start, and go after that.
            tracing::error!(error = chain(&error), count = gone.len(), "old events could not be removed");
        }
    }

    /// Has a log that nobody has open go on under another name, as it was brought here from elsewhere: what follows there is unknown
    /// here, and the other way round. Tokens up to now hold in both.
    ///
    /// # Errors
    /// The engine failed.
    pub(crate) fn part_ways(store: &dyn Store, now_ms: u64) -> Result<(), StoreError> {
        let Some(head) = Head::read(store)? else { return Ok(()) };
        store.put_all(&[(HEAD, encode_message(&head.parted(now_ms)))])
    }

    /// Is told of every event.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.shared.latest.subscribe()
    }

    /// The number of the event with this token, the last one for none, and the one before all for [`START`].
    ///
    /// # Errors
    /// Events after it are not there any more.
    pub(crate) fn position(&self, resume_token: &str) -> Result<u64, Expired> {
        let log = self.shared.log.lock();
        if resume_token.is_empty() {
            return Ok(log.head.last);
        }
        let oldest = log.events.front().map_or(log.head.last + 1, |event| event.sequence());
        if resume_token == START {
            return Ok(oldest.saturating_sub(1));
        }
        let (epoch, sequence) = resume_token.split_once('-').ok_or(Expired)?;
        let number = |digits: &str| u64::from_str_radix(digits, 16).map_err(|_| Expired);
        let (epoch, sequence) = (number(epoch)?, number(sequence)?);
        let known = log.head.has(epoch, sequence) && sequence.saturating_add(1) >= oldest;
        if known && token(epoch, sequence) == resume_token { Ok(sequence) } else { Err(Expired) }
    }

    /// The token of an event.
    pub(crate) fn token(&self, sequence: u64) -> String {
        token(self.shared.log.lock().head.epoch, sequence)
    }

    /// At most `limit` events after the one of this number, in order.
    ///
    /// # Errors
    /// Some of them are not there any more.
    pub(crate) fn after(&self, sequence: u64, limit: usize) -> Result<Vec<Arc<KeptEvent>>, Expired> {
        let log = self.shared.log.lock();
        let Some(oldest) = log.events.front().map(|event| event.sequence()) else {
            return if sequence >= log.head.last { Ok(Vec::new()) } else { Err(Expired) };
        };
        let skipped = (sequence + 1).checked_sub(oldest).ok_or(Expired)?;
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        Ok(log.events.iter().skip(skipped).take(limit).map(Arc::clone).collect())
    }

    /// All that are kept, and how far the log has come: keys and records. Waits for what is being written: a lease may
    /// say it already.
    pub(super) fn snapshot(&self) -> Vec<(PlanKey, Vec<u8>)> {
        let (head, events) = {
            let _in_turn = self.shared.writing.lock();
            let log = self.shared.log.lock();
            (log.head.clone(), log.events.clone())
        };
        let record = |event: &Arc<KeptEvent>| (PlanKey::numbered(event.sequence()), encode_message(&**event));
        events.iter().map(record).chain([(HEAD, encode_message(&head))]).collect()
    }

    /// All that are kept, in order.
    pub(crate) fn all(&self) -> Vec<Arc<KeptEvent>> {
        self.shared.log.lock().events.iter().map(Arc::clone).collect()
    }
}

/// Stands for a token: all events that are kept.
pub(crate) const START: &str = "start";

fn token(epoch: u64, sequence: u64) -> String {
    format!("{epoch:016x}-{sequence:016x}")
}

#[cfg(test)]
mod tests;
