//! A plan beside textbook ones on the same network: exact rates, simulated times, and from which size on it is faster.

use canopy_client::ErrorClass;
use canopy_schedule::{CollectiveKind, LinkLoads, Schedule, Shares, TransferGraph, Verdict, check, compile};
use canopy_simulate::{Pieces, Sharing, SimulateError, SimulateOptions, Sync, simulate, step_numbers};
use canopy_synth::{
    Algorithm, Silent, SteppedError, SynthesisError, SynthesisRequest, binomial, bruck, recursive_doubling, synthesize,
    with_shares,
};
use canopy_topology::{Latency, Rate, Ratio, Topology};

use crate::exit::{Failure, words};
use crate::material::Material;
use crate::progress::ProgressLine;

/// Most transfers of a plan that is made to compare with: a send from each of 1,024 ranks to every other.
const TRANSFERS_MAX: u64 = 1 << 20;
/// A crossover is known to this part of its size.
const CROSSOVER_PART: u64 = 64;

/// How messages are sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    pub(super) alpha: Latency,
    pub(super) pieces: Pieces,
    /// Most work for one simulation.
    pub(super) work_max: u64,
}

/// A plan that takes part.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) algbw: Rate,
    pub(super) depth: u32,
    pub(super) traffic: Ratio,
    /// By size, in picoseconds; none where that takes too much work.
    pub(super) times: Vec<Option<u64>>,
    graph: TransferGraph,
}

/// One that takes no part, and why.
#[derive(Debug)]
pub(super) struct Absent {
    pub(super) name: &'static str,
    pub(super) reason: String,
}

/// From which size on which plan is the fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) from_bytes: u64,
    pub(super) entry: usize,
}

/// All that take part, the plan itself first.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) sizes: Vec<u64>,
    pub(super) entries: Vec<Entry>,
    pub(super) absent: Vec<Absent>,
    pub(super) turns: Vec<Turn>,
}

/// Makes the others, simulates all and finds where one overtakes another.
///
/// # Errors
/// The plan itself cannot be simulated, or nobody waits any more.
pub(super) fn compare(
    plan: &Material,
    sizes: Vec<u64>,
    model: &Model,
    stop: &(dyn Fn() -> bool + std::marker::Sync),
) -> Result<Comparison, Failure> {
    let line = ProgressLine::start();
    let own = Entry {
        name: "this plan".to_owned(),
        algbw: plan.verdict.algbw.clone(),
        depth: plan.verdict.depth_max,
        traffic: plan.loads.traffic().clone(),
        times: Vec::new(),
        graph: plan.graph.clone(),
    };
    let mut comparison = Comparison { sizes, entries: vec![own], absent: Vec::new(), turns: Vec::new() };
    for name in ["ring", "direct", "recursive-doubling", "bruck", "binomial"] {
        line.working(format!("comparing with {name}"));
        match rival(name, plan, stop) {
            Ok(entry) => comparison.entries.push(entry),
            Err(reason) => comparison.absent.push(Absent { name, reason }),
        }
    }
    for number in 0..comparison.entries.len() {
        for position in 0..comparison.sizes.len() {
            let entry = &comparison.entries[number];
            line.working(format!("simulating {}, {} of {} sizes", entry.name, position + 1, comparison.sizes.len()));
            // A larger size takes no less work than one that took too much.
            let is_hopeless = entry.times.last().is_some_and(Option::is_none);
            let time = match is_hopeless {
                true => None,
                false => comparison.time(&plan.topology, number, comparison.sizes[position], model, stop)?,
            };
            comparison.entries[number].times.push(time);
        }
    }
    comparison.turns = comparison.find_turns(&plan.topology, model, stop)?;
    drop(line);
    Ok(comparison)
}

/// A textbook plan; in words why there is none.
fn rival(name: &'static str, plan: &Material, stop: &(dyn Fn() -> bool + std::marker::Sync)) -> Result<Entry, String> {
    let (topology, collective) = (&plan.topology, plan.schedule.collective);
    if plan.schedule.algorithm == name {
        return Err("is this plan itself".to_owned());
    }
    let transfers = transfers(name, collective.kind(), topology.rank_count());
    if transfers > TRANSFERS_MAX {
        return Err(format!("takes some {transfers} transfers, and more than {TRANSFERS_MAX} take too long"));
    }
    // Shares of an allreduce say where sums are made, and promise nothing.
    let is_equal = collective.kind() == CollectiveKind::Allreduce || plan.schedule.shares == Shares::Equal;
    let shares = if is_equal { Shares::Equal } else { plan.schedule.shares.clone() };
    let weights = shares.clone();
    let stepped = |made: Result<Schedule, SteppedError>| {
        let made = made.and_then(|schedule| with_shares(schedule, weights));
        made.map_err(|error| without_name(&words(&error), name))
    };
    let schedule = match name {
        "recursive-doubling" => stepped(recursive_doubling(topology, collective, &stop))?,
        "bruck" => stepped(bruck(topology, collective, &stop))?,
        "binomial" => stepped(binomial(topology, collective, &stop))?,
        _ => {
            let algorithm = if name == "ring" { Algorithm::Ring } else { Algorithm::Direct };
            let request = SynthesisRequest { shares, ..SynthesisRequest::new(collective, algorithm) };
            let made = synthesize(topology, &request, &stop, &Silent);
            made.map_err(|error: SynthesisError| without_name(&words(&error), name))?
        }
    };
    let graph = compile(topology, &schedule).map_err(|error| words(&error))?;
    let Verdict { algbw, depth_max, .. } = check(topology, &graph).map_err(|error| words(&error))?;
    let loads = LinkLoads::of(topology, &graph).map_err(|error| words(&error))?;
    // Sends are trees of their own: what is passed on takes a chain of them.
    let depth = depth_max.max(step_numbers(&schedule, &graph).into_iter().max().map_or(0, |last| last + 1));
    Ok(Entry { name: name.to_owned(), algbw, depth, traffic: loads.traffic().clone(), times: Vec::new(), graph })
}

/// About as many transfers as a textbook plan has.
fn transfers(name: &str, kind: CollectiveKind, rank_count: u32) -> u64 {
    let ranks = u64::from(rank_count);
    let levels = u64::from(rank_count.next_power_of_two().ilog2());
    match (name, kind) {
        ("bruck", CollectiveKind::AllToAll) => ranks.saturating_mul(ranks).saturating_mul(levels) / 2,
        (_, kind) if kind.has_root() => ranks.saturating_mul(levels),
        _ => ranks.saturating_mul(ranks),
    }
}

/// The reason alone: without the name of what refuses, which stands before it, and without what to do instead.
fn without_name(words: &str, name: &str) -> String {
    let reason = words.strip_prefix(name).unwrap_or(words).trim_start();
    let reason = reason.split("; ").next().unwrap_or(reason);
    reason.strip_suffix(", and there is none").unwrap_or(reason).to_owned()
}

impl Comparison {
    /// How long one takes; none where that takes too much work.
    fn time(
        &self,
        topology: &Topology,
        entry: usize,
        size_bytes: u64,
        model: &Model,
        stop: &(dyn Fn() -> bool + std::marker::Sync),
    ) -> Result<Option<u64>, Failure> {
        let &Model { alpha, pieces, work_max } = model;
        let options = SimulateOptions { size_bytes, alpha, pieces, sharing: Sharing::Fair, sync: Sync::Deps, work_max };
        match simulate(topology, &self.entries[entry].graph, &options, stop) {
            Ok(outcome) => Ok(Some(outcome.time_ps)),
            Err(SimulateError::TooLarge { .. }) => Ok(None),
            Err(SimulateError::Stopped) => {
                Err(Failure::new(ErrorClass::Deadline, "the deadline came before the times").help("allow more time"))
            }
            Err(error) => Err(Failure::input(format!("cannot simulate {size_bytes} bytes: {}", words(&error)))
                .help("lower --size, --sizes or --alpha")),
        }
    }

    /// The fastest of those that have a time, the first of equals.
    fn fastest(&self, position: usize) -> Option<usize> {
        let times = self.entries.iter().map(|entry| entry.times.get(position).copied().flatten());
        times.enumerate().filter_map(|(number, time)| Some((time?, number))).min().map(|(_, number)| number)
    }

    fn find_turns(
        &self,
        topology: &Topology,
        model: &Model,
        stop: &(dyn Fn() -> bool + std::marker::Sync),
    ) -> Result<Vec<Turn>, Failure> {
        let mut turns: Vec<Turn> = Vec::new();
        for (position, &size) in self.sizes.iter().enumerate() {
            // Where not all have a time, nobody knows.
            if self.entries.iter().any(|entry| entry.times.get(position).copied().flatten().is_none()) {
                break;
            }
            let Some(entry) = self.fastest(position) else { break };
            match turns.last().copied() {
                Some(last) if last.entry == entry => {}
                Some(last) => {
                    let from_bytes =
                        self.crossover(topology, (last.entry, entry), (self.sizes[position - 1], size), model, stop)?;
                    turns.push(Turn { from_bytes, entry });
                }
                None => turns.push(Turn { from_bytes: size, entry }),
            }
        }
        Ok(turns)
    }

    /// A size between two at which the second of two plans is faster than the first, and at most a 64th above one at
    /// which it is not. A dozen simulations.
    fn crossover(
        &self,
        topology: &Topology,
        (first, second): (usize, usize),
        (mut low, mut high): (u64, u64),
        model: &Model,
        stop: &(dyn Fn() -> bool + std::marker::Sync),
    ) -> Result<u64, Failure> {
        while high - low > (low / CROSSOVER_PART).max(1) {
            let middle = low + (high - low) / 2;
            let times =
                (self.time(topology, first, middle, model, stop)?, self.time(topology, second, middle, model, stop)?);
            let (Some(of_first), Some(of_second)) = times else { break };
            if (of_second, second) < (of_first, first) { high = middle } else { low = middle }
        }
        Ok(high)
    }

    /// Those that have no time at some size, as it takes too much work.
    pub(super) fn untimed(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.times.iter().any(Option::is_none))
    }

    /// The fastest other plan of large messages, the first of equals.
    pub(super) fn best_other(&self) -> Option<&Entry> {
        let others = self.entries.get(1..).unwrap_or_default();
        others.iter().reduce(|best, entry| if entry.algbw > best.algbw { entry } else { best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_ranks_are_compared_but_for_what_takes_too_long() {
        let is_made = |name, kind, ranks| transfers(name, kind, ranks) <= TRANSFERS_MAX;
        for name in ["ring", "direct", "recursive-doubling", "bruck"] {
            assert!(is_made(name, CollectiveKind::Allgather, 1024), "{name}");
            assert!(!is_made(name, CollectiveKind::Allgather, 1025), "{name}");
        }
        assert!(is_made("binomial", CollectiveKind::Broadcast, 65_536));
        assert!(is_made("bruck", CollectiveKind::AllToAll, 256));
        assert!(!is_made("bruck", CollectiveKind::AllToAll, 512));
    }
}
