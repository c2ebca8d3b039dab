//! Nodes in cells, and cells in an order.

/// An ordered partition of the nodes `0 … count−1`. A cell is known by the place of its first node.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    /// Nodes, cell after cell.
    order: Vec<u32>,
    /// By node: where it is in the order.
    place: Vec<u32>,
    /// By node: the cell it is in.
    cell: Vec<u32>,
    /// By cell: where it ends.
    end: Vec<u32>,
    cell_count: usize,
}

impl Partition {
    /// Cells of equal tags, in the order of the tags: of node `v` the tag is `tags[v]`.
    pub(crate) fn of_tags(tags: &[u32]) -> Self {
        let mut order: Vec<u32> = (0_u32..).take(tags.len()).collect();
        if !tags.is_sorted() {
            order.sort_by_key(|&node| tags[node as usize]);
        }
        let mut partition = Self {
            place: vec![0; tags.len()],
            cell: vec![0; tags.len()],
            end: vec![0; tags.len()],
            cell_count: 0,
            order,
        };
        let mut start = 0;
        for (position, &node) in (0_u32..).zip(&partition.order) {
            let is_first =
                position == 0 || tags[node as usize] != tags[partition.order[position as usize - 1] as usize];
            if is_first {
                start = position;
                partition.cell_count += 1;
            }
            partition.place[node as usize] = position;
            partition.cell[node as usize] = start;
            partition.end[start as usize] = position + 1;
        }
        partition
    }

    pub(crate) fn is_discrete(&self) -> bool {
        self.cell_count == self.order.len()
    }

    pub(crate) const fn cell_count(&self) -> usize {
        self.cell_count
    }

    /// All nodes, cell after cell.
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    /// The cell of a node.
    pub(crate) fn cell_of(&self, node: u32) -> u32 {
        self.cell[node as usize]
    }

    /// The nodes of a cell.
    pub(crate) fn members(&self, cell: u32) -> &[u32] {
        &self.order[cell as usize..self.end[cell as usize] as usize]
    }

    pub(crate) fn size_of(&self, cell: u32) -> usize {
        (self.end[cell as usize] - cell) as usize
    }

    /// All cells, in their order.
    pub(crate) fn cells(&self) -> impl Iterator<Item = u32> + '_ {
        let mut next = 0_u32;
        std::iter::from_fn(move || {
            let cell = ((next as usize) < self.order.len()).then_some(next)?;
            next = self.end[cell as usize];
            Some(cell)
        })
    }

    /// The first cell of several nodes from a certain one on.
    pub(crate) fn first_open(&self, cell: u32) -> Option<u32> {
        let mut cell = cell;
        while (cell as usize) < self.order.len() {
            if self.size_of(cell) > 1 {
                return Some(cell);
            }
            cell = self.end[cell as usize];
        }
        None
    }

    /// Puts a node behind all others of its cell, alone. O(1).
    pub(crate) fn single_out(&mut self, node: u32) {
        let cell = self.cell_of(node);
        if self.size_of(cell) > 1 {
            let last = self.end[cell as usize] - 1;
            self.move_to(node, last);
            self.cut(cell, last);
        }
    }

    /// Splits a cell: `groups` are nodes with keys, by rising key; nodes that are not named have the lowest key of all.
    /// The new cells, the first of which has the old name, are pushed to `parts`.
    pub(crate) fn split(&mut self, cell: u32, groups: &[(u32, u32)], parts: &mut Vec<u32>) {
        let mut place = self.end[cell as usize];
        let mut borders = Vec::new();
        for (position, &(key, node)) in groups.iter().enumerate().rev() {
            place -= 1;
            self.move_to(node, place);
            if place > cell && (position == 0 || groups[position - 1].0 != key) {
                borders.push(place);
            }
        }
        parts.push(cell);
        // From the back, each cut leaves the cell before it under the old name.
        for &border in &borders {
            self.cut(cell, border);
        }
        parts.extend(borders.into_iter().rev());
    }

    fn move_to(&mut self, node: u32, place: u32) {
        let (old, other) = (self.place[node as usize], self.order[place as usize]);
        self.order.swap(old as usize, place as usize);
        self.place[node as usize] = place;
        self.place[other as usize] = old;
    }

    /// Makes two cells of one; the second starts at the border.
    fn cut(&mut self, cell: u32, border: u32) {
        let end = self.end[cell as usize];
        self.end[cell as usize] = border;
        self.end[border as usize] = end;
        for place in border..end {
            self.cell[self.order[place as usize] as usize] = border;
        }
        self.cell_count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_split_by_rising_keys() {
        let mut partition = Partition::of_tags(&[7, 3, 7, 7, 3, 7]);
        assert_eq!((partition.members(0), partition.members(2)), (&[1, 4][..], &[0, 2, 3, 5][..]));
        let mut parts = Vec::new();
        partition.split(2, &[(1, 5), (1, 0), (4, 3)], &mut parts);
        assert_eq!(parts, [2, 3, 5]);
        assert_eq!((partition.members(2), partition.members(5)), (&[2][..], &[3][..]));
        assert!(partition.members(3).contains(&0) && partition.members(3).contains(&5));
        assert_eq!((partition.cell_count(), partition.is_discrete()), (4, false));
        assert_eq!(
            (partition.first_open(0), partition.first_open(2), partition.first_open(5)),
            (Some(0), Some(3), None)
        );
        partition.single_out(5);
        partition.single_out(4);
        assert_eq!(partition.order(), [1, 4, 2, 0, 5, 3]);
        assert_eq!((partition.is_discrete(), partition.first_open(0)), (true, None));
        assert_eq!(partition.cells().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    }

    /// Where every node has a key, the lowest keeps the name.
    #[test]
    fn a_cell_is_used_up() {
        let mut partition = Partition::of_tags(&[0, 0, 0]);
        let mut parts = Vec::new();
        partition.split(0, &[(1, 2), (2, 0), (2, 1)], &mut parts);
        assert_eq!((parts, partition.members(0), partition.size_of(1)), (vec![0, 1], &[2][..], 2));
    }
}
