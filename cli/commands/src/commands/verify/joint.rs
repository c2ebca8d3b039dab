//! Judges plans that run at the same time: each like any other, and that in no step two of them use the same link.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::path::{Component, Path, PathBuf};

use canopy_plan::{PlanFile, read_plan};
use canopy_schedule::{JointPart, check_joint};
use canopy_topology::{Topology, TopologyLimits};
use serde::Serialize;

use super::groups;
use super::several::Several;
use crate::exit::{Failure, words};
use crate::group_plans::Folder;
use crate::input::{self, PLAN_BYTES_MAX};
use crate::joint_plans::Manifest;
use crate::output::{JOINT_KIND, MANIFEST, ManifestKind};
use crate::table::count;

/// JSON object of the command.
#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    /// Steps of all together; null where they are no plans in common.
    steps: Option<u64>,
    plans: Vec<Judged>,
    /// Of all plans, and `joint` of them together.
    #[serde(flatten)]
    found: Several,
}

/// One of the plans.
#[derive(Debug, Serialize)]
struct Judged {
    file: String,
    collective: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<u32>,
    ranks: Option<u32>,
    algbw: Option<String>,
    optimality: Option<String>,
}

/// Judges the files and prints the verdict.
pub(super) fn run(paths: &[PathBuf], json: bool) -> Result<(), Failure> {
    let limits = input::plan_limits()?;
    if let [folder] = paths
        && let Some(folder) = Folder::open(folder)?
    {
        return groups::verify(&folder, json);
    }
    let paths = &files(paths)?;
    let (mut report, mut plans) = (Report::new(), Vec::new());
    for path in paths {
        let bytes = input::bytes(path, PLAN_BYTES_MAX)?;
        report.take(path, &bytes, &limits);
        plans.extend(read_plan(&bytes, &limits).ok());
    }
    // Of a file that cannot be read nothing is known.
    if plans.len() == paths.len() {
        let objection = together(&plans).map(|steps| report.steps = Some(steps)).err();
        report.found.record("joint", "all files", objection);
    }
    report.ok = report.found.is_sound();
    report.found.conclude(&report, &report.readable(), json)
}

/// The files that are named; for a folder or its manifest, the plans that it lists. Each once.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in named {
        let is_folder = path.is_dir();
        let manifest = if is_folder { path.join(MANIFEST) } else { path.clone() };
        if !is_folder && path.file_name().is_none_or(|name| name != MANIFEST) {
            files.push(path.clone());
            continue;
        }
        let refuse = |problem: String| {
            Failure::input(format!("{}: {problem}", manifest.display()))
                .help("name the plans' files, or a folder that `canopy plan joint T --joint … -o FOLDER/` wrote")
        };
        let bytes = input::bytes(&manifest, PLAN_BYTES_MAX)?;
        let no_manifest = |error| refuse(format!("no manifest: {error}"));
        let ManifestKind { kind, .. } = serde_json::from_slice(&bytes).map_err(no_manifest)?;
        if kind != JOINT_KIND {
            return Err(refuse(format!("the manifest is of {kind}, not of {JOINT_KIND}")));
        }
        let found: Manifest = serde_json::from_slice(&bytes).map_err(no_manifest)?;
        let folder = manifest.parent().unwrap_or(Path::new(""));
        let listed = found.plans.into_iter().flat_map(|planned| planned.files);
        for path in listed.filter(|file| file.format == "json").map(|file| PathBuf::from(file.path)) {
            if !path.components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(refuse(format!("{} is not in the manifest's folder", path.display())));
            }
            files.push(folder.join(path));
        }
    }
    let mut seen = BTreeSet::new();
    files.retain(|file| seen.insert(file.clone()));
    match files.len() {
        0 | 1 => Err(Failure::input("--joint judges plans together, and there are not two")
            .help("name two files at least, or the folder of plans made in common")),
        _ => Ok(files),
    }
}

/// Steps of all together, or why they are no plans in common.
fn together(plans: &[PlanFile]) -> Result<u64, String> {
    let Some((first, others)) = plans.split_first() else { return Err("no plan is given".to_owned()) };
    let whole = links(&first.topology);
    if let Some(position) = others.iter().position(|other| links(&other.topology) != whole) {
        return Err(format!("part {} is on another network than part 0", position + 1));
    }
    // Where no link is used by two in a step, sizes do not matter.
    let parts = plans.iter().map(|plan| JointPart {
        topology: &plan.topology,
        schedule: &plan.schedule,
        size_bytes: NonZeroU64::MIN,
    });
    let verdict = check_joint(&first.topology, &parts.collect::<Vec<_>>(), &|| false).map_err(|error| words(&error))?;
    match verdict.shared_links {
        0 => Ok(verdict.steps),
        shared => Err(format!("{} used by several plans in the same step", count_of_links(shared))),
    }
}

fn count_of_links(links: u64) -> String {
    if links == 1 { "a link is".to_owned() } else { format!("{links} links are") }
}

/// What tells the links of a network, whoever numbers its ranks: their ends, latencies and capacities.
fn links(topology: &Topology) -> BTreeMap<(&str, &str, u64), u64> {
    let id = |node| topology.node(node).id.as_str();
    let link = |link: &canopy_topology::Link| {
        ((id(link.from), id(link.to), link.latency.nanos()), link.capacity.bytes_per_sec())
    };
    topology.links().iter().map(link).collect()
}

impl Report {
    fn new() -> Self {
        Self { ok: false, steps: None, plans: Vec::new(), found: Several::default() }
    }

    /// Judges a plan by itself.
    fn take(&mut self, path: &Path, bytes: &[u8], limits: &TopologyLimits) {
        let file = path.display().to_string();
        let own = self.found.take(&file, bytes, limits);
        let (collective, root, ranks) = (own.collective, own.root, own.ranks);
        let algbw = own.algbw.map(|rate| rate.to_string());
        self.plans.push(Judged { file, collective, root, ranks, algbw, optimality: own.optimality });
    }

    fn readable(&self) -> String {
        let plan = |judged: &Judged| {
            let ranks = judged.ranks.map_or_else(|| "unknown ranks".to_owned(), |ranks| count(ranks as usize, "rank"));
            format!("{}: {} on {ranks}", judged.file, judged.collective.unwrap_or("unknown collective"))
        };
        let steps = self
            .steps
            .map(|steps| format!("together   {}, in none of which two use the same link", count(steps, "step")));
        let plans: Vec<String> = self.plans.iter().map(plan).collect();
        [plans, self.found.lines(steps)].concat().join("\n")
    }
}
