//! Runs with the plans that they are taken for, and the times that simulations give them.

use std::collections::BTreeMap;
use std::path::Path;

use canopy_baselines::algorithm;
use canopy_calibrate::{Parameter, Parameters, Point, Run};
use canopy_schedule::{CollectiveKind, TransferGraph};
use canopy_simulate::{SimulateError, SimulateOptions, elsewhere, simulate};
use canopy_topology::Topology;

use crate::clock::Deadline;
use crate::exit::{Failure, words};
use crate::material::Material;
use crate::messages;

/// Bytes from which on a time is that of smaller ones and the rest at their rate.
const BYTES_SIMULATED_MAX: u64 = 64 << 20;
/// Most work for a time.
const WORK_MAX: u64 = 200_000_000;

/// FILE, FILE=COLLECTIVE or FILE=COLLECTIVE/ALGORITHM, each with @T or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) file: String,
    collective: Option<CollectiveKind>,
    algorithm: Option<String>,
    network: Option<String>,
}

impl Spec {
    pub(super) fn of(text: &str) -> Result<Self, Failure> {
        let nothing = |file: &str| Self { file: file.to_owned(), collective: None, algorithm: None, network: None };
        if Path::new(text).is_file() {
            return Ok(nothing(text));
        }
        let (run, network) = match text.split_once('@') {
            Some((run, network)) => (run, Some(network.to_owned())),
            None => (text, None),
        };
        let Some((file, plan)) = run.rsplit_once('=').filter(|_| !Path::new(run).is_file()) else {
            return Ok(Self { network, ..nothing(run) });
        };
        let (collective, algorithm) = match plan.split_once('/') {
            Some((collective, algorithm)) => (collective, Some(algorithm.to_owned())),
            None => (plan, None),
        };
        let collective: CollectiveKind = collective.parse().map_err(|error| {
            Failure::input(format!("`{text}`: {}", words(&error))).help("write FILE=COLLECTIVE/ALGORITHM@T")
        })?;
        Ok(Self { collective: Some(collective), algorithm, network, ..nothing(file) })
    }
}

/// A plan and what its messages took.
struct Timed {
    plan: Material,
    points: Vec<Point>,
}

/// All runs.
#[derive(Default)]
pub(super) struct Runs {
    timed: Vec<Timed>,
}

/// Why there is no time.
#[derive(Debug)]
pub(super) enum NotTimed {
    Late,
    Wrong(String),
}

impl std::fmt::Display for NotTimed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Late => "the deadline came first",
            Self::Wrong(what) => what,
        })
    }
}

impl std::error::Error for NotTimed {}

impl Runs {
    pub(super) const fn is_empty(&self) -> bool {
        self.timed.is_empty()
    }

    /// Adds a run: finds its plan, and has sizes mean what canopy means.
    pub(super) fn add(
        &mut self,
        spec: &Spec,
        run: Run,
        collective: Option<CollectiveKind>,
        network: &str,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let file = &spec.file;
        let kind = spec.collective.or(run.collective).or(collective).ok_or_else(|| {
            Failure::input(format!("{file} does not say of which collective its times are"))
                .help(format!("write `{file}=allreduce`, or give --collective"))
        })?;
        let name = spec.algorithm.clone().or(run.algorithm).ok_or_else(|| {
            Failure::input(format!("{file} does not say by which algorithm {kind} ran"))
                .help(format!("write `{file}={kind}/ring`; `canopy algorithms` lists all"))
        })?;
        let by = algorithm(&name).map_err(|error| Failure::input(format!("{file}: {}", words(&error))))?;
        let network = spec.network.as_deref().unwrap_or(network);
        let plan = Material::planned(network, kind, None, by, deadline)?;
        let ranks = plan.topology.rank_count();
        if let Some(found) = run.ranks.filter(|&found| found != ranks) {
            return Err(Failure::input(format!("{file} ran on {found} ranks, and {network} has {ranks}"))
                .help(format!("name the network of the run: `{file}@T`")));
        }
        let times = if run.is_per_rank { u64::from(ranks) } else { 1 };
        let points = run.points.iter().map(|point| Point { bytes: point.bytes.saturating_mul(times), ..*point });
        let points: Vec<Point> = points.filter(|point| point.bytes > 0).collect();
        messages::detail(|| format!("{file}: {} times of {kind} by {name}", points.len()));
        self.timed.push(Timed { plan, points });
        Ok(())
    }

    /// What any of their networks has.
    pub(super) fn parameters(&self) -> Vec<Parameter> {
        let mut all: Vec<Parameter> = self.timed.iter().flat_map(|timed| Parameter::of(&timed.plan.topology)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Times as they were measured, in microseconds.
    pub(super) fn observed(&self) -> Vec<f64> {
        self.timed.iter().flat_map(|timed| timed.points.iter().map(|point| point.micros)).collect()
    }

    /// Times by simulation, in the same order.
    pub(super) fn times(&self, at: &Parameters, deadline: Deadline) -> Result<Vec<f64>, NotTimed> {
        let mut all = Vec::new();
        for Timed { plan, points } in &self.timed {
            let wrong = |error: &dyn std::error::Error| NotTimed::Wrong(words(error));
            let measured = at.applied(&plan.topology, &BTreeMap::new()).map_err(|error| wrong(&error))?;
            let graph = elsewhere(&plan.graph, &plan.topology, &measured).map_err(|error| wrong(&error))?;
            // Sizes come more than once.
            let mut known = BTreeMap::new();
            let mut time = |bytes: u64| match known.get(&bytes) {
                Some(&time) => Ok(time),
                None => {
                    let time = simulated(&measured, &graph, bytes, at, deadline)?;
                    known.insert(bytes, time);
                    Ok(time)
                }
            };
            for point in points {
                all.push(if point.bytes <= BYTES_SIMULATED_MAX {
                    time(point.bytes)?
                } else {
                    let (half, whole) = (time(BYTES_SIMULATED_MAX / 2)?, time(BYTES_SIMULATED_MAX)?);
                    let halves = (point.bytes - BYTES_SIMULATED_MAX) as f64 / (BYTES_SIMULATED_MAX / 2) as f64;
                    whole + (whole - half) * halves
                });
            }
        }
        Ok(all)
    }
}

/// What a message takes, in microseconds.
fn simulated(
    topology: &Topology,
    graph: &TransferGraph,
    size_bytes: u64,
    at: &Parameters,
    deadline: Deadline,
) -> Result<f64, NotTimed> {
    let options = SimulateOptions { alpha: at.message(), ..SimulateOptions::usual(size_bytes, WORK_MAX) };
    let outcome = simulate(topology, graph, &options, &|| deadline.is_past());
    match outcome {
        Ok(outcome) => Ok(outcome.time_ps as f64 / 1e6),
        Err(SimulateError::Stopped) => Err(NotTimed::Late),
        Err(error) => Err(NotTimed::Wrong(words(&error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_name_collective_algorithm_and_network() {
        let spec = Spec::of("a=b.txt=allgather/ring@dgx-h100:boxes=1").unwrap();
        assert_eq!((spec.file.as_str(), spec.collective), ("a=b.txt", Some(CollectiveKind::Allgather)));
        assert_eq!((spec.algorithm.as_deref(), spec.network.as_deref()), (Some("ring"), Some("dgx-h100:boxes=1")));
        let spec = Spec::of("x.txt@ring:8").unwrap();
        assert_eq!((spec.file.as_str(), spec.collective, spec.network.as_deref()), ("x.txt", None, Some("ring:8")));
        assert!(Spec::of("x.txt=allgater").is_err());
    }
}
