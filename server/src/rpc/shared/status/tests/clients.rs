//! Statuses as clients read them.

use std::time::Duration;

use canopy_client::ClientError;
use canopy_planner::Parts;
use canopy_synth::LimitsError;

use super::*;

fn disconnected() -> PlanError {
    let (from, to) = ids();
    PlanError::Bound(BoundError::Disconnected { from, from_rank: 0, to, to_rank: 1 })
}

/// Failures with each kind of detail.
fn failures() -> Vec<PlanFailure> {
    let size = RequestError::Size { found: 0, limit: 9 };
    let algorithm = UnknownAlgorithm { name: "x".to_owned() };
    let parts = Parts { count: 9, listed: vec!["a".to_owned(), "b, c and 6 more".to_owned()] };
    let unknown = TopologyError::UnknownNode { position: 0, end: "from", id: "x".repeat(100_000) };
    let large = TopologyError::TooLarge { what: "nodes", found: "20000".to_owned(), limit: 10_000 };
    let limits = LimitsError::Contradiction { trees_per_root: 2, max_chunks: 3 };
    let refused = [
        disconnected(),
        PlanError::Apart { failure: Box::new(disconnected()), parts },
        PlanError::InJoint { position: 2, failure: Box::new(PlanError::Synthesis(SynthesisError::Limits(limits))) },
        PlanError::Document(unknown.into()),
        PlanError::Inline(large),
        PlanError::File { output: 1, error: LowerError::BytesMax { bytes_max: 0 }.into() },
        PlanError::File { output: 1, error: routes::LowerError::InPlace.into() },
        PlanError::Rejected { check: "load", problem: "secret detail".to_owned() },
        PlanError::Synthesis(SynthesisError::Stopped),
        PlanError::Synthesis(SynthesisError::NoTrees),
        PlanError::Synthesis(SynthesisError::Broken { what: "x".to_owned() }),
    ];
    let of_server = [
        PlanFailure::Request(size),
        PlanFailure::Request(RequestError::Algorithm(algorithm)),
        PlanFailure::QueueFull { waiting: 5, limit: 5 },
        PlanFailure::JobMemory { needed: 9, limit: 8 },
        PlanFailure::Draining,
        PlanFailure::NotCached,
        PlanFailure::CancelledByOperator,
        PlanFailure::RunLimit { limit: Duration::from_secs(1) },
        PlanFailure::RepairWithoutLease,
    ];
    refused.map(PlanFailure::from).into_iter().chain(of_server).collect()
}

/// Commands that plan by themselves make the refusal without a status.
#[test]
fn a_refusal_without_a_status_is_the_one_that_a_client_reads_from_it() {
    for failure in failures() {
        let ClientError::Refused(read) = ClientError::of_status(&to_status(&failure)) else { panic!("a refusal") };
        let refusal = refusal(&failure);
        let message = in_short(&chain(&failure));
        let violations = refusal.violations(&message);
        let reason = Some(refusal.reason.to_string());
        let retry_after = refusal.retry_after();
        let made = canopy_client::Refusal::new(refusal.code.into(), reason, message, violations, retry_after);
        assert_eq!(*read, made);
    }
}

#[test]
fn kinds_of_refusals_have_the_names_and_numbers_of_grpc() {
    for code in canopy_wire::Code::ALL {
        assert_eq!(format!("{code:?}"), format!("{:?}", Code::from_i32(code.into())));
    }
}
