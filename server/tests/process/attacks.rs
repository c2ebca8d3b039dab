//! What a caller of one tenant may try against the others: each attempt is refused, nothing changes, and the others are
//! served as if it were not there.
//!
//! The table of times is printed. `CANOPY_CANOPYD=$PWD/target/release/canopyd CANOPY_LOOKUPS=3000` measures a build that
//! is optimised.

mod attempts;
mod site;
mod victim;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use tonic::Status;

use self::attempts::{ATTACKS, Attack};
use self::site::Site;
use self::victim::Times;
use crate::access::reason;
use crate::support::spawn;

/// Attempts on their way at once.
const AT_ONCE: usize = 4;
/// Pause of each after an attempt.
const PAUSE: Duration = Duration::from_millis(5);

/// Longest time until the first of them is refused.
const PATIENCE: Duration = Duration::from_secs(60);

/// What an attempt is answered; what it may hold is dropped when the attack ends.
type Outcome = Result<Box<dyn std::any::Any + Send>, Status>;

/// What became of the attempts of an attack.
#[derive(Default)]
struct Told {
    /// How many were refused, by the reason.
    refused: BTreeMap<String, u64>,
    taken: Vec<Box<dyn std::any::Any + Send>>,
}

/// An attack that goes on.
struct Running {
    told: Arc<Mutex<Told>>,
    is_over: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Running {
    async fn begin(attack: &Attack, site: &Site) -> Self {
        let (told, is_over) = (Arc::<Mutex<Told>>::default(), Arc::<AtomicBool>::default());
        let number = Arc::new(AtomicU64::new(0));
        let mut tasks = Vec::new();
        for _ in 0..AT_ONCE {
            let (attacker, attempt, most) = (site.attacker().await, attack.attempt, attack.most);
            let (told, is_over, number) = (Arc::clone(&told), Arc::clone(&is_over), Arc::clone(&number));
            tasks.push(spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let number = number.fetch_add(1, Ordering::Relaxed);
                    if number >= most {
                        return;
                    }
                    let outcome = attempt(attacker.clone(), number).await;
                    match outcome {
                        Ok(held) => told.lock().taken.push(held),
                        Err(status) => *told.lock().refused.entry(reason(&status)).or_default() += 1,
                    }
                    sleep(PAUSE).await;
                }
            }));
        }
        Self { told, is_over, tasks }
    }

    /// Ends it. One that is to be refused goes on until it was, on a machine that is busy with other things as well.
    async fn end(self, attack: &Attack) -> (BTreeMap<String, u64>, u64) {
        let is_to_go_on = || attack.may_take < attack.most && self.told.lock().refused.is_empty();
        let waiting = async {
            while is_to_go_on() && self.tasks.iter().any(|task| !task.is_finished()) {
                sleep(PAUSE).await;
            }
        };
        // What has not come by then is missed below.
        let _in_time = timeout(PATIENCE, waiting).await;
        self.is_over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
        let mut told = self.told.lock();
        (std::mem::take(&mut told.refused), told.taken.drain(..).count() as u64)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tenant_tries_against_others_is_refused_and_harms_nobody() {
    let site = Site::open().await;
    let before = site.state().await;
    let mut rows = Vec::new();
    for attack in ATTACKS {
        eprintln!("{} …", attack.name);
        let alone = site.times().await;
        let running = Running::begin(attack, &site).await;
        let beside = site.times().await;
        let (refused, taken) = running.end(attack).await;
        assert_eq!(site.state().await, before, "{}: something of others changed", attack.name);
        assert!(taken <= attack.may_take, "{}: {taken} attempts were let in, {refused:?}", attack.name);
        let others: Vec<&String> =
            refused.keys().filter(|reason| !attack.refused_as.contains(&reason.as_str())).collect();
        assert!(others.is_empty(), "{}: refused as {refused:?}", attack.name);
        assert!(
            !refused.is_empty() || attack.may_take >= attack.most,
            "{}: nothing was refused, {taken} attempts were let in",
            attack.name
        );
        rows.push((attack.name, taken, refused, alone, beside));
    }
    print(&rows);
    site.end().await;
}

type Row = (&'static str, u64, BTreeMap<String, u64>, Times, Times);

fn print(rows: &[Row]) {
    eprintln!("| attack | refused | let in | lookup p99 alone, µs | beside | ratio | new plan alone, ms | beside |");
    eprintln!("|---|---|---|---|---|---|---|---|");
    for (name, taken, refused, alone, beside) in rows {
        let refused: Vec<String> = refused.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        eprintln!(
            "| {name} | {} | {taken} | {} | {} | {:.2} | {:.1} | {:.1} |",
            refused.join(", "),
            alone.lookup_p99.as_micros(),
            beside.lookup_p99.as_micros(),
            beside.lookup_p99.as_secs_f64() / alone.lookup_p99.as_secs_f64(),
            alone.new_plan.as_secs_f64() * 1e3,
            beside.new_plan.as_secs_f64() * 1e3,
        );
    }
}
