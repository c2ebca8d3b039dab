//! The trees of a plan.

use canopy_draw::{TreesDrawing, draw_trees};
use canopy_topology::Rank;

use super::{heading, refused};
use crate::exit::Failure;
use crate::material::Material;

/// All trees of a root, or the first of every root.
pub(in crate::commands) fn draw(name: &str, plan: &Material, root: Option<u32>, phase: u32) -> Result<String, Failure> {
    let title = heading(name, plan);
    let drawing = TreesDrawing {
        title: &title,
        topology: &plan.topology,
        schedule: &plan.schedule,
        graph: &plan.graph,
        root: root.map(Rank::new),
        phase,
    };
    draw_trees(&drawing).map_err(|error| refused(&error))
}
