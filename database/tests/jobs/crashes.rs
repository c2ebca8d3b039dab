//! Jobs of servers whose database crashes.

use super::*;

/// What the threads of a test of crashes share.
#[derive(Default)]
struct Load {
    is_over: AtomicBool,
    asked: AtomicU64,
    acknowledged: AtomicU64,
    ended: AtomicU64,
}

/// Jobs that wait at most.
const WAITING_MAX: u64 = 500;

impl Load {
    /// Asks for one plan after the other; returns what was acknowledged: jobs and what they are for.
    fn ask(&self, jobs: &Jobs) -> BTreeMap<i64, u32> {
        let mut acknowledged = BTreeMap::new();
        let mut numbers = jobs.numbers().unwrap().map(|number| i64::try_from(number).unwrap());
        while !self.is_over.load(Ordering::Relaxed) {
            let own = u32::try_from(self.asked.fetch_add(1, Ordering::Relaxed)).unwrap();
            let Some(operation) = numbers.next() else { continue };
            let entry = own.to_le_bytes().to_vec();
            let job = NewJob { operation, key: key(own), is_detached: true, entry, ..NewJob::default() };
            if let Ok(submitted) = jobs.submit(&job, LIFETIME) {
                acknowledged.insert(submitted.job, own);
                self.acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            thread::sleep(Duration::from_millis(1));
            // A line that grows makes each claim take longer, and on a busy machine it would for ever.
            let is_behind = || {
                let [acknowledged, ended] =
                    [&self.acknowledged, &self.ended].map(|count| count.load(Ordering::Relaxed));
                acknowledged > ended + WAITING_MAX && !self.is_over.load(Ordering::Relaxed)
            };
            while is_behind() {
                thread::sleep(Duration::from_millis(1));
            }
        }
        acknowledged
    }

    /// Makes plans until none is asked for.
    fn work(&self, jobs: &Jobs, records: &SharedSpace) {
        let mut has_said_so = false;
        loop {
            match jobs.claim(ANY) {
                Ok(Some(claimed)) => {
                    let write = Write::Put { record: claimed.entry, summary: Vec::new() };
                    let changes = vec![Change { key: claimed.key, write }];
                    let end = || {
                        let end = end(JobState::Succeeded, b"");
                        jobs.end(claimed.right, &end, Some((records, changes.clone())))
                    };
                    let mut done = end();
                    // It is this server's until it has ended it, or given it back.
                    while matches!(done, Err(DatabaseError::Away { .. })) {
                        thread::sleep(Duration::from_millis(10));
                        done = end();
                    }
                    self.ended.fetch_add(u64::from(done.is_ok()), Ordering::Relaxed);
                    has_said_so = false;
                }
                Ok(None) if has_said_so && self.is_over.load(Ordering::Relaxed) => return,
                // What it has taken without hearing of it is taken again.
                Ok(None) | Err(_) => has_said_so = jobs.say_there().is_ok(),
            }
        }
    }

    /// Waits until so many more have ended: a crash counts only while all are at work.
    fn wait_for(&self, more: u64) {
        let before = self.ended.load(Ordering::Relaxed);
        while self.ended.load(Ordering::Relaxed) < before + more {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_crash_of_the_database_loses_no_job_and_none_has_half_a_plan() {
    const ROUNDS: usize = 3;
    let Some(postgres) = Postgres::new(Commits::Synced) else { return };
    let address = postgres.database();
    let open_records = || SharedRecords::open(&open(&address), &[(1, true)]).unwrap().space(1);
    let join = |name: &str| Jobs::join(&open(&address), who(name, "class")).unwrap();
    let load = Load::default();
    let acknowledged = thread::scope(|scope| {
        let callers = ["one", "other"].map(|name| (join(name), &load));
        let callers = callers.map(|(jobs, load)| scope.spawn(move || load.ask(&jobs)));
        for name in ["worker", "another"] {
            let (jobs, records, load) = (join(name), open_records(), &load);
            scope.spawn(move || load.work(&jobs, &records));
        }
        for _ in 0..ROUNDS {
            load.wait_for(50);
            postgres.kill();
            postgres.begin();
        }
        load.wait_for(50);
        load.is_over.store(true, Ordering::Relaxed);
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect::<BTreeMap<i64, u32>>()
    });
    let (last, records) = (join("last"), open_records());
    let numbers: Vec<i64> = acknowledged.keys().copied().collect();
    let found = last.look(&numbers).unwrap();
    assert_eq!(found.len(), acknowledged.len(), "none is lost");
    for now in found {
        let record = records.record(&now.key).unwrap();
        assert_eq!(record.as_deref(), Some(acknowledged[&now.job].to_le_bytes().as_slice()), "{now:?}");
        assert_eq!(now.state, JobState::Succeeded);
    }
}
