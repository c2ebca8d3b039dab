//! Watches of leases: one that stays open and sees everything, and some that leave and resume.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use canopy_proto::v1::{ReplanEvent, WatchLeasesRequest, replan_event};
use tokio::time::timeout;

use super::caller::Caller;
use super::ledger::Kind;

/// Longest silence of a watch: the server sends a sign of life every half minute.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// What became of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// From one plan to another.
    Superseded {
        old: String,
        new: String,
    },
    Lost,
    Expired,
}

/// An event, without what this program does not compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) lease: String,
    pub(super) job: String,
    pub(super) change: Change,
}

/// What one watch has seen, by sequence, and what was wrong with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Witnessed {
    pub(super) events: BTreeMap<u64, Seen>,
    pub(super) problems: Vec<String>,
    pub(super) resumed: u64,
}

/// Shared with the watch that writes it.
pub(super) type Witness = Arc<Mutex<Witnessed>>;

/// Copies what a watch has seen so far.
pub(super) fn witnessed(witness: &Witness) -> Witnessed {
    witness.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Follows the events of a job, or of all jobs. A watch with `patience` leaves that long after it was opened, at most, and
/// resumes after the last event that it has seen.
pub(super) struct Watch {
    pub(super) job: String,
    pub(super) patience: Option<Duration>,
    pub(super) witness: Witness,
}

impl Watch {
    /// Watches until it is aborted: events follow the end of the load, too.
    pub(super) async fn follow(self, mut caller: Caller) {
        let mut token = String::new();
        let mut last = None;
        loop {
            let asked = WatchLeasesRequest { resume_token: token.clone(), lease: String::new(), job: self.job.clone() };
            let call = caller.client.watch_leases(asked, SILENCE_MAX);
            let mut events = match caller.call(Kind::WatchLeases, call).await {
                Ok(events) => events,
                Err(reason) => {
                    self.note(|seen| seen.problems.push(format!("a watch was refused: {reason}")));
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            let patience = self.patience.map(|most| most.mul_f64((1 + caller.random.below(100)) as f64 / 100.0));
            let reading = async {
                loop {
                    match events.next().await {
                        Ok(event) => {
                            event.resume_token.clone_into(&mut token);
                            self.take(event, &mut last);
                        }
                        Err(error) => return error,
                    }
                }
            };
            match patience {
                Some(patience) => match timeout(patience, reading).await {
                    Ok(error) => self.note(|seen| seen.problems.push(format!("a watch ended: {error}"))),
                    Err(_) => self.note(|seen| seen.resumed += 1),
                },
                None => {
                    let error = reading.await;
                    self.note(|seen| seen.problems.push(format!("a watch ended: {error}")));
                }
            }
        }
    }

    fn note(&self, change: impl FnOnce(&mut Witnessed)) {
        change(&mut self.witness.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Notes an event; its place must follow the last one's, directly if the watch sees all jobs.
    fn take(&self, event: ReplanEvent, last: &mut Option<u64>) {
        let change = match event.event {
            Some(replan_event::Event::Superseded(superseded)) => {
                Change::Superseded { old: superseded.old_plan, new: superseded.new_plan }
            }
            Some(replan_event::Event::Lost(_)) => Change::Lost,
            Some(replan_event::Event::Expired(_)) => Change::Expired,
            Some(replan_event::Event::Idle(_) | replan_event::Event::Started(_)) | None => return,
        };
        let sequence = event.sequence;
        let follows = last.is_none_or(|last| if self.job.is_empty() { sequence == last + 1 } else { sequence > last });
        let before = last.replace(sequence);
        self.note(|seen| {
            if !follows {
                seen.problems.push(format!("event {sequence} follows {before:?}"));
            }
            seen.events.insert(sequence, Seen { lease: event.lease, job: event.job, change });
        });
    }
}

/// What a watch that left and resumed has missed, or has seen besides, compared with one that stayed.
pub(super) fn compare(stayed: &Witnessed, resumed: &Witnessed, job: &str) -> Vec<String> {
    let Some((&first, _)) = resumed.events.first_key_value() else { return Vec::new() };
    let wanted = stayed.events.range(first..).filter(|(_, seen)| job.is_empty() || seen.job == job);
    let missed = wanted.filter(|(sequence, seen)| resumed.events.get(sequence) != Some(seen));
    let missed = missed.map(|(sequence, _)| format!("event {sequence} did not reach a watch that resumed"));
    let besides = resumed.events.iter().filter(|(sequence, seen)| stayed.events.get(sequence) != Some(seen));
    missed.chain(besides.map(|(sequence, _)| format!("event {sequence} reached only a watch that resumed"))).collect()
}

/// What does not follow from one event of a lease to the next: each replaces the plan that the one before brought. `held` are
/// the leases with their first plans, and `current` their plans at the end.
pub(super) fn broken_chains(
    stayed: &Witnessed,
    held: &BTreeMap<String, String>,
    current: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut problems = Vec::new();
    for (lease, first) in held {
        let mut plan = Some(first.clone());
        for (sequence, seen) in stayed.events.iter().filter(|(_, seen)| seen.lease == *lease) {
            match &seen.change {
                Change::Superseded { old, new } => {
                    if plan.as_ref().is_some_and(|plan| plan != old) {
                        problems.push(format!("event {sequence} of {lease} replaces {old}, not {plan:?}"));
                    }
                    plan = Some(new.clone());
                }
                Change::Lost => plan = None,
                Change::Expired => problems.push(format!("{lease} expired although it was renewed")),
            }
        }
        if plan.is_some() && current.get(lease) != plan.as_ref() {
            problems.push(format!("{lease} has the plan {:?}; its last event says {plan:?}", current.get(lease)));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn superseded(old: &str, new: &str) -> Seen {
        let change = Change::Superseded { old: old.to_owned(), new: new.to_owned() };
        Seen { lease: "l".to_owned(), job: "j".to_owned(), change }
    }

    fn witnessed(events: &[(u64, Seen)]) -> Witnessed {
        Witnessed { events: events.iter().cloned().collect(), ..Witnessed::default() }
    }

    fn map(plan: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("l".to_owned(), plan.to_owned())])
    }

    #[test]
    fn a_missing_event_breaks_the_chain_of_its_lease() {
        let events = [(1, superseded("a", "b")), (2, superseded("b", "c")), (3, superseded("c", "a"))];
        assert_eq!(broken_chains(&witnessed(&events), &map("a"), &map("a")), [""; 0]);
        for missing in 0..events.len() {
            let mut some = events.to_vec();
            some.remove(missing);
            assert!(!broken_chains(&witnessed(&some), &map("a"), &map("a")).is_empty(), "{missing}");
        }
    }

    #[test]
    fn a_watch_that_missed_an_event_is_found_out() {
        let events = [(1, superseded("a", "b")), (2, superseded("b", "c")), (3, superseded("c", "a"))];
        let all = witnessed(&events);
        assert_eq!(compare(&all, &witnessed(&events[1..]), "j"), [""; 0]);
        assert_eq!(compare(&all, &witnessed(&[events[0].clone(), events[2].clone()]), "").len(), 1);
        assert_eq!(compare(&witnessed(&events[..2]), &all, "").len(), 1);
    }
}
