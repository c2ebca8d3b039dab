//! Networks before they are built: which are best for collectives ([`finder`]), and what their cables and switches cost
//! ([`cost`]). Both name networks by plain numbers.

pub mod cost;
pub mod finder;

pub use cost::{
    Bill, CablePrice, Cables, Cost, ENDPOINTS_MAX, ExpressionError, Layout, Medium, Network, NetworkError, Parameters,
    ParametersError, Part, PortsPaid, Price, Purpose, SIZE_MAX, STANDARD_PARAMETERS, SwitchPrice,
};
pub use finder::{
    AllToAll, Bounds, Candidate, DEGREE_MAX, FindError, Finder, Found, Histogram, ImaseItoh, Known, Lacking, Line,
    Links, NODES_MAX, Query, RateProof, VERSION, imase_itoh,
};
