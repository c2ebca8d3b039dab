//! Which elements of the network the words of a feed are about, and the count of all that was said.

use std::collections::{BTreeMap, BTreeSet};

use canopy_faults::feeds::Item;
use canopy_faults::{Directory, Event, Loss, Remaining, Target};
use canopy_topology::Topology;
use serde::Serialize;

use super::Received;
use crate::exit::words;
use crate::messages::say;
use crate::table::count;

/// Names of devices that are remembered, so that each is complained of once.
const UNMAPPED_MAX: usize = 10_000;

/// Events as the network knows their elements.
pub(super) struct Mapping<'t> {
    directory: Directory<'t>,
    /// What was said last of each element, where saying it again says nothing.
    said: Option<BTreeMap<Target, Said>>,
    complained_of: BTreeSet<String>,
    tally: Tally,
}

/// What was said of an element: whether it is cleared, and what is left.
type State = (bool, Remaining);

/// And when, in milliseconds since 1970.
type Said = (State, u64);

/// How much was said.
#[derive(Debug, Default, Serialize)]
pub(super) struct Tally {
    messages: u64,
    unreadable: u64,
    passed: u64,
    unmapped: u64,
    unchanged: u64,
    events: u64,
    /// By what became of them.
    outcomes: BTreeMap<String, u64>,
}

/// JSON object of the command.
#[derive(Serialize)]
pub(super) struct Fed<'a> {
    dry_run: bool,
    #[serde(flatten)]
    tally: &'a Tally,
}

impl<'a> Fed<'a> {
    pub(super) const fn of(tally: &'a Tally, dry_run: bool) -> Self {
        Self { dry_run, tally }
    }
}

impl<'t> Mapping<'t> {
    /// On this network; `once` for feeds that repeat states.
    pub(super) fn new(topology: &'t Topology, once: bool) -> Self {
        Self {
            directory: Directory::new(topology),
            said: once.then(BTreeMap::new),
            complained_of: BTreeSet::new(),
            tally: Tally::default(),
        }
    }

    pub(super) fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    pub(super) fn into_tally(self) -> Tally {
        self.tally
    }

    /// Adds the events that are to be reported of what was said.
    pub(super) fn take(&mut self, received: Received, events: &mut Vec<Event>) {
        match received {
            Received::End => self.tally.messages += 1,
            Received::Unreadable(problem) => {
                self.tally.messages += 1;
                self.tally.unreadable += 1;
                say(&format!("unreadable: {problem}"));
            }
            Received::Item(Item::Passed { .. }) => self.tally.passed += 1,
            Received::Item(Item::Unmapped { device, remedy }) => self.complain(device, &remedy),
            Received::Item(Item::Event(event)) => self.map(event, events),
            Received::Item(Item::AllClear(event)) => match self.parts(&event.target) {
                Ok(parts) => parts.into_iter().for_each(|target| self.add(Event { target, ..event.clone() }, events)),
                Err(problem) => self.complain(event.target.to_string(), &problem),
            },
        }
    }

    fn map(&mut self, event: Event, events: &mut Vec<Event>) {
        let name = event.target.to_string();
        match self.directory.canonical_event(event) {
            Ok(event) => self.add(event, events),
            Err(error) => self.complain(name, &words(&error)),
        }
    }

    /// A machine and all in it.
    fn parts(&self, machine: &Target) -> Result<Vec<Target>, String> {
        match machine {
            Target::Host { name } => self.directory.parts(name).map_err(|error| words(&error)),
            other => Ok(vec![other.clone()]),
        }
    }

    fn add(&mut self, event: Event, events: &mut Vec<Event>) {
        if let Some(said) = &mut self.said {
            let state: State = (event.cleared, event.remaining);
            match said.get(&event.target) {
                Some((last, then_ms)) if *last == state && *then_ms <= event.observed_ms => {
                    self.tally.unchanged += 1;
                    return;
                }
                // It comes late: what is known stays the last word.
                Some((_, then_ms)) if *then_ms > event.observed_ms => {}
                _ => {
                    said.insert(event.target.clone(), (state, event.observed_ms));
                }
            }
        }
        self.tally.events += 1;
        events.push(event);
    }

    /// What was refused has not been said.
    pub(super) fn forget(&mut self, event: &Event) {
        if let Some(said) = &mut self.said {
            said.remove(&event.target);
        }
    }

    /// Counts a device that means nothing here, and says so the first time.
    fn complain(&mut self, device: String, why: &str) {
        self.tally.unmapped += 1;
        if self.complained_of.len() < UNMAPPED_MAX && !self.complained_of.contains(&device) {
            say(&format!("unmapped: {device}: {why}"));
            self.complained_of.insert(device);
        }
    }
}

/// An event as a line: the fault, or that it is cleared, and who says so.
pub(super) fn line(event: &Event) -> String {
    let Event { source, event_id, .. } = event;
    if event.cleared {
        return format!("{} cleared, by {source} ({event_id})", event.target);
    }
    let loss = Loss { target: event.target.clone(), remaining: event.remaining };
    format!("{loss} by {source} ({event_id})")
}

impl Tally {
    /// Counts what became of an event.
    pub(super) fn reported(&mut self, outcome: String) {
        *self.outcomes.entry(outcome).or_default() += 1;
    }

    /// Whether nothing was said at all.
    pub(super) const fn is_empty(&self) -> bool {
        self.messages == 0
    }

    pub(super) fn sentence(&self) -> String {
        let Self { messages, unreadable, passed, unmapped, unchanged, events, outcomes } = self;
        let mut text = format!(
            "{}: {}, {unchanged} unchanged, {passed} passed over, {unmapped} unmapped, {unreadable} unreadable",
            count(*messages, "message"),
            count(*events, "event")
        );
        for (outcome, count) in outcomes {
            text += &format!("; {count} {outcome}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use canopy_faults::Severity;
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    fn event(target: &str, cleared: bool, observed_ms: u64) -> Event {
        Event {
            source: "s".to_owned(),
            event_id: observed_ms.to_string(),
            target: target.parse().unwrap(),
            remaining: Remaining::GONE,
            severity: Severity::Fatal,
            observed_ms,
            expires_ms: None,
            cleared,
        }
    }

    /// A state that is repeated is told once, under whatever name; what comes late or was refused hides nothing.
    #[test]
    fn states_are_told_when_they_change() {
        let network = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
        let mut mapping = Mapping::new(&network, true);
        let told = |mapping: &mut Mapping<'_>, said: Event| {
            let mut events = Vec::new();
            mapping.take(Received::Item(Item::Event(said)), &mut events);
            events.len()
        };
        let steps = [
            ("gpu:b0:3", false, 10, 1),
            ("gpu:b0g3", false, 20, 0),
            ("gpu:b0g4", false, 20, 1),
            ("gpu:b0g3", true, 5, 1),
            ("gpu:b0g3", false, 30, 0),
            ("gpu:b0g3", true, 40, 1),
            ("node:b0g3", true, 50, 0),
            ("gpu:b9g9", true, 60, 0),
        ];
        for (target, cleared, at, expected) in steps {
            assert_eq!(told(&mut mapping, event(target, cleared, at)), expected, "{target} at {at}");
        }
        mapping.forget(&event("gpu:b0g3", true, 50));
        assert_eq!(told(&mut mapping, event("gpu:b0g3", true, 60)), 1);
        assert_eq!((mapping.tally.events, mapping.tally.unchanged, mapping.tally.unmapped), (5, 3, 1));
        let mut always = Mapping::new(&network, false);
        assert_eq!((1..4).map(|at| told(&mut always, event("host:b0", true, at))).sum::<usize>(), 3);
    }
}
