//! Calls that make no plan.

use canopy_direct::multiport::MultiPathError;
use canopy_order::{GroupError, OrderError, PartError};
use canopy_plan::NoSuchRank;
use canopy_planner::{SimulationError, SizeField};
use tonic_types::StatusExt as _;

use super::*;
use crate::failure::{LeaseError, MovingFailure, PlanFailure};
use crate::store::receipts::ReceiptError;
use crate::store::topologies::TopologyStoreError;
use crate::store::{ArchiveError, DamagedRecord, StoreError};

#[track_caller]
fn check(failure: CallFailure, code: Code, reason: &str, named: &str) {
    let status = call_status(&failure);
    let details = status.get_error_details();
    let info = details.error_info().expect("every status says why");
    assert_eq!((status.code(), &*info.reason, &*info.domain), (code, reason, "canopy"));
    let field = details.bad_request().map(|detail| detail.field_violations[0].field.clone());
    let resource = details.resource_info().map(|detail| detail.resource_name.clone());
    assert_eq!(field.or(resource).unwrap_or_default(), named);
}

#[test]
fn what_is_not_there_is_named() {
    let name = || "plans/x".to_owned();
    check(CallFailure::PlanUnknown { name: name() }, Code::NotFound, "PLAN_UNKNOWN", "plans/x");
    let damage = DamagedRecord::Checksum;
    check(CallFailure::PlanDamaged { name: name(), damage }, Code::DataLoss, "STORED_PLAN_CORRUPT", "plans/x");
    let artifact =
        CallFailure::ArtifactUnknown { plan: name(), format: "OUTPUT_FORMAT_JSON", profile: name(), instances: 0 };
    check(artifact, Code::NotFound, "ARTIFACT_UNKNOWN", "plans/x");
    let operation = CallFailure::OperationUnknown { name: "operations/x-1".to_owned(), is_shared: false };
    check(operation, Code::NotFound, "OPERATION_UNKNOWN", "operations/x-1");
    let topology = CallFailure::TopologyUnknown { name: "topologies/x".to_owned() };
    check(topology, Code::NotFound, "TOPOLOGY_UNKNOWN", "topologies/x");
    let lease = CallFailure::LeaseUnknown { name: "leases/x".to_owned(), is_shared: false };
    check(lease, Code::NotFound, "LEASE_UNKNOWN", "leases/x");
    let damaged = TopologyStoreError::Damaged { id: "topologies/x".to_owned(), damage };
    check(damaged.into(), Code::DataLoss, "STORED_TOPOLOGY_CORRUPT", "topologies/x");
    let reused = ReceiptError::Reused { id: "an id".to_owned() };
    check(reused.into(), Code::AlreadyExists, "REQUEST_ID_REUSED", "an id");
}

#[test]
fn bad_input_names_its_field() {
    let check = |failure, reason, field| check(failure, Code::InvalidArgument, reason, field);
    check(CallFailure::Offset { offset: 9, size: 8 }, "OFFSET_INVALID", "offset");
    check(CallFailure::NotSliced { format: "OUTPUT_FORMAT_JSON" }, "SLICE_UNSUPPORTED", "ranks");
    check(CallFailure::SliceRank(NoSuchRank { rank: 9, rank_count: 8 }), "SLICE_RANK_UNKNOWN", "ranks");
    check(CallFailure::Filter { position: 3, problem: String::new() }, "FILTER_SYNTAX", "filter");
    check(CallFailure::OrderBy { problem: String::new() }, "ORDER_SYNTAX", "order_by");
    check(CallFailure::PageSize { found: 9, limit: 8 }, "PAGE_SIZE_INVALID", "page_size");
    check(CallFailure::PageToken, "PAGE_TOKEN_INVALID", "page_token");
    check(CallFailure::EvictionTarget, "EVICTION_TARGET_INVALID", "filter");
    check(CallFailure::TooManyNames { found: 9, limit: 8 }, "TOO_MANY_NAMES", "names");
    check(CallFailure::TooManyEvents { found: 9, limit: 8 }, "TOO_MANY_FAULTS", "events");
    check(CallFailure::FaultTarget { position: 3, problem: String::new() }, "FAULT_UNKNOWN", "faults[3]");
    check(CallFailure::Lease { field: "ttl".to_owned(), problem: String::new() }, "LEASE_INVALID", "ttl");
    check(CallFailure::Timeout, "TIMEOUT_INVALID", "timeout");
    let rank = CallFailure::PathsRank { field: "source_rank", rank: 9, count: 8 };
    check(rank, "PATHS_RANK_UNKNOWN", "source_rank");
    check(MultiPathError::Same { node: 3 }.into(), "PATHS_RANK_TWICE", "target_rank");
    check(MultiPathError::Empty.into(), "PATHS_SIZE_INVALID", "size_bytes");
    check(MultiPathError::Count { found: 99 }.into(), "PATHS_MAX_INVALID", "paths_max");
    check(OrderError::Part(PartError::Unknown { name: "b9".to_owned() }).into(), "ORDER_NODES_INVALID", "nodes");
    check(OrderError::Groups(GroupError::TooMany { found: 9 }).into(), "ORDER_GROUPS_INVALID", "groups");
    check(MovingFailure::NotFirst { field: "network", expected: "" }.into(), "MOVING_REQUEST_INVALID", "network");
    check(MovingFailure::Number { found: 1, last: 1 }.into(), "MOVING_REQUEST_INVALID", "matrix.number");
    check(MovingFailure::Itself { rank: 3 }.into(), "MOVING_MATRIX_INVALID", "matrix.bytes");
    let size = SimulationError::Size { field: SizeField::Listed(3), found: 9, min: 1, max: 8 };
    check(size.into(), "SIMULATION_INVALID", "sizes_bytes[3]");
    let many = SimulationError::TooManySizes { found: 17, limit: 16 };
    check(many.into(), "SIMULATION_INVALID", "sizes_bytes");
    check(ArchiveError::Magic.into(), "ARCHIVE_DAMAGED", "piece");
    check(ArchiveError::Damaged { offset: 7, what: "bent" }.into(), "ARCHIVE_DAMAGED", "piece");
    check(CallFailure::Piece { offset: 7, problem: "is bent" }, "PIECE_INVALID", "piece");
    let record = CallFailure::ArchiveRecord { record: "plans/x".to_owned(), problem: String::new() };
    check(record, "ARCHIVE_REJECTED", "piece");
}

#[test]
fn limits_say_which() {
    let full = StoreError::Full { needed: 9, pinned: 1, limit: 8 };
    check(full.into(), Code::ResourceExhausted, "STORE_FULL", "");
    check(LeaseError::TooMany { count: 9 }.into(), Code::ResourceExhausted, "LEASES_FULL", "");
    check(CallFailure::TooManyWatches { of: "server", limit: 9 }, Code::ResourceExhausted, "WATCHES_FULL", "");
    let streams = MovingFailure::Full { of: "host", limit: 9 };
    check(streams.into(), Code::ResourceExhausted, "MOVING_STREAMS_FULL", "");
    check(TopologyStoreError::TooMany { count: 9 }.into(), Code::ResourceExhausted, "TOPOLOGIES_FULL", "");
    check(ArchiveError::TooLarge { limit: 9 }.into(), Code::ResourceExhausted, "ARCHIVE_TOO_LARGE", "");
}

#[test]
fn the_rest_says_whose_fault_it_is() {
    let large = SimulationError::FileTooLarge { found: 9, limit: 8 };
    check(large.into(), Code::FailedPrecondition, "SIMULATION_TOO_LARGE", "");
    let unread = CallFailure::NotSimulated { plan: "plans/x".to_owned() };
    check(unread, Code::FailedPrecondition, "SIMULATION_NEEDS_JSON", "");
    check(SimulationError::Stopped.into(), Code::Cancelled, "SIMULATION_STOPPED", "");
    check(CallFailure::Late { deadline_ms: 5 }, Code::DeadlineExceeded, "CALL_TIME_LIMIT", "");
    check(CallFailure::DrainRefused { is_here: true }, Code::PermissionDenied, "DRAIN_NOT_PERMITTED", "");
    check(CallFailure::NoConfiguration, Code::FailedPrecondition, "NO_CONFIGURATION", "");
    let filter = CallFailure::LogFilter { field: "lasts", problem: "x".to_owned() };
    check(filter, Code::InvalidArgument, "LOG_FILTER_INVALID", "lasts");
    check(CallFailure::ResumeToken, Code::OutOfRange, "RESUME_TOKEN_EXPIRED", "");
    check(CallFailure::Silence { seconds: 30 }, Code::DeadlineExceeded, "REQUEST_STALLED", "");
    let slow = CallFailure::Slow { arrived: 1, length: 9, rate: 3 };
    check(slow, Code::DeadlineExceeded, "REQUEST_TOO_SLOW", "");
    check(CallFailure::Broken { what: "x".to_owned() }, Code::Internal, "CALL_FAILED", "");
    check(CallFailure::Plan(PlanFailure::Draining), Code::Unavailable, "DRAINING", "");
}
