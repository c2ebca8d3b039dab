//! The gain of another order of machines: for `canopy tools order`, and for whoever asks only that.

use canopy_client::ErrorClass;
use canopy_order::{OrderError, Times, report};
use canopy_topology::Topology;
use serde::Serialize;

use crate::exit::Failure;

/// Times beside the least that any order takes with links of its own.
#[derive(Serialize)]
pub(super) struct TimesSummary {
    pub(super) time: f64,
    pub(super) group_times: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fair_share: Option<f64>,
    pub(super) hashed: f64,
    pub(super) hops: u64,
}

impl TimesSummary {
    pub(super) fn of(times: &Times) -> Self {
        let Times { total, by_kind, fair_share, hashed, hops } = times.clone();
        Self { time: total, group_times: by_kind, fair_share, hashed, hops }
    }
}

/// An order that was found, beside the given one.
pub(super) struct Comparison<'a> {
    pub(super) given: &'a TimesSummary,
    pub(super) found: &'a TimesSummary,
    /// Whether no order is better.
    pub(super) is_best: bool,
    /// Whether it is the given one.
    pub(super) is_kept: bool,
}

/// The gain of another order of the machines.
#[derive(Debug, Serialize)]
pub(super) struct OrderGain {
    /// How long rings take in the given order, beside the best that was found.
    pub(super) times_as_fast: f64,
    /// As `canopy tools order` says it.
    #[serde(skip)]
    pub(super) words: String,
}

/// The gain of another order of all machines; `None` where the network does not name machines.
///
/// # Errors
/// The deadline passed.
pub(super) fn gain_of(topology: &Topology, stop: &dyn Fn() -> bool) -> Result<Option<OrderGain>, Failure> {
    let all = match report(topology, None, &[], stop) {
        Ok(all) => all,
        Err(OrderError::Machines(_)) => return Ok(None),
        Err(error) => return Err(refused(&error)),
    };
    let [given, _, found] = all.times.each_ref().map(TimesSummary::of);
    let is_kept = all.machines().enumerate().all(|(node_rank, (given, ..))| given == node_rank);
    let compared = Comparison { given: &given, found: &found, is_best: all.found.is_best, is_kept };
    let (label, text) = compared.in_words();
    Ok(Some(OrderGain { times_as_fast: beside(given.time, found.time), words: format!("{label}: {text}") }))
}

/// The failure to find an order.
pub(super) fn refused(error: &OrderError) -> Failure {
    let text = error.to_string();
    match error {
        OrderError::Machines(_) => {
            Failure::input(text).help("compose the network with `canopy network compose`, or add `host`")
        }
        OrderError::Part(_) => Failure::input(text).help("`canopy tools order T --to nodes -o -` lists the machines"),
        OrderError::Hosts(_) | OrderError::Groups(_) => Failure::input(text),
        OrderError::Stopped(_) => Failure::new(ErrorClass::Deadline, text).help("raise `--deadline`"),
    }
}

/// Times as fast as given.
fn beside(given: f64, found: f64) -> f64 {
    if found > 0.0 { given / found } else { 1.0 }
}

impl Comparison<'_> {
    /// Whether the new order brings anything, and what.
    pub(super) fn in_words(&self) -> (&'static str, String) {
        let Self { given, found, is_best, is_kept } = self;
        let times = beside(given.time, found.time);
        let shared = given.fair_share.zip(found.fair_share).map_or(1.0, |(given, found)| beside(given, found));
        let trees = given.group_times.last().zip(found.group_times.last());
        let trees = trees.map_or(1.0, |(&given, &found)| beside(given, found));
        let more = if *is_best { "no order is better" } else { "there may be better orders" };
        match (is_kept, is_best) {
            (true, true) => ("no gain", "no order is better than the one given".to_owned()),
            (true, false) => ("no gain", "no better order was found than the one given".to_owned()),
            _ if times > 1.0005 => ("gain", format!("{times:.3} times as fast as given; {more}")),
            _ if shared > 1.0005 => {
                ("gain", format!("{shared:.3} times as fast as given on fair shares of links; {more}"))
            }
            _ if trees > 1.0005 => {
                ("gain", format!("rings take as long as given, trees {trees:.3} times as fast; {more}"))
            }
            _ => ("gain", format!("as fast as given on fewer links; {more}")),
        }
    }
}
