//! canopy and its server as real processes with real files, linked into one program.

mod access;
mod advise;
mod bundles;
mod damage;
mod durability;
mod launchers;
mod networks;
mod promises;
mod rank_maps;
mod refusals;
mod shapes;
mod tuner;
