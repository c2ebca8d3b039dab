//! What is found of several plans that are judged as a whole.

use canopy_plan::{Expected, Finding, Verdict};
use canopy_topology::TopologyLimits;
use serde::Serialize;

use super::{Problem, as_object, json_plan, outcomes};
use crate::exit::Failure;
use crate::output::print_json;
use crate::stdout::print;
use crate::table::count;

/// Checks of all plans by themselves and of the whole, and what is wrong.
#[derive(Debug, Default, Serialize)]
pub(super) struct Several {
    #[serde(serialize_with = "as_object")]
    checks: Vec<(&'static str, bool)>,
    problems: Vec<Problem>,
}

impl Several {
    /// Judges a plan by itself; problems are placed in what it is called.
    pub(super) fn take(&mut self, name: &str, bytes: &[u8], limits: &TopologyLimits) -> Verdict {
        let bound = |_| Err("no network is given".to_owned());
        let expected = Expected { topology: None, kind: None, root: None, bound: &bound };
        let own = json_plan::judge(bytes, limits, &expected).verdict;
        own.checks.iter().for_each(|&(check, passed)| self.note(check, passed));
        let place = |found: &Finding| Problem { place: format!("{name}: {}", found.place), ..found.into() };
        self.problems.extend(own.problems.iter().map(place));
        own
    }

    /// Notes a check, and what it objects to.
    pub(super) fn record(&mut self, check: &'static str, place: &str, objection: Option<String>) {
        self.note(check, objection.is_none());
        let problem = |message| Problem { check, message, place: place.to_owned() };
        self.problems.extend(objection.map(problem));
    }

    fn note(&mut self, check: &'static str, passed: bool) {
        match self.checks.iter_mut().find(|(known, _)| *known == check) {
            Some((_, so_far)) => *so_far &= passed,
            None => self.checks.push((check, passed)),
        }
    }

    /// Whether nothing is wrong.
    pub(super) const fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// What is wrong first.
    pub(super) fn first(&self) -> Option<String> {
        self.problems.first().map(|found| format!("{}, {}: {}", found.check, found.place, found.message))
    }

    /// For people: lines of the whole stand between the checks and what is wrong.
    pub(super) fn lines(&self, whole: impl IntoIterator<Item = String>) -> Vec<String> {
        let problem = |found: &Problem| format!("problem    {}, {}: {}", found.check, found.place, found.message);
        outcomes(&self.checks).chain(whole).chain(self.problems.iter().map(problem)).collect()
    }

    /// Prints a report, as JSON or for people, and fails if something is wrong.
    pub(super) fn conclude(&self, report: &impl Serialize, text: &str, json: bool) -> Result<(), Failure> {
        if json {
            print_json("verify", report)?
        } else {
            print(text)?
        }
        if self.is_sound() {
            return Ok(());
        }
        Err(Failure::input(format!("the plans fail verification: {}", count(self.problems.len(), "problem"))))
    }
}
