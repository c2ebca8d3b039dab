//! A rank's execution trace in Chakra's format as a workload.
//!
//! In data and expert parallel training all ranks do alike, so the trace of one stands for all. A trace counts an
//! allgather by the share that a rank brings.

use std::collections::BTreeSet;
use std::path::Path;

use canopy_proto::chakra::attribute::Value;
use canopy_proto::chakra::{GlobalMetadata, Node, NodeType};
use canopy_schedule::CollectiveKind;
use canopy_simulate::timeline::{
    Call, OPERATIONS_MAX, Order, Overlap, Program, TraceError, TraceNode, Work, operations,
};
use prost::Message as _;

use super::{Gathers, Stated, Variant};
use crate::exit::{Failure, words};
use crate::input;

/// Longest file.
const BYTES_MAX: usize = 256 << 20;
/// Picoseconds of a microsecond.
const PS_PER_MICRO: u64 = 1_000_000;

/// Kinds of collectives by their numbers there; a barrier has no bytes.
const KINDS: [Option<CollectiveKind>; 10] = [
    Some(CollectiveKind::Allreduce),
    Some(CollectiveKind::Reduce),
    Some(CollectiveKind::Allgather),
    Some(CollectiveKind::Gather),
    Some(CollectiveKind::Scatter),
    Some(CollectiveKind::Broadcast),
    Some(CollectiveKind::AllToAll),
    Some(CollectiveKind::ReduceScatter),
    Some(CollectiveKind::ReduceScatter),
    None,
];

/// Whether a file is meant as a trace, by its name.
pub(super) fn is_meant(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "et")
}

/// Reads a file.
///
/// # Errors
/// What is no trace, nodes that one rank alone cannot run, cycles, and process groups beside that of all ranks.
pub(super) fn read(path: &Path) -> Result<Stated, Failure> {
    let bytes = input::bytes(path, BYTES_MAX)?;
    let told = |Wrong { problem, help }: Wrong| {
        let failure = Failure::input(format!("{}: {problem}", path.display()));
        if help.is_empty() { failure } else { failure.help(help) }
    };
    stated(&bytes).map_err(told).map(|stated| stated.named(path))
}

/// What is wrong, and what to do, if that is known.
#[derive(Debug)]
struct Wrong {
    problem: String,
    help: &'static str,
}

fn wrong(problem: impl Into<String>, help: &'static str) -> Wrong {
    Wrong { problem: problem.into(), help }
}

fn stated(bytes: &[u8]) -> Result<Stated, Wrong> {
    let nodes = decoded(bytes)?;
    let groups: BTreeSet<&str> = nodes.iter().filter_map(|node| text(node, "pg_name")).collect();
    if groups.len() > 1 {
        let problem = format!("the trace has collectives of {} process groups", groups.len());
        return Err(wrong(problem, "only collectives of all ranks are simulated: give a trace with one group"));
    }
    let nodes = nodes.iter().map(of_node).collect::<Result<Vec<TraceNode>, _>>()?;
    let operations = operations(nodes).map_err(|error| wrong(words(&error), ""))?;
    let program = Program::new(operations, Order::Ready, Overlap::Allowed).map_err(|error| wrong(words(&error), ""))?;
    let variants = vec![Variant { bucket_bytes: None, program }];
    Ok(Stated { name: String::new(), variants, epoch: None, gathers: Gathers::Shares })
}

/// The nodes of a file.
fn decoded(mut bytes: &[u8]) -> Result<Vec<Node>, Wrong> {
    let help = "give a rank's file of a Chakra trace of version 1.0.2-chakra.0.0.4, or a workload in YAML";
    let no_trace = |error: prost::DecodeError| wrong(format!("this is no Chakra trace: {error}"), help);
    GlobalMetadata::decode_length_delimited(&mut bytes).map_err(no_trace)?;
    let mut nodes = Vec::new();
    while !bytes.is_empty() {
        if nodes.len() >= OPERATIONS_MAX {
            return Err(wrong(words(&TraceError::TooMany { limit: OPERATIONS_MAX }), ""));
        }
        nodes.push(Node::decode_length_delimited(&mut bytes).map_err(no_trace)?);
    }
    Ok(nodes)
}

fn of_node(node: &Node) -> Result<TraceNode, Wrong> {
    let after = node.data_deps.iter().chain(&node.ctrl_deps).copied().collect();
    Ok(TraceNode { id: node.id, name: node.name.clone(), work: work(node)?, after })
}

/// What a node does.
fn work(node: &Node) -> Result<Work, Wrong> {
    let id = node.id;
    let kind = NodeType::try_from(node.r#type)
        .map_err(|_| wrong(format!("node {id} has the unknown type {}", node.r#type), "use types 1 to 7"))?;
    match kind {
        NodeType::InvalidNode => Err(wrong(format!("node {id} has no type"), "use types 1 to 7")),
        NodeType::MetadataNode => Ok(Work::Join),
        NodeType::CompNode | NodeType::MemLoadNode | NodeType::MemStoreNode => {
            let time_ps = node.duration_micros.checked_mul(PS_PER_MICRO).filter(|&time| time < 1 << 63);
            let time_ps = time_ps
                .ok_or_else(|| wrong(format!("node {id} takes {} µs, which is too long", node.duration_micros), ""))?;
            Ok(if is_of_host(node) { Work::Host { time_ps } } else { Work::Compute { time_ps } })
        }
        NodeType::CommSendNode | NodeType::CommRecvNode => Err(wrong(
            format!("node {id} is a message between two ranks, and only collectives of all ranks are simulated"),
            "give the trace of a program with collectives; traces of `canopy tools export` are plans, for ASTRA-sim",
        )),
        NodeType::CommCollNode => collective(node),
    }
}

fn collective(node: &Node) -> Result<Work, Wrong> {
    let id = node.id;
    let known = "use `comm_type` 0 to 9: allreduce, reduce, allgather, gather, scatter, broadcast, all-to-all, \
                 reduce-scatter, block reduce-scatter, barrier";
    let number = number(node, "comm_type").ok_or_else(|| wrong(format!("node {id} has no `comm_type`"), known))?;
    let kind = usize::try_from(number).ok().and_then(|number| KINDS.get(number));
    let kind = *kind.ok_or_else(|| wrong(format!("node {id} has the unknown `comm_type` {number}"), known))?;
    let Some(kind) = kind else { return Ok(Work::Join) };
    let size = self::number(node, "comm_size").and_then(|size| u64::try_from(size).ok());
    let size_bytes = size.ok_or_else(|| {
        wrong(format!("node {id}: `comm_size` is missing or no number of bytes"), "state the bytes of each collective")
    })?;
    let root =
        kind.has_root().then(|| self::number(node, "root").and_then(|root| u32::try_from(root).ok()).unwrap_or(0));
    Ok(Work::Collective(Call { kind, root, size_bytes }))
}

fn value<'a>(node: &'a Node, name: &str) -> Option<&'a Value> {
    node.attr.iter().find(|attribute| attribute.name == name)?.value.as_ref()
}

fn number(node: &Node, name: &str) -> Option<i128> {
    match value(node, name)? {
        Value::Int32Val(number) => Some((*number).into()),
        Value::Int64Val(number) => Some((*number).into()),
        Value::Uint32Val(number) => Some((*number).into()),
        Value::Uint64Val(number) => Some((*number).into()),
        Value::BoolVal(_) | Value::StringVal(_) => None,
    }
}

fn text<'a>(node: &'a Node, name: &str) -> Option<&'a str> {
    match value(node, name)? {
        Value::StringVal(text) => Some(text),
        _ => None,
    }
}

fn is_of_host(node: &Node) -> bool {
    matches!(value(node, "is_cpu_op"), Some(Value::BoolVal(true)))
}

#[cfg(test)]
mod tests;
