//! Prices the cables and switches of a network, in total and per endpoint.
//!
//! A [`Network`] is named by a short expression such as `dfc2:32x32,terminals=16`; its [`Bill`] counts switches by their ports
//! and cables by kind and length on a floor of racks; [`Parameters`], a data file, say what each costs. All amounts are integers.
//! Links, rates and collectives play no role: only numbers and distances of nodes count.
//!
//! Source of the model: Pham, *Low-Latency Collective Communication for High-Performance Computing Networks* (2026),
//! section 4.4.2, which follows Besta and Hoefler, *Slim Fly: a cost effective low-diameter network topology* (SC 2014).

mod bill;
mod choice;
mod expression;
mod floor;
mod network;
mod parameters;
mod price;

pub use bill::{Bill, Cables, Medium, Part, Purpose};
pub use choice::{Choice, choices};
pub use expression::ExpressionError;
pub use network::{ENDPOINTS_MAX, Network, NetworkError, SIZE_MAX};
pub use parameters::{CablePrice, Layout, Parameters, ParametersError, PortsPaid, STANDARD_PARAMETERS, SwitchPrice};
pub use price::{Cost, Price};
