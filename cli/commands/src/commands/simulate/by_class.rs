//! A plan by a rule for more ranks than trees can be written for: a box of each class, or one rank of a torus.

use canopy_schedule::RuleClasses;
use canopy_simulate::{ClassModel, SimulateOptions};

use super::report::{self, ByClassSummary};
use super::{SimulateArgs, SyncName, WORK_MAX, refused};
use crate::exit::{Failure, words};
use crate::progress::ProgressLine;
use crate::rule::{self, Rule};
use crate::sizes::in_words;

/// Simulates each size and prints what was found.
pub(super) fn run(args: &SimulateArgs, rule: &Rule) -> Result<(), Failure> {
    if args.topology.is_some() {
        return Err(rule::refuse(
            "--topology",
            "make a plan for the other network with `canopy plan`, and simulate that",
        ));
    }
    if !args.published.is_empty() {
        return Err(rule::refuse("--published", "name an algorithm that lists all transfers with `--algorithm`"));
    }
    let Rule { topology, schedule, bound, classes } = rule;
    let line = ProgressLine::start();
    let model = ClassModel::of(topology, schedule.collective, &schedule.shape, classes)
        .map_err(|error| Failure::fault(words(&error)))?;
    // Steps are those of the ranks' programs, whatever is stated here.
    let options = args.options((args.sync == SyncName::Steps).then_some(&[]), WORK_MAX);
    let sizes = args.size_list();
    let mut runs = Vec::with_capacity(sizes.len());
    for (number, &size_bytes) in (1..).zip(&sizes) {
        line.working(format!("simulating {}, {number} of {}", in_words(size_bytes), sizes.len()));
        let options = SimulateOptions { size_bytes, ..options };
        let found = model.run(&bound.upper, &options, &|| false).map_err(|error| refused(&error, size_bytes))?;
        runs.push(found.ok_or_else(super::no_time)?);
    }
    drop(line);
    let count = match &classes.rule {
        RuleClasses::Stages(boxes) => boxes.classes.len(),
        RuleClasses::Orbits(_) => 1,
    };
    let slowest = runs.last().map_or(0, |run| run.slowest);
    report::print_by_class(args, rule, ByClassSummary { classes: count, slowest }, &runs)
}
