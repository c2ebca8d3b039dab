//! The plans that algorithms have, judged and run against each other.

use super::WORK_MAX;
use super::entrants::Answer;
use crate::commands::simulate::race::{Found, Race, Rules, Runner};
use crate::commands::simulate::{Absent, SimulateArgs, fresh, judge_bytes, refused};
use crate::exit::Failure;
use crate::material::Material;
use crate::progress::ProgressLine;

/// An algorithm with a plan.
pub(super) struct Entrant {
    pub(super) name: &'static str,
    pub(super) judged: Material,
    steps: Option<Vec<u32>>,
}

/// All plans, and the sizes at which they are compared.
pub(super) struct Contest<'a> {
    args: &'a SimulateArgs,
    pub(super) sizes: Vec<u64>,
    pub(super) entrants: Vec<Entrant>,
    pub(super) absent: Vec<Absent>,
}

impl<'a> Contest<'a> {
    /// Judges the plans that there are.
    ///
    /// # Errors
    /// There is none, which the first refusal explains; one that is not right.
    pub(super) fn of(args: &'a SimulateArgs, answers: Vec<Answer>, line: &ProgressLine) -> Result<Self, Failure> {
        let (mut entrants, mut absent, mut first) = (Vec::new(), Vec::new(), None);
        for Answer { algorithm, plan } in answers {
            let name = algorithm.name();
            line.working(format!("judging the plan of {name}"));
            match plan {
                Ok(bytes) => {
                    let judged = judge_bytes(&args.plan, &bytes)?;
                    let steps = args.steps_of(&judged);
                    entrants.push(Entrant { name, judged, steps });
                }
                Err(failure) => {
                    absent.push(Absent { name, reason: fresh::reason(&failure, algorithm) });
                    first.get_or_insert(failure);
                }
            }
        }
        match first {
            Some(failure) if entrants.is_empty() => Err(failure),
            _ => Ok(Self { args, sizes: args.size_list(), entrants, absent }),
        }
    }

    /// Simulates all at every size and finds where one overtakes another.
    ///
    /// # Errors
    /// Nothing could be simulated, which the first refusal explains.
    pub(super) fn held(&self, line: &ProgressLine) -> Result<Found, Failure> {
        let runners = self.entrants.iter().map(|Entrant { name, judged, steps }| Runner {
            name,
            topology: &judged.topology,
            graph: &judged.graph,
            steps: steps.as_deref(),
        });
        let options = self.args.options(None, WORK_MAX);
        let rules = Rules { sizes: &self.sizes, options, effort_max: u64::MAX, stop: &|| false };
        let found = Race::new(runners.collect(), rules).run(line);
        match found.untimed.iter().flatten().next() {
            Some(first) if found.times.iter().flatten().all(Option::is_none) => {
                Err(refused(&first.error, first.from_bytes))
            }
            _ => Ok(found),
        }
    }
}
