//! Reads plan requests from messages, and refuses invalid ones.

mod joint;

use std::collections::HashSet;
use std::num::NonZeroU64;
use std::sync::LazyLock;

use crate::fraction::{StoredRatio, tolerance};
use crate::stated_fraction::small_fraction_read;
use bytes::Bytes;
use canopy_faults::Loss;
use canopy_import::FileKind;
use canopy_plan::{Format, Target};
use canopy_planner::{Group, Making, Request, TopologyInput};
use canopy_proto::v1;
use canopy_schedule::CollectiveKind;
use canopy_synth::{Algorithm, SumOptions, TreeLimits};
use canopy_topology::{DocumentFormat, Slot, Transit};
use prost::Message as _;
use prost_types::FileDescriptorSet;

use self::joint::taken;
use crate::formats::target;
use crate::losses::loss;
use crate::plan::collective_of_wire;
use crate::refused::{RequestError, above_zero};
use crate::request::{draft, draft_on_the_wire, form, roots, slots};

/// Longest start-up time of a message: a second.
pub const ALPHA_NS_MAX: u64 = 1_000_000_000;

/// Most faults that one request may name.
pub const FAULTS_MAX: usize = 10_000;
/// Most files that one request may name.
const OUTPUTS_MAX: usize = 8;
/// Default for the largest message of a request: 1 GiB.
pub const SIZE_BYTES_MAX_DEFAULT: u64 = 1 << 30;
/// Largest message that a request may name: runtimes hold sizes in 63 bits, and some bounds are exclusive.
pub const SIZE_BYTES_MAX_LIMIT: u64 = 1 << 62;

const COLLECTIVES: &str = "COLLECTIVE_ALLGATHER, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALLREDUCE, \
    COLLECTIVE_BROADCAST, COLLECTIVE_REDUCE, COLLECTIVE_GATHER, COLLECTIVE_SCATTER or COLLECTIVE_ALL_TO_ALL";
const TRANSITS: &str = "GROUP_TRANSIT_FORWARD or GROUP_TRANSIT_UNUSED";
const FORMS: &str = "ALLREDUCE_FORM_TWO_PHASE or ALLREDUCE_FORM_TREES";
const ROOT_POLICIES: &str = "ROOT_POLICY_CENTRE or ROOT_POLICY_SPREAD";

/// Fields of a [`v1::PlanSpec`].
static SPEC_FIELDS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let files = FileDescriptorSet::decode(canopy_proto::FILE_DESCRIPTOR_SET).map(|set| set.file).unwrap_or_default();
    let messages = files.into_iter().flat_map(|file| file.message_type);
    let specs = messages.filter(|message| message.name() == "PlanSpec");
    specs.flat_map(|spec| spec.field).filter_map(|field| field.name).collect()
});

/// Whether the path of a field begins with one of a [`v1::PlanSpec`].
pub fn is_of_spec(path: &str) -> bool {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    path.get(..end).is_some_and(|first| SPEC_FIELDS.contains(first))
}

/// Reads what to plan. Does not look at the tenant.
///
/// # Errors
/// The first field that is wrong.
pub fn plan_request(spec: v1::PlanSpec) -> Result<Request, RequestError> {
    let (request, joint) = taken(spec)?;
    let Sourced { topology, faults } = sourced(request.topology)?;
    let collective = request
        .collective
        .ok_or(RequestError::Missing { field: "collective", remedy: "set the collective to plan" })?;
    let kind = collective_kind(collective.kind)?;
    let size_bytes_max = request.size_bytes_max.unwrap_or(SIZE_BYTES_MAX_DEFAULT);
    if !(1..=SIZE_BYTES_MAX_LIMIT).contains(&size_bytes_max) {
        return Err(RequestError::Size { found: size_bytes_max, limit: SIZE_BYTES_MAX_LIMIT });
    }
    let size_bytes_min = above_zero("size_bytes_min", request.size_bytes_min)?.map_or(0, NonZeroU64::get);
    if size_bytes_min > size_bytes_max {
        return Err(RequestError::EmptySizes { min: size_bytes_min, max: size_bytes_max });
    }
    let alpha_ns = request.alpha_ns.unwrap_or(Request::ALPHA_NS_DEFAULT);
    if alpha_ns > ALPHA_NS_MAX {
        return Err(RequestError::TooMany { field: "alpha_ns", found: alpha_ns, limit: ALPHA_NS_MAX });
    }
    let outputs = outputs(&request.outputs)?;
    if size_bytes_min > 0 && outputs.iter().all(|output| output.format == Format::Json) {
        return Err(RequestError::SmallestWithoutRuntime { min: size_bytes_min });
    }
    let algorithm = request.algorithm.as_deref().map_or(Ok(Algorithm::Auto), canopy_baselines::algorithm)?;
    let limits = TreeLimits {
        trees_per_root: above_zero("trees_per_root", request.trees_per_root.map(u64::from))?,
        chunks: above_zero("chunks", request.chunks)?,
        max_chunks: above_zero("max_chunks", request.max_chunks)?,
        max_depth: above_zero("max_depth", request.max_depth)?,
        tolerance: match request.tolerance {
            None => None,
            Some(stated) => {
                let (numerator, denominator) = small_fraction_read("tolerance", &stated)?;
                Some(tolerance(numerator, denominator).ok_or(RequestError::Tolerance { found: stated.exact })?)
            }
        },
    };
    limits.require_applicable(algorithm, kind)?;
    let sums = sums(request.form, request.root_policy)?;
    sums.require_applicable(algorithm, kind, limits)?;
    algorithm.require_seed(request.seed)?;
    Ok(Request {
        topology,
        faults,
        kind,
        root: collective.root,
        shares: request.shares,
        group: group(request.ranks, request.transit, request.placement.is_some())?,
        placement: placement(request.placement)?,
        size_bytes_min,
        size_bytes_max,
        states_default_size: request.size_bytes_max == Some(SIZE_BYTES_MAX_DEFAULT),
        alpha_ns,
        in_place: request.in_place.unwrap_or(kind == CollectiveKind::Allreduce),
        algorithm,
        limits,
        sums,
        seed: request.seed,
        making: Making::Searched,
        joint,
        outputs,
        // Its name is not in the message.
        tenant: None,
    })
}

/// Why a stored request cannot be read.
#[derive(Debug)]
pub enum KeptRequestError<E> {
    /// It is not a message.
    Damaged,
    /// It is not a valid request.
    Request(RequestError),
    /// The topology that it names is missing.
    Topology(E),
}

/// Reads a stored request; `document` is the text of the topology of this id.
///
/// # Errors
/// Why it cannot be read.
pub fn kept_request<E>(
    message: Bytes,
    document: impl FnOnce(&str) -> Result<Bytes, E>,
) -> Result<Request, KeptRequestError<E>> {
    use v1::topology_source::Source;
    let mut request = kept_spec(message).ok_or(KeptRequestError::Damaged)?;
    if let Some(v1::TopologySource { source: Some(source) }) = &mut request.topology
        && let Source::Name(id) = source
    {
        let content = document(id).map_err(KeptRequestError::Topology)?;
        *source = Source::Document(v1::TopologyDocument { format: v1::DocumentFormat::Json.into(), content });
    }
    plan_request(request).map_err(KeptRequestError::Request)
}

/// Fields of a request as versions before 0.2 wrote them.
#[derive(Clone, PartialEq, prost::Message)]
struct FormerSpec {
    #[prost(message, optional, tag = "17")]
    tolerance: Option<StoredRatio>,
    #[prost(message, repeated, tag = "23")]
    joint_collectives: Vec<v1::JointCollective>,
    #[prost(uint32, tag = "24")]
    joint_position: u32,
}

/// The message of a stored request, as this version or an earlier one wrote it; `None` if it is damaged.
fn kept_spec(message: Bytes) -> Option<v1::PlanSpec> {
    let FormerSpec { tolerance, joint_collectives, joint_position } = FormerSpec::decode(message.clone()).ok()?;
    let mut spec = v1::PlanSpec::decode(message).ok()?;
    if let (Some(stated), Some(former)) = (&mut spec.tolerance, tolerance.filter(StoredRatio::is_stated)) {
        *stated = former.fraction();
    }
    if !joint_collectives.is_empty() {
        spec.joint = Some(v1::JointSpec { collectives: joint_collectives, position: joint_position });
    }
    Some(spec)
}

/// The ranks that a request lists, none for all, and where they are; none: it does not say.
pub fn placed(request: &v1::PlanSpec) -> Option<(Vec<u32>, Vec<Slot>)> {
    let slots = slots(request.placement.as_ref()?).ok().filter(|slots| !slots.is_empty())?;
    Some((request.ranks.clone(), slots))
}

/// The same of a request that was kept as its message.
pub fn kept_placed(message: Bytes) -> Option<(Vec<u32>, Vec<Slot>)> {
    placed(&kept_spec(message)?)
}

fn sums(form: i32, root_policy: i32) -> Result<SumOptions, RequestError> {
    let unknown = |field: &str, number, known| RequestError::UnknownValue { field: field.to_owned(), number, known };
    Ok(SumOptions {
        form: self::form(form).ok_or_else(|| unknown("form", form, FORMS))?,
        roots: roots(root_policy).ok_or_else(|| unknown("root_policy", root_policy, ROOT_POLICIES))?,
        ..SumOptions::AUTO
    })
}

/// Where the ranks are, by the caller's word.
fn placement(stated: Option<v1::Placement>) -> Result<Option<Vec<Slot>>, RequestError> {
    let slots = stated.as_ref().map(slots).transpose()?;
    let remedy = "give a slot for each rank, or leave out `placement`";
    match slots.as_deref() {
        Some([]) => Err(RequestError::Missing { field: "placement.slots", remedy }),
        _ => Ok(slots),
    }
}

/// Who takes part; `is_placed`: slots may say so instead of ranks.
fn group(ranks: Vec<u32>, transit: i32, is_placed: bool) -> Result<Option<Group>, RequestError> {
    let transit = match v1::GroupTransit::try_from(transit) {
        Ok(v1::GroupTransit::Unspecified) if ranks.is_empty() => return Ok(None),
        Ok(v1::GroupTransit::Unspecified | v1::GroupTransit::Unused) => Transit::Unused,
        Ok(v1::GroupTransit::Forward) => Transit::Forward,
        Err(_) => {
            let (field, number) = ("transit".to_owned(), transit);
            return Err(RequestError::UnknownValue { field, number, known: TRANSITS });
        }
    };
    if ranks.is_empty() && !is_placed {
        let remedy = "list the participating ranks, or leave out `transit`";
        return Err(RequestError::Missing { field: "ranks", remedy });
    }
    Ok(Some(Group { ranks, transit }))
}

/// A network, and what is broken in it.
pub struct Sourced {
    /// As stated.
    pub topology: TopologyInput,
    /// Rising, each once.
    pub faults: Vec<Loss>,
}

/// Faults rising: in whatever order and however often they are said, they mean the same.
pub fn each_once(mut faults: Vec<Loss>) -> Vec<Loss> {
    faults.sort_unstable();
    faults.dedup();
    faults
}

/// Whether one request may name so many faults.
///
/// # Errors
/// They are more.
pub fn require_few_faults(found: usize) -> Result<(), RequestError> {
    if found <= FAULTS_MAX {
        return Ok(());
    }
    let (field, found, limit) = ("topology.punctured.faults", found as u64, FAULTS_MAX as u64);
    Err(RequestError::TooMany { field, found, limit })
}

/// Reads what a request makes of the faults that a server knows.
///
/// # Errors
/// A number that this version does not know.
pub fn fault_policy(number: i32) -> Result<v1::FaultPolicy, RequestError> {
    let known = "FAULT_POLICY_APPLY or FAULT_POLICY_IGNORE";
    match v1::FaultPolicy::try_from(number) {
        Ok(v1::FaultPolicy::Unspecified | v1::FaultPolicy::Apply) => Ok(v1::FaultPolicy::Apply),
        Ok(v1::FaultPolicy::Ignore) => Ok(v1::FaultPolicy::Ignore),
        Err(_) => Err(RequestError::UnknownValue { field: "fault_policy".to_owned(), number, known }),
    }
}

/// Reads the source of a network. Known faults are in it already.
///
/// # Errors
/// The first field that is wrong.
pub fn sourced(source: Option<v1::TopologySource>) -> Result<Sourced, RequestError> {
    use v1::topology_source::Source;
    let Some(v1::TopologySource { source: Some(Source::Punctured(punctured)) }) = source else {
        return Ok(Sourced { topology: topology_input(source)?, faults: Vec::new() });
    };
    let v1::Punctured { base, faults, .. } = *punctured;
    require_few_faults(faults.len())?;
    let read = |(position, fault)| loss(fault).map_err(|error| RequestError::Fault { position, error });
    let faults = each_once(faults.iter().enumerate().map(read).collect::<Result<_, _>>()?);
    let topology = topology_input(base.map(|base| *base)).map_err(|error| match error {
        RequestError::PuncturedHere => RequestError::TwicePunctured,
        RequestError::Missing { field: "topology", .. } => {
            RequestError::Missing { field: "topology.punctured.base", remedy: "name the healthy network" }
        }
        error => error,
    })?;
    Ok(Sourced { topology, faults })
}

/// Reads the source of a healthy network.
///
/// # Errors
/// The first field that is wrong.
pub fn topology_input(source: Option<v1::TopologySource>) -> Result<TopologyInput, RequestError> {
    use v1::topology_source::Source;
    let remedy = "set an expression, a document, an inline topology, the id of a stored one or a part of a cluster";
    let source = source.and_then(|source| source.source);
    match source.ok_or(RequestError::Missing { field: "topology", remedy })? {
        Source::Expression(text) => Ok(TopologyInput::Expression(text)),
        Source::Document(document) => {
            Ok(TopologyInput::Document { kind: file_kind(document.format)?, content: document.content })
        }
        Source::Inline(topology) => Ok(TopologyInput::Inline(draft(topology)?)),
        Source::Punctured(_) => Err(RequestError::PuncturedHere),
        // The text has taken its place before a request comes here.
        Source::Name(_) | Source::Cluster(_) => Err(RequestError::Missing { field: "topology", remedy }),
    }
}

/// What [`topology_input`] was given.
pub fn topology_on_the_wire(input: &TopologyInput) -> v1::TopologySource {
    use v1::topology_source::Source;
    let source = match input {
        TopologyInput::Expression(text) => Source::Expression(text.clone()),
        TopologyInput::Document { kind, content } => {
            let numbered = kind.and_then(|kind| DOCUMENT_FORMATS.iter().find(|(_, known)| *known == kind));
            let format = numbered.map_or(v1::DocumentFormat::Unspecified, |(format, _)| *format).into();
            Source::Document(v1::TopologyDocument { format, content: content.clone() })
        }
        TopologyInput::Inline(topology) => Source::Inline(draft_on_the_wire(topology)),
    };
    v1::TopologySource { source: Some(source) }
}

/// Kinds of files that a request can insist on.
const DOCUMENT_FORMATS: [(v1::DocumentFormat, FileKind); 3] = [
    (v1::DocumentFormat::Yaml, FileKind::Own(DocumentFormat::Yaml)),
    (v1::DocumentFormat::Json, FileKind::Own(DocumentFormat::Json)),
    (v1::DocumentFormat::NcclXml, FileKind::NcclXml),
];

fn file_kind(number: i32) -> Result<Option<FileKind>, RequestError> {
    let unknown = |_| RequestError::UnknownValue {
        field: "topology.document.format".to_owned(),
        number,
        known: "DOCUMENT_FORMAT_UNSPECIFIED, _YAML, _JSON or _NCCL_XML",
    };
    let format = v1::DocumentFormat::try_from(number).map_err(unknown)?;
    Ok(DOCUMENT_FORMATS.iter().find(|(known, _)| *known == format).map(|&(_, kind)| kind))
}

fn collective_kind(number: i32) -> Result<CollectiveKind, RequestError> {
    let field = "collective.kind";
    if number == i32::from(v1::Collective::Unspecified) {
        return Err(RequestError::Missing { field, remedy: "set the kind of collective" });
    }
    let unknown = || RequestError::UnknownValue { field: field.to_owned(), number, known: COLLECTIVES };
    collective_of_wire(number).ok_or_else(unknown)
}

fn outputs(specs: &[v1::OutputSpec]) -> Result<Vec<Target>, RequestError> {
    if specs.is_empty() {
        return Ok(vec![Format::Json.usual()]);
    }
    if specs.len() > OUTPUTS_MAX {
        return Err(RequestError::TooManyOutputs { found: specs.len(), limit: OUTPUTS_MAX });
    }
    let mut outputs = Vec::with_capacity(specs.len());
    for (position, spec) in specs.iter().enumerate() {
        let output = target(position, spec)?;
        if let Some(first) = outputs.iter().position(|&earlier| earlier == output) {
            return Err(RequestError::DuplicateOutput { first, second: position });
        }
        outputs.push(output);
    }
    Ok(outputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_with_fields_of_a_spec_or_of_a_request() {
        for path in ["topology", "topology.expression", "outputs[1].format", "joint.collectives[0].ranks[2]"] {
            assert!(is_of_spec(path), "{path}");
        }
        for path in ["", "priority", "spec.topology", "request_id", "x-canopy-tenant", "topologyx"] {
            assert!(!is_of_spec(path), "{path}");
        }
    }
}
