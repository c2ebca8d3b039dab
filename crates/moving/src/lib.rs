//! All-to-all of traffic that changes every few hundred milliseconds, as with experts on many ranks: for each matrix of
//! bytes, routes whose busiest link takes as little time as possible, within milliseconds, and a proof of how little is
//! possible.
//!
//! Numbers in, numbers out, but for the module that recognises topologies. The network has two tiers: boxes of ranks around a switch, and a NIC for each rank, joined
//! by rails or by one fabric. Each link has a rate of its own, 0 for a dead NIC. A box whose ranks are joined in pairs
//! counts as one with a switch; its single links are not looked at. What stays in a box takes its switch; all else may
//! be relayed.
//!
//! # The least time
//!
//! Any prices `ℓ` of links prove a time, [`Prices::least_time`]:
//!
//! ```text
//! T ≥ Σ bytes(s, t) · distance_ℓ(s, t) ÷ Σ rate(e) · ℓ(e)
//! ```
//!
//! Let a rank send `E` bytes to other boxes and `N` within its own, and receive `R` and `M`; `O`, `P` are the rates of
//! its NIC out and in, `I`, `J` those to and from the switch. Prices of 1 on the right links give
//!
//! ```text
//! one rank    T ≥ N/I    T ≥ (N + E)/(I + O)    T ≥ M/J    T ≥ (M + R)/(J + P)
//! egress      T ≥ Σ {E or M or M + R} ÷ Σ {O or J or J + P}    over the ranks of a box, one choice for each
//! ingress     T ≥ Σ {R or N or N + E} ÷ Σ {P or I or I + O}
//! ```
//!
//! of which `E_box ÷ Σ O` is the common one. On one fabric the greatest of these is the optimum of fluid traffic with
//! all relays. On rails it is a bound, mostly the optimum; where no plan takes that time, prices that follow the loads
//! of fluid traffic prove more. Measured on 150 small networks each against the whole linear program: on one fabric
//! equal; on rails with equal links equal, with dead and slow NICs or slow switches 0.2 % below at most.
//!
//! # Routes
//!
//! On one fabric, both ends of a route are chosen for themselves: own NICs first, then those with room whose ranks can
//! relay. On rails:
//!
//! 1. shares of rails for each pair of boxes, in proportion to weights of NICs that shrink while a NIC is overloaded;
//! 2. bytes for shares: no switch if sender and receiver are on the rail, one if either is, both else;
//! 3. if a link takes longer than the cuts demand, moves to cheaper rails at prices that grow with loads.
//!
//! A route relays in the boxes of its sender and receiver only. On small networks with many dead NICs, relays in third
//! boxes would reach up to 1.7 times as much; then the ratio of bound and time says so.
//!
//! | function | cost |
//! |---|---|
//! | [`plan`] | O(ranks²); on rails up to 300 rounds of boxes²·rails too, and limited work to mend links |
//! | [`bound`] | O(ranks²) on one fabric, O(ranks²·rails) on rails, for up to 10,000 rounds if no cut is tight |
//! | [`bound_beside`] | O(ranks²·rails) where a cut proves the plan's time, as `bound` elsewhere |
//! | [`check`] | O(parts + ranks²) |
//! | [`in_units`] | O(parts log parts) |
//! | [`staged`] | O(ranks²·box size + boxes⁴) |
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `tiers`, `matrix`, `route` | networks, traffic with its sums, routes: what all others have in common |
//! | `prices`, `cuts`, `ascent`, `bound` | proofs, those in closed form, the search for others, the best |
//! | `plan`, `fabric`, `shares`, `fill`, `mend` | routes: one fabric; rails in three steps |
//! | `check` | the checker, which knows nothing of how routes are found |
//! | `network` | the two tiers of a topology, and what faults leave of them |
//! | `units` | routes in whole units of bytes, for files of chunks |
//! | `staged` | stages of box matchings (FAST, arXiv 2505.09764), for comparison |

mod ascent;
mod bound;
mod check;
mod cuts;
mod fabric;
mod fill;
mod matrix;
mod mend;
mod network;
mod plan;
mod plan_error;
mod prices;
mod route;
mod shares;
mod staged;
mod tiers;
mod units;

pub use bound::{Bound, bound, bound_beside};
pub use check::{CheckError, Checked, LinkKind, check, ratio};
pub use matrix::{BYTES_MAX, Matrix, MatrixError};
pub use network::{NETWORK_RANKS_MAX, Network, NetworkError};
pub use plan::{Planned, State, plan};
pub use plan_error::PlanError;
pub use prices::{Prices, PricesError};
pub use route::{Loads, Part, Route};
pub use staged::{STAGED_BOXES_MAX, Staged, StagedError, staged};
pub use tiers::{Fabric, RANKS_MAX, RATE_MAX, Rates, Tiers, TiersError};
pub use units::{UnitPart, in_units};
