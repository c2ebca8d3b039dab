mod calls;
mod clients;

use canopy_baselines::UnknownAlgorithm;
use canopy_plan::{
    Certainty, EmulationError, InstancesAsked, LowerError, OptionError, OptionField, Profile, TargetError,
    TargetReason, oneccl, routes,
};
use canopy_planner::{PlanError, RequestKey};
use canopy_schedule::{CollectiveKind, RootError};
use canopy_synth::{Algorithm, BoundError, LayersError, SynthesisError};
use canopy_topology::{ExpressionError, Ratio, ReadError, TopologyError};
use canopy_wire::{InlineError, RequestError};
use tonic::Code;
use tonic_types::StatusExt as _;

use super::*;
use crate::failure::Shortfall;

fn ratio(text: &str) -> Ratio {
    text.parse().unwrap()
}

fn ids() -> (String, String) {
    ("a".to_owned(), "b".to_owned())
}

/// Code and reason of each failure, and what the detail beside them names.
#[track_caller]
fn check_status(failure: PlanFailure, code: Code, reason: &str, subject: &str) {
    let status = to_status(&failure);
    let details = status.get_error_details();
    let info = details.error_info().expect("every status says why");
    assert_eq!((status.code(), info.reason.as_str(), info.domain.as_str()), (code, reason, "canopy"));
    assert_eq!(status.message(), chain(&failure), "the words are the library's own");
    let field = details.bad_request().map(|detail| detail.field_violations[0].field.clone());
    let precondition = details.precondition_failure().map(|detail| detail.violations[0].subject.clone());
    let quota = details.quota_failure().map(|detail| detail.violations[0].subject.clone());
    let named: Vec<String> = [field, precondition, quota].into_iter().flatten().collect();
    let expected: Vec<&str> = Some(subject).filter(|subject| !subject.is_empty()).into_iter().collect();
    assert_eq!(named, expected);
    assert_eq!(details.bad_request().is_some(), code == Code::InvalidArgument);
    assert_eq!(details.precondition_failure().is_some(), code == Code::FailedPrecondition);
    assert_eq!(details.quota_failure().is_some(), code == Code::ResourceExhausted);
}

#[test]
fn bad_input_is_an_invalid_argument_with_its_field() {
    let check = |failure, reason, field| check_status(failure, Code::InvalidArgument, reason, field);
    let unknown = UnknownAlgorithm { name: "x".to_owned() };
    check(PlanFailure::Request(RequestError::Algorithm(unknown)), "ALGORITHM_UNKNOWN", "algorithm");
    check(PlanFailure::Request(RequestError::Size { found: 0, limit: 9 }), "SIZE_INVALID", "size_bytes_max");
    let refused = |output, error| PlanFailure::Request(RequestError::Output { output, error });
    let none = refused(1, OptionError::NoInstances);
    check(none, "INSTANCES_INVALID", "outputs[1].instances");
    let json = refused(0, OptionError::InstancesWithoutRuntime { asked: InstancesAsked::Number(2) });
    check(json, "INSTANCES_NOT_APPLICABLE", "outputs[0].instances");
    for (format, profile) in [("oneccl-xml", "oneccl"), ("routes-xml", "routes")] {
        let option = |field| refused(1, OptionError::OneProfile { format, profile, field, found: "2".to_owned() });
        check(option(OptionField::Instances), "INSTANCES_NOT_APPLICABLE", "outputs[1].instances");
        check(option(OptionField::Profile), "PROFILE_NOT_APPLICABLE", "outputs[1].profile");
    }
    let layers = refused(1, OptionError::NoLayersThere);
    check(layers, "FIELD_NOT_APPLICABLE", "outputs[1].max_layers");
    let expression = ExpressionError::DuplicateKey { key: "bw".to_owned(), position: 7 };
    check(PlanFailure::Planning(PlanError::Expression(expression)), "TOPOLOGY_MALFORMED", "topology.expression");
    let unknown_node = || TopologyError::UnknownNode { position: 3, end: "from", id: "x".to_owned() };
    check(
        PlanFailure::Planning(PlanError::Document(unknown_node().into())),
        "UNKNOWN_NODE",
        "topology.document.links[3].from",
    );
    check(PlanFailure::Planning(PlanError::Inline(unknown_node())), "UNKNOWN_NODE", "topology.inline.links[3].from");
    let no_bandwidth = InlineError::NoBandwidth { position: 5 };
    check(
        PlanFailure::Request(RequestError::Inline(no_bandwidth)),
        "CAPACITY_NOT_POSITIVE",
        "topology.inline.links[5].bandwidth",
    );
    let kind = InlineError::KindUnknown { position: 2, number: 9 };
    check(PlanFailure::Request(RequestError::Inline(kind)), "TOPOLOGY_MALFORMED", "topology.inline.nodes[2].kind");
    check(
        PlanFailure::Planning(PlanError::Document(ReadError::Version { found: 2 }.into())),
        "TOPOLOGY_MALFORMED",
        "topology.document.canopy",
    );
    let root = RootError::NoSuchRank { root: 9, rank_count: 8 };
    check(PlanFailure::Planning(PlanError::Root(root)), "ROOT_INVALID", "collective.root");
    let collective = CollectiveKind::AllToAll;
    let unsupported = Algorithm::Forest.unsupported(collective);
    check(PlanFailure::Planning(PlanError::Synthesis(unsupported)), "ALGORITHM_NOT_APPLICABLE", "algorithm");
    check(PlanFailure::Request(RequestError::EmptySizes { min: 2, max: 1 }), "SIZE_INVALID", "size_bytes_min");
    let bytes = LowerError::BytesMax { bytes_max: 0 };
    check(PlanFailure::Planning(PlanError::File { output: 0, error: bytes.into() }), "SIZE_INVALID", "size_bytes_max");
}

#[test]
fn what_is_too_large_is_exhausted_for_good() {
    let check = |failure: PlanFailure, field| {
        assert!(to_status(&failure).get_error_details().retry_info().is_none(), "waiting does not help");
        check_status(failure, Code::ResourceExhausted, "TOPOLOGY_TOO_LARGE", field);
    };
    let too_large = || TopologyError::TooLarge { what: "nodes", found: "20000".to_owned(), limit: 10_000 };
    check(PlanFailure::Planning(PlanError::Expression(ExpressionError::Topology(too_large()))), "topology.expression");
    check(
        PlanFailure::Planning(PlanError::Document(ReadError::TooManyBytes { found: 9, limit: 8 }.into())),
        "topology.document",
    );
    let field =
        too_large().field().map_or_else(|| "topology.inline".to_owned(), |field| format!("topology.inline.{field}"));
    check(PlanFailure::Planning(PlanError::Inline(too_large())), &field);
}

#[test]
fn what_is_understood_but_impossible_is_a_failed_precondition_with_its_subject() {
    let check = |failure, reason, subject| check_status(failure, Code::FailedPrecondition, reason, subject);
    let (from, to) = ids();
    let bound = BoundError::Disconnected { from: from.clone(), from_rank: 0, to: to.clone(), to_rank: 3 };
    check(PlanFailure::Planning(PlanError::Bound(bound)), "TOPOLOGY_DISCONNECTED", "rank 0 to rank 3");
    let synthesis = SynthesisError::Disconnected { from, from_rank: 1, to, to_rank: 2 };
    check(PlanFailure::Planning(PlanError::Synthesis(synthesis)), "TOPOLOGY_DISCONNECTED", "rank 1 to rank 2");
    let eulerian = SynthesisError::NotEulerian { node: "s".to_owned(), entering: 5, leaving: 6 };
    check(PlanFailure::Planning(PlanError::Synthesis(eulerian)), "NOT_EULERIAN", "node s");
    let trees = SynthesisError::TooManyTrees { trees_per_rank: 1 << 70, rank_count: 2 };
    let flat = SynthesisError::TooShallow { max_depth: 3, least: 4, from_rank: 0, to_rank: 4 };
    check(PlanFailure::Planning(PlanError::Synthesis(flat)), "DEPTH_INFEASIBLE", "max_depth");
    check(PlanFailure::Planning(PlanError::Synthesis(SynthesisError::NoTrees)), "FORM_INFEASIBLE", "form");
    check(PlanFailure::Planning(PlanError::Synthesis(trees)), "TOO_MANY_TREES", "topology");
    let too_many = SynthesisError::TooManyHops { needed: 9, limit: 8 };
    check(PlanFailure::Planning(PlanError::Synthesis(too_many)), "TOO_MANY_TREES", "topology");
    let crowded = SynthesisError::TooManyNeighbours { node: "hub".to_owned(), neighbours: 9, limit: 8 };
    check(PlanFailure::Planning(PlanError::Synthesis(crowded)), "TOO_MANY_NEIGHBOURS", "node hub");
    let forwarder = LowerError::Forwarder { profile: Profile::Msccl, id: "g3".to_owned() };
    check(
        PlanFailure::Planning(PlanError::File { output: 0, error: forwarder.into() }),
        "FORMAT_UNSUPPORTED_BY_RUNTIME",
        "outputs[0]",
    );
    check(PlanFailure::Planning(PlanError::Bound(BoundError::TooLarge)), "CAPACITIES_TOO_LARGE", "topology");
    let shares = PlanFailure::Planning(PlanError::File { output: 0, error: oneccl::LowerError::Shares.into() });
    check(shares, "FORMAT_UNSUPPORTED_BY_RUNTIME", "outputs[0]");
    let shape = PlanFailure::Planning(PlanError::File {
        output: 0,
        error: TargetError::new(TargetReason::Unsupported, LayersError::NotAFlow { shape: "forest" }),
    });
    check(shape, "FORMAT_UNSUPPORTED_BY_RUNTIME", "outputs[0]");
    let layers = PlanFailure::Planning(PlanError::File {
        output: 2,
        error: TargetError::new(
            TargetReason::Layers { needed: 3, limit: 2 },
            LayersError::TooMany { needed: 3, limit: 2 },
        ),
    });
    check(layers, "LAYERS_INFEASIBLE", "outputs[2].max_layers");
    let in_place = PlanFailure::Planning(PlanError::File { output: 1, error: routes::LowerError::InPlace.into() });
    check(in_place, "FORMAT_UNSUPPORTED_BY_RUNTIME", "outputs[1]");
    let unsupported = LowerError::Unsupported { profile: Profile::Msccl, collective: CollectiveKind::Gather };
    check(
        PlanFailure::Planning(PlanError::File { output: 1, error: unsupported.into() }),
        "FORMAT_UNSUPPORTED_BY_RUNTIME",
        "outputs[1]",
    );
    let emulation = EmulationError::TooLarge { bytes: 9, limit: 8 };
    check(
        PlanFailure::Planning(PlanError::File { output: 0, error: emulation.into() }),
        "TOO_LARGE_TO_CHECK",
        "outputs[0]",
    );
    let below = PlanFailure::BelowMinimum(Box::new(Shortfall { achieved: ratio("1/2"), minimum: ratio("9/10") }));
    check(below, "QUALITY_BELOW_MINIMUM", "minimum_optimality");
}

#[test]
fn numbers_of_a_refusal_are_in_its_metadata() {
    let metadata =
        |failure: &PlanFailure| to_status(failure).get_error_details().error_info().unwrap().metadata.clone();
    let eulerian = SynthesisError::NotEulerian { node: "s".to_owned(), entering: 5, leaving: 6 };
    let found = metadata(&PlanFailure::Planning(PlanError::Synthesis(eulerian)));
    assert_eq!((&*found["node"], &*found["entering"], &*found["leaving"]), ("s", "5", "6"));
    let error = LowerError::OverLimit {
        profile: Profile::Msccl,
        what: "steps per block",
        limit: 256,
        need: 300,
        rank: Some(4),
        certainty: Certainty::Proven,
        remedy: "use fewer chunks",
    };
    let failure = PlanFailure::Planning(PlanError::File { output: 0, error: error.into() });
    let found = metadata(&failure);
    assert_eq!((&*found["limit"], &*found["need"], &*found["rank"]), ("256", "300", "4"));
    assert_eq!(found["proven"], "true");
    check_status(failure, Code::FailedPrecondition, "EXCEEDS_RUNTIME_LIMITS", "outputs[0]");
}

#[test]
fn a_lack_of_room_or_time_says_when_to_try_again() {
    for (failure, code, reason, subject) in [
        (PlanFailure::QueueFull { waiting: 5, limit: 5 }, Code::ResourceExhausted, "QUEUE_FULL", "queue"),
        (PlanFailure::QueueBudget { held: 1, found: 2, limit: 2 }, Code::ResourceExhausted, "MEMORY_BUDGET", "queue"),
        (PlanFailure::Draining, Code::Unavailable, "DRAINING", ""),
    ] {
        assert!(to_status(&failure).get_error_details().retry_info().unwrap().retry_delay.is_some());
        check_status(failure, code, reason, subject);
    }
    let too_large = PlanFailure::JobMemory { needed: 9, limit: 8 };
    assert!(to_status(&too_large).get_error_details().retry_info().is_none(), "waiting does not help");
    let details = to_status(&too_large).get_error_details();
    let found = &details.error_info().unwrap().metadata;
    assert_eq!((&*found["needed"], &*found["limit"]), ("9", "8"));
    check_status(too_large, Code::ResourceExhausted, "MEMORY_BUDGET", "topology");
    let deadline = PlanFailure::Deadline { deadline_ms: 10, stage: "trees".into(), operation: None };
    check_status(deadline, Code::DeadlineExceeded, "SOLVER_TIME_LIMIT", "");
}

#[test]
fn faults_are_internal_and_tell_nothing_of_the_inside() {
    let rejected = PlanFailure::Planning(PlanError::Rejected { check: "load", problem: "secret detail".to_owned() });
    assert!(!to_status(&rejected).message().contains("secret"));
    check_status(rejected, Code::Internal, "VERIFIER_REJECTED", "");
    check_status(PlanFailure::Panicked { request: RequestKey::from_bytes([7; 32]) }, Code::Internal, "JOB_FAILED", "");
    let broken = SynthesisError::Broken { what: "x".to_owned() };
    check_status(PlanFailure::Planning(PlanError::Synthesis(broken)), Code::Internal, "PLANNER_BROKEN", "");
    check_status(
        PlanFailure::Planning(PlanError::Bound(BoundError::Broken { what: "x".to_owned() })),
        Code::Internal,
        "PLANNER_BROKEN",
        "",
    );
    check_status(PlanFailure::Abandoned { starts: 2 }, Code::Internal, "JOB_ABANDONED", "");
    check_status(PlanFailure::Stopped, Code::Cancelled, "JOB_STOPPED", "");
}

#[test]
fn a_very_long_message_is_cut() {
    let long = TopologyError::UnknownNode { position: 0, end: "from", id: "x".repeat(100_000) };
    let status = to_status(&PlanFailure::Planning(PlanError::Document(long.into())));
    assert_eq!(status.message().chars().count(), 1500);
    assert!(status.details().len() < 8_000);
}
