//! Power cuts: whatever was acknowledged is there afterwards, and a change that was on its way is there or is not.
//!
//! Each seed is a sequence of changes and some moments at which the power goes.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::*;
use crate::disk::Disk;
use crate::doubled::DoubledSpace;
use crate::filed::FiledSpace;
use crate::power::{Recording, memory_folder};
use crate::random::{Random, seeds};
use crate::upkeep::Health;

/// Seeds of each test where nothing is said.
const SEEDS: u64 = 300;
/// Most changes in a sequence.
const CHANGES_MAX: usize = 12;
/// Cuts that are tried of one sequence.
const CUTS: usize = 4;
/// Keys that are changed: few, so that most are changed more than once.
const KEYS: usize = 4;

/// What a space holds: records and summaries.
type State = BTreeMap<PlanKey, (Vec<u8>, Vec<u8>)>;

/// A space of one kind.
trait Kind {
    type Space: Store;
    /// Whether several keys are changed at once or not at all.
    const IS_ATOMIC: bool;

    fn open(disk: &Disk, folder: &Path) -> Self::Space;
}

struct Doubled;

impl Kind for Doubled {
    type Space = DoubledSpace;
    const IS_ATOMIC: bool = true;

    fn open(disk: &Disk, folder: &Path) -> DoubledSpace {
        let health = Health::of(folder);
        DoubledSpace::open(disk, folder.join("faults"), "faults", &MemoryStore::default(), health).unwrap().0
    }
}

struct Filed;

impl Kind for Filed {
    type Space = FiledSpace<MemoryStore>;
    const IS_ATOMIC: bool = false;

    /// The engine has lost all of it: the files alone must do.
    fn open(disk: &Disk, folder: &Path) -> FiledSpace<MemoryStore> {
        let health = Health::of(folder);
        FiledSpace::open(disk, MemoryStore::default(), folder.join("leases"), health).unwrap().0
    }
}

fn state_of(space: &impl Store) -> State {
    let mut state = State::new();
    for number in 0..KEYS {
        let key = key(u8::try_from(number).unwrap());
        if let Some(record) = space.get(&key).unwrap() {
            state.insert(key, (record, space.summary(&key).unwrap().unwrap_or_default()));
        }
    }
    state
}

/// A change, to a space and to what it holds.
fn change<K: Kind>(space: &K::Space, state: &mut State, chance: &mut Random) {
    let mut bytes = |most: usize| {
        let byte = u8::try_from(chance.below(256)).unwrap();
        vec![byte; chance.below(most)]
    };
    let (record, other, summary) = (bytes(300), bytes(30), bytes(20));
    let [first, second] = [(); 2].map(|()| key(u8::try_from(chance.below(KEYS)).unwrap()));
    let second = if K::IS_ATOMIC { second } else { first };
    match chance.below(6) {
        0 | 1 => {
            space.put(&first, &record, &summary).unwrap();
            state.insert(first, (record, summary));
        }
        2 if K::IS_ATOMIC => {
            space.put_all(&[(first, record.clone()), (second, other.clone())]).unwrap();
            state.insert(first, (record, Vec::new()));
            state.insert(second, (other, Vec::new()));
        }
        3 => {
            space.remove(&[first, second]).unwrap();
            state.retain(|key, _| *key != first && *key != second);
        }
        _ => {
            let there = [first, second].into_iter().filter(|key| state.contains_key(key)).collect::<Vec<_>>();
            let summaries: Vec<_> = there.iter().map(|key| (*key, summary.clone())).collect();
            space.set_summaries(&summaries, Durability::Synced).unwrap();
            there.iter().for_each(|key| state.get_mut(key).unwrap().1.clone_from(&summary));
        }
    }
}

/// What one sequence leaves behind.
struct Sequence {
    recording: Arc<Recording>,
    /// After each change: how many steps had been done, and what was held.
    held: Vec<(usize, State)>,
}

impl Sequence {
    fn of<K: Kind>(seed: u64, is_synced: bool) -> Self {
        let (folder, mut chance) = (memory_folder(), Random(seed));
        let recording = Arc::new(Recording::below(folder.path(), is_synced));
        let disk = Disk::watched(Arc::clone(&recording) as Arc<_>);
        let space = K::open(&disk, folder.path());
        let mut state = State::new();
        let mut held = vec![(recording.count(), state.clone())];
        for _ in 0..=chance.below(CHANGES_MAX) {
            change::<K>(&space, &mut state, &mut chance);
            held.push((recording.count(), state.clone()));
        }
        assert_eq!(state_of(&space), state, "seed {seed}: without any cut");
        Self { recording, held }
    }

    /// Cuts the power at a moment by chance, and opens what is left: what is held, and what may be.
    fn cut<K: Kind>(&self, chance: &mut Random) -> (State, Vec<&State>) {
        let count = chance.below(self.recording.count() + 1);
        let folder = memory_folder();
        self.recording.leave(count, chance, folder.path());
        let acknowledged = self.held.iter().rposition(|(steps, _)| *steps <= count).unwrap_or_default();
        let may_be = self.held[acknowledged..].iter().take(2).map(|(_, state)| state).collect();
        let found = state_of(&K::open(&Disk::default(), folder.path()));
        // What is found stays, and can be changed.
        let space = K::open(&Disk::default(), folder.path());
        assert_eq!(state_of(&space), found, "opened once more");
        let mut state = found.clone();
        change::<K>(&space, &mut state, chance);
        drop(space);
        assert_eq!(state_of(&K::open(&Disk::default(), folder.path())), state, "changed after the cut");
        (found, may_be)
    }
}

/// Each key with the lengths of its record and summary, whose bytes are all the same.
fn in_short(state: &State) -> String {
    let part = |bytes: &[u8]| format!("{}×{}", bytes.len(), bytes.first().copied().unwrap_or_default());
    let held = state
        .iter()
        .map(|(key, (record, summary))| format!("{}: {}, {}", key.as_bytes()[0], part(record), part(summary)));
    format!("{{{}}}", held.collect::<Vec<_>>().join("; "))
}

/// Tries seeds until one shows a loss; the seed, and what was lost.
fn first_loss<K: Kind>(seeds: std::ops::Range<u64>, is_synced: bool) -> Option<(u64, String)> {
    seeds.into_iter().find_map(|seed| {
        let sequence = Sequence::of::<K>(seed, is_synced);
        let mut chance = Random(!seed);
        (0..CUTS).find_map(|cut| {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let (found, may_be) = sequence.cut::<K>(&mut chance);
                let expected = may_be.iter().map(|state| in_short(state)).collect::<Vec<_>>().join(" or ");
                assert!(may_be.contains(&&found), "{} instead of {expected}", in_short(&found));
            }));
            let problem = |panic: Box<dyn std::any::Any + Send>| {
                let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                (seed, format!("cut {cut}: {text}"))
            };
            outcome.err().map(problem)
        })
    })
}

fn check<K: Kind>() {
    let loss = first_loss::<K>(seeds(SEEDS), true);
    assert_eq!(loss, None);
}

#[test]
fn nothing_of_a_space_in_two_files_is_lost_with_the_power() {
    check::<Doubled>();
}

#[test]
fn nothing_of_a_space_in_files_is_lost_with_the_power() {
    check::<Filed>();
}

/// The simulation finds a space that acknowledges what is not synced.
#[test]
fn an_acknowledgement_before_the_sync_is_found() {
    assert!(first_loss::<Doubled>(1..1000, false).is_some());
    assert!(first_loss::<Filed>(1..1000, false).is_some());
}
