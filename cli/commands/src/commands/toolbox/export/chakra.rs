//! A rank's trace as the bytes of a Chakra file: messages of protobuf, each behind its length.

use canopy_proto::chakra::attribute::Value;
use canopy_proto::chakra::{Attribute, GlobalMetadata, Node, NodeType};
use canopy_simulate::export::{TraceNode, TraceWork};
use canopy_topology::Rank;
use prost::Message as _;

/// Version of the schema that the fields are those of.
const SCHEMA: &str = "1.0.2-chakra.0.0.4";

/// The file of a trace.
pub(super) fn encoded(trace: &[TraceNode]) -> Vec<u8> {
    let schema = attribute("schema", Value::StringVal(SCHEMA.to_owned()));
    let mut bytes = GlobalMetadata { version: String::new(), attr: vec![schema] }.encode_length_delimited_to_vec();
    for node in trace {
        bytes.extend(message(node).encode_length_delimited_to_vec());
    }
    bytes
}

fn message(node: &TraceNode) -> Node {
    let (kind, attr) = match node.work {
        TraceWork::Send { to, bytes, tag } => (NodeType::CommSendNode, transfer("comm_dst", to, bytes, tag)),
        TraceWork::Receive { from, bytes, tag } => (NodeType::CommRecvNode, transfer("comm_src", from, bytes, tag)),
        TraceWork::Compute => (NodeType::CompNode, vec![attribute("is_cpu_op", Value::BoolVal(false))]),
    };
    Node {
        id: node.id,
        name: node.name.clone(),
        r#type: kind.into(),
        ctrl_deps: node.ctrl_deps.clone(),
        data_deps: node.data_deps.clone(),
        duration_micros: 0,
        attr,
    }
}

fn transfer(whom: &str, other: Rank, bytes: u64, tag: u32) -> Vec<Attribute> {
    // Ranks and messages are far fewer than 2³¹, and sizes were looked at.
    let number = |value: u32| Value::Int32Val(i32::try_from(value).unwrap_or(i32::MAX));
    vec![
        attribute("is_cpu_op", Value::BoolVal(false)),
        attribute("comm_size", Value::Int64Val(i64::try_from(bytes).unwrap_or(i64::MAX))),
        attribute(whom, number(other.number())),
        attribute("comm_tag", number(tag)),
    ]
}

fn attribute(name: &str, value: Value) -> Attribute {
    Attribute { name: name.to_owned(), value: Some(value) }
}
