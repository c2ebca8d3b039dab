//! A plan beside all that is known for its network: what the runtime takes by itself, textbook plans, and the other form of
//! an allreduce. Exact rates, times, and from which size on which is faster.
//!
//! All times of a report come from one model: the latencies of the stock library where it has a model of the machines, else,
//! or where α or pieces are stated, the simulation.

use canopy_client::ErrorClass;
use canopy_schedule::{CollectiveKind, LinkLoads, Schedule, TransferGraph, check, compile};
use canopy_simulate::{SimulateError, SimulateOptions, step_numbers};
use canopy_synth::{Algorithm, NicRings, NicRingsError, Silent, SynthesisRequest, nic_rings, synthesize};
use canopy_topology::{Rate, Ratio};
use serde::Serialize;

use crate::commands::simulate::Absent;
use crate::commands::simulate::race::{Found, Race, Rules, Runner};
use crate::commands::simulate::stock::GAIN_LEAST;
use crate::exit::{Failure, words};
use crate::explain;
use crate::material::Material;
use crate::progress::ProgressLine;
use crate::sizes::spread;
use crate::stock::Model;

/// What NCCL does across boxes: a ring for each NIC.
const NIC_RINGS: &str = "nccl rings";
/// The one ring that takes its place where boxes or NICs cannot be told apart.
const ONE_RING: &str = "one ring";
/// Textbook plans that are made to compare with, besides.
const RIVALS: [Algorithm; 4] = [Algorithm::Direct, Algorithm::RecursiveDoubling, Algorithm::Bruck, Algorithm::Binomial];
/// The other form of an allreduce by trees.
const TWO_PHASES: &str = "two phases";
/// Most transfers of such a plan: a send from each of 1,024 ranks to every other.
const TRANSFERS_MAX: u64 = 1 << 20;
/// Most transfers of all plans that are simulated, each counted once for every size: some half a minute, where plans are large.
const EFFORT_MAX: u64 = 1 << 23;
/// The same of this plan alone, so that there is room for others.
const OWN_EFFORT_MAX: u64 = EFFORT_MAX / 4 * 3;
/// The same with what finds where one overtakes another.
const WHOLE_EFFORT_MAX: u64 = EFFORT_MAX / 4 * 5;

/// A plan that takes part, or a library.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    /// Of large messages; of a network whose switches multicast or add up, with their doing so.
    pub(super) algbw: Rate,
    /// The most that it could reach, where that is not the plan's bound: of a library that has switches do more.
    pub(super) ceiling: Option<Rate>,
    /// How far transfers go; `None` of a library, whose transfers are not known.
    pub(super) course: Option<Course>,
    /// By size, in picoseconds; none where that takes too much work, or formulas give none.
    pub(super) times: Vec<Option<u64>>,
}

/// How far the transfers of a plan go.
#[derive(Clone, Debug)]
pub(super) struct Course {
    pub(super) depth: u32,
    pub(super) traffic: Ratio,
}

/// Which model all times of a report come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// Simulation of each transfer.
    Simulated,
    /// Latencies of the stock library, and rates.
    Library,
}

/// From which size on which plan is the fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) from_bytes: u64,
    pub(super) entry: usize,
}

/// The rings that stand for NCCL's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Baseline {
    /// The name of their entry.
    pub(super) name: &'static str,
    /// How many there are.
    pub(super) rings: u32,
    /// Why there are not as many as a box has NICs, if there are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

/// All that take part, the plan itself first.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) clock: Clock,
    pub(super) baseline: Baseline,
    pub(super) sizes: Vec<u64>,
    /// Sizes that were asked for, and left out as the plan is too large for so many runs.
    pub(super) sizes_omitted: usize,
    pub(super) entries: Vec<Entry>,
    pub(super) absent: Vec<Absent>,
    pub(super) turns: Vec<Turn>,
}

/// Makes the others, as far as there is room for them, times all and finds where one overtakes another; `options` are those of
/// each simulation, but for the size. Where times are those of the `library`, nothing is simulated.
///
/// # Errors
/// The plan itself cannot be simulated, or nobody waits any more.
pub(super) fn compare(
    plan: &Material,
    sizes: Vec<u64>,
    (clock, library): (Clock, Option<&Model>),
    options: SimulateOptions<'_>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Comparison, Failure> {
    let line = ProgressLine::start();
    let course = Course { depth: plan.verdict.depth_max, traffic: plan.loads.traffic().clone() };
    let algbw = plan.rate().clone();
    let own = Entry { name: "this plan".to_owned(), algbw, ceiling: None, course: Some(course), times: Vec::new() };
    let mut entries = vec![own];
    let mut absent = Vec::new();
    let mut graphs = Vec::new();
    let asked = sizes.len();
    let sizes = match clock {
        Clock::Simulated => thinned(sizes, plan.graph.transfers.len() as u64),
        Clock::Library => sizes,
    };
    let runs = if clock == Clock::Simulated { sizes.len() as u64 } else { 1 };
    let mut room = Room { effort: EFFORT_MAX, sizes: runs };
    room.take(&plan.graph);
    line.working("comparing with rings".to_owned());
    let (baseline, made) = rings(plan, &room, stop);
    let mut enter = |name: &'static str, made: Rival, room: &mut Room| match made {
        Ok((entry, graph)) => {
            room.take(&graph);
            entries.push(entry);
            graphs.push(graph);
        }
        Err(reason) => absent.push(Absent { name, reason }),
    };
    let made = made.unwrap_or_else(|| rival(baseline.name, Algorithm::Ring, plan, &room, stop));
    enter(baseline.name, made, &mut room);
    for algorithm in RIVALS {
        let name = algorithm.name();
        line.working(format!("comparing with {name}"));
        let made = rival(name, algorithm, plan, &room, stop);
        enter(name, made, &mut room);
    }
    if plan.schedule.collective.kind() == CollectiveKind::Allreduce {
        line.working(format!("comparing with {TWO_PHASES}"));
        let made = two_phases(plan, &room, stop);
        enter(TWO_PHASES, made, &mut room);
    }
    let library_entry = library.and_then(|model| {
        let algbw = model.rate()?;
        let name = model.library.to_string();
        let ceiling = model.ceiling().cloned();
        Some(Entry { name, algbw, ceiling, course: None, times: vec![None; sizes.len()] })
    });
    let turns = match (clock, library) {
        (Clock::Library, Some(model)) => {
            entries.extend(library_entry);
            by_library(&mut entries, &sizes, model)
        }
        _ => {
            let graphs = std::iter::once(&plan.graph).chain(&graphs);
            let rules = Rules { sizes: &sizes, options, effort_max: WHOLE_EFFORT_MAX, stop };
            let turns = by_simulation(&mut entries, graphs, plan, rules, &line)?;
            entries.extend(library_entry);
            turns
        }
    };
    drop(line);
    Ok(Comparison { clock, baseline, sizes_omitted: asked - sizes.len(), sizes, entries, absent, turns })
}

/// Simulated times; from which size on which is the fastest, as far as the times are known.
///
/// # Errors
/// As [`timed`].
fn by_simulation<'a>(
    entries: &mut [Entry],
    graphs: impl Iterator<Item = &'a TransferGraph>,
    plan: &Material,
    rules: Rules<'_>,
    line: &ProgressLine,
) -> Result<Vec<Turn>, Failure> {
    let found = {
        let runners = entries.iter().zip(graphs).map(|(entry, graph)| Runner {
            name: &entry.name,
            topology: &plan.topology,
            graph,
            steps: None,
        });
        let sizes = rules.sizes;
        let found = Race::new(runners.collect(), rules).run(line);
        timed(&found)?;
        (turns(sizes, &found), found.times)
    };
    let (turns, times) = found;
    entries.iter_mut().zip(times).for_each(|(entry, times)| entry.times = times);
    Ok(turns)
}

/// Times by the latencies of the library; from which size on which is the fastest, as far as all times are known.
fn by_library(entries: &mut [Entry], sizes: &[u64], model: &Model) -> Vec<Turn> {
    let rows: Vec<(Rate, Option<u32>)> =
        entries.iter().map(|entry| (entry.algbw.clone(), entry.course.as_ref().map(|course| course.depth))).collect();
    let time = |(rate, depth): &(Rate, Option<u32>), size: u64| match depth {
        Some(depth) => model.plan_time_ps(rate, *depth, size),
        None => model.taken(size).map(|taken| taken.time_ps),
    };
    for (entry, row) in entries.iter_mut().zip(&rows) {
        entry.times = sizes.iter().map(|&size| time(row, size)).collect();
    }
    let fastest = |size: u64| {
        let times: Option<Vec<u64>> = rows.iter().map(|row| time(row, size)).collect();
        let times = times?.into_iter().enumerate().min_by_key(|&(_, time)| time);
        times.map(|(entry, _)| entry)
    };
    let known: Vec<(u64, usize)> = sizes.iter().filter_map(|&size| Some((size, fastest(size)?))).collect();
    let mut turns: Vec<Turn> =
        known.first().map(|&(from_bytes, entry)| Turn { from_bytes, entry }).into_iter().collect();
    for pair in known.windows(2) {
        let mut low = pair[0];
        let last = pair[1];
        while low.1 != last.1 {
            // The first size after `low` at which another is the fastest.
            let mut high = last;
            while high.0 - low.0 > 1 {
                let middle = low.0 + (high.0 - low.0) / 2;
                match fastest(middle) {
                    Some(entry) if entry == low.1 => low.0 = middle,
                    found => high = (middle, found.unwrap_or(last.1)),
                }
            }
            turns.push(Turn { from_bytes: high.0, entry: high.1 });
            low = high;
        }
    }
    turns
}

/// The sizes at which a plan of so many transfers is simulated: all, or the last and others evenly spread before it.
fn thinned(sizes: Vec<u64>, transfers: u64) -> Vec<u64> {
    let most = usize::try_from(OWN_EFFORT_MAX / transfers.max(1)).unwrap_or(usize::MAX).max(1);
    spread(sizes.len(), most).into_iter().filter_map(|position| sizes.get(position).copied()).collect()
}

/// How many transfers other plans may have.
struct Room {
    /// Transfers that may still be simulated, each counted once for every size.
    effort: u64,
    /// Sizes at which each is simulated.
    sizes: u64,
}

impl Room {
    fn take(&mut self, graph: &TransferGraph) {
        self.effort = self.effort.saturating_sub((graph.transfers.len() as u64).saturating_mul(self.sizes));
    }

    /// Most transfers that another plan may have.
    fn most(&self) -> u64 {
        TRANSFERS_MAX.min(self.effort / self.sizes.max(1))
    }

    /// # Errors
    /// In words, that these are too many transfers.
    fn admit(&self, transfers: u64) -> Result<(), String> {
        let most = self.most();
        if transfers <= most {
            return Ok(());
        }
        Err(match most {
            TRANSFERS_MAX => format!("takes some {transfers} transfers, and more than {TRANSFERS_MAX} take too long"),
            _ => {
                format!("takes some {transfers} transfers, and more than {most} beside the plans before take too long")
            }
        })
    }
}

/// An entry and what it is simulated as; in words why there is none.
type Rival = Result<(Entry, TransferGraph), String>;

/// Rings as NCCL has them, or one ring, made by [`rival`], where that is faster or the network does not say enough.
fn rings(plan: &Material, room: &Room, stop: &(dyn Fn() -> bool + Sync)) -> (Baseline, Option<Rival>) {
    let one = |reason: String| (Baseline { name: ONE_RING, rings: 1, reason: Some(reason) }, None);
    let collective = plan.schedule.collective;
    let shares = plan.promised_shares();
    let NicRings { schedule, rings } = match nic_rings(&plan.topology, collective, &shares, room.most(), &stop) {
        Ok(found) => found,
        Err(NicRingsError::Synthesis(error)) => return one(words(&error)),
        Err(error) => return one(error.to_string()),
    };
    let made = judged(NIC_RINGS, plan, &schedule, room);
    (Baseline { name: NIC_RINGS, rings, reason: None }, Some(made))
}

/// A textbook plan; in words why there is none.
fn rival(name: &str, algorithm: Algorithm, plan: &Material, room: &Room, stop: &(dyn Fn() -> bool + Sync)) -> Rival {
    let (topology, collective) = (&plan.topology, plan.schedule.collective);
    if plan.schedule.algorithm == algorithm.name() {
        return Err("is this plan itself".to_owned());
    }
    room.admit(transfers(name, collective.kind(), topology.rank_count()))?;
    let request = SynthesisRequest { shares: plan.promised_shares(), ..SynthesisRequest::new(collective, algorithm) };
    let schedule = synthesize(topology, &request, &stop, &Silent);
    let schedule = schedule.map_err(|error| without_name(&words(&error), algorithm.name()))?;
    judged(name, plan, &schedule, room)
}

/// An allreduce by trees in its other form, a reduce-scatter and then an allgather; in words why there is none.
fn two_phases(plan: &Material, room: &Room, stop: &(dyn Fn() -> bool + Sync)) -> Rival {
    let topology = &plan.topology;
    room.admit(transfers(TWO_PHASES, CollectiveKind::Allreduce, topology.rank_count()))?;
    let schedule = explain::two_phases(topology, &stop).map_err(|error| words(&error))?;
    if schedule.shape == plan.schedule.shape {
        return Err("are this plan itself".to_owned());
    }
    judged(TWO_PHASES, plan, &schedule, room)
}

/// What the checker says of a schedule that is compared with the plan.
fn judged(name: &str, plan: &Material, schedule: &Schedule, room: &Room) -> Rival {
    let topology = &plan.topology;
    let graph = compile(topology, schedule).map_err(|error| words(&error))?;
    // What stores and forwards has more than was expected.
    room.admit(graph.transfers.len() as u64)?;
    let verdict = check(topology, &graph).map_err(|error| words(&error))?;
    let loads = LinkLoads::of(topology, &graph).map_err(|error| words(&error))?;
    // Sends are trees of their own: what is passed on takes a chain of them.
    let depth = verdict.depth_max.max(step_numbers(schedule, &graph).into_iter().max().map_or(0, |last| last + 1));
    let course = Course { depth, traffic: loads.traffic().clone() };
    let algbw = verdict.in_network.map_or(verdict.algbw, |weighed| weighed.algbw);
    Ok((Entry { name: name.to_owned(), algbw, ceiling: None, course: Some(course), times: Vec::new() }, graph))
}

/// About as many transfers as a textbook plan has.
fn transfers(name: &str, kind: CollectiveKind, rank_count: u32) -> u64 {
    let ranks = u64::from(rank_count);
    let levels = u64::from(rank_count.next_power_of_two().ilog2());
    match (name, kind) {
        // It refuses what has no root by itself, with a better reason.
        ("binomial", kind) if !kind.has_root() => 0,
        ("bruck", CollectiveKind::AllToAll) => ranks.saturating_mul(ranks).saturating_mul(levels) / 2,
        (_, kind) if kind.has_root() => ranks.saturating_mul(levels),
        _ => ranks.saturating_mul(ranks),
    }
}

/// The reason alone: without the name of what refuses, which stands before it, and without what to do instead.
fn without_name(words: &str, name: &str) -> String {
    let reason = words.strip_prefix(name).unwrap_or(words).trim_start();
    let reason = reason.split("; ").next().unwrap_or(reason);
    reason.strip_suffix(", and none exists").unwrap_or(reason).to_owned()
}

/// Whether all have times, but for what takes too much work.
///
/// # Errors
/// Nobody waits any more, or sizes that cannot be simulated.
fn timed(found: &Found) -> Result<(), Failure> {
    if found.is_stopped {
        return Err(Failure::new(ErrorClass::Deadline, "deadline exceeded before the times were simulated")
            .help("raise `--deadline`"));
    }
    let refused = found.untimed.iter().flatten().find(|one| !matches!(one.error, SimulateError::TooLarge { .. }));
    refused.map_or(Ok(()), |refused| {
        let (size_bytes, reason) = (refused.from_bytes, words(&refused.error));
        Err(Failure::input(format!("cannot simulate {size_bytes} bytes: {reason}"))
            .help("lower --size, --sizes or --alpha"))
    })
}

/// From which size on which is the fastest, up to the first size at which nobody knows.
fn turns(sizes: &[u64], found: &Found) -> Vec<Turn> {
    let known: Vec<(u64, usize)> =
        sizes.iter().copied().zip(found.fastest.iter().map_while(|&fastest| fastest)).collect();
    let (Some(&(from_bytes, entry)), Some(&(last, _))) = (known.first(), known.last()) else { return Vec::new() };
    let crossovers = found.crossovers.iter().take_while(|crossover| crossover.high.size_bytes <= last);
    let later = crossovers.map(|crossover| Turn { from_bytes: crossover.high.size_bytes, entry: crossover.after });
    std::iter::once(Turn { from_bytes, entry }).chain(later).collect()
}

impl Entry {
    /// The part of what it could reach at most; `bound` is the plan's.
    pub(super) fn of_bound(&self, bound: &Rate) -> Option<Ratio> {
        self.algbw.ratio_to(self.ceiling.as_ref().unwrap_or(bound))
    }
}

impl Comparison {
    /// Plans that have no time at some size, as it takes too much work.
    pub(super) fn untimed(&self) -> impl Iterator<Item = &Entry> {
        let plans = self.entries.iter().filter(|entry| entry.course.is_some());
        plans.filter(|entry| entry.times.iter().any(Option::is_none))
    }

    /// Whether the plan is so much faster than the fastest other of large messages that it is a gain.
    pub(super) fn gains_large(&self) -> Option<bool> {
        let (own, best) = (self.entries.first()?, self.best_other()?);
        let least = Ratio::new(GAIN_LEAST.0, GAIN_LEAST.1)?;
        Some(own.algbw.ratio_to(&best.algbw).is_none_or(|ratio| ratio >= least))
    }

    /// Whether it is at some size.
    pub(super) fn gains_somewhere(&self) -> bool {
        let Some((own, others)) = self.entries.split_first() else { return false };
        (0..self.sizes.len()).any(|position| {
            let time = |entry: &Entry| entry.times.get(position).copied().flatten().map(u128::from);
            // Beside a library whose time is not known, nothing is known to be a gain.
            if self.clock == Clock::Library && others.iter().any(|entry| time(entry).is_none()) {
                return false;
            }
            let best = others.iter().filter_map(time).min();
            let (more, less) = (u128::from(GAIN_LEAST.0), u128::from(GAIN_LEAST.1));
            time(own).zip(best).is_some_and(|(own, other)| own * more <= other * less)
        })
    }

    /// The fastest other of large messages, the first of equals.
    pub(super) fn best_other(&self) -> Option<&Entry> {
        let others = self.entries.get(1..).unwrap_or_default();
        others.iter().reduce(|best, entry| if entry.algbw > best.algbw { entry } else { best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::simulate::race::{Crossover, Side};

    #[test]
    fn a_thousand_ranks_are_compared_but_for_what_takes_too_long() {
        let is_made = |name, kind, ranks| transfers(name, kind, ranks) <= TRANSFERS_MAX;
        for name in [ONE_RING, "direct", "recursive-doubling", "bruck"] {
            assert!(is_made(name, CollectiveKind::Allgather, 1024), "{name}");
            assert!(!is_made(name, CollectiveKind::Allgather, 1025), "{name}");
        }
        assert!(is_made("binomial", CollectiveKind::Broadcast, 65_536));
        assert!(is_made("bruck", CollectiveKind::AllToAll, 256));
        assert!(!is_made("bruck", CollectiveKind::AllToAll, 512));
    }

    /// Large plans are simulated at fewer sizes.
    #[test]
    fn sizes_are_thinned_for_large_plans() {
        let sizes: Vec<u64> = (1..=10).collect();
        assert_eq!(thinned(sizes.clone(), OWN_EFFORT_MAX / 10), sizes);
        assert_eq!(thinned(sizes.clone(), OWN_EFFORT_MAX / 4), [1, 4, 7, 10]);
        assert_eq!(thinned(sizes.clone(), OWN_EFFORT_MAX / 2), [1, 10]);
        assert_eq!(thinned(sizes.clone(), u64::MAX), [10]);
        assert_eq!(thinned(sizes, 0).len(), 10);
        assert_eq!((spread(0, 4), spread(1, 4), spread(5, 4)), (vec![], vec![0], vec![0, 1, 2, 4]));
    }

    /// What is simulated often takes the room of others.
    #[test]
    fn rivals_have_the_room_that_is_left() {
        let room = |effort| Room { effort, sizes: 10 };
        assert_eq!(room(u64::MAX).admit(TRANSFERS_MAX), Ok(()));
        assert!(room(u64::MAX).admit(TRANSFERS_MAX + 1).unwrap_err().ends_with("more than 1048576 take too long"));
        assert_eq!(room(1_000).admit(100), Ok(()));
        let reason = "takes some 101 transfers, and more than 100 beside the plans before take too long";
        assert_eq!(room(1_000).admit(101), Err(reason.to_owned()));
    }

    /// From the larger side of a crossover on, up to the first size at which nobody knows.
    #[test]
    fn turns_end_where_nobody_knows() {
        let side = |size_bytes| Side { size_bytes, before_ps: None, after_ps: None };
        let crossover = |low, high, before, after| Crossover { low: side(low), high: side(high), before, after };
        let found = |fastest: [Option<usize>; 4]| Found {
            times: Vec::new(),
            untimed: Vec::new(),
            fastest: fastest.to_vec(),
            crossovers: vec![crossover(30, 31, 1, 2), crossover(70, 71, 2, 0), crossover(300, 303, 0, 1)],
            is_stopped: false,
        };
        let turns = |fastest| -> Vec<(u64, usize)> {
            turns(&[10, 40, 160, 640], &found(fastest)).iter().map(|turn| (turn.from_bytes, turn.entry)).collect()
        };
        assert_eq!(turns([Some(1), Some(2), Some(0), Some(1)]), [(10, 1), (31, 2), (71, 0), (303, 1)]);
        assert_eq!(turns([Some(1), Some(2), Some(0), None]), [(10, 1), (31, 2), (71, 0)]);
        assert_eq!(turns([None, Some(2), Some(0), Some(1)]), []);
    }
}
