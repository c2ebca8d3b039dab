//! Drawings of plans: a network with its loads and its bottleneck, who uses which link of it, the trees of a plan, a run
//! over time, and times over sizes.
//!
//! The crate is pure: a topology and results about it in, the bytes of an SVG out. Equal input gives equal output.
//! Coordinates are floats, since they decide nothing; exact fractions decide the load class of a link. Drawings that
//! would be too large to read are refused in advance. The crate neither plans nor judges nor simulates.

mod by_class;
mod error;
mod layout;
mod network;
mod shares;
mod summary;
mod svg;
mod sweep;
mod timeline;
mod trees;
mod wires;
mod words;

pub use by_class::{ByClassDrawing, draw_by_class};
pub use error::DrawError;
pub use network::{NetworkDrawing, draw_network};
pub use shares::{ELEMENTS_MAX, SharesDrawing, UseClass, draw_shares};
pub use svg::{Anchor, Mark, Point, Svg, escaped};
pub use sweep::{Series, SweepDrawing, draw_sweep};
pub use timeline::{Bar, ROWS_MAX, Row, TimelineDrawing, draw_timeline};
pub use trees::{TreesDrawing, draw_trees};
