//! The server over a real socket, asked by a real client.
#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

mod answers;
mod archives;
#[path = "../common/bare.rs"]
mod bare;
mod bundles_here;
mod cached;
mod candidates;
mod clusters;
mod devices;
mod fallbacks;
mod find;
mod full_disk;
mod groups;
mod jobs;
mod joint;
mod known_faults;
mod lifecycle;
mod limits;
mod moving;
mod negatives;
mod nics;
mod operators;
mod order;
mod paths;
mod placed_bundles;
mod plans;
mod rank_maps;
mod refusals;
mod repeats;
mod replans;
mod round_trips;
mod simulate;
mod stated;
mod successors;
mod support;
mod tenants;
mod topologies;
mod what_if;
mod work;
