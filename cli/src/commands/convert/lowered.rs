//! A file for a runtime of a plan in canopy's JSON, which knows its network and every transfer.

use std::num::NonZeroU32;

use canopy_bundle::{Divisor, PlanFileFacts, Runtime};
use canopy_client::ErrorClass;
use canopy_plan::{
    ExecutionLowerError, ExecutionLowerOptions, ExecutorProfile, Instances, LowerError, LowerOptions, Profile,
    forwarder_on_routes, lower, lower_execution_plan, oneccl, require_own_routes, routes, write_execution_plan,
    write_msccl_xml,
};
use canopy_proto::v1;
use canopy_schedule::{CollectiveKind, Schedule, Shape, check_flow};
use canopy_synth::{Never, layered_flow};
use canopy_topology::{Slot, Topology, seating};
use sha2::{Digest, Sha256};

use super::{Made, Making, PLAN, Target};
use crate::commands::plan::loader;
use crate::commands::verify;
use crate::exit::{Failure, words};
use crate::material::Material;
use crate::runtime::RuntimeProfile;

/// Largest message where none is stated: a server's.
const BYTES_MAX_DEFAULT: u64 = 1 << 30;

/// How the file is to be.
struct Wanted {
    /// Label in the file.
    name: String,
    in_place: bool,
    bytes_max: u64,
    instances: Option<Instances>,
}

/// Judges the plan, lowers it, and judges the file.
///
/// # Errors
/// The plan is not right; the runtime has no room for it or no word for it.
pub(super) fn convert(making: &Making, file: &str, bytes: &[u8], to: Target) -> Result<Made, Failure> {
    let plan = Material::of_file(file, bytes)?;
    let collective = plan.schedule.collective;
    let digest: String = Sha256::digest(bytes).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let wanted = Wanted {
        name: format!("canopy-{}-{}-{digest}", collective.kind(), plan.graph.rank_count),
        in_place: making.in_place || (!making.out_of_place && collective.kind() == CollectiveKind::Allreduce),
        bytes_max: making.size.unwrap_or(BYTES_MAX_DEFAULT),
        instances: making.instances,
    };
    if wanted.instances.is_some() && !matches!(to, Target::Runtime(RuntimeProfile::Msccl(_))) {
        return Err(Failure::input(format!("--instances is for msccl-xml, and {} has nothing like them", to.name()))
            .help("leave --instances out"));
    }
    let (text, profile) = match to {
        Target::Runtime(RuntimeProfile::Msccl(profile)) => (msccl(&plan, wanted, profile)?, to_runtime(to)),
        Target::Runtime(RuntimeProfile::Executor(profile)) => (execution(&plan, wanted, profile)?, to_runtime(to)),
        Target::Oneccl => (oneccl_text(&plan, wanted)?, None),
        Target::Routes => (routes_text(&plan, wanted)?, None),
        Target::Nccl => return Err(Failure::input("nccl runs no plan of anybody else's").help("name another profile")),
    };
    let verdict = verify::judge_file(text.as_bytes(), profile, Some(collective))?;
    let messages = messages(to, &text)?;
    Ok(Made { from: PLAN, text, changes: vec![messages], verdict, ranks_per_node: ranks_per_node(&plan.topology) })
}

const fn to_runtime(to: Target) -> Option<RuntimeProfile> {
    match to {
        Target::Runtime(profile) => Some(profile),
        Target::Oneccl | Target::Routes | Target::Nccl => None,
    }
}

fn msccl(plan: &Material, wanted: Wanted, profile: Profile) -> Result<String, Failure> {
    let Wanted { name, in_place, bytes_max, instances } = wanted;
    let instances = instances.unwrap_or(Instances::Exactly(NonZeroU32::MIN));
    let options = LowerOptions { in_place, bytes_max, profile, name, instances };
    let lowered = require_own_routes(&plan.topology, &plan.graph, profile)
        .and_then(|()| lower(&plan.graph, &options, &|| false))
        .map_err(|error| no_room(&error, matches!(error, LowerError::OverLimit { .. })))?;
    Ok(write_msccl_xml(&lowered.program, profile))
}

fn execution(plan: &Material, wanted: Wanted, profile: ExecutorProfile) -> Result<String, Failure> {
    let Wanted { name, in_place, bytes_max, .. } = wanted;
    let refused = |error: ExecutionLowerError| {
        let is_large = matches!(error, ExecutionLowerError::OverLimit { .. });
        no_room(&error, is_large)
    };
    if let Some(id) = forwarder_on_routes(&plan.topology, &plan.graph) {
        return Err(refused(ExecutionLowerError::Forwarder { profile, id: id.to_owned() }));
    }
    let options = ExecutionLowerOptions::on(&plan.topology, profile, name, in_place, bytes_max);
    let lowered = lower_execution_plan(&plan.graph, &options, &|| false).map_err(refused)?;
    Ok(write_execution_plan(&lowered))
}

fn oneccl_text(plan: &Material, wanted: Wanted) -> Result<String, Failure> {
    let Wanted { name, in_place, bytes_max, .. } = wanted;
    let options = oneccl::LowerOptions { name, in_place, bytes_max: Some(bytes_max), instances: 1 };
    let lowered = oneccl::require_own_routes(&plan.topology, &plan.graph)
        .and_then(|()| oneccl::lower(&plan.graph, &options, &|| false))
        .map_err(|error| no_room(&error, matches!(error, oneccl::LowerError::OverLimit { .. })))?;
    Ok(oneccl::write(&lowered))
}

fn routes_text(plan: &Material, wanted: Wanted) -> Result<String, Failure> {
    let Wanted { name, in_place, bytes_max, .. } = wanted;
    let layered = layered_flow(&plan.topology, &plan.schedule, None, &Never).map_err(|error| no_room(&error, false))?;
    let schedule = Schedule { shape: Shape::Flow(layered.flow), ..plan.schedule.clone() };
    let verdict = check_flow(&plan.topology, &schedule)
        .map_err(|error| Failure::fault(format!("the routes of the plan do not hold: {}", words(&error))))?;
    let options = routes::LowerOptions { name, in_place, bytes_min: 0, bytes_max, algbw: verdict.algbw };
    let lowered = routes::lower(&plan.topology, &schedule, &layered.layers, &options, &|| false)
        .map_err(|error| no_room(&error, false))?;
    Ok(routes::write(&lowered))
}

/// Why a plan is no file: it has more of something than the runtime takes, or says what files cannot.
fn no_room(error: &dyn std::error::Error, is_large: bool) -> Failure {
    let failure = Failure::new(ErrorClass::Infeasible, words(error));
    match is_large {
        true => failure.help("ask for a plan with fewer trees, such as `canopy plan … --trees 1 -o plan.json`"),
        false => failure,
    }
}

/// Ranks of each machine that the topology names, if all have as many.
fn ranks_per_node(topology: &Topology) -> Option<u32> {
    let slots = seating(topology, None, None).ok()?.slots?;
    let slot = |Slot { node, device }: Slot| v1::RankSlot { node, device, count: 1 };
    loader::ranks_per_node(&v1::Placement { slots: slots.into_iter().map(slot).collect() })
}

/// The messages that a file is for, in words.
fn messages(to: Target, text: &str) -> Result<String, Failure> {
    // Route plans say themselves what messages they are for, which is what was asked for.
    if to == Target::Routes {
        return Ok("for messages of any size up to the greatest".to_owned());
    }
    let unreadable = |what: String| Failure::fault(format!("the file that was made cannot be read: {what}"));
    let runtime: Runtime =
        to.name().parse().map_err(|error: canopy_bundle::UnknownRuntime| unreadable(error.to_string()))?;
    let facts = PlanFileFacts::read(runtime, "the file".to_owned(), text, &|| false);
    let facts = facts.map_err(|error| unreadable(words(&error)))?;
    let last = runtime.rules().and_then(|rules| rules.largest(facts.bytes_max));
    let most = last.map_or("of any size".to_owned(), |last| format!("of at most {last} bytes"));
    Ok(match facts.divisor {
        Divisor::Elements(1) | Divisor::Bytes(1) => format!("for messages {most}"),
        Divisor::Elements(count) => format!("for messages {most}, in multiples of {count} elements"),
        Divisor::Bytes(count) => format!("for messages {most}, in multiples of {count} bytes"),
    })
}
