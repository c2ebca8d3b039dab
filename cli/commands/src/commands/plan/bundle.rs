//! `canopy plan bundle`: a folder with the plans of several communicators and collectives, each for its range of sizes.

mod manifest;

use std::time::Duration;

use canopy_client::{ClientError, ErrorClass};
use canopy_plan::Format;
use canopy_proto::v1::{self, BundleCommunicator, Fraction, PlanBundleRequest, PlanBundleResponse};
use canopy_schedule::CollectiveKind;

use super::folder::{self, Fetch, Files, NewFolder};
use super::loader::LOADER;
use super::{CallArgs, Common};
use crate::args::{self, MemoryArgs};
use crate::calibration;
use crate::exit::Failure;
use crate::known_faults::say_warning;
use crate::messages::{say, warn};
use crate::output::{MANIFEST, print_json};
use crate::request;
use crate::runtime::RuntimeProfile;
use crate::sizes::{Sizes, in_words};
use crate::table::count;

use manifest::Manifest;

/// What only bundles have.
#[derive(Debug, clap::Args)]
pub(super) struct BundleArgs {
    /// Make a folder of plans, each for the message sizes at which it is fastest, from the first size to the last
    #[arg(long, value_name = "FROM..TO")]
    sizes: Option<Sizes>,
    /// Ranks of a communicator of the job, such as tp0=0-7, in their order; may be repeated [default: one of all ranks]
    #[arg(long, value_name = "NAME=RANKS", requires = "sizes", value_parser = communicator)]
    communicator: Vec<BundleCommunicator>,
    /// Fail items whose calls could get files that were made for other wiring, and end with a failure if any item failed
    #[arg(long, requires = "sizes")]
    strict: bool,
    /// How much faster than the plan in place another must be to take over, such as 5% or 1/20 [default: 1/20]
    #[arg(long, value_name = "PART", requires = "sizes", value_parser = args::part)]
    margin: Option<Fraction>,
    /// What each message takes before its first byte is sent, in the simulation [default: 1us]
    #[arg(long, value_name = "TIME", requires = "sizes", value_parser = args::duration)]
    alpha: Option<Duration>,
}

impl BundleArgs {
    /// Whether a bundle is asked for.
    pub(super) const fn is_given(&self) -> bool {
        self.sizes.is_some()
    }
}

/// Reads `NAME=RANKS`, the ranks in the order in which they are given.
pub(super) fn communicator(text: &str) -> Result<BundleCommunicator, String> {
    let Some((name, list)) = text.split_once('=') else {
        return Err(format!("`{text}` is not a communicator; write a name and its ranks, such as tp0=0-7"));
    };
    Ok(BundleCommunicator { name: name.to_owned(), ranks: args::rank_list(list)?.into_ranks() })
}

/// Makes the bundle, writes its folder, says what is in it.
pub(super) async fn run(
    common: Common,
    bundle: &BundleArgs,
    call: &CallArgs,
    memory: MemoryArgs,
) -> Result<(), Failure> {
    let output = common.file.folder("a bundle is a folder, and none is named")?;
    let request = bundle_request(&common, bundle, call, memory)?;
    let folder = NewFolder::prepare(output)?;
    let in_words = |error| in_users_words(error, &common.topology);
    let format = (common.file.profile != Some(RuntimeProfile::Nccl)).then(|| common.file.format().name());
    let write = async |files: Files<'_>, reply: &PlanBundleResponse| write(files, reply, format, folder).await;
    let (reply, manifest) = folder::made(&common, &request, in_words, write).await?;
    reply.warnings.iter().for_each(say_warning);
    manifest.items.iter().for_each(say_item);
    let failed = manifest.items.iter().find_map(|item| item.error.as_ref().map(|error| (item, error)));
    let outcome = match failed {
        Some((item, error)) if bundle.strict || manifest.items.iter().all(|item| item.error.is_some()) => {
            let class = class_of(error.code);
            let what = format!("{} of `{}` has no plan: {}", item.collective, item.communicator, error.message);
            Err(Failure::new(class, what).note(error.reason.clone()))
        }
        _ => Ok(()),
    };
    if common.json && outcome.is_ok() {
        print_json("plan", &manifest::Printed::new(&manifest, output))?;
    } else {
        let what = match reply.tuner_csv.is_empty() {
            true => count(manifest.files().count(), "file"),
            false => "tuner.csv".to_owned(),
        };
        say(&format!("{what} to {}", output.display()));
    }
    outcome
}

/// The request as it goes to the server, which judges all that needs the topology.
fn bundle_request(
    common: &Common,
    bundle: &BundleArgs,
    call: &CallArgs,
    memory: MemoryArgs,
) -> Result<PlanBundleRequest, Failure> {
    let sizes = bundle.sizes.as_ref().ok_or_else(|| Failure::input("no sizes are given"))?;
    let (first, last) = sizes.ends();
    let file = &common.file;
    let is_advice = file.profile == Some(RuntimeProfile::Nccl);
    if is_advice && (file.format() != Format::Json || file.instances.is_some()) {
        return Err(Failure::input("NCCL cannot load external plans, so `--format` and `--instances` have no effect")
            .help("leave out --format and --instances"));
    }
    if !is_advice && file.format() == Format::Json {
        return Err(Failure::input("a bundle is for a runtime that picks files, and json is canopy's own format")
            .help("add the format that the runtime reads, such as `--format msccl-xml`, and its profile"));
    }
    file.check_channels()?;
    let kinds: Result<Vec<_>, Failure> = call.collective.iter().map(|name| name.equal_kind()).collect();
    let of_kind = |kind: CollectiveKind| request::collective_spec(kind, call.root.filter(|_| kind.has_root()));
    let collectives = kinds?.into_iter().map(of_kind).collect();
    let output = match is_advice {
        true => v1::OutputSpec { profile: Some(RuntimeProfile::Nccl.name().to_owned()), ..v1::OutputSpec::default() },
        false => file.spec()?,
    };
    Ok(PlanBundleRequest {
        fault_policy: common.faults.policy().into(),
        placement: call.placement.placement.clone(),
        topology: Some(request::topology(&common.topology)?),
        communicators: bundle.communicator.clone(),
        collectives,
        size_bytes_min: Some(first),
        size_bytes_max: Some(last),
        output: Some(output),
        in_place: memory.in_place(),
        strict: bundle.strict,
        margin: bundle.margin.clone(),
        alpha_ns: bundle
            .alpha
            .map_or_else(calibration::message_ns, |alpha| Some(u64::try_from(alpha.as_nanos()).unwrap_or(u64::MAX))),
        ..PlanBundleRequest::default()
    })
}

/// Fetches the files, compares them with what was said of them, and puts the folder into place.
async fn write(
    files: Files<'_>,
    reply: &PlanBundleResponse,
    format: Option<&'static str>,
    folder: NewFolder,
) -> Result<Manifest, Failure> {
    let manifest = Manifest::of(reply, format)?;
    if !reply.tuner_csv.is_empty() {
        folder.write("tuner.csv", reply.tuner_csv.as_bytes())?;
    }
    let mut fetch = Fetch::new(files, &folder);
    for file in reply.items.iter().flat_map(|item| &item.files) {
        fetch.file(&file.path, &file.plan, &file.artifact.clone().unwrap_or_default()).await?;
    }
    if manifest.needs_loader() {
        folder.write("loader.py", LOADER.as_bytes())?;
    }
    folder.write("env", manifest.environment(folder.target())?.as_bytes())?;
    // Last, so that what has a manifest is whole.
    folder.write_json(MANIFEST, &manifest)?;
    folder.commit()?;
    Ok(manifest)
}

/// The first and the last of some times.
fn ends(times: &[manifest::Time]) -> String {
    let ends: Vec<String> = [times.first(), times.last()]
        .into_iter()
        .flatten()
        .map(|time| format!("{} in {}", in_words(time.size_bytes), micros(time.time_ps)))
        .collect();
    ends.join(", ")
}

fn say_item(item: &manifest::Item) {
    let who = format!("{} of `{}`, {} ranks", item.collective, item.communicator, item.ranks);
    for warning in &item.warnings {
        warn(format_args!("{}: {who}: {}", warning.code, warning.text));
    }
    match (&item.error, &item.served_by) {
        (Some(error), _) => say(&format!("{who}: no plan: {}: {}", error.reason, error.message)),
        (None, Some(other)) => say(&format!("{who}: the files of `{other}`")),
        (None, None) => say(&who),
    }
    for file in &item.files {
        let (first, last) = (in_words(file.size_bytes_min), in_words(file.size_bytes_end - 1));
        say(&format!("  {first} to {last}: {} ({}), {}", file.candidate, file.algorithm, ends(&file.times)));
    }
    for advice in &item.advice {
        let (first, last) = (in_words(advice.size_bytes_min), in_words(advice.size_bytes_end - 1));
        say(&format!("  {first} to {last}: {}, {}", advice.algorithm, ends(&advice.times)));
    }
}

/// Picoseconds as microseconds to three places.
fn micros(time_ps: u64) -> String {
    let nanos = time_ps.saturating_add(500) / 1000;
    format!("{}.{:03} µs", nanos / 1000, nanos % 1000)
}

/// Which exit status stands for a gRPC code.
fn class_of(code: i32) -> ErrorClass {
    use tonic::Code;
    match Code::from(code) {
        Code::InvalidArgument => ErrorClass::Input,
        Code::FailedPrecondition => ErrorClass::Infeasible,
        Code::DeadlineExceeded => ErrorClass::Deadline,
        Code::ResourceExhausted | Code::Unavailable => ErrorClass::Busy,
        _ => ErrorClass::Fault,
    }
}

/// The same error with fields of the request named as the user gave them.
fn in_users_words(error: ClientError, topology: &str) -> ClientError {
    let names = [
        ("size_bytes", "--sizes"),
        ("output.profile", "--profile"),
        ("output", "--format"),
        ("collectives", "--collective"),
        ("communicators", "--communicator"),
        ("ranks", "--communicator"),
        ("placement", "--placement"),
        ("margin", "--margin"),
        ("alpha_ns", "--alpha"),
    ];
    let named = |place: &str| Some(names.iter().find(|(field, _)| place.starts_with(field))?.1.to_owned());
    request::in_users_words(request::renamed(error, named), topology)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_communicator_keep_their_order() {
        let read = |text: &str| communicator(text).map(|found| (found.name, found.ranks));
        assert_eq!(read("dp=8,0,2-3"), Ok(("dp".to_owned(), vec![8, 0, 2, 3])));
        for bad in ["dp", "dp=", "dp=x", "dp=3-2"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
