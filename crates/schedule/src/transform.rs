//! Schedules made from schedules: turned around, put after one another, renamed, divided finer, merged.
//!
//! All work on natural shapes, so that what they make can be written to a plan file like any other. They keep soundness:
//! a schedule that compiles and is accepted becomes one that does. They are for such schedules: of a malformed one they
//! make another malformed one, and they panic where one refers to more than 2³² entries of its tables.

mod compose;
mod merge;
mod relabel;
mod reverse;
mod scale;

pub use compose::{ComposeError, compose};
pub use merge::merged;
pub use relabel::{RelabelError, relabelled, relabelled_certificate};
pub use reverse::{reversed, transposed_links};
pub use scale::{ScaleError, scaled};

use canopy_topology::LinkIndex;

use crate::route::RouteTable;

/// The table with every route replaced.
fn map_routes(routes: &RouteTable, map: impl Fn(&[LinkIndex]) -> Vec<LinkIndex>) -> RouteTable {
    let mut mapped = RouteTable::default();
    for links in routes.iter() {
        mapped.push(&map(links));
    }
    mapped
}

/// The image of a link; one outside the map stays, for the checker to refuse.
fn map_link(links: &[LinkIndex], link: LinkIndex) -> LinkIndex {
    links.get(link.index()).copied().unwrap_or(link)
}
