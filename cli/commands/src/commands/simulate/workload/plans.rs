//! The plans that algorithms have for the collectives of a workload, and their times.

use std::collections::BTreeMap;

use canopy_client::ClientError;
use canopy_schedule::CollectiveKind;
use canopy_simulate::timeline::Call;
use canopy_simulate::{ClassModel, SimulateError, SimulateOptions, simulate};
use canopy_synth::Algorithm;
use canopy_topology::{Rate, Topology};

use super::in_call;
use crate::commands::simulate::{Absent, SimulateArgs, SyncName, WORK_MAX, fresh, judge_any, refused, sweep};
use crate::connection::{Connection, ask};
use crate::exit::Failure;
use crate::material::Judged;
use crate::progress::ProgressLine;

/// A collective without its size.
type Kind = (CollectiveKind, Option<u32>);

/// The files of an algorithm's plans, or why there are none, in words.
pub(super) struct Source {
    algorithm: Algorithm,
    plans: BTreeMap<Kind, Result<Vec<u8>, Failure>>,
    /// Whether it is only there for collectives of others.
    is_spare: bool,
}

/// Asks for the plans of all algorithms, and for those of `auto` where one has none.
///
/// # Errors
/// A name that is given twice, and what has nothing to do with a single plan.
pub(super) async fn sources(args: &SimulateArgs, kinds: &[Kind]) -> Result<Vec<Source>, Failure> {
    let algorithms = if args.algorithms.is_empty() { vec![args.algorithm] } else { args.algorithms.clone() };
    sweep::require_distinct(&algorithms)?;
    ask(&args.server, None, async |connection, _| {
        let mut sources: Vec<Source> = Vec::new();
        for &algorithm in &algorithms {
            let mut plans = BTreeMap::new();
            for &(kind, root) in kinds {
                plans.insert((kind, root), plan(args, connection, algorithm, (kind, root)).await?);
            }
            sources.push(Source { algorithm, plans, is_spare: false });
        }
        let is_missing = |kind: &Kind| sources.iter().any(|source| source.plans.get(kind).is_none_or(Result::is_err));
        let missing: Vec<Kind> = kinds.iter().copied().filter(is_missing).collect();
        if !missing.is_empty() && !algorithms.contains(&Algorithm::Auto) {
            let mut plans = BTreeMap::new();
            for kind in missing {
                plans.insert(kind, plan(args, connection, Algorithm::Auto, kind).await?);
            }
            sources.push(Source { algorithm: Algorithm::Auto, plans, is_spare: true });
        }
        Ok(sources)
    })
    .await
}

/// The file of one plan.
async fn plan(
    args: &SimulateArgs,
    connection: &Connection,
    algorithm: Algorithm,
    (kind, root): Kind,
) -> Result<Result<Vec<u8>, Failure>, ClientError> {
    if !algorithm.collectives.contains(&kind) {
        return Ok(Err(Failure::input(format!("does not plan {kind}"))));
    }
    let unnamed = match fresh::unnamed(args, kind, root) {
        Ok(unnamed) => unnamed,
        Err(failure) => return Ok(Err(failure)),
    };
    fresh::tried(connection, &unnamed, algorithm, args.deadline).await
}

/// A plan that is right, with the steps of its transfers where there are barriers.
struct Ready {
    judged: Judged,
    steps: Option<Vec<u32>>,
}

impl Ready {
    const fn topology(&self) -> &Topology {
        match &self.judged {
            Judged::Listed(plan) => &plan.topology,
            Judged::Rule(rule) => &rule.topology,
        }
    }

    const fn bound(&self) -> &Rate {
        match &self.judged {
            Judged::Listed(plan) => &plan.bound.upper,
            Judged::Rule(rule) => &rule.bound.upper,
        }
    }

    /// Time of a message of this size, in picoseconds.
    fn time_ps(&self, args: &SimulateArgs, size_bytes: u64) -> Result<u64, SimulateError> {
        match &self.judged {
            Judged::Listed(plan) => {
                let options = SimulateOptions { size_bytes, ..args.options(self.steps.as_deref(), WORK_MAX) };
                Ok(simulate(&plan.topology, &plan.graph, &options, &|| false)?.time_ps)
            }
            Judged::Rule(rule) => {
                let model =
                    ClassModel::of(&rule.topology, rule.schedule.collective, &rule.schedule.shape, &rule.classes)?;
                let steps: Option<&[u32]> = (args.sync == SyncName::Steps).then_some(&[]);
                let options = SimulateOptions { size_bytes, ..args.options(steps, WORK_MAX) };
                let found = model.run(&rule.bound.upper, &options, &|| false)?;
                Ok(found.map_or(0, |found| found.reached.time_ps))
            }
        }
    }
}

/// An algorithm's plans.
struct Entry {
    name: &'static str,
    plans: BTreeMap<Kind, Ready>,
    is_spare: bool,
}

/// All plans.
pub(super) struct Planned {
    entries: Vec<Entry>,
    /// Algorithms without a plan, and why.
    pub(super) absent: Vec<Absent>,
}

impl Planned {
    /// Judges the plans that there are.
    ///
    /// # Errors
    /// No algorithm has a plan, for the reason of the first refusal; a plan fails its checks; no algorithm plans a collective.
    pub(super) fn judged(args: &SimulateArgs, sources: Vec<Source>, line: &ProgressLine) -> Result<Self, Failure> {
        let (mut entries, mut absent, mut first) = (Vec::new(), Vec::new(), None);
        for Source { algorithm, plans, is_spare } in sources {
            let name = algorithm.name();
            let (mut ready, mut refusal) = (BTreeMap::new(), None);
            for (kind, plan) in plans {
                line.working(format!("judging the plan of {name} for {}", kind.0));
                match plan {
                    Ok(bytes) => {
                        let judged = judge_any(&args.plan, &bytes)?;
                        let steps = match &judged {
                            Judged::Listed(plan) => args.steps_of(plan),
                            Judged::Rule(_) => None,
                        };
                        ready.insert(kind, Ready { judged, steps });
                    }
                    Err(failure) => {
                        refusal.get_or_insert(failure);
                    }
                }
            }
            if let Some(failure) = refusal.filter(|_| ready.is_empty()) {
                absent.push(Absent { name, reason: fresh::reason(&failure, algorithm) });
                first.get_or_insert(failure);
            }
            entries.push(Entry { name, plans: ready, is_spare });
        }
        let planned = Self { entries, absent };
        match first {
            Some(failure) if planned.candidates().is_empty() => Err(failure),
            None if planned.candidates().is_empty() => {
                Err(Failure::input("the workload has no collective; add one, or there is nothing to compare"))
            }
            _ => Ok(planned),
        }
    }

    /// Entries that are compared: those with a plan of their own.
    pub(super) fn candidates(&self) -> Vec<usize> {
        let is_candidate =
            |&number: &usize| self.entries.get(number).is_some_and(|entry| !entry.is_spare && !entry.plans.is_empty());
        (0..self.entries.len()).filter(is_candidate).collect()
    }

    pub(super) fn name(&self, number: usize) -> &'static str {
        self.entries.get(number).map_or("", |entry| entry.name)
    }

    /// The network of all plans.
    pub(super) fn topology(&self) -> Option<&Topology> {
        self.entries.iter().flat_map(|entry| entry.plans.values()).map(Ready::topology).next()
    }

    /// The least proven bound of a collective.
    pub(super) fn bound(&self, kind: CollectiveKind, root: Option<u32>) -> Option<Rate> {
        let plans = self.entries.iter().filter_map(|entry| entry.plans.get(&(kind, root)));
        plans.map(Ready::bound).min().cloned()
    }

    /// Collectives that an algorithm has no plan for.
    pub(super) fn by_auto(&self, number: usize) -> Vec<CollectiveKind> {
        let all = self.entries.iter().flat_map(|entry| entry.plans.keys().copied());
        let own = self.entries.get(number);
        let mut missing: Vec<Kind> = all.filter(|kind| own.is_none_or(|own| !own.plans.contains_key(kind))).collect();
        missing.sort_unstable();
        missing.dedup();
        missing.into_iter().map(|(kind, _)| kind).collect()
    }

    /// The time of each call with the plans of an algorithm.
    ///
    /// # Errors
    /// A call that cannot be simulated.
    pub(super) fn times(
        &self,
        args: &SimulateArgs,
        number: usize,
        calls: &[Call],
        line: &ProgressLine,
    ) -> Result<BTreeMap<Call, u64>, Failure> {
        let mut times = BTreeMap::new();
        for &call in calls {
            let plan = self.plan(number, call)?;
            line.working(format!("simulating {}: {}", self.name(number), in_call(call)));
            let time_ps = plan.time_ps(args, call.size_bytes).map_err(|error| refused(&error, call.size_bytes))?;
            times.insert(call, time_ps);
        }
        Ok(times)
    }

    /// The algorithm's plan for a call, else that of `auto`.
    fn plan(&self, number: usize, call: Call) -> Result<&Ready, Failure> {
        let kind = (call.kind, call.root);
        let own = self.entries.get(number).and_then(|entry| entry.plans.get(&kind));
        let auto = || self.entries.iter().filter(|entry| entry.name == Algorithm::Auto.name());
        own.or_else(|| auto().find_map(|entry| entry.plans.get(&kind))).ok_or_else(|| {
            Failure::input(format!("no plan for {}: neither {} nor auto has one", call.kind, self.name(number)))
        })
    }
}
