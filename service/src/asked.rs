//! What a stored plan was asked for by, kept in its summary: plans for faults that have not happened can be made of it.
//!
//! Only short ones are kept. A long topology is kept by its key alone, for whoever has put it in the topology store.

use bytes::Bytes;
use canopy_import::FileKind;
use canopy_planner::{Making, PlanKey, Prepared, Request as Order, TopologyInput};
use canopy_store::{decode_record, encode_record};
use canopy_topology::DocumentFormat;
use canopy_wire::{Priority, decode_entry, encode_entry};
use prost::Message as _;

/// Most bytes of a request that are kept with its plan.
const BYTES_MAX: usize = 4096;

/// Most bytes of a request that are kept in the record of its plan: some tenth of the largest topologies, which are rarely sent twice.
const REQUEST_BYTES_MAX: usize = 4 << 20;

/// The layout. Fields are only ever added.
#[derive(Clone, PartialEq, prost::Message)]
struct Asked {
    /// The order; its topology is an empty expression where the key stands for it.
    #[prost(bytes = "vec", tag = "1")]
    order: Vec<u8>,
    /// Key of the topology in the topology store; empty: the order holds it.
    #[prost(bytes = "vec", tag = "2")]
    topology: Vec<u8>,
}

/// Everything that is kept of a request with its plan.
pub fn kept(order: &Order, prepared: &Prepared) -> canopy_store::Request {
    canopy_store::Request { whole: request(order), asked: encode(order, prepared) }
}

/// What is kept of an order whose plan is stored; empty for one that is too long, or that nothing is to be planned ahead of.
pub fn encode(order: &Order, prepared: &Prepared) -> Vec<u8> {
    let is_alone = order.joint.is_none();
    if !order.faults.is_empty() || order.making != Making::Searched || order.is_quick() || !is_alone {
        return Vec::new();
    }
    let is_short = |asked: &Vec<u8>| asked.len() <= BYTES_MAX;
    let whole = || Asked { order: encode_order(order), topology: Vec::new() }.encode_to_vec();
    if order.weight_bytes() <= BYTES_MAX
        && let Some(whole) = Some(whole()).filter(is_short)
    {
        return whole;
    }
    // Of a group, the topology that was planned on is another one than that of the order.
    if order.group.is_some() {
        return Vec::new();
    }
    let order = Order { topology: TopologyInput::Expression(String::new()), ..order.clone() };
    let topology = prepared.topology_key.identity.as_bytes().to_vec();
    Some(Asked { order: encode_order(&order), topology }.encode_to_vec()).filter(is_short).unwrap_or_default()
}

/// The request of a plan as it is kept in the plan's record, so that its key can be made again wherever the record goes; empty for one
/// that is too long, and for a plan that stands in for another one, which only its maker can tell the key of.
pub fn request(order: &Order) -> Vec<u8> {
    let is_kept = order.making == Making::Searched && order.weight_bytes() <= REQUEST_BYTES_MAX;
    if is_kept { encode_order(order) } else { Vec::new() }
}

/// The key of the topology that an order which [`encode`] was given is on, where it is kept apart.
pub fn topology_of(asked: &[u8]) -> Option<PlanKey> {
    Asked::decode(asked).ok()?.topology.try_into().ok().map(PlanKey::from_bytes)
}

/// The order that [`encode`] was given; `document` is the text of the topology under a key, in canopy's own JSON.
/// `None`: nothing is kept, this build does not know it, or its topology is gone.
pub fn decode(asked: &[u8], document: impl FnOnce(&PlanKey) -> Option<Bytes>) -> Option<Order> {
    let Asked { order, topology } = Asked::decode(asked).ok()?;
    let order = decode_order(&order)?;
    if topology.is_empty() {
        return Some(order);
    }
    let content = document(&PlanKey::from_bytes(topology.try_into().ok()?))?;
    Some(Order {
        topology: TopologyInput::Document { kind: Some(FileKind::Own(DocumentFormat::Json)), content },
        ..order
    })
}

/// A request by itself, in the envelope of a record.
pub fn encode_order(order: &Order) -> Vec<u8> {
    encode_record(&encode_entry(0, order, Priority::Prefetch, 0, None))
}

/// Reads what [`encode_order`] wrote. `None`: it is damaged, or this build does not know it.
pub fn decode_order(bytes: &[u8]) -> Option<Order> {
    decode_entry(decode_record(bytes).ok()?).map(|entry| entry.request)
}

#[cfg(test)]
mod tests {
    use canopy_planner::{Group, Planner};
    use canopy_schedule::CollectiveKind;
    use canopy_synth::Never;
    use canopy_topology::{TopologyLimits, Transit, generate, to_json};

    use super::*;

    const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

    fn order(topology: TopologyInput, ranks: Vec<u32>) -> Order {
        let group = (!ranks.is_empty()).then_some(Group { ranks, transit: Transit::Forward });
        Order { topology, group, ..Order::on("", CollectiveKind::Allgather) }
    }

    fn expression(text: &str) -> TopologyInput {
        TopologyInput::Expression(text.to_owned())
    }

    fn written(order: &Order) -> Vec<u8> {
        encode(order, &Planner::new(LIMITS).prepare(order, &Never).unwrap())
    }

    #[test]
    fn short_requests_are_kept_whole_and_long_topologies_by_their_keys() {
        let none = |_: &PlanKey| None;
        let short = order(expression("ring:6"), vec![0, 1, 2]);
        assert_eq!(decode(&written(&short), none), Some(short));

        let topology = generate("torus:8x8", &LIMITS).unwrap();
        let content: Bytes = to_json(&topology).into();
        assert!(content.len() > BYTES_MAX);
        let source = TopologyInput::Document { kind: Some(FileKind::Own(DocumentFormat::Json)), content };
        let long = order(source.clone(), Vec::new());
        let asked = written(&long);
        assert!(!asked.is_empty() && asked.len() < 1000, "{} bytes", asked.len());
        assert_eq!(decode(&asked, none), None, "nobody has put it there");
        let text: Bytes = to_json(&topology).into();
        assert_eq!(decode(&asked, |_| Some(text)), Some(long));
        assert!(written(&order(source, vec![0, 1, 2])).is_empty(), "what was planned on is a part of it");
    }

    #[test]
    fn nothing_is_kept_of_what_is_not_planned_ahead_of() {
        let sound = order(expression("ring:6"), Vec::new());
        let fault = canopy_faults::Loss { target: "gpu:3".parse().unwrap(), remaining: canopy_faults::Remaining::GONE };
        for order in [
            Order { faults: vec![fault], ..sound.clone() },
            Order { algorithm: canopy_synth::Algorithm::Direct, ..sound.clone() },
        ] {
            assert!(written(&order).is_empty(), "{order:?}");
        }
        let asked = written(&sound);
        for end in 0..asked.len() {
            assert!(decode(&asked[..end], |_| None).is_none(), "cut at {end}");
        }
    }
}
