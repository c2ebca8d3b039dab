//! Translates between the messages of `canopy.v1` and the planner's types: requests in one direction, plans and
//! refusals in the other.
//!
//! Code that stores or sends messages uses this crate, and otherwise only the planner's types.

mod cluster;
mod digest;
mod entry;
mod error_status;
mod formats;
mod former;
mod fraction;
mod groups;
mod losses;
mod plan;
mod plan_request;
mod priority;
mod refusal;
mod refused;
mod request;
mod stated_fraction;
mod stored_plan;
mod what_if;

pub use canopy_proto::Exact;
pub use cluster::{ClusterError, cluster_model};
pub use digest::sha256_hex;
pub use entry::{Entry, EntryCaller, decode_entry, encode_entry};
pub use error_status::{DOMAIN, error_status, reason_of};
pub use formats::{OUTPUT_FORMATS, format_of_wire, format_on_the_wire, target, target_on_the_wire};
pub use fraction::{fraction, fraction_of};
pub use groups::{StatedJob, StatedRunning, job, running_jobs};
pub use losses::{LossError, in_words, loss, loss_read, loss_written, on_the_wire as loss_on_the_wire};
pub use plan::{
    bits, bounded, certificate, collective as collective_on_the_wire, collective_of_wire, duration_of_ms, ms_of,
    parts_of_wire, plan, plan_header, puncture, timestamp, timings, topology_summary, warnings, warnings_read,
};
pub use plan_request::{
    ALPHA_NS_MAX, FAULTS_MAX, KeptRequestError, SIZE_BYTES_MAX_DEFAULT, SIZE_BYTES_MAX_LIMIT, Sourced, each_once,
    fault_policy, is_of_spec, kept_placed, kept_request, placed, plan_request, require_few_faults, sourced,
    topology_input, topology_on_the_wire,
};
pub use priority::Priority;
pub use refusal::{Code, Detail, Refusal, component, in_short, plan_refusal, request_refusal};
pub use refused::{InlineError, RequestError, TENANT_HEADER, above_zero};
pub use request::{
    draft, draft_on_the_wire, form, form_on_the_wire, roots, roots_on_the_wire, slots, slots_on_the_wire,
};
pub use stated_fraction::{fraction_read, small_fraction_read};
pub use stored_plan::StoredPlan;
pub use what_if::{fault_kind_of_wire, fault_kind_on_the_wire, left_of_wire, weighed_fault, what_may_fail};
