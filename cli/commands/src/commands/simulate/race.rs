//! Several plans run for messages of several sizes: how long each takes, which is the fastest where, and between which two sizes another
//! becomes it.
//!
//! It does not know where plans come from, nor how what was found is told.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use canopy_schedule::TransferGraph;
use canopy_simulate::{SimulateError, SimulateOptions, Sync, bandwidth_limit_ps, simulate};
use canopy_topology::Topology;
use serde::Serialize;

use crate::progress::ProgressLine;
use crate::sizes::in_words;

/// The sizes on both sides of a crossover differ by this part of the smaller one at most, or by a byte.
const CROSSOVER_PART: u64 = 100;

/// A plan that takes part.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Runner<'a> {
    pub(in crate::commands) name: &'a str,
    pub(in crate::commands) topology: &'a Topology,
    pub(in crate::commands) graph: &'a TransferGraph,
    /// Of its transfers, where there are barriers after them.
    pub(in crate::commands) steps: Option<&'a [u32]>,
}

/// How plans are run.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Rules<'a> {
    /// Rising.
    pub(in crate::commands) sizes: &'a [u64],
    /// But for the size and the steps.
    pub(in crate::commands) options: SimulateOptions<'a>,
    /// Most transfers that are simulated in all, each counted once for every size: where there are more, crossovers are known less well.
    pub(in crate::commands) effort_max: u64,
    /// Whether nobody waits any more.
    pub(in crate::commands) stop: &'a dyn Fn() -> bool,
}

/// All plans; of equally fast ones the first counts as the fastest.
pub(in crate::commands) struct Race<'a> {
    runners: Vec<Runner<'a>>,
    rules: Rules<'a>,
    effort: Cell<u64>,
    is_stopped: Cell<bool>,
    /// By runner and size; none where it takes too much work. Each is found once.
    known: RefCell<BTreeMap<(usize, u64), Option<u64>>>,
}

/// What came of it. Runners are named by their numbers.
pub(in crate::commands) struct Found {
    /// By runner and size, in picoseconds.
    pub(in crate::commands) times: Vec<Vec<Option<u64>>>,
    /// By runner, why it has no time from some size on.
    pub(in crate::commands) untimed: Vec<Option<Untimed>>,
    /// By size; none where that is not known.
    pub(in crate::commands) fastest: Vec<Option<usize>>,
    /// Rising.
    pub(in crate::commands) crossovers: Vec<Crossover>,
    /// Whether some times were not found because nobody waited.
    pub(in crate::commands) is_stopped: bool,
}

/// From which size on a runner has no time.
#[derive(Clone)]
pub(in crate::commands) struct Untimed {
    pub(in crate::commands) from_bytes: u64,
    pub(in crate::commands) error: SimulateError,
}

/// Where one overtakes another: at some size above the first and up to the second of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) struct Crossover {
    pub(in crate::commands) low: Side,
    pub(in crate::commands) high: Side,
    /// The fastest at the smaller size.
    pub(in crate::commands) before: usize,
    /// The fastest at the larger size.
    pub(in crate::commands) after: usize,
}

/// A size, and the times there of the one before and the one after, if they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(in crate::commands) struct Side {
    pub(in crate::commands) size_bytes: u64,
    pub(in crate::commands) before_ps: Option<u64>,
    pub(in crate::commands) after_ps: Option<u64>,
}

impl<'a> Race<'a> {
    pub(in crate::commands) const fn new(runners: Vec<Runner<'a>>, rules: Rules<'a>) -> Self {
        let (effort, is_stopped) = (Cell::new(0), Cell::new(false));
        Self { runners, rules, effort, is_stopped, known: RefCell::new(BTreeMap::new()) }
    }

    /// Simulates all at every size and finds where one overtakes another.
    pub(in crate::commands) fn run(&self, line: &ProgressLine) -> Found {
        let (times, untimed): (Vec<_>, Vec<_>) =
            self.runners.iter().enumerate().map(|(number, runner)| self.times(number, runner, line)).unzip();
        let sizes = self.rules.sizes;
        let fastest: Vec<Option<usize>> =
            (0..sizes.len()).map(|position| self.fastest_known(position, &times)).collect();
        let mut crossovers = Vec::new();
        for (sizes, winners) in sizes.windows(2).zip(fastest.windows(2)) {
            if let (&[low, high], &[Some(before), Some(after)]) = (sizes, winners) {
                line.working(format!("finding who is fastest between {} and {}", in_words(low), in_words(high)));
                self.between((low, before), (high, after), &mut crossovers);
            }
        }
        Found { times, untimed, fastest, crossovers, is_stopped: self.is_stopped.get() }
    }

    /// The times of one runner, and from which size on it has none, and why.
    fn times(&self, number: usize, runner: &Runner<'_>, line: &ProgressLine) -> (Vec<Option<u64>>, Option<Untimed>) {
        let sizes = self.rules.sizes;
        let (mut own, mut untimed) = (Vec::with_capacity(sizes.len()), None);
        for (done, &size_bytes) in (1..).zip(sizes) {
            line.working(format!("simulating {}, {done} of {} sizes", runner.name, sizes.len()));
            // A larger size takes no less work than one that took too much.
            if untimed.is_some() {
                own.push(None);
                continue;
            }
            match self.simulated(number, size_bytes) {
                Ok(time) => own.push(Some(time)),
                Err(error) => {
                    own.push(None);
                    untimed = Some(Untimed { from_bytes: size_bytes, error });
                }
            }
        }
        (own, untimed)
    }

    /// The fastest of those with a time at a size; none where one without might be faster.
    fn fastest_known(&self, position: usize, times: &[Vec<Option<u64>>]) -> Option<usize> {
        let size_bytes = *self.rules.sizes.get(position)?;
        let at = |own: &Vec<Option<u64>>| own.get(position).copied().flatten();
        let known = times.iter().enumerate().filter_map(|(number, own)| Some((at(own)?, number)));
        let best = known.min()?;
        let is_open = |(number, own): (usize, &Vec<Option<u64>>)| {
            at(own).is_none() && self.least(number, size_bytes).is_none_or(|least| (least, number) < best)
        };
        if times.iter().enumerate().any(is_open) { None } else { Some(best.1) }
    }

    /// Finds all crossovers between two sizes whose fastest are known: halves what lies between them until they are near enough, or
    /// that would take too much.
    fn between(&self, (low, before): (u64, usize), (high, after): (u64, usize), crossovers: &mut Vec<Crossover>) {
        if before == after {
            return;
        }
        let distance = high.saturating_sub(low);
        if distance <= (low / CROSSOVER_PART).max(1) || !self.may_halve() {
            let side = |size_bytes| Side {
                size_bytes,
                before_ps: self.time(before, size_bytes),
                after_ps: self.time(after, size_bytes),
            };
            crossovers.push(Crossover { low: side(low), high: side(high), before, after });
            return;
        }
        let middle = low + distance / 2;
        let fastest = self.fastest(middle, (before, after));
        self.between((low, before), (middle, fastest), crossovers);
        self.between((middle, fastest), (high, after), crossovers);
    }

    /// Whether another size may be looked at, which may take all plans.
    fn may_halve(&self) -> bool {
        let all = self.runners.iter().map(Runner::transfers).fold(0, u64::saturating_add);
        self.effort.get().saturating_add(all) <= self.rules.effort_max
    }

    /// The fastest at a size; two that are likely are asked first, and others only if the load of their busiest link leaves them a
    /// chance.
    fn fastest(&self, size_bytes: u64, likely: (usize, usize)) -> usize {
        let others = (0..self.runners.len()).filter(|&number| number != likely.0 && number != likely.1);
        let mut best: Option<(u64, usize)> = None;
        for number in [likely.0, likely.1].into_iter().chain(others) {
            let is_hopeless =
                |best: (u64, usize)| self.least(number, size_bytes).is_some_and(|least| best < (least, number));
            if best.is_some_and(is_hopeless) {
                continue;
            }
            if let Some(time) = self.time(number, size_bytes)
                && best.is_none_or(|best| (time, number) < best)
            {
                best = Some((time, number));
            }
        }
        best.map_or(likely.1, |(_, number)| number)
    }

    /// What a plan takes at least: α, and then what the busiest link has to carry. None where that cannot be said.
    fn least(&self, number: usize, size_bytes: u64) -> Option<u64> {
        let runner = self.runners.get(number)?;
        let options = self.options(runner, size_bytes);
        let limit = bandwidth_limit_ps(runner.topology, runner.graph, &options).ok()?;
        limit.checked_add(options.alpha.nanos().checked_mul(1_000)?)
    }

    fn time(&self, number: usize, size_bytes: u64) -> Option<u64> {
        let known = self.known.borrow().get(&(number, size_bytes)).copied();
        known.unwrap_or_else(|| self.simulated(number, size_bytes).ok())
    }

    fn simulated(&self, number: usize, size_bytes: u64) -> Result<u64, SimulateError> {
        let runner = &self.runners[number];
        if (self.rules.stop)() {
            self.is_stopped.set(true);
            return Err(SimulateError::Stopped);
        }
        self.effort.set(self.effort.get().saturating_add(runner.transfers()));
        let found = simulate(runner.topology, runner.graph, &self.options(runner, size_bytes), self.rules.stop);
        let found = found.map(|outcome| outcome.time_ps);
        if found == Err(SimulateError::Stopped) {
            self.is_stopped.set(true);
        }
        self.known.borrow_mut().insert((number, size_bytes), found.as_ref().ok().copied());
        found
    }

    fn options(&self, runner: &Runner<'a>, size_bytes: u64) -> SimulateOptions<'a> {
        SimulateOptions { size_bytes, sync: runner.steps.map_or(Sync::Deps, Sync::Steps), ..self.rules.options }
    }
}

impl Runner<'_> {
    const fn transfers(&self) -> u64 {
        self.graph.transfers.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use canopy_schedule::{Collective, CollectiveKind, compile};
    use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    /// Where there is no room for more, one overtakes another somewhere between two sizes of the list.
    #[test]
    fn crossovers_are_as_near_as_there_is_room_for() {
        let topology = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
        let collective = Collective::new(CollectiveKind::Allgather, None, 16).unwrap();
        let graph = |algorithm| {
            let request = SynthesisRequest::new(collective, algorithm);
            compile(&topology, &synthesize(&topology, &request, &Never, &Silent).unwrap()).unwrap()
        };
        let graphs = [graph(Algorithm::Forest), graph(Algorithm::Direct)];
        let sizes = [1 << 10, 1 << 20, 1 << 28];
        let found = |effort_max: u64, stop: &dyn Fn() -> bool| {
            let runner = |graph| Runner { name: "one", topology: &topology, graph, steps: None };
            let options = SimulateOptions::usual(0, 1_000_000);
            let rules = Rules { sizes: &sizes, options, effort_max, stop };
            Race::new(graphs.iter().map(runner).collect(), rules).run(&ProgressLine::start())
        };
        let (near, far) = (found(u64::MAX, &|| false), found(0, &|| false));
        assert_eq!((&near.times, &near.fastest), (&far.times, &far.fastest));
        assert_eq!((near.fastest.first(), near.fastest.last()), (Some(&Some(1)), Some(&Some(0))));
        let ([near], [far]) = (near.crossovers.as_slice(), far.crossovers.as_slice()) else { panic!("one overtakes") };
        assert_eq!((near.before, near.after, far.before, far.after), (1, 0, 1, 0));
        assert!(near.high.size_bytes - near.low.size_bytes <= near.low.size_bytes / CROSSOVER_PART, "{near:?}");
        assert!(sizes.contains(&far.low.size_bytes) && sizes.contains(&far.high.size_bytes), "{far:?}");
        assert!(far.low.size_bytes <= near.low.size_bytes && near.high.size_bytes <= far.high.size_bytes);
        let stopped = found(u64::MAX, &|| true);
        assert!(stopped.is_stopped && stopped.fastest.iter().all(Option::is_none));
    }
}
