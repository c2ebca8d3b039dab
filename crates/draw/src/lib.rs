//! Drawings of what is planned: a network with its loads and its bottleneck, the trees of a plan, a run over time,
//! times over sizes.
//!
//! Pure: a topology and what was found about it in, the bytes of an SVG out, the same for the same input. Coordinates are
//! floats, since they decide nothing; which class of load a link is in is decided by exact fractions. What is too large
//! to be looked at is refused before anything is drawn. It neither plans nor judges nor simulates.

mod error;
mod layout;
mod network;
mod svg;
mod sweep;
mod timeline;
mod trees;
mod wires;
mod words;

pub use error::DrawError;
pub use network::{NetworkDrawing, draw_network};
pub use svg::{Anchor, Mark, Point, Svg, escaped};
pub use sweep::{Series, SweepDrawing, draw_sweep};
pub use timeline::{Bar, ROWS_MAX, Row, TimelineDrawing, draw_timeline};
pub use trees::{TreesDrawing, draw_trees};
