//! Physical routes: the links one logical rank-to-rank hop runs over, stored once each.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher as _, RandomState};

use canopy_topology::{LinkIndex, Rank, Topology};

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

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a route, even if an equal one exists. The checker verifies that its links join up.
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

    /// The ranks where each route begins and ends, by index; `None` for a route without links, with a link that the
    /// network does not have, or with another end than a rank. Whether links join up is not asked. O(routes).
    pub fn ends(&self, topology: &Topology) -> Vec<Option<(Rank, Rank)>> {
        let link = |link: LinkIndex| topology.links().get(link.index());
        let ends = |links: &[LinkIndex]| {
            let (first, last) = (link(*links.first()?)?, link(*links.last()?)?);
            Some((topology.rank_of(first.from)?, topology.rank_of(last.to)?))
        };
        self.iter().map(ends).collect()
    }
}

/// Parts of the index of routes: it grows by one part at a time, which takes a millisecond where all would take a hundred.
const PARTS: u64 = 64;

/// Fills a [`RouteTable`] with each distinct route once.
#[derive(Debug)]
pub struct RouteInterner {
    table: RouteTable,
    /// By a number that is equal for equal routes: the first route that has it, the second, and so on. Routes themselves
    /// are in the table alone, since a copy of each would take long to make and to let go of.
    known: Vec<HashMap<(u64, u32), RouteIndex>>,
    numbers: RandomState,
}

impl Default for RouteInterner {
    fn default() -> Self {
        let known = (0..PARTS).map(|_| HashMap::new()).collect();
        Self { table: RouteTable::default(), known, numbers: RandomState::new() }
    }
}

impl RouteInterner {
    /// The index of this route, new or known. O(links).
    pub fn intern(&mut self, links: &[LinkIndex]) -> RouteIndex {
        let number = self.numbers.hash_one(links);
        let part = usize::try_from(number % PARTS).expect("there are few parts");
        let mut place = 0;
        loop {
            match self.known[part].entry((number, place)) {
                Entry::Occupied(known) if self.table.get(*known.get()) == Some(links) => return *known.get(),
                // Of different routes, two have one number next to never.
                Entry::Occupied(_) => place += 1,
                Entry::Vacant(entry) => return *entry.insert(self.table.push(links)),
            }
        }
    }

    /// The index of a route that is new, and that nobody will look up: whoever adds it keeps its index. O(links).
    pub fn add(&mut self, links: &[LinkIndex]) -> RouteIndex {
        self.table.push(links)
    }

    /// Links of a route; `None` for an index that it did not return.
    pub fn get(&self, route: RouteIndex) -> Option<&[LinkIndex]> {
        self.table.get(route)
    }

    /// The table filled so far.
    pub fn finish(self) -> RouteTable {
        self.table
    }
}
