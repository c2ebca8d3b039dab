//! Leases, their events and the faults behind them as they are at one time, for a backup of a server that goes on.
//!
//! What follows is taken before what it follows from: leases, then events, then faults. So every lease has the event that
//! says of its plan, and every event the faults that it avoids. What is there without its consequence, such as a fault
//! whose event is not written yet, is what a crash leaves, and the next start goes on from it.

use canopy_planner::PlanKey;

use super::{Lease, Replanner};
use crate::store::Space;

/// What is known at one time.
pub(crate) struct Snapshot {
    leases: Vec<Lease>,
    /// Keys and records.
    events: Vec<(PlanKey, Vec<u8>)>,
    faults: Vec<(PlanKey, Vec<u8>)>,
}

impl Replanner {
    /// What is known now. O(leases + events + faults); the records of leases are shared, not copied.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let leases = self.leases().select(|_| true);
        let events = self.events().snapshot();
        let faults = self.fault_logs().snapshot();
        Snapshot { leases, events, faults }
    }
}

impl Snapshot {
    /// Numbers of leases, faults and records of events.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        (self.leases.len() as u64, self.faults.len() as u64, self.events.len() as u64)
    }

    /// Gives every record to `put`: its space, key, record and summary.
    ///
    /// # Errors
    /// Those of `put`, which end it.
    pub(crate) fn for_each<E>(
        &self,
        mut put: impl FnMut(Space, &PlanKey, (&[u8], &[u8])) -> Result<(), E>,
    ) -> Result<(), E> {
        for (space, records) in [(Space::Replans, &self.events), (Space::Faults, &self.faults)] {
            records.iter().try_for_each(|(key, record)| put(space, key, (record, &[])))?;
        }
        self.leases.iter().try_for_each(|lease| {
            let (key, record, summary) = lease.kept();
            put(Space::Leases, &key, (&record, &summary))
        })
    }
}
