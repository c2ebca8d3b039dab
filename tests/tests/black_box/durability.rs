//! Nothing acknowledged is lost: `canopyd` is killed at random moments under mixed load, again and again.
//!
//! `CANOPY_CRASH_ROUNDS` sets the number of rounds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use canopy_tests::{Bench, Daemon};

/// Rounds where nothing else is asked for.
const ROUNDS: u64 = 3;
/// Callers at a time.
const CALLERS: u64 = 4;

const COLLECTIVES: [&str; 3] = ["allgather", "reduce-scatter", "broadcast"];

/// A generator of chance that can be repeated (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// A position in a list that is not empty.
    fn position(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("less than the length")
    }
}

/// A request, by which a plan is found again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wish {
    topology: String,
    collective: &'static str,
}

/// Plans of another server, in a file that can be imported.
struct Archive {
    path: String,
    plans: BTreeMap<Wish, (String, Vec<u8>)>,
    pinned: BTreeSet<String>,
}

impl Archive {
    /// Makes some plans on a server of their own, pins them and exports them.
    fn prepare() -> (Bench, Self) {
        let bench = Bench::default();
        let daemon = Daemon::start(&bench, &[]);
        let number = AtomicU64::new(0);
        // The last ones are among those that the callers ask for, too.
        let topologies = (2..8).map(|ranks| format!("ring:{ranks},lat=1us")).chain((2..6).map(callers_ring));
        let plans: BTreeMap<_, _> = topologies
            .map(|topology| {
                let wish = Wish { topology, collective: COLLECTIVES[0] };
                let (plan, content, _) = ask(&bench, daemon.address(), &wish, &number).expect("the server delivers");
                (wish, (plan, content))
            })
            .collect();
        // Every second one: an import brings pins, and takes none away.
        let pinned: BTreeSet<String> = plans.values().step_by(2).map(|(plan, _)| plan.clone()).collect();
        for plan in &pinned {
            bench.canopy(&["plans", "pin", plan, "--server", daemon.address()]).exits(0);
        }
        let path = bench.file("plans.canopy").to_str().expect("temporary paths are text").to_owned();
        bench.canopy(&["plans", "export", "--all", "-o", &path, "--server", daemon.address()]).exits(0);
        (bench, Self { path, plans, pinned })
    }
}

/// One of the rings that callers ask for.
fn callers_ring(ranks: u64) -> String {
    format!("ring:{ranks},bw={}GB/s", ranks * 7)
}

/// What the server has acknowledged.
#[derive(Default)]
struct Acknowledged {
    plans: BTreeMap<Wish, (String, Vec<u8>)>,
    pinned: BTreeSet<String>,
    import_count: u64,
}

struct Load<'a> {
    bench: &'a Bench,
    archive: &'a Archive,
    address: String,
    over: AtomicBool,
    file_number: AtomicU64,
    acknowledged: Mutex<Acknowledged>,
}

impl Load<'_> {
    /// Asks for plans, pins them and imports others until the server is gone.
    fn run(&self, mut chance: Chance) {
        while !self.over.load(Ordering::Relaxed) {
            match chance.below(8) {
                0 => self.import(),
                1 | 2 => self.pin(&mut chance),
                _ => self.plan(&mut chance),
            }
        }
    }

    fn plan(&self, chance: &mut Chance) {
        let topology = match chance.below(8) {
            0 => format!("dgx-a100:boxes=2,lat={}ns", chance.below(1000)),
            1 | 2 => callers_ring(2 + chance.below(12)),
            _ => format!("ring:{},bw={}GB/s", 2 + chance.below(12), 1 + chance.below(100)),
        };
        let collective = COLLECTIVES[chance.position(COLLECTIVES.len())];
        let wish = Wish { topology, collective };
        if let Some((plan, content, _)) = ask(self.bench, &self.address, &wish, &self.file_number) {
            let mut acknowledged = self.acknowledged.lock().expect("no caller panics");
            let known = acknowledged.plans.entry(wish.clone()).or_insert_with(|| (plan.clone(), content.clone()));
            assert_eq!(*known, (plan, content), "{wish:?} was answered with two plans");
        }
    }

    /// Imports the archive: from then on its plans and their pins must be there.
    fn import(&self) {
        if self.bench.canopy(&["plans", "import", &self.archive.path, "--server", &self.address]).status != Some(0) {
            return;
        }
        let mut acknowledged = self.acknowledged.lock().expect("no caller panics");
        acknowledged.import_count += 1;
        acknowledged.pinned.extend(self.archive.pinned.iter().cloned());
        for (wish, plan) in &self.archive.plans {
            let known = acknowledged.plans.entry(wish.clone()).or_insert_with(|| plan.clone());
            assert_eq!(known, plan, "{wish:?} was imported as another plan");
        }
    }

    fn pin(&self, chance: &mut Chance) {
        let plan = {
            let acknowledged = self.acknowledged.lock().expect("no caller panics");
            let picked = chance.position(acknowledged.plans.len().max(1));
            acknowledged.plans.values().nth(picked).map(|(plan, _)| plan.clone())
        };
        let Some(plan) = plan else { return };
        if self.bench.canopy(&["plans", "pin", &plan, "--server", &self.address]).status == Some(0) {
            self.acknowledged.lock().expect("no caller panics").pinned.insert(plan);
        }
    }
}

/// Id and bytes of a plan and how the cache took part, or nothing if the server did not deliver it.
fn ask(bench: &Bench, address: &str, wish: &Wish, number: &AtomicU64) -> Option<(String, Vec<u8>, String)> {
    let path = bench.file(&format!("plan-{}.xml", number.fetch_add(1, Ordering::Relaxed)));
    let name = path.to_str().expect("temporary paths are text");
    let arguments = ["plan", &wish.topology, "--collective", wish.collective, "--format", "msccl-xml", "-o", name];
    let run = bench.canopy(&[&arguments[..], &["--json", "--server", address]].concat());
    if run.status != Some(0) {
        return None;
    }
    let reply = run.json();
    let content = fs::read(&path).expect("a plan that was acknowledged is there");
    fs::remove_file(&path).expect("the file is this test's");
    let text = |name: &str| reply[name].as_str().expect("the reply names it").to_owned();
    Some((text("plan"), content, text("cache")))
}

/// Asserts that the server on the folder still has everything.
fn everything_is_there(bench: &Bench, address: &str, acknowledged: &Acknowledged, number: &AtomicU64) {
    for (wish, (plan, content)) in &acknowledged.plans {
        let (id, found, cache) = ask(bench, address, wish, number).expect("the server delivers");
        assert_eq!((&id, &found, cache.as_str()), (plan, content, "hit"), "{wish:?} is not what was acknowledged");
    }
    let list =
        bench.canopy(&["plans", "list", "--filter", "pinned=true", "--limit", "100000", "--json", "--server", address]);
    let list = list.exits(0).json();
    let pinned: BTreeSet<&str> =
        list["plans"].as_array().expect("a list").iter().filter_map(|plan| plan["plan"].as_str()).collect();
    for plan in &acknowledged.pinned {
        assert!(pinned.contains(plan.as_str()), "the pin of {plan} was acknowledged and is gone");
    }
}

#[test]
fn what_was_acknowledged_survives_kills_at_random_moments() {
    let rounds = std::env::var("CANOPY_CRASH_ROUNDS").map_or(ROUNDS, |text| text.parse().expect("a number of rounds"));
    let bench = Bench::default();
    let (_its_files, archive) = Archive::prepare();
    let file_number = AtomicU64::new(0);
    let mut acknowledged = Acknowledged::default();
    for round in 0..rounds {
        let mut daemon = Daemon::start(&bench, &[]);
        let load = Load {
            bench: &bench,
            archive: &archive,
            address: daemon.address().to_owned(),
            over: AtomicBool::new(false),
            file_number: AtomicU64::new(file_number.load(Ordering::Relaxed)),
            acknowledged: Mutex::new(acknowledged),
        };
        let mut chance = Chance(round);
        let moment = Duration::from_millis(50 + chance.below(1500));
        thread::scope(|scope| {
            let (running, all_ended) = mpsc::channel::<()>();
            for caller in 0..CALLERS {
                let (load, running) = (&load, running.clone());
                scope.spawn(move || {
                    load.run(Chance(round * CALLERS + caller + 1_000_000));
                    drop(running);
                });
            }
            drop(running);
            // The callers go on until they are told, so this always takes the whole time.
            assert_eq!(all_ended.recv_timeout(moment), Err(RecvTimeoutError::Timeout));
            daemon.kill();
            load.over.store(true, Ordering::Relaxed);
        });
        file_number.store(load.file_number.load(Ordering::Relaxed), Ordering::Relaxed);
        acknowledged = load.acknowledged.into_inner().expect("no caller panics");
        let checked = canopy_tests::Run::from(bench.command("canopyd").arg("fsck").output().expect("canopyd starts"));
        checked.exits(0);
        let daemon = Daemon::start(&bench, &[]);
        everything_is_there(&bench, daemon.address(), &acknowledged, &file_number);
    }
    assert!(!acknowledged.plans.is_empty() && !acknowledged.pinned.is_empty(), "the load did nothing");
    assert!(acknowledged.import_count > 0, "nothing was imported in {rounds} rounds");
}

/// A prefetch is acknowledged before its network has been read: it must be made all the same.
#[test]
fn a_prefetch_that_was_acknowledged_outlives_a_kill_at_once() {
    for topology in ["ring:11", "dgx-a100:boxes=4", "mi250:boxes=2,gpus=8", "hypercube:5"] {
        let bench = Bench::default();
        let mut daemon = Daemon::start(&bench, &[]);
        let server = ["--server", daemon.address()];
        let arguments = ["prefetch", topology, "--job", "17", "--strict", "-c", "allgather"];
        bench.canopy(&[&arguments[..], &server].concat()).exits(0);
        daemon.kill();
        let daemon = Daemon::start(&bench, &[]);
        // Joins the job that was resumed, or finds its plan; a server that had forgotten it would plan it anew.
        let name = bench.file("plan.xml");
        let name = name.to_str().expect("temporary paths are text");
        let arguments = ["plan", topology, "-c", "allgather", "--format", "msccl-xml", "-o", name, "--json"];
        let reply = bench.canopy(&[&arguments[..], &["--server", daemon.address()]].concat()).exits(0).json();
        let cache = reply["cache"].as_str().expect("the reply names it");
        assert!(cache == "hit" || cache == "joined", "{topology}: {cache}");
    }
}
