//! The end of a job that several servers share.

use std::any::Any;

/// The end of a job, as a store that several servers share writes it down together with the plan that the job made.
///
/// Each such store has a type of its own, which it finds again by [`Any`]; a store of one server writes down none.
pub trait JobEnd: Any + Send + Sync {}
