//! `canopy plan joint`: a folder with the plans of collectives that run at the same time, made in common.

mod manifest;
mod published;

use std::path::Path;

use canopy_client::ClientError;
use canopy_plan::Format;
use canopy_proto::v1::{self, JointBundleSpec, JointCollective, PlanBundleRequest, PlanBundleResponse};
use canopy_topology::Ratio;
use canopy_wire::format_of_wire;

use super::super::simulate::published::Baseline;
use super::Common;
use super::bundle::communicator;
use super::folder::{self, Fetch, Files, NewFolder};
use crate::args::{self, size_bytes};
use crate::around;
use crate::exit::Failure;
use crate::joint_plans::Manifest;
use crate::known_faults::{say_warning, worth_saying};
use crate::messages::{say, warn};
use crate::output::{self, FileSummary, print_json};
use crate::request;
use crate::stdout::print;
use crate::table::{Table, count};

use manifest::Printed;

/// The file beside those of the plans, without its ending.
const MANIFEST: &str = "manifest";

/// What only joint plans have.
#[derive(Debug, clap::Args)]
pub(super) struct JointArgs {
    /// A collective that runs at the same time as others, such as up=0-17:allgather:18MiB or down=18-35:broadcast@35:1MiB/2: its
    /// name, ranks (or all), what it does with the root's number in T, size (1GiB) and chunks of a share (1); may be repeated. Makes a folder
    /// with a plan for each, in steps in none of which two use the same link
    #[arg(long, value_name = "NAME=RANKS:C[@ROOT][:SIZE][/CHUNKS]", value_parser = joint_collective)]
    joint: Vec<JointCollective>,
    /// Beside the plans, what the baselines of TACOS take for all these collectives at once, as of `canopy simulate --published`: hop by hop, in turn on each link, those of the first collective first
    #[arg(long, value_enum, value_name = "B,...", value_delimiter = ',', requires = "joint")]
    published: Vec<Baseline>,
}

impl JointArgs {
    /// Whether joint plans are asked for.
    pub(super) const fn is_given(&self) -> bool {
        !self.joint.is_empty()
    }
}

/// Reads `NAME=RANKS:C[@ROOT][:SIZE][/CHUNKS]`.
fn joint_collective(text: &str) -> Result<JointCollective, String> {
    let error = |what: &str| {
        format!("`{text}`: {what}; write it such as up=0-17:allgather:18MiB or down=18-35:broadcast@35:1MiB/2")
    };
    let (name, rest) = text.split_once('=').ok_or_else(|| error("no name"))?;
    if name == MANIFEST {
        return Err(error("the folder has a manifest of its own"));
    }
    let (list, rest) = rest.split_once(':').ok_or_else(|| error("ranks, but nothing that they do"))?;
    let ranks = match list {
        "all" => Vec::new(),
        list => communicator(&format!("{name}={list}"))?.ranks,
    };
    let (rest, chunks) = match rest.rsplit_once('/') {
        Some((rest, chunks)) => {
            let chunks = chunks.parse().ok().filter(|&chunks: &u64| chunks > 0);
            (rest, Some(chunks.ok_or_else(|| error("the number of chunks is not a whole number from 1"))?))
        }
        None => (rest, None),
    };
    let (what, size) = match rest.split_once(':') {
        Some((what, size)) => (what, Some(size_bytes(size)?)),
        None => (rest, None),
    };
    let (what, root) = match what.split_once('@') {
        Some((what, root)) => (what, Some(root.parse::<u32>().map_err(|_| error("the root is not a rank"))?)),
        None => (what, None),
    };
    let kind = args::collective_kind(what)?;
    // Of all ranks, each has its own number.
    let own = |root: u32| match ranks.iter().position(|&rank| rank == root) {
        _ if ranks.is_empty() => Ok(root),
        Some(position) => u32::try_from(position).map_err(|_| error("too many ranks")),
        None => Err(error(&format!("the root {root} is not among the ranks"))),
    };
    let collective = Some(request::collective_spec(kind, root.map(own).transpose()?));
    Ok(JointCollective { name: name.to_owned(), ranks, collective, size_bytes: size, chunks })
}

/// Has the plans made, writes their folder, says what they take.
pub(super) async fn run(common: Common, joint: JointArgs) -> Result<(), Failure> {
    let output = common.file.folder("joint plans are a folder, and none is named")?;
    if !joint.published.is_empty() {
        around::none_of_published()?;
    }
    let baselines = joint.published.clone();
    let request = joint_request(&common, joint)?;
    let folder = NewFolder::prepare(output)?;
    let collectives = request.joint.iter().flat_map(|joint| joint.collectives.clone()).collect::<Vec<_>>();
    let in_words = |error| in_users_words(error, &common.topology, &collectives);
    let write = async |files: Files<'_>, reply: &PlanBundleResponse| write(files, reply, folder).await;
    let (reply, manifest) = folder::made(&common, &request, in_words, write).await?;
    worth_saying(&reply.warnings, common.file.format() != Format::Json).for_each(say_warning);
    let items = reply.joint.iter().flat_map(|joint| &joint.items);
    for (item, warning) in items.clone().flat_map(|item| item.warnings.iter().map(move |warning| (item, warning))) {
        warn(format_args!("{}: `{}`: {}", warning.code, item.name, warning.text));
    }
    let published = published::times(&common.topology, &baselines, &reply)?;
    if common.json {
        return print_json("plan", &Printed::new((&manifest, published), output, items)?);
    }
    print(&(readable(&manifest)? + &published::readable(&published)))?;
    say(&format!("{} to {}", count(manifest.plans.len(), "plan"), output.display()));
    Ok(())
}

/// The request as it goes to the server, which judges all that needs the topology.
fn joint_request(common: &Common, joint: JointArgs) -> Result<PlanBundleRequest, Failure> {
    Ok(PlanBundleRequest {
        fault_policy: common.faults.policy().into(),
        topology: Some(request::topology(&common.topology)?),
        joint: Some(JointBundleSpec { collectives: joint.joint, outputs: vec![common.file.spec()?] }),
        ..PlanBundleRequest::default()
    })
}

/// Fetches the files and puts the folder into place.
async fn write(files: Files<'_>, reply: &PlanBundleResponse, folder: NewFolder) -> Result<Manifest, Failure> {
    let missing = || request::missing("the plans in common");
    let joint = reply.joint.as_ref().ok_or_else(missing)?;
    let mut manifest = Manifest::of(joint)?;
    let mut fetch = Fetch::new(files, &folder);
    for (item, described) in joint.items.iter().zip(&mut manifest.plans) {
        let plan = item.plan.as_ref().ok_or_else(missing)?;
        for artifact in &plan.artifacts {
            let path = format!("{}.{}", item.name, ending(artifact.format()));
            fetch.file(&path, &plan.name, artifact).await?;
            described.files.push(FileSummary::of_artifact(artifact, Path::new(&path)));
        }
    }
    // Last, so that what has a manifest is whole.
    folder.write_json(output::MANIFEST, &manifest)?;
    folder.commit()?;
    Ok(manifest)
}

/// The ending of a file: JSON of a runtime must not take the place of canopy's own.
pub(super) fn ending(format: v1::OutputFormat) -> String {
    let format = format_of_wire(format.into()).unwrap_or(Format::Json);
    if format.ending() == Format::Json.ending() { format.name().replace('-', ".") } else { format.ending().to_owned() }
}

/// A table with a line for each plan, and what all of them take.
fn readable(manifest: &Manifest) -> Result<String, Failure> {
    let mut table = Table::new(&["NAME", "COLLECTIVE", "RANKS#", "STEPS ALONE#", "TIME ALONE#", "AT LEAST#"]);
    for plan in &manifest.plans {
        let what = match plan.root.and_then(|root| plan.ranks.get(root as usize)) {
            Some(root) => format!("{}@{root}", plan.collective),
            None => plan.collective.to_owned(),
        };
        let ranks = plan.ranks.len().to_string();
        let times = [micros(&plan.seconds_alone)?, micros(&plan.seconds_bound)?];
        let cells = [plan.name.clone(), what, ranks, plan.steps_alone.to_string()];
        table.row(cells.into_iter().chain(times));
    }
    let alone: u64 = manifest.plans.iter().map(|plan| plan.steps_alone).sum();
    let longest = manifest.plans.iter().map(|plan| plan.steps_alone).max().unwrap_or(0);
    let at_least = match manifest.seconds_bound.as_str() {
        "" => String::new(),
        seconds => format!(", at least {}", micros(seconds)?),
    };
    Ok(format!(
        "{}\ntogether    {} steps, {}{at_least}\none by one  {alone} steps, {}\nlongest     {longest} steps, {}",
        table.text(),
        manifest.steps,
        micros(&manifest.seconds)?,
        micros(&manifest.seconds_one_by_one)?,
        micros(&manifest.seconds_longest_alone)?,
    ))
}

/// Seconds as microseconds to three places.
fn micros(seconds: &str) -> Result<String, Failure> {
    let seconds: Ratio =
        seconds.parse().map_err(|_| Failure::fault("the server's answer has a time that is no fraction"))?;
    Ok(format!("{:.3} µs", seconds.to_f64() * 1e6))
}

/// The same error with fields of the request named as the user gave them.
fn in_users_words(error: ClientError, topology: &str, collectives: &[JointCollective]) -> ClientError {
    let named = |place: &str| {
        let stated = place.strip_prefix("joint.collectives")?.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let named = stated.and_then(|(number, rest)| {
            let collective = collectives.get(number.parse::<usize>().ok()?)?;
            Some((format!("--joint {}", collective.name), rest.trim_start_matches('.')))
        });
        Some(match named {
            Some((whole, "")) => whole,
            Some((whole, field)) => format!("{whole}: {field}"),
            None => "--joint".to_owned(),
        })
    };
    request::in_users_words(request::renamed(error, named), topology)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_are_read_with_roots_in_numbers_of_the_network() {
        let read = joint_collective("down=18-35:broadcast@35:1MiB/2").unwrap();
        let collective = read.collective.unwrap();
        assert_eq!(
            (read.name.as_str(), read.ranks.len(), read.size_bytes, read.chunks),
            ("down", 18, Some(1 << 20), Some(2))
        );
        assert_eq!((collective.kind(), collective.root), (v1::Collective::Broadcast, Some(17)));
        let plain = joint_collective("a=all:reduce@3").unwrap();
        assert_eq!((plain.ranks.len(), plain.size_bytes, plain.chunks), (0, None, None));
        assert_eq!(plain.collective.unwrap().root, Some(3));
        assert_eq!(joint_collective("x=7,2:allgather/4").unwrap().ranks, [7, 2]);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        for (bad, words) in [
            ("up", "no name"),
            ("manifest=0-3:allgather", "manifest of its own"),
            ("up=0-3", "nothing that they do"),
            ("up=0-3:broadcast@9", "root 9 is not among"),
            ("up=0-3:broadcast@x", "root is not a rank"),
            ("up=0-3:allgather/0", "chunks"),
            ("up=0-3:allgather:0", "zero"),
            ("up=3-0:allgather", "list of ranks"),
            ("up=0-3:sing", "unknown collective `sing`"),
        ] {
            let found = joint_collective(bad).unwrap_err();
            assert!(found.contains(words), "{bad}: {found}");
        }
    }
}
