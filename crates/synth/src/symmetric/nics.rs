//! Rates of the NICs of boxes.

use canopy_schedule::BoxGrid;

/// Rates of the NICs of boxes in the order of the grid: by box and place, to and from other boxes.
pub(crate) type Nics = Vec<Vec<(u64, u64)>>;

/// Rates by box of the grid.
pub(crate) fn nics_of(grid: &BoxGrid, nic: impl Fn(u32, usize) -> (u64, u64)) -> Nics {
    let boxes = grid.box_count().unwrap_or(0);
    (0..boxes).map(|of_box| (0..grid.places as usize).map(|place| nic(of_box, place)).collect()).collect()
}
