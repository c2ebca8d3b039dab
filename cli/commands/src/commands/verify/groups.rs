//! Judges the plans of a job's groups: each like any other, what all of them take together, and that nothing is faster.

use canopy_schedule::{JointTask, SharedPart, length_bound, shared_time};
use canopy_topology::{LinkIndex, Ratio, Transit};
use serde::Serialize;

use super::several::Several;
use crate::exit::{Failure, words};
use crate::group_plans::{Folder, Planned};
use crate::output::MANIFEST;
use crate::table::count;

/// What the manifest says and what the plans take may differ by so much.
const APART_MAX: (u32, u32) = (1, 1_000_000);

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
    #[serde(flatten)]
    found: Several,
}

/// Judges the plans and prints the verdict.
pub(super) fn verify(folder: &Folder, json: bool) -> Result<(), Failure> {
    let (report, _) = judged(folder)?;
    report.found.conclude(&report, &report.readable(), json)
}

/// The plans, if nothing is wrong with any or with all together.
pub(in crate::commands) fn sound(folder: &Folder) -> Result<Vec<Planned<'_>>, Failure> {
    let (report, planned) = judged(folder)?;
    match report.found.first() {
        None => Ok(planned),
        Some(problem) => {
            let failure = Failure::input(format!("the plans fail verification: {problem}"));
            Err(failure.help("`canopy verify --joint DIR` says all that is wrong"))
        }
    }
}

/// The plans that can be read, and what is found of all.
fn judged(folder: &Folder) -> Result<(Report, Vec<Planned<'_>>), Failure> {
    let mut report = Report::of(folder);
    let mut planned = Vec::with_capacity(folder.manifest.groups.len());
    for group in &folder.manifest.groups {
        let content = folder.content(group)?;
        let plan = content.and_then(|content| {
            report.found.take(&group.name, &content, &folder.limits);
            folder.read(group, &content)
        });
        match plan {
            Ok(plan) => planned.push(plan),
            Err(problem) => report.found.record("group", &group.name, Some(problem)),
        }
    }
    if planned.is_empty() {
        report.found.record("group", MANIFEST, Some("no group has a plan; make the plans with `-o`".to_owned()));
    }
    // Of a file that cannot be read nothing is known.
    if planned.len() == folder.manifest.groups.len() && !planned.is_empty() {
        report.found.record("group", "", None);
        together(folder, &planned, &mut report);
        bound(folder, &planned, &mut report);
    }
    report.ok = report.found.is_sound();
    Ok((report, planned))
}

/// The plans as parts of what all do.
pub(in crate::commands) fn parts<'p>(planned: &'p [Planned<'_>]) -> impl Iterator<Item = SharedPart<'p>> {
    planned.iter().map(|one| SharedPart {
        graph: &one.graph,
        topology: &one.plan.topology,
        size_bytes: one.group.size_bytes,
    })
}

/// What all plans take together, against what the manifest says.
fn together(folder: &Folder, planned: &[Planned<'_>], report: &mut Report) {
    let parts: Vec<SharedPart<'_>> = parts(planned).collect();
    let objection = match (shared_time(&folder.network, &parts), folder.manifest.seconds.parse::<Ratio>()) {
        (Err(error), _) => Some(words(&error)),
        (Ok(_), Err(_)) => Some("`seconds` of the manifest is no fraction".to_owned()),
        (Ok(time), Ok(stated)) => {
            report.seconds = Some(time.to_string());
            let (apart, of) = APART_MAX;
            let missing = stated.missing_of(&time).max(time.missing_of(&stated));
            let is_other = Ratio::new(apart, of).is_some_and(|most| missing > most);
            is_other.then(|| format!("together they take {time} s, and the manifest says {stated} s"))
        }
    };
    report.found.record("together", MANIFEST, objection);
}

/// What the certificate proves, against what the manifest says.
fn bound(folder: &Folder, planned: &[Planned<'_>], report: &mut Report) {
    let tasks: Vec<JointTask<'_>> = planned
        .iter()
        .map(|one| JointTask { members: &one.members, collective: one.collective, size_bytes: one.group.size_bytes })
        .collect();
    let transit = if folder.manifest.forward { Transit::Forward } else { Transit::Unused };
    let proven = lengths(folder).and_then(|lengths| {
        let proven = length_bound(&folder.network, &tasks, &lengths, transit, &|| false);
        proven.ok_or_else(|| "the lengths prove nothing".to_owned())
    });
    let objection = match (proven, folder.manifest.seconds_bound.parse::<Ratio>()) {
        (Err(problem), _) => Some(problem),
        (Ok(_), Err(_)) => Some("`seconds_bound` of the manifest is no fraction".to_owned()),
        (Ok(proven), Ok(stated)) => {
            report.seconds_bound = Some(proven.to_string());
            (proven < stated).then(|| format!("the lengths prove {proven} s, and the manifest says {stated} s"))
        }
    };
    report.found.record("bound", MANIFEST, objection);
}

/// By link of the network, its length.
fn lengths(folder: &Folder) -> Result<Vec<u128>, String> {
    let mut lengths = vec![0; folder.network.links().len()];
    for stated in &folder.manifest.certificate.links {
        let unknown =
            || format!("the network has no link from {} to {}, which the certificate names", stated.from, stated.to);
        let from = folder.network.find_node(&stated.from).ok_or_else(unknown)?;
        let to = folder.network.find_node(&stated.to).ok_or_else(unknown)?;
        let of_these = |&link: &LinkIndex| {
            let link = folder.network.link(link);
            link.to == to && link.latency.nanos() == stated.latency_ns
        };
        let link = folder.network.links_from(from).find(of_these).ok_or_else(unknown)?;
        let length = stated.length.parse().map_err(|_| format!("`{}` is no length", stated.length))?;
        lengths.iter_mut().skip(link.index()).take(1).for_each(|place| *place = length);
    }
    Ok(lengths)
}

impl Report {
    fn of(folder: &Folder) -> Self {
        Self {
            ok: false,
            groups: folder.manifest.groups.len(),
            ranks: folder.network.rank_count(),
            seconds: None,
            seconds_bound: None,
            found: Several::default(),
        }
    }

    fn readable(&self) -> String {
        let head = format!("{} on {}", count(self.groups, "group"), count(self.ranks as usize, "rank"));
        let times = [("together", &self.seconds), ("bound", &self.seconds_bound)];
        let said = times.into_iter().filter_map(|(what, time)| Some((what, time.as_ref()?.parse::<Ratio>().ok()?)));
        let said = said.map(|(what, time)| format!("{what:<11}{:.9} s", time.to_f64()));
        [vec![head], self.found.lines(said)].concat().join("\n")
    }
}
