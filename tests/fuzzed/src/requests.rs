//! Messages of `canopy.v1` as values of the planner.

use canopy_proto::v1;
use canopy_topology::TopologyLimits;
use canopy_wire::{
    Priority, cluster_model, decode_entry, draft, draft_on_the_wire, encode_entry, in_words, kept_placed, kept_request,
    loss, loss_read, loss_written, placed, plan_request,
};
use prost::Message as _;

use crate::topologies::check;
use crate::{LIMITS, refused, seen, text};

/// A request to plan. What the journal kept of it is the same request.
pub(crate) fn plan(input: &[u8]) {
    seen(kept_placed(input.to_vec().into()));
    seen(kept_request(input.to_vec().into(), |_| Err::<bytes::Bytes, ()>(())));
    let Ok(message) = v1::PlanSpec::decode(input) else { return };
    seen(placed(&message));
    let request = match plan_request(message) {
        Ok(request) => request,
        Err(error) => return refused(&error),
    };
    let kept = encode_entry(1, &request, Priority::Interactive, 2, None);
    let entry = decode_entry(&kept).unwrap_or_else(|| panic!("the journal does not read {request:?}"));
    assert_eq!(entry.request, request);
    assert_eq!((entry.number, entry.arrived_unix_ms), (1, 2));
}

/// A topology in a request.
pub(crate) fn topology(input: &[u8]) {
    let Ok(message) = v1::Topology::decode(input) else { return };
    let read = match draft(message) {
        Ok(read) => read,
        Err(error) => return refused(&error),
    };
    assert_eq!(draft(draft_on_the_wire(&read)).as_ref(), Ok(&read), "a draft is another one when it is sent again");
    match read.build(&LIMITS) {
        Ok(topology) => check(&topology),
        Err(error) => refused(&error),
    }
}

/// The description of a cluster.
pub(crate) fn cluster(input: &[u8]) {
    let Ok(message) = v1::ClusterDescription::decode(input) else { return };
    let Ok(model) = cluster_model(&message, &LIMITS, &|| false) else { return };
    seen(model.check());
    let Ok(nodes) = model.nodes() else { return };
    let few: Vec<String> = nodes.into_iter().take(3).collect();
    // A part of a network may have more links than it: what does not forward is replaced by links.
    let limits = TopologyLimits { bytes_max: usize::MAX, ..LIMITS };
    if let Ok(topology) = model.part(&few, &limits, &|| false) {
        check(&topology);
    }
}

/// A fault as a message, a record and a word of an expression.
pub(crate) fn fault(input: &[u8]) {
    if let Some(kept) = loss_read(input.to_vec().into()) {
        assert_eq!(loss_read(loss_written(&kept)).as_ref(), Some(&kept), "{kept}");
    }
    if let Ok(message) = v1::Fault::decode(input)
        && let Ok(stated) = loss(&message)
    {
        let written = stated.to_string();
        assert_eq!(written.parse().as_ref(), Ok(&stated), "{written}");
        seen(in_words(std::slice::from_ref(&stated)));
    }
    let Some(text) = text(input) else { return };
    if let Ok(read) = text.parse::<canopy_faults::Loss>() {
        assert_eq!(read.to_string().parse().as_ref(), Ok(&read), "{read}");
        assert_eq!(loss_read(loss_written(&read)).as_ref(), Some(&read), "{read}");
    }
}
