//! How long plans by trees take, with and without names, and how they compare.
//!
//! `cargo run --release -p canopy-benches --bin forest [-- TABLE [NETWORK …]]`
//!
//! * `named`, without arguments: the first table of docs/performance.md. A row is the best of three cold requests, each in a
//!   process of its own, as `canopy plan NETWORK -c allgather -o plan.json` makes them. Time is that of the wall clock.
//! * `unnamed`: the same for networks without names of boxes or hosts, relabelled, at other rates and with random faults.
//! * `generic`: against the published generic algorithm, implemented plainly (`benches/src/generic.rs`).
//! * `stages`: trees in figures and times stage by stage. `EXPRESSION!13` halves the rate, in both directions, of every link
//!   between a rank and a switch without a box that one of 13 evenly spread ranks has.
//! * `one-way`: how close plans come to the cut on random networks with links that are slower one way.

mod compared;
mod one_way;
mod plans;
mod stages;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let (table, networks) = match given.split_first() {
        None => ("named", [].as_slice()),
        Some((table, networks)) => (table.as_str(), networks),
    };
    match (table, networks) {
        ("named", networks) => plans::named(networks),
        ("unnamed", []) => plans::unnamed(),
        ("generic", []) => compared::print(),
        ("one-way", []) => one_way::print(),
        ("stages", networks) => stages::print(networks),
        // What a table starts for each of its rows.
        (plans::ROW, [network]) => plans::row(network),
        _ => Err("use named [NETWORK …], unnamed, generic, stages [NETWORK …] or one-way".into()),
    }
}
