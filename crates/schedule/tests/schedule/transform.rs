//! Schedules made from schedules, which the checker must judge as it judges those: turned around, put after one
//! another, divided finer, merged.

#[path = "transform/compose.rs"]
mod compose;
#[path = "transform/merge.rs"]
mod merge;
#[path = "transform/reverse.rs"]
mod reverse;
#[path = "transform/scale.rs"]
mod scale;

use canopy_schedule::ChunkLayout;

pub(crate) use compose::{ComposeError, compose};
pub(crate) use merge::merged;
pub(crate) use reverse::{reversed, transposed_links};
pub(crate) use scale::scaled;

/// First chunk of the share, in all-to-all of the block, that a chunk of the vector lies in.
fn unit_start(layout: &ChunkLayout, chunk: u64) -> u64 {
    layout.starts().take_while(|&start| start <= chunk).last().unwrap_or(0)
}
