//! Requests to a server as the commands' arguments state them, and the server's objections in the user's words.

use canopy_client::ClientError;
use canopy_proto::v1;
use canopy_schedule::CollectiveKind;
use canopy_wire::{collective_of_wire, collective_on_the_wire, topology_on_the_wire};

use crate::exit::Failure;
use crate::input::{self, Part, Source};
use crate::{around, calibration};

/// What `--fault` leaves of the topology argument T, on the wire: a file's text, or an expression that the server reads.
pub(crate) fn topology(text: &str) -> Result<v1::TopologySource, Failure> {
    Ok(around::on_the_wire(on_the_wire(text, &input::source(text)?)))
}

/// T where it has been looked at already.
pub(crate) fn on_the_wire(text: &str, source: &Source) -> v1::TopologySource {
    match source {
        Source::Stored => v1::TopologySource { source: Some(v1::topology_source::Source::Name(text.to_owned())) },
        Source::Cluster(part) => v1::TopologySource { source: Some(v1::topology_source::Source::Cluster(nodes(part))) },
        Source::Here(input) => topology_on_the_wire(input),
    }
}

/// A part of a cluster on the wire.
pub(crate) fn nodes(part: &Part) -> v1::ClusterNodes {
    v1::ClusterNodes { cluster: part.cluster.clone(), nodes: part.nodes.clone() }
}

/// A collective on the wire.
pub(crate) fn collective_spec(kind: CollectiveKind, root: Option<u32>) -> v1::CollectiveSpec {
    v1::CollectiveSpec { kind: collective_on_the_wire(kind).into(), root }
}

/// A plan in canopy's own format.
pub(crate) fn json_output() -> v1::OutputSpec {
    v1::OutputSpec { format: v1::OutputFormat::Json.into(), ..v1::OutputSpec::default() }
}

/// A request for a plan, or its bound where there are no `outputs`: all that is not said is as the server would have it.
pub(crate) fn plan(
    topology: v1::TopologySource,
    collective: v1::CollectiveSpec,
    outputs: Vec<v1::OutputSpec>,
) -> v1::PlanSpec {
    let (topology, collective) = (Some(topology), Some(collective));
    let alpha_ns = calibration::message_ns();
    v1::PlanSpec { topology, collective, outputs, alpha_ns, ..v1::PlanSpec::default() }
}

/// What a server's answer has no part of that it must have.
pub(crate) fn missing(what: &str) -> Failure {
    Failure::fault(format!("the server's answer is missing {what}"))
}

/// The name of a kind of collective that came over the wire.
pub(crate) fn collective_name(kind: v1::Collective) -> Option<&'static str> {
    collective_of_wire(kind.into()).map(CollectiveKind::name)
}

/// The same error with fields of the request named as the user gave them; `topology` is T.
pub(crate) fn in_users_words(error: ClientError, topology: &str) -> ClientError {
    let names = [
        ("topology.expression", topology),
        ("topology.document", topology),
        ("topology.cluster.nodes", topology),
        ("topology.punctured.faults", "--fault"),
        ("topology.punctured.base", topology),
        ("cluster", topology),
        ("collective.kind", "--collective"),
        ("collective.root", "--root"),
        ("size_bytes_max", "--size"),
        ("shares", "--shares or --blocks"),
        ("ranks", "--ranks"),
        ("placement", "--placement"),
        ("algorithm", "--algorithm"),
        ("trees_per_root", "--trees"),
        ("chunks", "--chunks"),
        ("max_chunks", "--max-chunks"),
        ("max_depth", "--max-depth"),
        ("tolerance", "--tolerance"),
        ("seed", "--seed"),
        ("form", "--form"),
        ("root_policy", "--root-policy"),
        ("fault_policy", "--faults"),
        ("outputs[0].profile", "--profile"),
        ("outputs[0].instances", "--instances"),
        ("outputs[0].max_layers", "--max-layers"),
        ("outputs[0]", "--format"),
        ("order_by", "--sort"),
        ("filter", "--filter"),
    ];
    renamed(error, |place| {
        let (rest, name) = names.iter().find_map(|(field, name)| Some((place.strip_prefix(field)?, name)))?;
        Some(rest.strip_prefix('.').map_or_else(|| (*name).to_owned(), |inner| format!("{inner} of {name}")))
    })
}

/// The path of a field of a plan within whatever message of a request has it.
fn of_plan(place: &str) -> &str {
    let in_list = || place.strip_prefix("specs[").and_then(|rest| rest.split_once("]."));
    place.strip_prefix("spec.").or_else(|| in_list().map(|(_, field)| field)).unwrap_or(place)
}

/// The same error with other names for the fields that it objects to, where there are any.
pub(crate) fn renamed(mut error: ClientError, name: impl Fn(&str) -> Option<String>) -> ClientError {
    if let ClientError::Refused(refusal) = &mut error {
        for (place, _) in &mut refusal.violations {
            let field = of_plan(place);
            *place = name(field).unwrap_or_else(|| field.to_owned());
        }
    }
    error
}
