//! Files of plans from outside: written, read back, proved, run on bytes, and broken on purpose.

mod execution_interpreter;
mod execution_mutations;
mod execution_packets;
mod execution_pipelines;
mod execution_plans;
mod execution_releases;
mod execution_samples;
mod execution_slices;
mod execution_switches;
mod instances;
mod lowering;
mod multiport;
mod mutations;
mod oneccl;
mod plan_file;
mod plans;
mod properties;
mod random_mutations;
mod ranks;
mod routes;
mod samples;
mod slots;
mod support;
