//! Servers that are replaced one after the other, as a new version is brought in.

use std::sync::atomic::Ordering;
use std::time::Duration;

use canopy_prerequisites::Commits;
use tokio::time::sleep;

use super::{Cluster, Load, REPLICAS, check_jobs};
use crate::support::{canopyd, canopyd_before};

/// While calls go on, each server drains and another one takes its place: every request is answered, and what a server had begun
/// is not lost. `CANOPY_CANOPYD_BEFORE` names the program of an earlier version, whose servers are replaced first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_replaced_one_after_the_other_while_calls_go_on() {
    let Some(mut cluster) = Cluster::of(canopyd_before, Commits::Unsynced).await else { return };
    let load = Load::on(&cluster);
    let callers = load.callers(7);
    for number in (0..REPLICAS).cycle().take(2 * REPLICAS) {
        let before = load.answered.load(Ordering::Relaxed);
        while load.answered.load(Ordering::Relaxed) < before + 100 {
            sleep(Duration::from_millis(5)).await;
        }
        let old = cluster.replicas[number].take().unwrap();
        old.signal("TERM");
        let folder = tokio::task::spawn_blocking(move || old.end_in_order()).await.unwrap();
        cluster.up.lock().unwrap().remove(&number);
        cluster.replicas[number] = Some(cluster.launch(canopyd(), number, folder));
    }
    load.is_over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    check_jobs(&cluster, &std::iter::once(("replaced", 2 * REPLICAS as u64)).collect()).await;
    // A server that drains gives back what it has begun: nothing has to be noticed by its silence.
    assert_eq!(cluster.query("select count(*) from canopy.jobs where starts > 1"), "0");
}
