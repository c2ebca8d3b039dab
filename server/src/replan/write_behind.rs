//! Writes down what nobody waits for, and what could not be written when somebody did: again and again, less and less often.

use std::sync::Arc;
use std::time::Duration;

use canopy_planner::chain;
use tokio::task::spawn_blocking;
use tokio::time;

use super::Shared;
use super::resynthesis::tell_expired;
use crate::drain::DrainHandle;
use crate::store::StoreError;

/// Longest time between two looks for something to write.
const INTERVAL: Duration = Duration::from_secs(1);
/// Longest time between two attempts at what cannot be written.
const PAUSE_MAX: Duration = Duration::from_secs(4);

/// Writes until the server drains. What is not written then is found in the events, or found out again, by its successor.
pub(super) async fn run(shared: Arc<Shared>, drain: DrainHandle) {
    let mut failures = 0;
    loop {
        tokio::select! {
            () = wait(&shared, failures) => {}
            () = drain.started() => return,
        }
        let writer = Arc::clone(&shared);
        let written = match spawn_blocking(move || keep_up(&writer)).await {
            Ok(written) => written.map_err(|error| chain(&*error)),
            Err(error) => Err(error.to_string()),
        };
        match written {
            Ok(()) if failures > 0 => {
                tracing::info!(failures, "faults and leases can be written again");
                failures = 0;
            }
            Ok(()) => {}
            Err(error) => {
                failures += 1;
                shared.metrics.count("canopy_replan_write_failures_total", &[]);
                let again_after_s = pause(failures).as_secs();
                tracing::error!(
                    error,
                    failures,
                    again_after_s,
                    "faults and leases cannot be written to disk; reports are refused until they can"
                );
            }
        }
    }
}

/// Waits until there is something to write, or the next attempt is due.
async fn wait(shared: &Shared, failures: u32) {
    match failures {
        0 => {
            let _whether_anything_came = time::timeout(INTERVAL, shared.unwritten.notified()).await;
        }
        failures => time::sleep(pause(failures)).await,
    }
}

/// How long what could not be written so often is left alone.
fn pause(failures: u32) -> Duration {
    INTERVAL.saturating_mul(1 << failures.saturating_sub(1).min(8)).min(PAUSE_MAX)
}

fn keep_up(shared: &Shared) -> Result<(), Arc<StoreError>> {
    let fault_logs = shared.fault_logs.write();
    let expired = shared.leases.expire(|lease| tell_expired(&shared.events, lease));
    if let Ok(count @ 1..) = expired {
        tracing::info!(count, "leases have expired");
        shared.stir.notify_one();
    }
    // Leases behind can be many, and those who wait for the disk come in between.
    let leases = loop {
        match shared.leases.write_behind() {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    fault_logs.map_err(Arc::new).and(expired.map(drop)).and(leases.map_err(Arc::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_become_rarer_but_never_end() {
        let pauses: Vec<u64> = [1, 2, 3, 5, 6, 7, 100, u32::MAX].map(|failures| pause(failures).as_secs()).into();
        assert_eq!(pauses, [1, 2, 4, 4, 4, 4, 4, 4]);
    }
}
