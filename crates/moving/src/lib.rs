//! All-to-all of traffic that changes every few hundred milliseconds, as with experts on many ranks: for each matrix of
//! bytes, routes whose busiest link takes as little time as possible, within milliseconds, and a proof of how little is
//! possible.
//!
//! Numbers in, numbers out, but for the module that recognises topologies. The network has two tiers: boxes of ranks
//! around a switch or joined in pairs, and a NIC for each rank, joined by rails or by one fabric. Each link has a rate of
//! its own, 0 for a dead one.
//!
//! # The least time
//!
//! Any prices `ℓ` of links prove a time against every route, [`Prices::least_time`]:
//!
//! ```text
//! T ≥ Σ bytes(s, t) · distance_ℓ(s, t) ÷ Σ rate(e) · ℓ(e)
//! ```
//!
//! Distances are those of the whole network: over relays in any box, and from rank to rank of one box also by NICs. Let a
//! rank send `E` bytes to other boxes and `N` within its own, and receive `R` and `M`; `O`, `P` are the rates of its NIC
//! out and in, `I`, `J` those to and from its box. Prices of 1 on the right links give
//!
//! ```text
//! one rank    T ≥ (N + E)/(I + O)    T ≥ (M + R)/(J + P)
//! egress      T ≥ Σ {E or 0 or M + R} ÷ Σ {O or J or J + P}    over the ranks of a box, one choice for each
//! ingress     T ≥ Σ {R or 0 or N + E} ÷ Σ {P or I or I + O}
//! ```
//!
//! The common one is `E_box ÷ Σ O`. Where no plan takes the greatest of these times, the prices by which routes were
//! found prove more. Measured on 700 small networks against the whole linear program over every route (unequal rails,
//! dead and slow NICs, meshes, dense and sparse traffic, within boxes alone): bounds reach the optimum, and plans 0.999
//! of it at least.
//!
//! # Routes
//!
//! First, bytes relay in the boxes of sender and receiver alone. On one fabric, both ends of a route are chosen for
//! themselves: own NICs first, then those with room whose ranks can relay. On rails:
//!
//! 1. shares of rails for each pair of boxes, in proportion to weights of NICs that shrink while a NIC is overloaded;
//! 2. bytes for shares: no switch if sender and receiver are on the rail, one if either is, both else;
//! 3. if a link takes longer than the cuts demand, moves to cheaper rails at prices that grow with loads.
//!
//! Where no cut proves the time of these, bytes on the busiest links move to whatever routes are cheapest: over third
//! boxes, out of a box and back, over other ranks of a mesh.
//!
//! | function | cost |
//! |---|---|
//! | [`plan`] | O(ranks²); on rails up to 300 rounds of boxes²·rails too, and limited work to mend links; limited work to move bytes where no cut is tight |
//! | [`bound`] | as `plan` |
//! | [`Prices::least_time`] | O(ranks²·rails) |
//! | [`check`] | O(hops + ranks²) |
//! | [`in_units`] | O(parts log parts) |
//! | [`staged`] | O(ranks²·box size + boxes⁴) |
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `tiers`, `matrix`, `route` | networks, traffic with its sums, routes: what all others have in common |
//! | `prices`, `check` | the checkers of proofs and routes, which know nothing of how these are found |
//! | `cuts`, `proven`, `proof`, `bound` | proofs in closed form, the best of them, the best of a search, the best of all |
//! | `plan`, `fabric`, `shares`, `fill`, `mend` | routes that relay at their ends: one fabric; rails in three steps |
//! | `reroute`, `paths` | moves to any routes, and the cheapest routes of a network |
//! | `network` | the two tiers of a topology, and what faults leave of them |
//! | `units` | routes in whole units of bytes, for files of chunks |
//! | `staged` | stages of box matchings (FAST, arXiv 2505.09764), for comparison |

mod bound;
mod check;
mod cuts;
mod fabric;
mod fill;
mod matrix;
mod mend;
mod network;
mod paths;
mod plan;
mod plan_error;
mod prices;
mod proof;
mod proven;
mod reroute;
mod route;
mod shares;
mod staged;
mod tiers;
mod units;

pub use bound::bound;
pub use check::{CheckError, Checked, LinkKind, check, ratio};
pub use matrix::{BYTES_MAX, Matrix, MatrixError};
pub use network::{NETWORK_RANKS_MAX, Network, NetworkError};
pub use plan::{Planned, State, plan, plan_at_ends};
pub use plan_error::PlanError;
pub use prices::{Prices, PricesError};
pub use proven::Bound;
pub use route::{Hop, Loads, Part, Route};
pub use staged::{STAGED_BOXES_MAX, Staged, StagedError, staged};
pub use tiers::{Fabric, RANKS_MAX, RATE_MAX, Rates, Tiers, TiersError};
pub use units::{UnitPart, in_units};
