//! Which elements of the network the words of a feed are about, and the count of all that was said.

use std::collections::{BTreeMap, BTreeSet};

use canopy_faults::feeds::Item;
use canopy_faults::{Directory, Event, Loss, Remaining, Target};
use canopy_topology::Topology;
use serde::Serialize;

use super::Received;
use crate::exit::{say, words};
use crate::output::FORMAT_VERSION;

/// Names of devices that are remembered, so that each is complained of once.
const UNMAPPED_MAX: usize = 10_000;

/// Events as the network knows their elements.
pub(super) struct Mapping<'t> {
    directory: Directory<'t>,
    /// What was said last of each element, where saying it again says nothing.
    said: Option<BTreeMap<Target, (bool, Remaining)>>,
    complained_of: BTreeSet<String>,
    tally: Tally,
}

/// How much was said.
#[derive(Debug, Default)]
pub(super) struct Tally {
    messages: u64,
    unreadable: u64,
    passed: u64,
    unmapped: u64,
    unchanged: u64,
    events: u64,
    /// By what became of them.
    outcomes: BTreeMap<&'static str, u64>,
}

/// JSON object of the command.
#[derive(Serialize)]
pub(super) struct Fed<'a> {
    canopy: u32,
    command: &'static str,
    dry_run: bool,
    messages: u64,
    unreadable: u64,
    passed: u64,
    unmapped: u64,
    unchanged: u64,
    events: u64,
    outcomes: &'a BTreeMap<&'static str, u64>,
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

    /// Adds the events of a message that are to be reported.
    pub(super) fn take(&mut self, received: Received, events: &mut Vec<Event>) {
        self.tally.messages += 1;
        let items = match received {
            Ok(items) => items,
            Err(problem) => {
                self.tally.unreadable += 1;
                say(&format!("unreadable: {problem}"));
                return;
            }
        };
        for item in items {
            match item {
                Item::Passed { .. } => self.tally.passed += 1,
                Item::Unmapped { device, remedy } => self.complain(device, remedy),
                Item::Event(event) => match self.canonical(&event) {
                    Ok(target) => self.add(Event { target, ..event }, events),
                    Err(problem) => self.complain(event.target.to_string(), &problem),
                },
            }
        }
    }

    fn canonical(&self, event: &Event) -> Result<Target, String> {
        let target = self.directory.canonical(&event.target).map_err(|error| words(&error))?;
        let loss = Loss { target, remaining: event.remaining };
        self.directory.resolve(std::slice::from_ref(&loss)).map_err(|error| words(&error.problem))?;
        Ok(loss.target)
    }

    fn add(&mut self, event: Event, events: &mut Vec<Event>) {
        if let Some(said) = &mut self.said {
            let state = (event.cleared, event.remaining);
            if said.insert(event.target.clone(), state) == Some(state) {
                self.tally.unchanged += 1;
                return;
            }
        }
        self.tally.events += 1;
        events.push(event);
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
    pub(super) fn reported(&mut self, outcome: &'static str) {
        *self.outcomes.entry(outcome).or_default() += 1;
    }

    /// Whether nothing was said at all.
    pub(super) const fn is_empty(&self) -> bool {
        self.messages == 0
    }

    pub(super) fn object(&self, dry_run: bool) -> Fed<'_> {
        let Self { messages, unreadable, passed, unmapped, unchanged, events, ref outcomes } = *self;
        let (canopy, command) = (FORMAT_VERSION, "faults feed");
        Fed { canopy, command, dry_run, messages, unreadable, passed, unmapped, unchanged, events, outcomes }
    }

    pub(super) fn sentence(&self) -> String {
        let Self { messages, unreadable, passed, unmapped, unchanged, events, outcomes } = self;
        let mut text = format!(
            "{messages} messages: {events} events, {unchanged} unchanged, {passed} passed over, {unmapped} unmapped, {unreadable} unreadable"
        );
        for (outcome, count) in outcomes {
            text += &format!("; {count} {outcome}");
        }
        text
    }
}
