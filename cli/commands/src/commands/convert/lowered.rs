//! A file for a runtime of a plan in canopy's JSON, which knows its network and every transfer.

use canopy_bundle::{Divisor, PlanFileFacts, Runtime};
use canopy_client::ErrorClass;
use canopy_plan::{
    Asked, Format, Instances, Needs, OptionField, Target, TargetError, TargetOptions, TargetReason, switch_domains,
};
use canopy_planner::layered;
use canopy_schedule::CollectiveKind;
use canopy_synth::Never;
use canopy_topology::{Rate, Topology, TopologyLimits, participants};
use canopy_wire::{sha256_hex, slots_on_the_wire};

use super::{Made, Making, PLAN};
use crate::commands::plan::loader;
use crate::commands::verify;
use crate::exit::{Failure, words};
use crate::material::Material;

/// Largest message where none is stated: a server's.
const BYTES_MAX_DEFAULT: u64 = 1 << 30;

/// Judges the plan, lowers it, and judges the file.
///
/// # Errors
/// The plan is not right; the runtime has no room for it or no word for it.
pub(super) fn convert(making: &Making, file: &str, bytes: &[u8], to: Target) -> Result<Made, Failure> {
    let plan = Material::of_file(file, bytes)?;
    let collective = plan.schedule.collective;
    if let Some(failure) = making.instances.and_then(|instances| refused_instances(to, instances)) {
        return Err(failure);
    }
    let layered = match to.needs() {
        Needs::Layers(most) => {
            Some(layered(&plan.topology, &plan.schedule, most, &Never).map_err(|error| no_file(&error))?)
        }
        Needs::Plan | Needs::Transfers => None,
    };
    let asked = Asked {
        topology: &plan.topology,
        base: None,
        plan: None,
        graph: Some(&plan.graph),
        layered,
        name: &format!("canopy-{}-{}-{:.12}", collective.kind(), plan.graph.rank_count, sha256_hex(bytes)),
        rank_map: None,
        in_place: making.in_place || (!making.out_of_place && collective.kind() == CollectiveKind::Allreduce),
        bytes_min: 0,
        bytes_max: making.size.unwrap_or(BYTES_MAX_DEFAULT),
        seed: 0,
        limits: &TopologyLimits::STANDARD,
        stop: &|| false,
    };
    let to = Target { instances: making.instances.unwrap_or(to.instances), ..to };
    let content = to.draft(asked).map_err(|error| no_file(&error))?;
    let text = String::from_utf8(content).map_err(|_| Failure::fault("the file that was made is no text"))?;
    let mut verdict = verify::judge_file(text.as_bytes(), Some(to), Some(collective))?;
    verdict.warnings.extend(lost_without_switches(&plan, to));
    let messages = messages(to, &text)?;
    Ok(Made { from: PLAN, text, changes: vec![messages], verdict, ranks_per_node: ranks_per_node(&plan.topology) })
}

/// What a file cannot have of a plan that counts on switches which replicate and add up: only where one joins all
/// ranks does a file let it add.
fn lost_without_switches(plan: &Material, to: Target) -> Option<String> {
    let with = &plan.verdict.in_network.as_ref()?.algbw;
    let domains = switch_domains(&plan.topology, &[]);
    let is_whole = domains.iter().any(|domain| domain.ranks.len() == plan.topology.rank_count() as usize);
    if *with <= plan.verdict.algbw || (to.format == Format::MscclppJson && is_whole) {
        return None;
    }
    let [with, without] = [with, &plan.verdict.algbw].map(Rate::gigabytes_per_sec);
    Some(format!(
        "the plan reaches {with:.3} GB/s where switches replicate and add, and {without:.3} GB/s where they only forward, as \
         they do for {to}; `canopy plan` with `--format {}` finds the best plan for that",
        to.format
    ))
}

/// Why a file has no instances.
fn refused_instances(to: Target, instances: Instances) -> Option<Failure> {
    let options = TargetOptions { instances: Some(instances.into()), ..to.options() };
    let error = to.format.target(&options).err().filter(|error| error.field() == OptionField::Instances);
    let what = format!("--instances is for msccl-xml, and {to} has nothing like them");
    error.map(|_| Failure::input(what).help("leave --instances out"))
}

/// Why a plan is no file: it has more of something than the runtime takes, or says what files cannot.
fn no_file(error: &TargetError) -> Failure {
    if error.reason == TargetReason::Rejected {
        return Failure::fault(format!("the routes of the plan do not hold: {}", words(error)));
    }
    let failure = Failure::new(ErrorClass::Infeasible, words(error));
    match error.limit_by_trees() {
        Some(_) => failure.help("ask for a plan with fewer trees, such as `canopy plan … --trees 1 -o plan.json`"),
        None => failure,
    }
}

/// Ranks of each machine that the topology names, if all have as many.
fn ranks_per_node(topology: &Topology) -> Option<u32> {
    let slots = participants(topology, None, None).ok()?.slots?;
    loader::ranks_per_node(&slots_on_the_wire(&slots))
}

/// The messages that a file is for, in words.
fn messages(to: Target, text: &str) -> Result<String, Failure> {
    // Where no rules pick one of several files, each says itself what messages it is for: those that were asked for.
    let Ok(runtime) = to.profile.parse::<Runtime>() else {
        return Ok("for messages of any size up to the greatest".to_owned());
    };
    let facts = PlanFileFacts::read(runtime, "the file".to_owned(), text, &|| false);
    let facts =
        facts.map_err(|error| Failure::fault(format!("the file that was made cannot be read: {}", words(&error))))?;
    let last = runtime.rules().and_then(|rules| rules.largest(facts.bytes_max));
    let most = last.map_or("of any size".to_owned(), |last| format!("of at most {last} bytes"));
    Ok(match facts.divisor {
        Divisor::Elements(1) | Divisor::Bytes(1) => format!("for messages {most}"),
        Divisor::Elements(count) => format!("for messages {most}, in multiples of {count} elements"),
        Divisor::Bytes(count) => format!("for messages {most}, in multiples of {count} bytes"),
    })
}
