//! One message on several paths at once: which paths, how much on each, and how long it takes.
//!
//! A part of the message travels its path as a whole, link after link; the paths have no link in common, and a node uses all of
//! its ports at once. Times are exact fractions of a nanosecond.

mod choice;
#[cfg(test)]
mod kautz;
mod split;
#[cfg(test)]
mod tests;

pub use choice::{MultiPath, MultiPathError, MultiPathProblem, PATHS_MAX, PathPart, multi_path};
pub use split::{Forwarding, Hop, Line, Split, even_time, split};
