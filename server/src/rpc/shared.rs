//! Parts that several services have in common: from the message to an order, from an outcome to a reply or a status.

pub(crate) mod admission;
pub(crate) mod cached;
pub(crate) mod call_pool;
pub(crate) mod cluster_parts;
pub(crate) mod deadline;
pub(crate) mod decode;
pub(crate) mod deliver;
pub(crate) mod describe;
pub(crate) mod events;
pub(crate) mod fields;
pub(crate) mod finds;
pub(crate) mod judge;
pub(crate) mod known_faults;
pub(crate) mod learning;
pub(crate) mod listing;
pub(crate) mod outgoing;
pub(crate) mod parts;
pub(crate) mod plan_summaries;
pub(crate) mod rank_map;
pub(crate) mod reading;
pub(crate) mod request_log;
pub(crate) mod resolve;
pub(crate) mod sources;
pub(crate) mod status;
pub(crate) mod store_check;
pub(crate) mod work;
