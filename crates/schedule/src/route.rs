//! Physical routes: the links one logical rank-to-rank hop runs over, stored once each.

use std::collections::HashMap;

use canopy_topology::LinkIndex;

/// Position of a route in its [`RouteTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteIndex(u32);

impl RouteIndex {
    /// Wraps a position.
    pub const fn new(position: u32) -> Self {
        Self(position)
    }

    /// The position as the number it was made from.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The position as an index of a slice.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Routes, flat: 4 bytes per link and 4 per route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteTable {
    links: Vec<LinkIndex>,
    starts: Vec<u32>,
}

impl Default for RouteTable {
    fn default() -> Self {
        Self { links: Vec::new(), starts: vec![0] }
    }
}

impl RouteTable {
    /// Number of routes.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a route, equal to an earlier one or not. Whether its links join up is the checker's business.
    pub fn push(&mut self, links: &[LinkIndex]) -> RouteIndex {
        let index = RouteIndex(u32::try_from(self.len()).expect("fewer than 2³² routes"));
        self.links.extend_from_slice(links);
        self.starts.push(u32::try_from(self.links.len()).expect("fewer than 2³² links in all routes"));
        index
    }

    /// Links of a route in the direction of travel; `None` for an index outside the table.
    pub fn get(&self, route: RouteIndex) -> Option<&[LinkIndex]> {
        let start = *self.starts.get(route.index())? as usize;
        let end = *self.starts.get(route.index() + 1)? as usize;
        self.links.get(start..end)
    }

    /// All routes, by index.
    pub fn iter(&self) -> impl Iterator<Item = &[LinkIndex]> {
        self.starts.windows(2).map(|ends| &self.links[ends[0] as usize..ends[1] as usize])
    }
}

/// Fills a [`RouteTable`] with each distinct route once.
#[derive(Debug, Default)]
pub struct RouteInterner {
    table: RouteTable,
    known: HashMap<Vec<LinkIndex>, RouteIndex>,
}

impl RouteInterner {
    /// The index of this route, new or known.
    pub fn intern(&mut self, links: &[LinkIndex]) -> RouteIndex {
        if let Some(&index) = self.known.get(links) {
            return index;
        }
        let index = self.table.push(links);
        self.known.insert(links.to_vec(), index);
        index
    }

    /// The table filled so far.
    pub fn finish(self) -> RouteTable {
        self.table
    }
}
