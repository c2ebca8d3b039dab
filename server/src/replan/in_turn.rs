//! Making plans anew where several servers share a store: one of them does.

use std::sync::Arc;
use std::time::Duration;

use canopy_database::Role;
use canopy_planner::chain;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::Replanner;
use super::resynthesis::catch_up;
use crate::drain::DrainHandle;

/// How long a server that is silent keeps the others from it.
const HELD_MS: u64 = 3_000;
/// Time between two times that it says so.
const INTERVAL: Duration = Duration::from_millis(750);

impl Replanner {
    /// Makes plans anew until the server drains, while this is the one that does. What two of them do for a moment, both do by
    /// what holds then, and once: who comes second is told so by the store.
    pub(crate) async fn run_in_turn(self, role: Role, drain: DrainHandle) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = drain.started() => return,
                _ = ticks.tick() => {}
            }
            if !holds(&role).await {
                continue;
            }
            tracing::info!("this server makes plans anew for leases");
            tokio::select! {
                () = self.begin_in_turn(drain.clone()) => {}
                () = lost(&role) => tracing::warn!("this server stopped making plans anew for leases"),
            }
            if drain.is_draining() {
                leave(role).await;
                return;
            }
        }
    }

    /// Does what the one before has told of and not done, then goes on.
    async fn begin_in_turn(&self, drain: DrainHandle) {
        let shared = Arc::clone(&self.shared);
        let caught_up = spawn_blocking(move || catch_up(&shared.leases, &shared.events)).await;
        if let Ok(Err(error)) = caught_up {
            tracing::error!(error = chain(&error), "leases could not be made to agree with their events");
        }
        {
            let mut state = self.shared.state.lock();
            state.stirred.extend(self.shared.leases.bases());
        }
        self.clone().run(drain).await;
    }
}

/// Waits until another server has the role, or may have it.
async fn lost(role: &Role) {
    while {
        sleep(INTERVAL).await;
        holds(role).await
    } {}
}

/// Whether this server has the role, for as long as nothing else is said.
async fn holds(role: &Role) -> bool {
    let role = role.clone();
    match spawn_blocking(move || role.hold(HELD_MS)).await {
        Ok(Ok(holds)) => holds,
        Ok(Err(error)) => {
            tracing::debug!(error = chain(&error), "it is not known which server makes plans anew");
            false
        }
        Err(_) => false,
    }
}

async fn leave(role: Role) {
    if let Ok(Err(error)) = spawn_blocking(move || role.leave()).await {
        tracing::debug!(error = chain(&error), "another server makes plans anew only after a while");
    }
}
