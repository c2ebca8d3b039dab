//! Seats of a torus by number, and their neighbours.

/// A direction of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heading {
    pub(crate) dimension: usize,
    /// Whether it is the way of the steps of its dimension. If two of these lead back, there is no other.
    pub(crate) is_up: bool,
}

/// Seats with their neighbours: the numbers that digits make, the last one lowest.
pub(crate) struct Grid {
    /// Values of the digits.
    pub(crate) sides: Vec<u32>,
    pub(crate) headings: Vec<Heading>,
    /// By seat, by heading.
    next: Vec<u32>,
    /// By heading, the one that leads back.
    back: Vec<usize>,
}

/// Steps along one digit each, as the dimensions of a torus without twists have them.
pub(crate) fn straight(sides: &[u32]) -> Vec<Vec<u32>> {
    (0..sides.len()).map(|dimension| (0..sides.len()).map(|digit| u32::from(digit == dimension)).collect()).collect()
}

impl Grid {
    /// Seats with digits of these sizes, and for each dimension what a step along it adds to each of them.
    pub(crate) fn new(sides: &[u32], steps: &[Vec<u32>]) -> Self {
        let mut grid = Self { sides: sides.to_vec(), headings: Vec::new(), next: Vec::new(), back: Vec::new() };
        let ups: Vec<u32> = steps.iter().map(|step| grid.number(step)).collect();
        let mut offsets = Vec::new();
        for (dimension, &up) in ups.iter().enumerate() {
            let down = grid.seen_from(0, up);
            let first = grid.headings.len();
            for (is_up, offset) in [(true, up), (false, down)].into_iter().take(if up == down { 1 } else { 2 }) {
                grid.headings.push(Heading { dimension, is_up });
                offsets.push(offset);
            }
            grid.back.extend((first..grid.headings.len()).rev());
        }
        let next = |seat| offsets.iter().map(move |&offset| (seat, offset));
        grid.next = (0..grid.seat_count()).flat_map(next).map(|(seat, offset)| grid.seen_as(seat, offset)).collect();
        grid
    }

    /// The seat with these digits.
    pub(crate) fn number(&self, digits: &[u32]) -> u32 {
        digits.iter().zip(&self.sides).fold(0, |number, (digit, side)| number * side + digit % side)
    }

    pub(crate) fn seat_count(&self) -> u32 {
        self.sides.iter().product()
    }

    /// Product of the sizes of lower digits.
    pub(crate) fn unit(&self, digit: usize) -> u32 {
        self.sides[digit + 1..].iter().product()
    }

    /// By seat: hops from seat 0 on a shortest path.
    pub(crate) fn distances(&self) -> Vec<u32> {
        let mut distances = vec![u32::MAX; self.seat_count() as usize];
        distances[0] = 0;
        let (mut reached, mut at) = (vec![0], 0);
        while let Some(&seat) = reached.get(at) {
            at += 1;
            for &next in self.around(seat) {
                if distances[next as usize] == u32::MAX {
                    distances[next as usize] = distances[seat as usize] + 1;
                    reached.push(next);
                }
            }
        }
        distances
    }

    /// The neighbours of a seat, by heading.
    pub(crate) fn around(&self, seat: u32) -> &[u32] {
        let count = self.headings.len();
        &self.next[seat as usize * count..(seat as usize + 1) * count]
    }

    /// The neighbour of a seat in a direction.
    pub(crate) fn next(&self, seat: u32, heading: usize) -> u32 {
        self.around(seat)[heading]
    }

    /// The neighbour of a seat from which a direction leads to it.
    pub(crate) fn before(&self, seat: u32, heading: usize) -> u32 {
        self.around(seat)[self.back[heading]]
    }

    /// The seat as one sees it from another that calls itself 0.
    pub(crate) fn seen_from(&self, seat: u32, origin: u32) -> u32 {
        let (mut rest, mut other, mut unit, mut seen) = (seat, origin, 1, 0);
        for &side in self.sides.iter().rev() {
            let (own, less) = (rest % side, other % side);
            seen += unit * if own >= less { own - less } else { own + side - less };
            (rest, other, unit) = (rest / side, other / side, unit * side);
        }
        seen
    }

    /// The seat that one sees as a seat from another.
    pub(crate) fn seen_as(&self, seen: u32, origin: u32) -> u32 {
        let (mut rest, mut other, mut unit, mut seat) = (seen, origin, 1, 0);
        for &side in self.sides.iter().rev() {
            seat += unit * ((rest % side + other % side) % side);
            (rest, other, unit) = (rest / side, other / side, unit * side);
        }
        seat
    }
}

#[cfg(test)]
mod tests {
    use super::{Grid, straight};

    #[test]
    fn headings_lead_back_and_seats_are_seen_from_others() {
        for sides in [&[5][..], &[2, 3], &[4, 2, 3], &[3, 3, 3, 2]] {
            let grid = Grid::new(sides, &straight(sides));
            for seat in 0..grid.seat_count() {
                for heading in 0..grid.headings.len() {
                    assert_eq!(grid.before(grid.next(seat, heading), heading), seat, "{sides:?}");
                }
                for origin in 0..grid.seat_count() {
                    assert_eq!(grid.seen_as(grid.seen_from(seat, origin), origin), seat);
                }
                assert_eq!((grid.seen_from(seat, seat), grid.seen_from(seat, 0)), (0, seat));
            }
            assert_eq!(grid.next(0, 0), grid.unit(0));
            let farthest: u32 = sides.iter().map(|side| side / 2).sum();
            assert_eq!(grid.distances().into_iter().max(), Some(farthest));
        }
    }

    /// Eight seats around, a step of 1 and one of 3: the twisted torus of 4 × 2.
    #[test]
    fn steps_may_go_along_several_digits() {
        let grid = Grid::new(&[8], &[vec![1], vec![3]]);
        assert_eq!((grid.around(0), grid.before(0, 2), grid.headings.len()), (&[1, 7, 3, 5][..], 5, 4));
        let half = Grid::new(&[8], &[vec![1], vec![4]]);
        assert_eq!((half.around(2), half.before(2, 2)), (&[3, 1, 6][..], 6));
    }
}
