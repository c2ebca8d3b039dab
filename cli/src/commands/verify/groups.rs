//! Judges the plans of a job's groups: each like any other, what all of them take together, and that nothing is faster.

use std::fmt::Display;
use std::num::NonZeroU64;
use std::path::{Component, Path, PathBuf};

use canopy_plan::{Expected, Finding, PlanFile, read_plan};
use canopy_schedule::{Collective, JointTask, SharedPart, TransferGraph, compile, length_bound, shared_time};
use canopy_topology::{NodeIndex, Rank, Ratio, Topology, TopologyLimits, Transit, read_document};
use serde::{Deserialize, Serialize};

use super::{Problem, as_object, json_plan, outcomes};
use crate::args;
use crate::exit::{Failure, words};
use crate::input::{self, PLAN_BYTES_MAX};
use crate::output::{GROUPS_KIND, GROUPS_NETWORK, MANIFEST, print_json};
use crate::stdout::print;
use crate::table::count;

/// Shares are whole bytes per second: so much of a plan's rate may be lost.
const LOST_MAX: (u32, u32) = (1, 100_000);

/// The manifest of the folder, as far as it is needed here.
#[derive(Debug, Deserialize)]
struct Manifest {
    kind: String,
    #[serde(default)]
    forward: bool,
    #[serde(default)]
    lost_ranks: Vec<u32>,
    #[serde(default)]
    seconds: String,
    #[serde(default)]
    seconds_bound: String,
    #[serde(default)]
    certificate: Certificate,
    #[serde(default)]
    groups: Vec<Group>,
}

#[derive(Debug, Default, Deserialize)]
struct Certificate {
    links: Vec<LinkLength>,
}

#[derive(Debug, Deserialize)]
struct LinkLength {
    from: String,
    to: String,
    latency_ns: u64,
    length: String,
}

#[derive(Debug, Deserialize)]
struct Group {
    name: String,
    collective: String,
    root: Option<u32>,
    ranks: Vec<u32>,
    size_bytes: NonZeroU64,
    files: Vec<Listed>,
}

#[derive(Debug, Deserialize)]
struct Listed {
    format: String,
    path: PathBuf,
}

/// JSON object of the command. Times are in seconds, `num/den`.
#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    groups: usize,
    ranks: u32,
    /// What all plans take together: the busiest link's time for their bytes.
    seconds: Option<String>,
    /// What nothing beats, as the certificate proves.
    seconds_bound: Option<String>,
    /// Of all plans, and `together` and `bound` of the folder.
    #[serde(serialize_with = "as_object")]
    checks: Vec<(&'static str, bool)>,
    problems: Vec<Problem>,
}

/// The folder of a job's plans.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    manifest: Manifest,
    network: Topology,
    limits: TopologyLimits,
}

/// A group and its plan.
struct Planned<'f> {
    group: &'f Group,
    collective: Collective,
    plan: PlanFile,
    graph: TransferGraph,
    /// Its members in the network.
    members: Vec<NodeIndex>,
}

impl Folder {
    /// The folder at a path, or with this manifest; none: it is of another kind.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, Failure> {
        let is_folder = path.is_dir();
        let file = if is_folder { path.join(MANIFEST) } else { path.to_owned() };
        if !is_folder && file.file_name().is_none_or(|name| name != MANIFEST) {
            return Ok(None);
        }
        let bytes = input::bytes(&file, PLAN_BYTES_MAX)?;
        let Ok(manifest) = serde_json::from_slice::<Manifest>(&bytes) else { return Ok(None) };
        if manifest.kind != GROUPS_KIND {
            return Ok(None);
        }
        let path = file.parent().unwrap_or(Path::new("")).to_owned();
        let (limits, network) = (input::plan_limits()?, path.join(GROUPS_NETWORK));
        let document = input::bytes(&network, PLAN_BYTES_MAX)?;
        let refuse = |error: &dyn Display| Failure::input(format!("{}: {error}", network.display()));
        let network = read_document(&document, None, &limits).map_err(|error| refuse(&words(&error)))?;
        Ok(Some(Self { path, manifest, network: network.topology, limits }))
    }

    /// Judges the plans and prints the verdict.
    pub(super) fn verify(&self, json: bool) -> Result<(), Failure> {
        let mut report = Report::of(self);
        let mut planned = Vec::with_capacity(self.manifest.groups.len());
        for group in &self.manifest.groups {
            match self.read(group, &mut report)? {
                Ok(plan) => planned.push(plan),
                Err(problem) => report.record("group", &group.name, Some(problem)),
            }
        }
        if planned.is_empty() {
            report.record("group", MANIFEST, Some("no group has a plan; make the plans with `-o`".to_owned()));
        }
        // Of a file that cannot be read nothing is known.
        if planned.len() == self.manifest.groups.len() && !planned.is_empty() {
            report.record("group", "", None);
            self.together(&planned, &mut report);
            self.bound(&planned, &mut report);
        }
        report.ok = report.problems.is_empty();
        if json {
            print_json("verify", &report)?;
        } else {
            print(&report.readable())?;
        }
        if report.ok {
            return Ok(());
        }
        Err(Failure::input(format!("the plans fail verification: {}", count(report.problems.len(), "problem"))))
    }

    /// Reads and judges the plan of a group; inside, why it is none of this group.
    fn read<'f>(&'f self, group: &'f Group, report: &mut Report) -> Result<Result<Planned<'f>, String>, Failure> {
        let Some(file) = group.files.iter().find(|file| file.format == "json") else {
            return Ok(Err("it has no file of format json".to_owned()));
        };
        if !file.path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Ok(Err(format!("{} is not in the folder", file.path.display())));
        }
        let bytes = input::bytes(&self.path.join(&file.path), PLAN_BYTES_MAX)?;
        report.take(&group.name, &bytes, &self.limits);
        let plan = match read_plan(&bytes, &self.limits) {
            Ok(plan) => plan,
            Err(error) => return Ok(Err(words(&error))),
        };
        Ok(self.placed(group, plan))
    }

    /// The plan as that of a group, if it is.
    fn placed<'f>(&self, group: &'f Group, plan: PlanFile) -> Result<Planned<'f>, String> {
        let kind = args::collective_kind(&group.collective)?;
        let collective = plan.schedule.collective;
        if (collective.kind(), collective.root().map(Rank::number)) != (kind, group.root) {
            return Err(format!("its plan is a {} of another kind or root", collective.kind()));
        }
        let members: Vec<NodeIndex> = plan
            .topology
            .ranks()
            .filter_map(|rank| self.network.find_node(&plan.topology.node(rank.node()).id))
            .collect();
        let stated: Vec<NodeIndex> = group.ranks.iter().filter_map(|&rank| self.node_of(rank)).collect();
        if members != stated || members.len() != group.ranks.len() {
            return Err("the ranks of its plan are others than the manifest says".to_owned());
        }
        let graph = compile(&plan.topology, &plan.schedule).map_err(|error| words(&error))?;
        Ok(Planned { group, collective, plan, graph, members })
    }

    /// Where a rank of the layout is in the network: those after lost ones have moved up.
    fn node_of(&self, rank: u32) -> Option<NodeIndex> {
        let lost = self.manifest.lost_ranks.partition_point(|&lost| lost < rank);
        let now = rank.checked_sub(u32::try_from(lost).ok()?)?;
        let is_there = self.manifest.lost_ranks.get(lost) != Some(&rank) && now < self.network.rank_count();
        is_there.then(|| Rank::new(now).node())
    }

    /// What all plans take together, against what the manifest says.
    fn together(&self, planned: &[Planned<'_>], report: &mut Report) {
        let parts: Vec<SharedPart<'_>> = planned
            .iter()
            .map(|one| SharedPart { graph: &one.graph, topology: &one.plan.topology, size_bytes: one.group.size_bytes })
            .collect();
        let objection = match (shared_time(&self.network, &parts), self.manifest.seconds.parse::<Ratio>()) {
            (Err(error), _) => Some(words(&error)),
            (Ok(_), Err(_)) => Some("`seconds` of the manifest is no fraction".to_owned()),
            (Ok(time), Ok(stated)) => {
                report.seconds = Some(time.to_string());
                let (lost, of) = LOST_MAX;
                let is_longer = Ratio::new(lost, of).is_some_and(|most| stated.missing_of(&time) > most);
                is_longer.then(|| format!("together they take {time} s, and the manifest says {stated} s"))
            }
        };
        report.record("together", MANIFEST, objection);
    }

    /// What the certificate proves, against what the manifest says.
    fn bound(&self, planned: &[Planned<'_>], report: &mut Report) {
        let tasks: Vec<JointTask<'_>> = planned
            .iter()
            .map(|one| JointTask {
                members: &one.members,
                collective: one.collective,
                size_bytes: one.group.size_bytes,
            })
            .collect();
        let transit = if self.manifest.forward { Transit::Forward } else { Transit::Unused };
        let proven = self.lengths().and_then(|lengths| {
            let proven = length_bound(&self.network, &tasks, &lengths, transit, &|| false);
            proven.ok_or_else(|| "the lengths prove nothing".to_owned())
        });
        let objection = match (proven, self.manifest.seconds_bound.parse::<Ratio>()) {
            (Err(problem), _) => Some(problem),
            (Ok(_), Err(_)) => Some("`seconds_bound` of the manifest is no fraction".to_owned()),
            (Ok(proven), Ok(stated)) => {
                report.seconds_bound = Some(proven.to_string());
                (proven < stated).then(|| format!("the lengths prove {proven} s, and the manifest says {stated} s"))
            }
        };
        report.record("bound", MANIFEST, objection);
    }

    /// By link of the network, its length.
    fn lengths(&self) -> Result<Vec<u128>, String> {
        let mut lengths = vec![0; self.network.links().len()];
        for stated in &self.manifest.certificate.links {
            let unknown = || {
                format!("the network has no link from {} to {}, which the certificate names", stated.from, stated.to)
            };
            let from = self.network.find_node(&stated.from).ok_or_else(unknown)?;
            let to = self.network.find_node(&stated.to).ok_or_else(unknown)?;
            let of_these = |&link: &canopy_topology::LinkIndex| {
                let link = self.network.link(link);
                link.to == to && link.latency.nanos() == stated.latency_ns
            };
            let link = self.network.links_from(from).find(of_these).ok_or_else(unknown)?;
            let length = stated.length.parse().map_err(|_| format!("`{}` is no length", stated.length))?;
            lengths.iter_mut().skip(link.index()).take(1).for_each(|place| *place = length);
        }
        Ok(lengths)
    }
}

impl Report {
    fn of(folder: &Folder) -> Self {
        Self {
            ok: false,
            groups: folder.manifest.groups.len(),
            ranks: folder.network.rank_count(),
            seconds: None,
            seconds_bound: None,
            checks: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Judges a plan by itself.
    fn take(&mut self, group: &str, bytes: &[u8], limits: &TopologyLimits) {
        let bound = |_| Err("no network is given".to_owned());
        let expected = Expected { topology: None, kind: None, root: None, bound: &bound };
        let own = json_plan::judge(bytes, limits, &expected).verdict;
        for (check, passed) in own.checks {
            self.note(check, passed);
        }
        let place = |found: &Finding| Problem { place: format!("{group}: {}", found.place), ..found.into() };
        self.problems.extend(own.problems.iter().map(place));
    }

    fn note(&mut self, check: &'static str, passed: bool) {
        match self.checks.iter_mut().find(|(known, _)| *known == check) {
            Some((_, so_far)) => *so_far &= passed,
            None => self.checks.push((check, passed)),
        }
    }

    fn record(&mut self, check: &'static str, place: &str, objection: Option<String>) {
        self.note(check, objection.is_none());
        let problem = |message| Problem { check, message, place: place.to_owned() };
        self.problems.extend(objection.map(problem));
    }

    fn readable(&self) -> String {
        let ranks = count(self.ranks as usize, "rank");
        let mut lines = vec![format!("{} on {ranks}", count(self.groups, "group"))];
        lines.extend(outcomes(&self.checks));
        let times = [("together", &self.seconds), ("bound", &self.seconds_bound)];
        let said = times.into_iter().filter_map(|(what, time)| Some((what, time.as_ref()?.parse::<Ratio>().ok()?)));
        lines.extend(said.map(|(what, time)| format!("{what:<11}{:.9} s", time.to_f64())));
        let problem = |found: &Problem| format!("problem    {}, {}: {}", found.check, found.place, found.message);
        lines.extend(self.problems.iter().map(problem));
        lines.join("\n")
    }
}
