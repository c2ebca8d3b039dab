//! The crate's engines from outside: every result judged, and held against proven bounds, exact optima and the papers.

mod bound_reached;
mod ilp;
mod joint;
mod joint_judge;
mod mend;
mod properties;
mod slow_links;
mod support;
mod unicast;
