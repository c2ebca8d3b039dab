//! A space in two files of its own, each of which has all of it: what one has lost is in the other.
//!
//! For what is small and must not be lost with an engine: faults, what became of leases, pins. Every change is an entry with a digest,
//! appended to both files; the first is synced before anything is acknowledged. What a damaged byte takes from one file is taken from
//! the other, and what neither has any more is counted.
//!
//! | bytes | meaning |
//! |---|---|
//! | 4 | magic `CNPL` |
//! | 1 | 1: a record and its summary; 2: both are removed; 3: a fresh start, before which nothing counts; 4: a summary without a record |
//! | 1 | 1: the next entry belongs to the same change, and none of them counts without it; else 0 |
//! | 2 | 0 |
//! | 8 | number of the entry, little-endian, rising by one |
//! | 32 | key |
//! | 4, 4 | lengths of record and summary, little-endian |
//! | 32 | BLAKE3 of all of the above and what follows |
//! | | record, summary |

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::path::PathBuf;

use canopy_planner::PlanKey;
use parking_lot::Mutex;

use super::disk::{Disk, LogFile};
use super::engine::io_error;
use super::slot::Companion;
use super::upkeep::Health;
use super::{Durability, Store, StoreError};

const MAGIC: [u8; 4] = *b"CNPL";
const HASHED: usize = 56;
const HEADER: usize = HASHED + blake3::OUT_LEN;
/// Names of the two files.
const NAMES: [&str; 2] = ["first.log", "second.log"];
const QUARANTINE: &str = "quarantine";
/// How much of a file may be outdated before it is written anew, beside as much as is not.
const OUTDATED_BYTES_MAX: u64 = 4 << 20;
/// Longest record and summary together; longer ones are damage.
const ENTRY_BYTES_MAX: usize = 64 << 20;

/// What is held under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    record: Option<Vec<u8>>,
    summary: Vec<u8>,
}

impl Held {
    /// Bytes that its entry takes.
    fn entry_bytes(&self) -> u64 {
        (HEADER + self.record.as_ref().map_or(0, Vec::len) + self.summary.len()) as u64
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Put { key: PlanKey, held: Held },
    Removed { key: PlanKey },
    Afresh,
}

/// How whole a space was when it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Damage {
    /// Entries of one file that had to be taken from the other.
    pub(super) mended: u64,
    /// Entries that neither file has.
    pub(super) lost: u64,
}

/// One space. All of it is in memory as well.
pub(super) struct DoubledSpace {
    disk: Disk,
    folder: PathBuf,
    name: &'static str,
    health: Health,
    state: Mutex<State>,
}

struct State {
    held: BTreeMap<PlanKey, Held>,
    files: [Twin; 2],
    /// Number of the last entry.
    last: u64,
    /// Bytes that entries of all that is held take.
    live: u64,
}

/// One of the files.
struct Twin {
    file: LogFile,
    /// Where the next entry goes.
    end: u64,
    /// Whether it lacks something, and is to be written anew.
    is_behind: bool,
}

impl DoubledSpace {
    /// Opens the files in this folder; what neither had before is taken from `earlier`, where the space was kept before there were such
    /// files. O(bytes of the files).
    pub(super) fn open(
        disk: &Disk,
        folder: PathBuf,
        name: &'static str,
        earlier: &dyn Store,
        health: Health,
    ) -> Result<(Self, Damage), StoreError> {
        let failed = |doing| io_error(&folder, doing);
        let make_folder = |path| disk.make_folder(path).map_err(failed("making its folder"));
        make_folder(&folder)?;
        make_folder(&folder.join(QUARANTINE))?;
        let paths = NAMES.map(|name| folder.join(name));
        let read = |path: &PathBuf| {
            Ok::<_, StoreError>(disk.read(path).map_err(failed("reading its files"))?.unwrap_or_default())
        };
        let (first, second) = (read(&paths[0])?, read(&paths[1])?);
        let lengths = [first.len() as u64, second.len() as u64];
        // A file that was written once has an entry at least.
        let is_new = lengths == [0, 0];
        let ((first, first_is_whole), (second, second_is_whole)) = (entries(&first), entries(&second));
        let Merged { held, last, is_cut, damage } = merge(&first, &second);
        let is_whole = first_is_whole && second_is_whole && damage == Damage::default() && !is_cut;
        let is_behind = !(is_whole && first == second);
        let open = |(path, end): (&PathBuf, u64)| {
            let file = LogFile::open(disk, path);
            file.map(|file| Twin { file, end, is_behind }).map_err(failed("opening its files"))
        };
        let [first, second] = [open((&paths[0], lengths[0])), open((&paths[1], lengths[1]))];
        let live = held.values().map(Held::entry_bytes).sum();
        let state = Mutex::new(State { held, files: [first?, second?], last, live });
        let space = Self { disk: disk.clone(), folder, name, health, state };
        let mut state = space.state.lock();
        if is_new {
            for key in earlier.all_keys() {
                let key = key?;
                let (record, summary) = (earlier.get(&key)?, earlier.summary(&key)?.unwrap_or_default());
                state.held.insert(key, Held { record, summary });
            }
        }
        if is_new {
            space.write_anew(&mut state)?;
        } else if is_behind {
            // What is there is read all the same, and this is tried again before anything is changed.
            let _retried = space.write_anew(&mut state);
        }
        drop(state);
        if damage != Damage::default() {
            let Damage { mended, lost } = damage;
            tracing::error!(
                space = name,
                mended,
                lost,
                "a file of a space is damaged; its twin has the missing records"
            );
            space.health.damaged(name, mended + lost);
        }
        Ok((space, damage))
    }

    fn failed(&self, doing: &'static str) -> impl Fn(io::Error) -> StoreError {
        self.health.file_failed(&self.folder, doing)
    }

    /// Writes changes to both files, and then makes them; returns once they survive a crash. All or none.
    fn change(&self, state: &mut State, changes: Vec<Change>) -> Result<(), StoreError> {
        let mut bytes = Vec::new();
        for (number, change) in (state.last + 1..).zip(&changes) {
            let has_more = number < state.last + changes.len() as u64;
            encode((number, has_more), change, &mut bytes);
        }
        if state.files[0].is_behind {
            self.write_anew(state)?;
            // Numbers have moved on.
            return self.change(state, changes);
        }
        state.files[0].append(&bytes, true).map_err(self.failed("writing to its first file"))?;
        state.last += changes.len() as u64;
        for change in changes {
            state.apply(change);
        }
        let second = if state.files[1].is_behind { Ok(()) } else { state.files[1].append(&bytes, false) };
        if let Err(error) = second {
            state.files[1].is_behind = true;
            let _told = self.failed("writing to its second file")(error);
        }
        let outgrown = state.files[0].end > 2 * state.live + OUTDATED_BYTES_MAX;
        if outgrown || state.files[1].is_behind {
            // What is acknowledged is on the disk: this is tried again with the next change.
            let _retried = self.write_anew(state);
        }
        Ok(())
    }

    /// Writes both files anew, with what is held alone, one after the other: at every moment one of them is whole.
    fn write_anew(&self, state: &mut State) -> Result<(), StoreError> {
        let first = state.last + 1;
        let mut bytes = Vec::new();
        encode((first, false), &Change::Afresh, &mut bytes);
        for (number, (key, held)) in (first + 1..).zip(&state.held) {
            encode((number, false), &Change::Put { key: *key, held: held.clone() }, &mut bytes);
        }
        // The whole one last.
        let order = if state.files[0].is_behind { [0, 1] } else { [1, 0] };
        for position in order {
            // It keeps what it has; what is added to it alone would have other numbers than in its twin.
            state.files[position].is_behind = true;
            let name = NAMES[position];
            let written = self.disk.replace(&self.folder.join(name), &[&bytes], Durability::Synced);
            let file = written.map_err(self.failed("writing its files anew"))?;
            state.files[position] = Twin { file, end: bytes.len() as u64, is_behind: false };
            // These numbers are taken from now on, whatever becomes of the other file.
            state.last = first + state.held.len() as u64;
            state.live = bytes.len() as u64;
        }
        Ok(())
    }
}

impl Twin {
    /// Adds bytes at the end; what has come of an attempt that fails is cut off again.
    fn append(&mut self, bytes: &[u8], synced: bool) -> io::Result<()> {
        let written = self.file.write_at(self.end, bytes);
        let written = written.and_then(|()| if synced { self.file.sync() } else { Ok(()) });
        match written {
            Ok(()) => self.end += bytes.len() as u64,
            Err(_) => {
                // Else the next one is written over it, or all of it anew.
                self.is_behind = self.file.cut(self.end).and_then(|()| self.file.sync()).is_err();
            }
        }
        written
    }
}

impl State {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Put { key, held } => {
                self.live += held.entry_bytes();
                self.live -= self.held.insert(key, held).map_or(0, |old| old.entry_bytes());
            }
            Change::Removed { key } => self.live -= self.held.remove(&key).map_or(0, |old| old.entry_bytes()),
            Change::Afresh => self.held.clear(),
        }
    }
}

impl Store for DoubledSpace {
    fn get(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.state.lock().held.get(key).and_then(|held| held.record.clone()))
    }

    fn put(&self, key: &PlanKey, record: &[u8], summary: &[u8]) -> Result<(), StoreError> {
        let held = Held { record: Some(record.to_vec()), summary: summary.to_vec() };
        self.change(&mut self.state.lock(), vec![Change::Put { key: *key, held }])
    }

    fn put_all(&self, records: &[(PlanKey, Vec<u8>)]) -> Result<(), StoreError> {
        let put = |(key, record): &(PlanKey, Vec<u8>)| {
            let held = Held { record: Some(record.clone()), summary: Vec::new() };
            Change::Put { key: *key, held }
        };
        self.change(&mut self.state.lock(), records.iter().map(put).collect())
    }

    fn remove(&self, keys: &[PlanKey]) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        let there = keys.iter().filter(|key| state.held.contains_key(key));
        let gone: Vec<Change> = there.map(|key| Change::Removed { key: *key }).collect();
        if gone.is_empty() { Ok(()) } else { self.change(&mut state, gone) }
    }

    fn quarantine(&self, key: &PlanKey) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        let Some(held) = state.held.get(key) else { return Ok(()) };
        if let Some(record) = &held.record {
            let aside = self.folder.join(QUARANTINE).join(key.to_string());
            let written = self.disk.replace(&aside, &[record], Durability::Synced);
            written.map_err(self.failed("quarantining a record"))?;
        }
        self.health.damaged(self.name, 1);
        self.change(&mut state, vec![Change::Removed { key: *key }])
    }

    fn summary(&self, key: &PlanKey) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.state.lock().held.get(key).map(|held| held.summary.clone()))
    }

    fn set_summaries(&self, summaries: &[(PlanKey, Vec<u8>)], _: Durability) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        let put = |(key, summary): &(PlanKey, Vec<u8>)| {
            let record = state.held.get(key).and_then(|held| held.record.clone());
            Change::Put { key: *key, held: Held { record, summary: summary.clone() } }
        };
        let changes = summaries.iter().map(put).collect();
        self.change(&mut state, changes)
    }

    fn summaries(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<(PlanKey, Vec<u8>)>, StoreError> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let state = self.state.lock();
        let listed = state.held.range((from, Bound::Unbounded)).take(limit);
        Ok(listed.map(|(key, held)| (*key, held.summary.clone())).collect())
    }

    fn keys(&self, after: Option<&PlanKey>, limit: usize) -> Result<Vec<PlanKey>, StoreError> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let state = self.state.lock();
        let there = state.held.range((from, Bound::Unbounded)).filter(|(_, held)| held.record.is_some());
        Ok(there.take(limit).map(|(key, _)| *key).collect())
    }

    fn quarantined_count(&self) -> Result<usize, StoreError> {
        let aside = self.disk.names(&self.folder.join(QUARANTINE));
        Ok(aside.map_err(io_error(&self.folder, "counting its quarantine"))?.len())
    }
}

impl Companion for DoubledSpace {
    /// What was refused may still be at the end of a file, where a start would find it.
    fn agree(&self, _: bool) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if state.files.iter().any(|file| file.is_behind) { self.write_anew(&mut state) } else { Ok(()) }
    }
}

fn encode((number, has_more): (u64, bool), change: &Change, bytes: &mut Vec<u8>) {
    let none = PlanKey::from_bytes([0; 32]);
    let (kind, key, record, summary): (u8, &PlanKey, &[u8], &[u8]) = match change {
        Change::Put { key, held: Held { record: Some(record), summary } } => (1, key, record, summary),
        Change::Put { key, held: Held { record: None, summary } } => (4, key, &[], summary),
        Change::Removed { key } => (2, key, &[], &[]),
        Change::Afresh => (3, &none, &[], &[]),
    };
    let start = bytes.len();
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&[kind, has_more.into(), 0, 0]);
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(key.as_bytes());
    for part in [record, summary] {
        let length = u32::try_from(part.len()).expect("records of these spaces are far below 4 GiB");
        bytes.extend_from_slice(&length.to_le_bytes());
    }
    let digest = blake3::Hasher::new().update(&bytes[start..]).update(record).update(summary).finalize();
    bytes.extend_from_slice(digest.as_bytes());
    bytes.extend_from_slice(record);
    bytes.extend_from_slice(summary);
}

/// Entries by their numbers.
type Entries = BTreeMap<u64, Entry>;

/// An entry of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    change: Change,
    /// Whether the next entry belongs to the same change.
    has_more: bool,
}

/// The intact entries of a file, and whether that is all of it. Damaged places are passed over, to the next entry.
fn entries(file: &[u8]) -> (Entries, bool) {
    let (mut found, mut rest, mut is_whole) = (BTreeMap::new(), file, true);
    while rest.len() >= HEADER {
        match entry(rest) {
            Some((number, entry, length)) => {
                found.insert(number, entry);
                rest = rest.get(length..).unwrap_or_default();
            }
            None => {
                is_whole = false;
                let next = rest.windows(MAGIC.len()).skip(1).position(|window| window == MAGIC);
                rest = next.and_then(|next| rest.get(next + 1..)).unwrap_or_default();
            }
        }
    }
    (found, is_whole && rest.is_empty())
}

/// The entry at the start of these bytes, its number and its length.
fn entry(bytes: &[u8]) -> Option<(u64, Entry, usize)> {
    let header = bytes.first_chunk::<HEADER>()?;
    let (fields, digest) = header.split_first_chunk::<HASHED>()?;
    let number = u64::from_le_bytes(*fields.get(8..)?.first_chunk()?);
    let key = PlanKey::from_bytes(*fields.get(16..)?.first_chunk()?);
    let length =
        |at: usize| -> Option<usize> { usize::try_from(u32::from_le_bytes(*fields.get(at..)?.first_chunk()?)).ok() };
    let (record, summary) = (length(48)?, length(52)?);
    let is_plain = fields.starts_with(&MAGIC) && record.checked_add(summary)? <= ENTRY_BYTES_MAX;
    let payload = bytes.get(HEADER..HEADER.checked_add(record)?.checked_add(summary)?).filter(|_| is_plain)?;
    if blake3::Hasher::new().update(fields).update(payload).finalize().as_bytes() != digest {
        return None;
    }
    let (record, summary) = payload.split_at_checked(record)?;
    let change = match fields.get(4)? {
        1 => Change::Put { key, held: Held { record: Some(record.to_vec()), summary: summary.to_vec() } },
        4 => Change::Put { key, held: Held { record: None, summary: summary.to_vec() } },
        2 => Change::Removed { key },
        3 => Change::Afresh,
        _ => return None,
    };
    let has_more = *fields.get(5)? != 0;
    Some((number, Entry { change, has_more }, HEADER + payload.len()))
}

/// What two files hold together.
struct Merged {
    held: BTreeMap<PlanKey, Held>,
    /// Number of the last entry.
    last: u64,
    /// Whether the last change is not whole: it was never acknowledged, and does not count.
    is_cut: bool,
    damage: Damage,
}

fn merge(first: &Entries, second: &Entries) -> Merged {
    let mut all: BTreeMap<u64, &Entry> = second.iter().map(|(number, entry)| (*number, entry)).collect();
    all.extend(first.iter().map(|(number, entry)| (*number, entry)));
    let last = all.last_key_value().map_or(0, |(number, _)| *number);
    let is_cut = all.last_key_value().is_some_and(|(_, entry)| entry.has_more);
    while all.last_key_value().is_some_and(|(_, entry)| entry.has_more) {
        all.pop_last();
    }
    let fresh = all.iter().rev().find(|(_, entry)| entry.change == Change::Afresh).map(|(number, _)| *number);
    let begin = fresh.unwrap_or_else(|| all.first_key_value().map_or(0, |(number, _)| *number));
    let counting = || all.range(begin..);
    let span = all.last_key_value().map_or(0, |(last, _)| last - begin + 1);
    let there = counting().count() as u64;
    // What the second file lacks at its end was not synced. A first file that is all older is one that was not written anew yet.
    let mended = match (first.last_key_value(), second.is_empty()) {
        (Some((number, _)), _) if *number < begin => 0,
        (None, is_empty) => u64::from(!is_empty),
        _ => counting().filter(|(number, _)| !first.contains_key(number)).count() as u64,
    };
    let of_second = second.range(begin..).next_back().map_or(0, |(number, _)| *number);
    let inside = counting().filter(|(number, _)| **number <= of_second && !second.contains_key(number)).count() as u64;
    let damage = Damage { mended: mended + inside, lost: span - there };
    let mut held_by_key = BTreeMap::new();
    for (_, entry) in counting() {
        match &entry.change {
            Change::Put { key, held } => {
                held_by_key.insert(*key, held.clone());
            }
            Change::Removed { key } => {
                held_by_key.remove(key);
            }
            Change::Afresh => held_by_key.clear(),
        }
    }
    Merged { held: held_by_key, last, is_cut, damage }
}

#[cfg(test)]
mod tests;
