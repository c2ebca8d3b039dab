//! What is found of a file by looking at nothing else.

use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::{Rate, Topology};

use crate::msccl::{NetworkLoad, TrafficError};
use crate::oneccl::ParseError;
use crate::proof::{Problem, Proof};

use super::error::chain;

/// The stated expectations of a file.
#[derive(Clone, Copy)]
pub struct Expected<'a> {
    /// The network it must be for.
    pub topology: Option<&'a Topology>,
    /// The collective it must do.
    pub kind: Option<CollectiveKind>,
    /// Its root.
    pub root: Option<u32>,
    /// Finds the proven bound of a collective on the network, or the reason why it has none.
    pub bound: &'a dyn Fn(Collective) -> Result<Rate, String>,
}

/// A problem or warning: its check, its text, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check that found it.
    pub check: &'static str,
    /// What is wrong, and what to do about it.
    pub message: String,
    /// Where in the file.
    pub place: String,
}

/// What a file does, and what is wrong with it. Facts that a damaged file does not reveal are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The runtime for which it was judged.
    pub profile: Option<&'static str>,
    /// The collective, in the words of its format.
    pub collective: Option<&'static str>,
    /// Its root.
    pub root: Option<u32>,
    /// How many ranks take part.
    pub ranks: Option<u32>,
    /// Checks that ran, in order, and whether each passed.
    pub checks: Vec<(&'static str, bool)>,
    /// Its rate in bytes per second, if known.
    pub algbw: Option<Rate>,
    /// Rate ÷ bound, if both are known.
    pub optimality: Option<String>,
    /// The routes that the rate assumes.
    pub routing: Option<String>,
    /// Problems.
    pub problems: Vec<Finding>,
    /// Warnings: allowed but unwise, or not checked.
    pub warnings: Vec<Finding>,
}

impl Verdict {
    pub(super) fn new(profile: &'static str) -> Self {
        Self { profile: Some(profile), ..Self::default() }
    }

    /// Notes that a check ran, and what it objects to, if anything.
    pub fn record(&mut self, check: &'static str, objection: Option<String>) {
        self.record_at(check, objection.map(|message| (message, "file".to_owned())));
    }

    /// The same, for a check that knows where.
    pub fn record_at(&mut self, check: &'static str, objection: Option<(String, String)>) {
        let passed = objection.is_none();
        match self.checks.iter_mut().find(|(known, _)| *known == check) {
            Some((_, so_far)) => *so_far &= passed,
            None => self.checks.push((check, passed)),
        }
        self.problems.extend(objection.map(|(message, place)| Finding { check, message, place }));
    }

    /// Notes what could not be seen of the whole file.
    pub fn warn(&mut self, check: &'static str, message: String) {
        self.warnings.push(Finding { check, message, place: "file".to_owned() });
    }

    /// The text of a file, if it is one.
    pub(super) fn text<'b>(&mut self, content: &'b [u8]) -> Option<&'b str> {
        let text = std::str::from_utf8(content).ok();
        if text.is_none() {
            self.record("file", Some("the file is not UTF-8".to_owned()));
        }
        text
    }

    /// Reads a file of ordinary XML, and notes as the check `file` whether that was possible.
    pub(super) fn read<P>(&mut self, content: &[u8], parse: fn(&str) -> Result<P, ParseError>) -> Option<P> {
        match parse(self.text(content)?) {
            Ok(program) => {
                self.record("file", None);
                Some(program)
            }
            Err(error) => {
                let place = format!("line {}, column {}", error.line, error.column);
                self.record_at("file", Some((error.fault.to_string(), place)));
                None
            }
        }
    }

    /// Notes the checks of a proof, and what they object to.
    pub(super) fn record_proof<P: std::fmt::Display>(&mut self, proof: Proof<P>) {
        let finding =
            |found: Problem<P>| Finding { check: found.check, message: found.message, place: found.place.to_string() };
        self.checks.extend(proof.checks);
        self.problems.extend(proof.problems.into_iter().map(finding));
        self.warnings.extend(proof.warnings.into_iter().map(finding));
    }

    /// Notes what runs on real bytes show, until one fails. One that is wrong on paper need not be run to be refused.
    pub(super) fn record_runs<E: std::error::Error>(
        &mut self,
        is_too_large: fn(&E) -> bool,
        runs: impl Iterator<Item = (u64, Result<(), E>)>,
    ) {
        if !self.problems.is_empty() {
            return;
        }
        for (seed, run) in runs {
            let Err(error) = run else {
                self.record("emulation", None);
                continue;
            };
            // The proof stands without a run.
            return match is_too_large(&error) {
                true => self.warn("emulation", format!("the file is proven right, but was not run: {}", chain(&error))),
                false => self.record("emulation", Some(format!("run with seed {seed}: {}", chain(&error)))),
            };
        }
    }

    /// Compares the number of ranks with that of the expected network; whether it is the same.
    pub(super) fn record_ranks(&mut self, topology: &Topology) -> bool {
        let (wanted, found) = (topology.rank_count(), self.ranks.unwrap_or(0));
        self.record("ranks", (wanted != found).then(|| format!("the file is for {found} ranks, not for {wanted}")));
        wanted == found
    }

    /// Compares the plan's collective with the expected one.
    pub fn record_collective(&mut self, expected: &Expected<'_>, kind: CollectiveKind, root: Option<u32>) {
        if expected.kind.is_none() && expected.root.is_none() {
            return;
        }
        let wrong_kind = expected.kind.filter(|expected| *expected != kind);
        // A rooted collective without a stated root has rank 0 as root.
        let expected_root = match (expected.root, expected.kind) {
            (None, Some(kind)) if kind.has_root() => Some(0),
            (root, _) => root,
        };
        let objection = match (wrong_kind, expected_root) {
            (Some(expected), _) => Some(format!("the plan does {kind}, not {expected}")),
            (None, Some(expected)) if root != Some(expected) => Some(match root {
                Some(root) => format!("the root of the plan is rank {root}, not rank {expected}"),
                None => format!("the plan has no root, not rank {expected}"),
            }),
            _ => None,
        };
        self.record("collective", objection);
    }

    /// Notes the rate of a program that names no routes, and compares it with the bound of its collective, both exactly.
    pub(super) fn record_load(
        &mut self,
        load: Result<NetworkLoad, TrafficError>,
        collective: Result<Collective, String>,
        topology: &Topology,
        expected: &Expected<'_>,
    ) {
        let load = match load {
            Ok(load) => load,
            Err(error) => return self.record("load", Some(chain(&error))),
        };
        self.record("load", None);
        let link = topology.link(load.busiest);
        let (from, to) = (&topology.node(link.from).id, &topology.node(link.to).id);
        self.routing = Some(format!(
            "one shortest route per pair of ranks, since the file names none, with {} chunks on the busiest link {from} \
             -> {to}",
            load.chunks
        ));
        self.record_rate(load.algbw, collective, expected);
    }

    /// Compares a rate with the bound of a collective.
    pub(super) fn record_rate(&mut self, algbw: Rate, collective: Result<Collective, String>, expected: &Expected<'_>) {
        match collective.and_then(|collective| (expected.bound)(collective)) {
            Ok(bound) if algbw > bound => {
                let words = format!("{algbw} bytes/s exceed the proven bound of {bound}, so one of them is wrong");
                self.record("load", Some(words));
            }
            Ok(bound) => self.optimality = algbw.ratio_to(&bound).map(|ratio| ratio.to_string()),
            Err(reason) => self.warn("load", format!("the distance from the optimum is unknown: {reason}")),
        }
        self.algbw = Some(algbw);
    }
}
