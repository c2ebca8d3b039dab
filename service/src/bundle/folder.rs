//! The finished folder: names of files, and whether the runtime selects each file for its intended calls.

use std::str;
use std::sync::Arc;

use bytes::Bytes;
use canopy_bundle::{ByteRange, Folder, Intended, PlanFileFacts, Runtime, audit};
use canopy_plan::Target;
use canopy_planner::chain;
use canopy_proto::v1;
use canopy_schedule::CollectiveKind;

/// Digits of a digest in the name of a file.
const DIGEST_DIGITS: usize = 12;

/// A file that has been made.
#[derive(Debug)]
pub(super) struct MadeFile {
    /// Position of its item.
    pub(super) item: usize,
    /// Ranks of the communicator.
    pub(super) ranks: u32,
    /// Ranks of the communicator on each machine; 0: not known.
    pub(super) ranks_per_node: u32,
    /// The devices of the communicator's ranks as files state them; `None`: the request has no placement.
    pub(super) rank_map: Option<Arc<str>>,
    pub(super) collective: CollectiveKind,
    pub(super) in_place: bool,
    pub(super) range: ByteRange,
    /// Name of the candidate.
    pub(super) candidate: &'static str,
    /// Its plan, with one file and its content.
    pub(super) plan: v1::Plan,
    pub(super) times: Vec<v1::PredictedTime>,
}

/// Names the files and describes them, each with its item and content, once the rules of the runtime give each to the
/// calls that it is meant for and to no others. O(bytes of the files).
///
/// # Errors
/// What is wrong with the folder, which is then not handed over: a fault of the server.
pub(super) fn audited(
    runtime: Runtime,
    output: Target,
    files: Vec<MadeFile>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<(usize, v1::BundleFile, Bytes)>, String> {
    let mut folder = Folder::default();
    let rank_maps: Vec<Option<Arc<str>>> = files.iter().map(|made| made.rank_map.clone()).collect();
    let mut intended = Vec::new();
    let mut described = Vec::new();
    for ((position, made), rank_map) in files.into_iter().enumerate().zip(&rank_maps) {
        let MadeFile { item, ranks, ranks_per_node, collective, in_place, range, candidate, mut plan, times, .. } =
            made;
        let mut artifact = plan.artifacts.pop().ok_or_else(|| format!("{} has no file", plan.name))?;
        let content = artifact.content.take().ok_or_else(|| format!("a file of {} has no content", plan.name))?;
        let digest = artifact.sha256.get(..DIGEST_DIGITS).unwrap_or(&artifact.sha256);
        let path = format!("plans/{position:03}-{collective}-{ranks}-{digest}.{}", output.format.ending());
        let text = str::from_utf8(&content).map_err(|error| format!("{path}: {error}"))?;
        let facts = PlanFileFacts::read(runtime, path.clone(), text, stop);
        let mut facts = facts.map_err(|error| chain(&error))?;
        if runtime.is_registered() {
            // Its files are registered by a module that goes by the manifest, which says this of them.
            facts = facts.registered(collective, Some(ranks_per_node).filter(|&ranks| ranks > 0));
        }
        folder.files.push(facts);
        let rank_map = rank_map.as_deref();
        intended.push(Intended { file: position, collective, ranks, ranks_per_node, rank_map, in_place, range });
        let valid = plan.valid_for.unwrap_or_default();
        let file = v1::BundleFile {
            path,
            plan: plan.name,
            artifact: Some(artifact),
            size_bytes_min: range.first(),
            size_bytes_end: range.end(),
            alignment_elements: valid.alignment_elements,
            candidate: candidate.to_owned(),
            algorithm: plan.algorithm,
            optimality: plan.quality.unwrap_or_default().optimality,
            times,
        };
        described.push((item, file, content));
    }
    audit(runtime, &folder, &intended).map_err(|error| format!("the bundle failed its check: {error}"))?;
    Ok(described)
}

/// What has to be in the environment for these files to be found.
pub(super) fn env(runtime: Runtime, paths: &[String]) -> Vec<v1::EnvVar> {
    let variables = runtime.variables(paths).into_iter();
    let variable = |found: canopy_bundle::Variable| v1::EnvVar {
        name: found.name.to_owned(),
        value: found.value,
        purpose: found.purpose.to_owned(),
    };
    variables.map(variable).collect()
}
