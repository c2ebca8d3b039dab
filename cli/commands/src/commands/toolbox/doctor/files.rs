//! The plan files themselves: whether the runtime can read them, and whether the communicators of the log could run
//! them.

use canopy_bundle::{Folder, OtherFiles, Rules, Runtime};
use canopy_plan::{Format, Profile};

use crate::table::count;

use super::check::{Checks, shown};
use super::environment::Environment;
use super::log::Log;
use super::plans::{self, Content, PlanFile, Plans};

/// Most files of which a check is listed each.
const LISTED_MAX: usize = 8;

/// Reads all files as the runtime would, and reports those that it cannot use.
pub(super) fn read(checks: &mut Checks, runtime: Runtime, rules: &Rules, plans: &Plans) -> (Folder, Vec<PlanFile>) {
    let mut folder = Folder::default();
    let mut files: Vec<PlanFile> = Vec::new();
    let before = checks.problems();
    for path in &plans.paths {
        let name = shown(&path.display().to_string());
        match plans::read(runtime, path) {
            Content::Plan(mut file) => {
                if runtime.is_registered()
                    && let Some(entry) = plans.entry(path)
                    && let Some(collective) = entry.collective
                {
                    file.facts = file.facts.registered(collective, entry.ranks_per_node);
                }
                files.push(*file);
            }
            Content::OtherFormat(format) => other_format(checks, runtime, &name, format),
            Content::Refused(why) => {
                checks.problem(
                    "files",
                    format!("{name} is refused: {why}"),
                    format!("look at it with `canopy verify {name}`"),
                );
            }
            Content::Other if rules.others == OtherFiles::Fatal => {
                let what =
                    format!("{name} is not a plan, and {runtime} fails at start with any other file in the folder");
                checks.problem("files", what, "move it out of the folder");
                folder.others.push(name);
            }
            Content::Other => checks.problem("files", format!("{name} is not a plan"), "name a plan for the runtime"),
            Content::Unreadable(why) => {
                let what = format!("{name} cannot be read: {why}");
                checks.problem("files", what, "name a file that every process of the job can read");
            }
        }
    }
    if plans.is_cut {
        let what = format!("only the first {} files were looked at", plans.paths.len());
        checks.unknown("files", what, "keep the plans of one job in a folder of their own");
    }
    if files.is_empty() && checks.problems() == before {
        checks.problem(
            "files",
            "there are no plans where the runtime looks",
            "write them with `canopy plan` or `canopy job fetch`",
        );
    } else if checks.problems() == before {
        checks.ok("files", format!("{} for {runtime}", count(files.len(), "plan")));
    }
    folder.files = files.iter().map(|file| file.facts.clone()).collect();
    (folder, files)
}

fn other_format(checks: &mut Checks, runtime: Runtime, name: &str, format: Format) {
    let (what, help) = match format {
        Format::Json => (
            format!("{name} is a plan in canopy's JSON, which no runtime reads"),
            format!("write the file of the runtime: `canopy convert {name} --to {runtime} -o NEW`"),
        ),
        format => (
            format!("{name} is {}, which {runtime} does not read", format.noun()),
            format!("plan again with `--profile {runtime}`"),
        ),
    };
    checks.problem("files", what, help);
}

/// Compares ranks, protocol and channels of the files with what the job has.
pub(super) fn compare(
    checks: &mut Checks,
    runtime: Runtime,
    rules: &Rules,
    files: &[PlanFile],
    environment: &Environment,
    log: Option<&Log>,
) {
    ranks(checks, rules, files, log);
    if let Some(profile) = runtime.msccl_profile() {
        protocol(checks, profile, files, environment);
        channels(checks, profile, files, environment, log);
    }
}

/// Numbers of ranks as a list.
fn list(numbers: impl IntoIterator<Item = u32>) -> String {
    let numbers: Vec<String> = numbers.into_iter().take(LISTED_MAX).map(|number| number.to_string()).collect();
    numbers.join(", ")
}

fn ranks(checks: &mut Checks, rules: &Rules, files: &[PlanFile], log: Option<&Log>) {
    let found = log.map(Log::rank_counts).unwrap_or_default();
    if files.is_empty() {
        return;
    }
    if found.is_empty() {
        let help = "give a log of the start of the job with `--log`; NCCL_DEBUG=INFO states each communicator";
        return checks.unknown("ranks", "no log states how many ranks the job has", help);
    }
    let job = list(found.iter().copied());
    let (fitting, others): (Vec<&PlanFile>, Vec<&PlanFile>) =
        files.iter().partition(|file| found.contains(&file.facts.ranks));
    // A folder may have files for communicators that a log does not show.
    if fitting.is_empty() {
        let mut planned: Vec<u32> = files.iter().map(|file| file.facts.ranks).collect();
        planned.sort_unstable();
        planned.dedup();
        let what = format!("communicators of the job have {job} ranks, and the plans are for {}", list(planned));
        return checks.problem(
            "ranks",
            what,
            "plan for the ranks of the job, with `--ranks` for a part of the network",
        );
    }
    if !rules.tells_ranks
        && let Some(other) = others.first()
    {
        let what = format!(
            "{} is for {} ranks, and the runtime does not compare ranks",
            shown(&other.facts.path),
            other.facts.ranks
        );
        return checks.problem("ranks", what, "keep plans for one number of ranks in the folder");
    }
    checks.ok("ranks", format!("{} for communicators of {job} ranks", count(fitting.len(), "plan")));
}

/// microsoft/msccl applies NCCL_PROTO to its plans; the others take the protocol from the file.
fn protocol(checks: &mut Checks, profile: Profile, files: &[PlanFile], environment: &Environment) {
    let Some(list) = environment.get("NCCL_PROTO").filter(|_| profile == Profile::Msccl) else { return };
    let differing = |file: &&PlanFile| file.protocol.is_some_and(|protocol| !lists(list, protocol));
    match files.iter().find(differing) {
        Some(PlanFile { facts, protocol, .. }) => {
            let (name, protocol) = (shown(&facts.path), protocol.unwrap_or_default());
            let what = format!("NCCL_PROTO is {}, and {name} uses the protocol {protocol}", shown(list));
            checks.problem("protocol", what, format!("unset NCCL_PROTO, or add {protocol}"));
        }
        None => checks.ok("protocol", "NCCL_PROTO allows the protocols of the plans"),
    }
}

/// Whether a list of NCCL's contains a word; a list after `^` says what not to use.
fn lists(list: &str, word: &str) -> bool {
    let (excluded, list) = list.strip_prefix('^').map_or((false, list), |list| (true, list));
    list.split(',').any(|name| name.trim().eq_ignore_ascii_case(word)) != excluded
}

/// The executor and RCCL fail with a plan of more channels than the communicator has; microsoft/msccl adds channels.
fn channels(checks: &mut Checks, profile: Profile, files: &[PlanFile], environment: &Environment, log: Option<&Log>) {
    let Some(file) = files.iter().max_by_key(|file| file.channels) else { return };
    let Some(needed) = file.channels else { return };
    let name = shown(&file.facts.path);
    let limit = environment.number("NCCL_MAX_NCHANNELS").and_then(|limit| u32::try_from(limit).ok());
    let logged = log.and_then(|log| log.channels);
    if let Some(limit) = limit.filter(|&limit| 0 < limit && limit < needed) {
        let what = format!("NCCL_MAX_NCHANNELS is {limit}, and {name} uses {}", count(needed as usize, "channel"));
        return checks.problem(
            "channels",
            what,
            format!("export NCCL_MAX_NCHANNELS={needed}, or plan with fewer `--instances`"),
        );
    }
    if profile == Profile::Msccl {
        return checks.ok("channels", format!("msccl adds channels up to the {needed} of the plans"));
    }
    match logged {
        Some(found) if found < needed => {
            let what =
                format!("communicators of the job have {}, and {name} uses {needed}", count(found as usize, "channel"));
            checks.problem(
                "channels",
                what,
                format!("export NCCL_MIN_NCHANNELS={needed}, or plan with fewer `--instances`"),
            );
        }
        Some(found) => checks.ok("channels", format!("{found} in the job, at most {needed} in a plan")),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use canopy_bundle::{Divisor, PlanFileFacts};
    use canopy_schedule::CollectiveKind;

    use super::*;

    fn file(ranks: u32) -> PlanFile {
        let facts = PlanFileFacts {
            path: "a.xml".to_owned(),
            collective: Some(CollectiveKind::Allgather),
            ranks,
            ranks_per_node: None,
            rank_map: None,
            in_place: false,
            out_of_place: Some(true),
            bytes_min: Some(0),
            bytes_max: Some(1 << 20),
            divisor: Divisor::Elements(1),
        };
        PlanFile { facts, protocol: Some("LL"), channels: Some(8) }
    }

    fn messages(runtime: Runtime, pairs: &[(&str, &str)], lines: &str) -> Vec<String> {
        let pairs: BTreeMap<String, String> =
            pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut checks = Checks::default();
        let log = Log::of_bytes(lines.as_bytes());
        let environment = Environment::default().with(&pairs);
        compare(&mut checks, runtime, &runtime.rules().unwrap(), &[file(16)], &environment, Some(&log));
        checks.list().iter().map(|check| check.message.clone()).collect()
    }

    #[test]
    fn ranks_protocol_and_channels_are_compared() {
        let head = "a:1:1 [0] NCCL INFO";
        let eight = format!("{head} comm 0x1 rank 0 nranks 8 cudaDev 0 - Init COMPLETE");
        let found = messages(Runtime::MscclExecutor, &[], &eight);
        assert_eq!(found, ["communicators of the job have 8 ranks, and the plans are for 16"]);
        let sixteen = format!("{head} comm 0x1 rank 0 nranks 16 cudaDev 0\n{head} Channel 00/04 : 0 1");
        let found = messages(Runtime::MscclExecutor, &[("NCCL_PROTO", "Simple")], &sixteen);
        assert_eq!(found[1..], ["communicators of the job have 4 channels, and a.xml uses 8"]);
        let found = messages(Runtime::Msccl, &[("NCCL_PROTO", "Simple"), ("NCCL_MAX_NCHANNELS", "4")], &sixteen);
        assert_eq!(found[1], "NCCL_PROTO is Simple, and a.xml uses the protocol LL");
        assert_eq!(found[2], "NCCL_MAX_NCHANNELS is 4, and a.xml uses 8 channels");
        assert!(lists("^LL128", "LL") && !lists("^LL", "LL") && lists("ll,simple", "LL"));
    }
}
