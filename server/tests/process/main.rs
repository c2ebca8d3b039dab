//! The real `canopyd` as a process: signals, the service manager, logs, configuration and traces.
#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

mod abuse;
mod access;
mod attacks;
mod audit;
mod authority;
mod backups;
#[path = "../common/bare.rs"]
mod bare;
mod clocks;
mod computing;
mod configuration;
mod crashes;
mod deadlines;
mod disks;
mod flips;
mod kills;
mod lifecycle;
mod processor;
mod quotas;
mod replans;
mod replicas;
mod reporters;
mod support;
mod traces;
