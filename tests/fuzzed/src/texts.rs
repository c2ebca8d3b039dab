//! Short texts: hosts, faults, rates, measurements.

use std::cmp::Ordering;
use std::collections::HashSet;

use canopy_calibrate::{Overlay, read_runs};
use canopy_faults::feeds::{
    Aliases, Documents, Entity, FeedError, FeedOptions, HealthEvent, Item, read_health, read_json_line, read_ras,
    read_slurm, read_slurm_json, read_time,
};
use canopy_faults::{FaultLog, Policy, Remaining, Target};
use canopy_order::{Group, by_number};
use canopy_topology::{HostsError, SiteRates, expand_hosts, host_items, read_host_lines, read_nodes, read_nodes_file};

use crate::{refused, seen, text};

/// Most hosts of a list.
const HOSTS_MAX: usize = 65_536;
/// Lines of a feed that are read: each is a message, and may name as many machines as a list holds.
const LINES_MAX: usize = 16;
/// Statements of a message that are looked at, of the many that it may make.
const ITEMS_MAX: usize = 64;
/// When messages arrive.
const RECEIVED_MS: u64 = 1_800_000_000_000;

/// A list of hosts, in each of the forms.
pub(crate) fn host_list(input: &[u8]) {
    let Some(text) = text(input) else { return };
    seen(host_items(text));
    let hosts = [expand_hosts(text), read_host_lines(text), read_nodes(text), read_nodes_file(text)];
    for hosts in &hosts {
        check_hosts(hosts);
    }
    if let [Ok(hosts), ..] = &hosts
        && hosts.len() <= 64
    {
        let again = expand_hosts(&hosts.join(","));
        assert_eq!(again.as_ref(), Ok(hosts), "names that were expanded are other names");
        for (one, other) in hosts.iter().zip(hosts.iter().skip(1)) {
            assert_ne!(by_number(one, other), Ordering::Equal, "{one} and {other} differ");
            assert_eq!(by_number(one, other), by_number(other, one).reverse(), "{one} and {other}");
        }
    }
    seen(text.parse::<Group>());
}

fn check_hosts(hosts: &Result<Vec<String>, HostsError>) {
    match hosts {
        Ok(hosts) => {
            assert!((1..=HOSTS_MAX).contains(&hosts.len()), "{} hosts", hosts.len());
            let distinct: HashSet<&String> = hosts.iter().collect();
            assert_eq!(distinct.len(), hosts.len(), "a host is named twice");
        }
        Err(error) => refused(&error),
    }
}

/// Messages of monitors and schedulers, one reader after the other, and a log that takes their events.
pub(crate) fn fault_feed(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let (first, rest) = text.split_once("\n\n").unwrap_or(("", text));
    let aliases = Aliases::read(first).unwrap_or_default();
    let (degraded, expires_after_ms) = (Remaining::new(1, 2).ok(), Some(60_000));
    let options = FeedOptions { aliases, degraded, expires_after_ms, utc_offset_minutes: 60 };
    let mut log = FaultLog::new(Policy::STANDARD);
    let mut take = |items: Result<Vec<Item>, FeedError>| match items {
        Ok(items) => items.into_iter().take(ITEMS_MAX).for_each(|item| enter(item, &mut log)),
        Err(error) => refused(&error),
    };
    for document in [rest, text] {
        take(read_slurm_json(document, &options, RECEIVED_MS));
        take(read_ras(document, &options, RECEIVED_MS));
        take(read_health(&health_event(document), &options, RECEIVED_MS));
    }
    let mut documents = Documents::default();
    for line in rest.lines().take(LINES_MAX) {
        take(read_slurm(line, &options, RECEIVED_MS));
        take(read_json_line(line, &options, RECEIVED_MS));
        seen(read_time(line, 60));
        seen(documents.break_off(Some(line)));
        seen(documents.push(line));
    }
    log.tick(RECEIVED_MS + 1);
    seen(log.active());
}

/// An event has a target that means the same when it is written and read, and a log takes it or says why not.
fn enter(item: Item, log: &mut FaultLog) {
    let (Item::Event(event) | Item::AllClear(event)) = item else { return };
    let Ok(event) = event.checked() else { return };
    let written = event.target.to_string();
    assert_eq!(written.parse::<Target>().as_ref(), Ok(&event.target), "{written}");
    seen(log.report(event, RECEIVED_MS));
}

/// An event of a monitor whose names are lines of the input.
fn health_event(text: &str) -> HealthEvent {
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap_or_default().to_owned();
    let (check_name, node_name, flags) = (next(), next(), next());
    let entities = text.lines().skip(3).filter_map(|line| line.split_once(' '));
    let entities = entities.map(|(kind, value)| Entity { kind: kind.to_owned(), value: value.to_owned() });
    HealthEvent {
        check_name,
        is_fatal: flags.contains('f'),
        is_healthy: flags.contains('h'),
        entities: entities.collect(),
        generated_ms: flags.contains('t').then_some(RECEIVED_MS),
        node_name,
        is_store_only: flags.contains('s'),
    }
}

/// Measured rates that a person keeps beside a network.
pub(crate) fn calibration(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let overlay = match Overlay::read(text) {
        Ok(overlay) => overlay,
        Err(error) => return refused(&error),
    };
    // Rates are rounded when they are written, once.
    let written = overlay.to_yaml();
    let again = Overlay::read(&written).unwrap_or_else(|error| panic!("not read back: {error}\n{written}"));
    assert_eq!(again.to_yaml(), written);
}

/// Output of benchmarks.
pub(crate) fn measured_runs(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if let Err(error) = read_runs(text) {
        refused(&error);
    }
}

/// A network whose cost is asked for.
pub(crate) fn cost_expression(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if let Err(error) = canopy_design::cost::Network::read(text) {
        refused(&error);
    }
}

/// What a site says of families.
pub(crate) fn family_rates(input: &[u8]) {
    let Some(text) = text(input) else { return };
    match SiteRates::read(text) {
        Ok(rates) => seen(rates.apply("dgx-h100:boxes=2")),
        Err(error) => refused(&error),
    }
}
