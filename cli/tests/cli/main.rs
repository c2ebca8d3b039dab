//! The command line as its users meet it: the real program, real files, real exit status.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test may end it")]

mod about;
mod advise;
#[cfg(feature = "embedded")]
mod algorithms;
#[cfg(feature = "embedded")]
mod around;
#[cfg(feature = "embedded")]
mod audit;
#[cfg(feature = "embedded")]
mod blocks;
mod bound;
mod by_class;
mod calibrate;
mod cluster;
mod convert;
mod cost;
mod doctor;
#[cfg(feature = "embedded")]
mod draw;
#[cfg(feature = "embedded")]
mod execution;
#[cfg(feature = "embedded")]
mod explain;
#[cfg(feature = "embedded")]
mod export;
#[cfg(feature = "embedded")]
mod extremes;
#[cfg(feature = "embedded")]
mod family;
mod faults;
mod find;
#[cfg(feature = "embedded")]
mod forms;
#[cfg(feature = "embedded")]
mod groups;
#[cfg(feature = "embedded")]
mod handover;
mod hooks;
#[cfg(feature = "embedded")]
mod joint;
#[cfg(feature = "embedded")]
mod known_faults;
#[cfg(feature = "embedded")]
mod leases;
#[cfg(feature = "embedded")]
mod limits;
#[cfg(feature = "embedded")]
mod moving;
#[cfg(feature = "embedded")]
mod multiport;
#[cfg(feature = "embedded")]
mod one_truth;
mod oneccl;
#[cfg(feature = "embedded")]
mod operate;
mod order;
#[cfg(feature = "embedded")]
mod path;
#[cfg(feature = "embedded")]
mod placed;
#[cfg(feature = "embedded")]
mod plan;
mod real_cases;
mod refusals;
#[cfg(feature = "embedded")]
mod render;
#[cfg(feature = "embedded")]
mod report;
mod resume;
mod resynth;
mod routes;
mod run;
mod run_hosts;
#[path = "../../../client/tests/client/scripted.rs"]
mod scripted;
#[cfg(feature = "embedded")]
mod served;
#[cfg(feature = "embedded")]
mod simulate;
#[cfg(feature = "embedded")]
mod start;
#[cfg(feature = "embedded")]
mod stored;
#[cfg(feature = "embedded")]
mod streams;
mod support;
#[cfg(feature = "embedded")]
mod sweep;
#[cfg(feature = "embedded")]
mod switches;
mod topology;
mod verify;
#[cfg(feature = "embedded")]
mod workload;
#[cfg(feature = "embedded")]
mod wrong;
