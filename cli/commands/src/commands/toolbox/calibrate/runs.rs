//! Runs, by what they are taken for, and the times that they would take.

use canopy_baselines::algorithm;
use canopy_calibrate::{Parameter, Parameters, Point, Run};
use canopy_schedule::CollectiveKind;
use canopy_stock::nccl::Version;
use canopy_synth::Algorithm;
use canopy_topology::Topology;

use super::library::{Calls, Machines};
use super::not_timed::NotTimed;
use super::planned::{self, Care, Sent};
use super::spec::{By, Spec};
use crate::clock::Deadline;
use crate::exit::{Failure, words};
use crate::input;
use crate::material::Material;

/// What a run may have been: its times follow from rates and latencies by this.
enum Reading {
    /// The library's calls, with its name and what it took.
    Calls { name: String, calls: Calls },
    /// A plan.
    Plan { plan: Box<Material>, sent: Sent },
}

/// Times of a collective on a network.
pub(super) struct Timed {
    pub(super) file: String,
    pub(super) kind: CollectiveKind,
    pub(super) network: String,
    pub(super) points: Vec<Point>,
    topology: Topology,
    /// The likeliest first.
    readings: Vec<Reading>,
}

/// All runs.
#[derive(Default)]
pub(super) struct Runs {
    timed: Vec<Timed>,
    /// By run: which of its readings counts.
    taken: Vec<usize>,
}

/// What is stated of all runs.
pub(super) struct Context<'a> {
    /// The network, where a run names no other.
    pub(super) network: &'a str,
    pub(super) collective: Option<CollectiveKind>,
    /// The release that ran; none where it is guessed.
    pub(super) version: Option<Version>,
    pub(super) deadline: Deadline,
}

impl Timed {
    /// What a reading takes the run for, as it is printed.
    pub(super) fn taken_for(&self, reading: usize) -> String {
        match self.readings.get(reading) {
            Some(Reading::Calls { name, .. }) => name.clone(),
            Some(Reading::Plan { plan, sent: Sent::Pieces }) => plan.schedule.algorithm.clone(),
            Some(Reading::Plan { plan, sent: Sent::Stream }) => {
                format!("{}, sent in a stream", plan.schedule.algorithm)
            }
            None => String::new(),
        }
    }

    fn times(&self, reading: usize, at: &Parameters, care: Care, deadline: Deadline) -> Result<Vec<f64>, NotTimed> {
        match self.readings.get(reading) {
            Some(Reading::Calls { calls, .. }) => Ok(calls.times(at)),
            Some(Reading::Plan { plan, sent }) => planned::times(plan, *sent, &self.points, at, care, deadline),
            None => Err(NotTimed::Wrong(format!("{} has no such reading", self.file))),
        }
    }
}

impl Runs {
    pub(super) const fn is_empty(&self) -> bool {
        self.timed.is_empty()
    }

    /// Adds a run: finds what it may have been, and has sizes mean what canopy means.
    pub(super) fn add(&mut self, spec: &Spec, run: Run, context: &Context<'_>) -> Result<(), Failure> {
        let file = &spec.file;
        let kind = spec.collective.or(run.collective).or(context.collective).ok_or_else(|| {
            Failure::input(format!("{file} does not say of which collective its times are"))
                .help(format!("write `{file}=allreduce`, or give --collective"))
        })?;
        let by = By::of(spec.algorithm.as_deref(), run.algorithm.as_deref()).ok_or_else(|| {
            Failure::input(format!("{file} does not say by which algorithm {kind} ran")).help(format!(
                "write `{file}={kind}/ring` (`canopy algorithms` lists all), or `{file}={kind}/nccl` if NCCL chose it"
            ))
        })?;
        let network = spec.network.as_deref().unwrap_or(context.network);
        let topology = input::topology_until(network, context.deadline)?;
        let ranks = topology.rank_count();
        if let Some(found) = run.ranks.filter(|&found| found != ranks) {
            return Err(Failure::input(format!("{file} ran on {found} ranks, and {network} has {ranks}"))
                .help(format!("name the network of the run: `{file}@T`")));
        }
        let times = if run.is_per_rank { u64::from(ranks) } else { 1 };
        let points = run.points.iter().map(|point| Point { bytes: point.bytes.saturating_mul(times), ..*point });
        let points: Vec<Point> = points.filter(|point| point.bytes > 0).collect();
        let mut timed =
            Timed { file: file.clone(), kind, network: network.to_owned(), points, topology, readings: Vec::new() };
        timed.readings = match &by {
            By::Own(name) => plans(&timed, name, &run, context)?,
            By::Library => calls(&timed, None, &run, context)?,
            By::Forced(algorithm) => calls(&timed, Some(*algorithm), &run, context)?,
        };
        self.taken.push(0);
        self.timed.push(timed);
        Ok(())
    }

    /// What any of their networks has.
    pub(super) fn parameters(&self) -> Vec<Parameter> {
        let mut all: Vec<Parameter> = self.timed.iter().flat_map(|timed| Parameter::of(&timed.topology)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Times as they were measured, in microseconds.
    pub(super) fn observed(&self) -> Vec<f64> {
        self.timed.iter().flat_map(|timed| timed.points.iter().map(|point| point.micros)).collect()
    }

    /// Times by what runs are taken for, in the same order. Each run is computed on a thread of its own.
    pub(super) fn times(
        &self,
        taken: &[usize],
        at: &Parameters,
        care: Care,
        deadline: Deadline,
    ) -> Result<Vec<f64>, NotTimed> {
        std::thread::scope(|scope| {
            let of_run = |(timed, &reading): (_, &usize)| {
                let timed: &Timed = timed;
                scope.spawn(move || timed.times(reading, at, care, deadline))
            };
            let threads: Vec<_> = self.timed.iter().zip(taken).map(of_run).collect();
            let mut all = Vec::new();
            for thread in threads {
                let times = thread.join().map_err(|_| NotTimed::Wrong("a time could not be computed".to_owned()))?;
                all.extend(times?);
            }
            Ok(all)
        })
    }

    /// All runs, each with the reading that counts.
    pub(super) fn each(&self) -> impl Iterator<Item = (&Timed, usize)> {
        self.timed.iter().zip(self.taken.iter().copied())
    }

    /// The run and the size of a place among all times.
    pub(super) fn at(&self, place: usize) -> Option<(&Timed, Point)> {
        let points = self.timed.iter().flat_map(|timed| timed.points.iter().map(move |&point| (timed, point)));
        points.into_iter().nth(place)
    }

    /// By run: which reading counts.
    pub(super) fn taken(&self) -> &[usize] {
        &self.taken
    }

    pub(super) fn take(&mut self, taken: Vec<usize>) {
        self.taken = taken;
    }

    /// By run: how many readings it has.
    pub(super) fn choices(&self) -> Vec<usize> {
        self.timed.iter().map(|timed| timed.readings.len()).collect()
    }

    /// Whether some times may be computed roughly.
    pub(super) fn are_rough(&self) -> bool {
        let pieces = |timed: &Timed| matches!(timed.readings.first(), Some(Reading::Plan { sent: Sent::Pieces, .. }));
        self.timed.iter().any(pieces)
    }

    /// Whether a library made any of them.
    pub(super) fn has_calls(&self) -> bool {
        self.timed.iter().any(|timed| matches!(timed.readings.first(), Some(Reading::Calls { .. })))
    }
}

/// Readings of a run by an algorithm of canopy's. Simulations are sent as simulations send; programs that are known to send
/// without a break, likewise; of a table neither is known.
fn plans(timed: &Timed, name: &str, run: &Run, context: &Context<'_>) -> Result<Vec<Reading>, Failure> {
    let by = algorithm(name).map_err(|error| {
        Failure::input(format!("{}: {}", timed.file, words(&error)))
            .help("`canopy algorithms` lists all; `nccl` is what NCCL chooses")
    })?;
    let ways: &[Sent] = match (run.is_simulated, run.algorithm.as_deref()) {
        (true, _) => &[Sent::Pieces],
        (false, None | Some(canopy_calibrate::LIBRARY)) => &[Sent::Stream],
        (false, Some(_)) => &[Sent::Pieces, Sent::Stream],
    };
    ways.iter().map(|&sent| planned(timed, by, sent, context)).collect()
}

fn planned(timed: &Timed, by: Algorithm, sent: Sent, context: &Context<'_>) -> Result<Reading, Failure> {
    let plan = Material::planned(&timed.network, timed.kind, None, by, context.deadline)?;
    Ok(Reading::Plan { plan: Box::new(plan), sent })
}

/// Readings of a run by a library. Where it would see no boxes, it sends around one ring.
fn calls(
    timed: &Timed,
    forced: Option<canopy_stock::nccl::Algorithm>,
    run: &Run,
    context: &Context<'_>,
) -> Result<Vec<Reading>, Failure> {
    let machines = match Machines::of(&timed.topology, context.version, run.is_rccl, context.deadline) {
        Ok(machines) => machines,
        Err(_) if forced.is_none_or(|forced| forced == canopy_stock::nccl::Algorithm::Ring) => {
            return Ok(vec![planned(timed, Algorithm::Ring, Sent::Stream, context)?]);
        }
        Err(reason) => {
            return Err(Failure::input(format!("{}: no times of NCCL on {}: {reason}", timed.file, timed.network))
                .help(format!("state an algorithm of canopy's: `{}={}/ring`", timed.file, timed.kind)));
        }
    };
    let mut readings = Vec::new();
    for taken in machines.ways(timed.kind, forced) {
        let name = format!("{} of {}", taken.name(), machines.name());
        match machines.calls(timed.kind, taken, &timed.points) {
            Ok(calls) => readings.push(Reading::Calls { name, calls }),
            Err(reason) if readings.is_empty() => {
                return Err(Failure::input(format!("{}: {reason}", timed.file))
                    .help("state what ran: `FILE=COLLECTIVE/nccl`, `/nccl-ring` or an algorithm of canopy's"));
            }
            Err(_) => {}
        }
    }
    Ok(readings)
}
