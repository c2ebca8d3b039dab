//! Stored requests: a message of its own, with everything that a plan depends on.

use bytes::Bytes;
use std::num::{NonZeroU32, NonZeroU64};

use canopy_planner::{Group, JointRequest, JointTask, Making, Request};
use canopy_proto::v1;
use canopy_synth::{SumOptions, TreeLimits};
use canopy_topology::Transit;
use prost::Message as _;

use crate::formats::{target, target_on_the_wire};
use crate::fraction::StoredRatio;
use crate::losses::{loss_read, loss_written};
use crate::plan_request::{topology_input, topology_on_the_wire};
use crate::priority::Priority;
use crate::request::{form, form_on_the_wire, roots, roots_on_the_wire, slots, slots_on_the_wire};

/// A request and the state of its job.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The job's number; 0 for a request alone.
    pub number: u64,
    /// What to plan.
    pub request: Request,
    /// Its priority.
    pub priority: Priority,
    /// When it was requested, in milliseconds since 1970 UTC.
    pub arrived_unix_ms: u64,
    /// Whose call began the job; `None` for what the server began itself, and for entries of versions before 0.2.0.
    pub caller: Option<EntryCaller>,
}

/// Whose call began a job. Fields are only ever added.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct EntryCaller {
    /// Its name.
    #[prost(string, tag = "1")]
    pub identity: String,
    /// The tenant that it acted for; empty for none.
    #[prost(string, tag = "2")]
    pub tenant: String,
}

/// The layout. Fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
struct Layout {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(uint64, tag = "2")]
    arrived_unix_ms: u64,
    #[prost(enumeration = "v1::Priority", tag = "3")]
    priority: i32,
    #[prost(message, optional, tag = "4")]
    topology: Option<v1::TopologySource>,
    #[prost(string, tag = "5")]
    collective: String,
    #[prost(uint32, optional, tag = "6")]
    root: Option<u32>,
    #[prost(uint64, tag = "7")]
    size_bytes_max: u64,
    #[prost(bool, tag = "8")]
    in_place: bool,
    #[prost(string, tag = "9")]
    algorithm: String,
    #[prost(message, repeated, tag = "10")]
    outputs: Vec<v1::OutputSpec>,
    /// 0: none is stated, here and below.
    #[prost(uint64, tag = "11")]
    trees_per_root: u64,
    #[prost(uint64, tag = "12")]
    max_chunks: u64,
    #[prost(uint32, tag = "13")]
    max_depth: u32,
    #[prost(uint64, repeated, tag = "14")]
    shares: Vec<u64>,
    #[prost(uint32, repeated, tag = "15")]
    ranks: Vec<u32>,
    #[prost(enumeration = "v1::GroupTransit", tag = "16")]
    transit: i32,
    #[prost(message, optional, tag = "17")]
    tolerance: Option<StoredRatio>,
    #[prost(enumeration = "v1::AllreduceForm", tag = "18")]
    form: i32,
    #[prost(enumeration = "v1::RootPolicy", tag = "19")]
    root_policy: i32,
    #[prost(message, optional, tag = "20")]
    placement: Option<v1::Placement>,
    /// Empty: nobody's in particular.
    #[prost(string, tag = "21")]
    tenant: String,
    /// 0: none is stated.
    #[prost(uint64, tag = "22")]
    size_bytes_min: u64,
    /// 0: none is stated.
    #[prost(uint64, tag = "23")]
    chunks: u64,
    #[prost(message, repeated, tag = "24")]
    faults: Vec<Bytes>,
    /// 0: none is stated.
    #[prost(uint64, tag = "27")]
    seed: u64,
    /// None: it is planned alone.
    #[prost(message, repeated, tag = "25")]
    joint_tasks: Vec<Task>,
    #[prost(uint64, tag = "26")]
    joint_position: u64,
    #[prost(bool, tag = "28")]
    states_default_size: bool,
    /// None: the usual one.
    #[prost(uint64, optional, tag = "29")]
    alpha_ns: Option<u64>,
    #[prost(message, optional, tag = "30")]
    caller: Option<EntryCaller>,
}

/// One of several joint collectives.
#[derive(Clone, PartialEq, prost::Message)]
struct Task {
    #[prost(uint32, repeated, tag = "1")]
    ranks: Vec<u32>,
    #[prost(string, tag = "2")]
    collective: String,
    #[prost(uint32, optional, tag = "3")]
    root: Option<u32>,
    #[prost(uint64, tag = "4")]
    size_bytes: u64,
    #[prost(uint64, tag = "5")]
    chunks: u64,
}

/// Encodes a request and the state of its job.
pub fn encode_entry(
    number: u64,
    request: &Request,
    priority: Priority,
    arrived_unix_ms: u64,
    caller: Option<EntryCaller>,
) -> Vec<u8> {
    let layout = Layout {
        caller,
        number,
        arrived_unix_ms,
        priority: priority.number(),
        topology: Some(topology_on_the_wire(&request.topology)),
        faults: request.faults.iter().map(loss_written).collect(),
        collective: request.kind.name().to_owned(),
        root: request.root,
        size_bytes_min: request.size_bytes_min,
        size_bytes_max: request.size_bytes_max,
        states_default_size: request.states_default_size,
        alpha_ns: Some(request.alpha_ns).filter(|&alpha_ns| alpha_ns != Request::ALPHA_NS_DEFAULT),
        in_place: request.in_place,
        algorithm: request.algorithm.name().to_owned(),
        outputs: request.outputs.iter().map(|&output| target_on_the_wire(output)).collect(),
        trees_per_root: request.limits.trees_per_root.map_or(0, NonZeroU64::get),
        chunks: request.limits.chunks.map_or(0, NonZeroU64::get),
        max_chunks: request.limits.max_chunks.map_or(0, NonZeroU64::get),
        max_depth: request.limits.max_depth.map_or(0, NonZeroU32::get),
        shares: request.shares.clone(),
        ranks: request.group.as_ref().map(|group| group.ranks.clone()).unwrap_or_default(),
        transit: match request.group.as_ref().map(|group| group.transit) {
            None => v1::GroupTransit::Unspecified.into(),
            Some(Transit::Forward) => v1::GroupTransit::Forward.into(),
            Some(Transit::Unused) => v1::GroupTransit::Unused.into(),
        },
        tolerance: request.limits.tolerance.map(StoredRatio::of),
        form: request.sums.form.map_or(v1::AllreduceForm::Unspecified, form_on_the_wire).into(),
        root_policy: roots_on_the_wire(request.sums.roots).into(),
        placement: request.placement.as_deref().map(slots_on_the_wire),
        tenant: request.tenant.as_ref().map(|tenant| tenant.as_str().to_owned()).unwrap_or_default(),
        seed: request.seed,
        joint_tasks: request.joint.iter().flat_map(|joint| &joint.tasks).map(task).collect(),
        joint_position: request.joint.as_ref().map_or(0, |joint| joint.position as u64),
    };
    layout.encode_to_vec()
}

/// Reads what [`encode_entry`] wrote; `None` if it is damaged or this build does not know it.
pub fn decode_entry(bytes: &[u8]) -> Option<Entry> {
    let entry = Layout::decode(bytes).ok()?;
    // No request holds an id: the text has taken its place before. Faults are apart.
    let topology = topology_input(entry.topology.clone()).ok()?;
    let priority = Priority::of_number(entry.priority)?;
    let transit = match v1::GroupTransit::try_from(entry.transit).ok()? {
        v1::GroupTransit::Unspecified => None,
        v1::GroupTransit::Forward => Some(Transit::Forward),
        v1::GroupTransit::Unused => Some(Transit::Unused),
    };
    let request = Request {
        topology,
        faults: entry.faults.into_iter().map(loss_read).collect::<Option<_>>()?,
        kind: entry.collective.parse().ok()?,
        root: entry.root,
        shares: entry.shares,
        group: transit.map(|transit| Group { ranks: entry.ranks, transit }),
        placement: entry.placement.as_ref().map(slots).transpose().ok()?,
        size_bytes_min: entry.size_bytes_min,
        size_bytes_max: entry.size_bytes_max,
        states_default_size: entry.states_default_size,
        alpha_ns: entry.alpha_ns.unwrap_or(Request::ALPHA_NS_DEFAULT),
        in_place: entry.in_place,
        algorithm: canopy_baselines::algorithm(&entry.algorithm).ok()?,
        limits: TreeLimits {
            trees_per_root: NonZeroU64::new(entry.trees_per_root),
            chunks: NonZeroU64::new(entry.chunks),
            max_chunks: NonZeroU64::new(entry.max_chunks),
            max_depth: NonZeroU32::new(entry.max_depth),
            tolerance: entry.tolerance.map(|stated| stated.tolerance().ok_or(())).transpose().ok()?,
        },
        sums: SumOptions { form: form(entry.form)?, roots: roots(entry.root_policy)?, ..SumOptions::AUTO },
        seed: entry.seed,
        making: Making::Searched,
        joint: match entry.joint_tasks.as_slice() {
            [] => None,
            tasks => Some(joint(tasks, entry.joint_position)?),
        },
        outputs: entry
            .outputs
            .iter()
            .map(|spec| target(0, spec).ok())
            .collect::<Option<Vec<_>>>()
            .filter(|outputs| !outputs.is_empty())?,
        tenant: (!entry.tenant.is_empty()).then(|| entry.tenant.parse().ok().ok_or(())).transpose().ok()?,
    };
    let Layout { number, arrived_unix_ms, caller, .. } = entry;
    Some(Entry { number, request, priority, arrived_unix_ms, caller })
}

fn task(task: &JointTask) -> Task {
    Task {
        ranks: task.ranks.clone(),
        collective: task.kind.name().to_owned(),
        root: task.root,
        size_bytes: task.size_bytes.get(),
        chunks: task.chunks.get(),
    }
}

fn joint(tasks: &[Task], position: u64) -> Option<JointRequest> {
    let task = |task: &Task| {
        Some(JointTask {
            ranks: task.ranks.clone(),
            kind: task.collective.parse().ok()?,
            root: task.root,
            size_bytes: NonZeroU64::new(task.size_bytes)?,
            chunks: NonZeroU64::new(task.chunks)?,
        })
    };
    let tasks: Vec<JointTask> = tasks.iter().map(task).collect::<Option<_>>()?;
    let position = usize::try_from(position).ok().filter(|&position| position < tasks.len())?;
    Some(JointRequest { tasks, position })
}
