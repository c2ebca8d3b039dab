//! Synthesizers and bounds from outside: against brute force, independent optima, published values and each other.

mod all_to_all_bounds;
mod all_to_all_exact;
mod all_to_all_faults;
mod blocks;
mod bounds;
mod breadth_first;
mod forest;
mod in_switch;
mod multiport;
mod named;
mod oracle;
mod published;
mod repair;
mod stages;
mod symmetric;
mod time_stepped;
mod tori;
