//! The plans of a job's groups, all at once on the network that they share.

use canopy_simulate::{SimulateOptions, Together, TogetherError, TogetherPart, simulate_together};
use canopy_topology::Ratio;
use serde::Serialize;

use super::{SimulateArgs, WORK_MAX, refused};
use crate::exit::{Failure, words};
use crate::group_plans::{Folder, Planned, class};
use crate::output::print_json;
use crate::progress::ProgressLine;
use crate::sizes::in_words;
use crate::stdout::print;
use crate::table::Table;

/// Picoseconds of a second.
const PICOS: f64 = 1e12;

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct Simulated {
    /// When all have ended, in picoseconds.
    time_ps: u64,
    /// The joint optimum, in seconds, `num/den`.
    seconds: String,
    /// The part of the joint rate that is reached, for display.
    of_joint: f64,
    groups: Vec<GroupTime>,
}

#[derive(Debug, Serialize)]
struct GroupTime {
    name: String,
    size_bytes: u64,
    /// When its last message had left.
    left_ps: u64,
}

/// Reads the plans, simulates them and prints when they end.
pub(super) fn run(args: &SimulateArgs, folder: &Folder) -> Result<(), Failure> {
    let others = [
        ("--topology", args.topology.is_some()),
        ("--size", args.size.is_some()),
        ("--links", args.links),
        ("--critical-path", args.critical_path),
        ("--plot", args.plot.is_some()),
    ];
    if let Some((option, _)) = others.into_iter().find(|&(_, is_given)| is_given) {
        return Err(Failure::input(format!("`{option}` is for a single plan, and this is a folder of a job's groups"))
            .help(format!("leave {option} out, or name one of the plans")));
    }
    let line = ProgressLine::start();
    line.working("reading the plans".to_owned());
    let planned = folder.plans()?;
    let parts = planned.iter().map(|one| TogetherPart {
        graph: &one.graph,
        topology: &one.plan.topology,
        size_bytes: one.group.size_bytes.get(),
    });
    let parts: Vec<TogetherPart<'_>> = parts.collect();
    line.working(format!("simulating {} plans at once", parts.len()));
    let largest = planned.iter().map(|one| one.group.size_bytes.get()).max().unwrap_or(0);
    let options: SimulateOptions<'_> = args.options(None, WORK_MAX);
    let together = simulate_together(&folder.network, &parts, &options, &|| false);
    drop(line);
    let together = together.map_err(|error| match error {
        TogetherError::Simulate(error) => refused(&error, largest),
        error => Failure::input(words(&error)),
    })?;
    let found = found(folder, &planned, &together)?;
    if args.json { print_json("simulate", &found) } else { print(&readable(&found, &planned)) }
}

fn found(folder: &Folder, planned: &[Planned<'_>], together: &Together) -> Result<Simulated, Failure> {
    let seconds = folder.manifest.seconds_joint.as_ref().unwrap_or(&folder.manifest.seconds);
    let no_fraction = |_| Failure::input("`seconds` of the manifest is no fraction".to_owned());
    let joint: Ratio = seconds.parse().map_err(no_fraction)?;
    let groups = planned.iter().zip(&together.left_ps).map(|(one, &left_ps)| GroupTime {
        name: one.group.name.clone(),
        size_bytes: one.group.size_bytes.get(),
        left_ps,
    });
    Ok(Simulated {
        time_ps: together.outcome.time_ps,
        seconds: seconds.clone(),
        of_joint: joint.to_f64() * PICOS / together.outcome.time_ps.max(1) as f64,
        groups: groups.collect(),
    })
}

/// The slowest group of each class, and all of them.
fn readable(found: &Simulated, planned: &[Planned<'_>]) -> String {
    let mut table = Table::new(&["GROUPS", "COLLECTIVE", "NUMBER#", "SIZE#", "SLOWEST#"]);
    let mut rest: &[GroupTime] = &found.groups;
    let mut plans = planned;
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|group| class(&group.name) == class(&first.name)).count();
        let (own, others) = rest.split_at(count);
        table.row([
            class(&first.name).to_owned(),
            plans.first().map(|one| one.group.collective.clone()).unwrap_or_default(),
            count.to_string(),
            in_words(first.size_bytes),
            millis(own.iter().map(|group| group.left_ps).max().unwrap_or(0)),
        ]);
        (rest, plans) = (others, plans.get(count..).unwrap_or_default());
    }
    format!(
        "{}\n\ntogether   {}, {:.2} % of the joint rate",
        table.text(),
        millis(found.time_ps),
        found.of_joint * 100.0
    )
}

fn millis(picos: u64) -> String {
    format!("{:.3} ms", picos as f64 / 1e9)
}
