//! The largest quotient of the number of sources that depend on a set of links by the size of the set.
//!
//! It is the load of the busiest link when every source is divided among the links that it may use as evenly as can be
//! (the optimum of the linear program (3.1) of the breadth-first broadcast, by its dual).

use canopy_optimize::Fraction;

/// The largest of some fractions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Largest {
    numerator: u64,
    denominator: u64,
}

impl Default for Largest {
    fn default() -> Self {
        Self { numerator: 0, denominator: 1 }
    }
}

impl Largest {
    /// Takes a fraction in; returns whether it is larger than all before. Both numbers are below 2³².
    pub(crate) fn raise(&mut self, numerator: u64, denominator: u64) -> bool {
        let larger = numerator * self.denominator > self.numerator * denominator;
        if larger {
            *self = Self { numerator, denominator };
        }
        larger
    }

    /// Whether it is less than a whole number.
    pub(crate) fn is_less_than(&self, number: u64) -> bool {
        self.numerator < number * self.denominator
    }

    /// In lowest terms.
    pub(crate) fn fraction(&self) -> Fraction {
        Fraction::new(self.numerator.into(), self.denominator.into()).expect("a denominator is a number of links")
    }
}

/// Sources that may use the same links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// Bit ℓ: link ℓ. Some bit is set.
    pub(crate) links: u64,
    /// Number of sources, below 2³².
    pub(crate) count: u64,
}

/// Finds loads; keeps what it needs for that from one to the next.
#[derive(Debug)]
pub(crate) struct Divider {
    /// Number of links, at most 64.
    degree: usize,
    /// By group and link, in parts of a source.
    flow: Vec<u64>,
    /// By link: how much more it bears.
    room: Vec<u64>,
    /// What can be reached from a group over links that it may use and groups that could give up some of these.
    reached_links: u64,
    reached: Vec<Reached>,
}

/// A group that can be reached, and how: the place of the group before it, and the link between.
#[derive(Clone, Copy, Debug)]
struct Reached {
    group: usize,
    by: Option<(usize, usize)>,
}

impl Divider {
    /// For `degree` ≤ 64 links.
    pub(crate) fn new(degree: u64) -> Self {
        let degree = usize::try_from(degree).unwrap_or(64).min(64);
        Self { degree, flow: Vec::new(), room: Vec::new(), reached_links: 0, reached: Vec::new() }
    }

    /// Raises `largest` to the load of the busiest link. Groups use no other links.
    ///
    /// By Newton's method on the load (Dinkelbach 1967): a load suffices when a flow brings every source to its links; if
    /// not, the cut that stops it is a set of links with a larger quotient, and there are at most as many sizes of sets as
    /// links.
    pub(crate) fn raise(&mut self, largest: &mut Largest, groups: &[Group]) {
        let total: u64 = groups.iter().map(|group| group.count).sum();
        largest.raise(total, self.degree as u64);
        while let Some((count, size)) = self.overfull(largest, groups) {
            if !largest.raise(count, size) {
                return;
            }
        }
    }

    /// Sources and size of a set of links that cannot bear the load; none when all can.
    fn overfull(&mut self, load: &Largest, groups: &[Group]) -> Option<(u64, u64)> {
        // A source counts `denominator`, a link bears `numerator`.
        self.room.clear();
        self.room.resize(self.degree, load.numerator);
        self.flow.clear();
        self.flow.resize(groups.len() * self.degree, 0);
        for (index, group) in groups.iter().enumerate() {
            let mut left = group.count * load.denominator;
            let mut links = group.links;
            while links != 0 {
                // As evenly as there is room.
                let (link, others) = (links.trailing_zeros() as usize, u64::from(links.count_ones()));
                links &= links - 1;
                let part = left.div_ceil(others).min(self.room[link]);
                self.flow[index * self.degree + link] = part;
                self.room[link] -= part;
                left -= part;
            }
            while left > 0 {
                let Some(sent) = self.augment(index, left, groups) else {
                    let inside = groups.iter().filter(|group| group.links & !self.reached_links == 0);
                    let size = u64::from(self.reached_links.count_ones());
                    return Some((inside.map(|group| group.count).sum(), size));
                };
                left -= sent;
            }
        }
        None
    }

    /// Sends some of a group to a link with room, moving others out of the way; none when no link can be reached.
    fn augment(&mut self, start: usize, left: u64, groups: &[Group]) -> Option<u64> {
        let (mut at, end) = self.search(start, groups)?;
        // Each group on the way takes more of the link after it and gives up as much of the link before it.
        let mut amount = left.min(self.room[end]);
        let mut place = at;
        while let Reached { group, by: Some((before, link)) } = self.reached[place] {
            amount = amount.min(self.flow[group * self.degree + link]);
            place = before;
        }
        self.room[end] -= amount;
        let mut takes = end;
        loop {
            let Reached { group, by } = self.reached[at];
            self.flow[group * self.degree + takes] += amount;
            let Some((before, link)) = by else { return Some(amount) };
            self.flow[group * self.degree + link] -= amount;
            (at, takes) = (before, link);
        }
    }

    /// The nearest link with room, and the place of the group before it; all that can be reached where there is none.
    fn search(&mut self, start: usize, groups: &[Group]) -> Option<(usize, usize)> {
        self.reached_links = 0;
        self.reached.clear();
        self.reached.push(Reached { group: start, by: None });
        let mut place = 0;
        // Alternating paths, breadth first: from each group to the links it can use, and on to the groups that use these.
        // O(links · groups).
        while let Some(&Reached { group, .. }) = self.reached.get(place) {
            let mut fresh = groups[group].links & !self.reached_links;
            while fresh != 0 {
                let link = fresh.trailing_zeros() as usize;
                fresh &= fresh - 1;
                self.reached_links |= 1 << link;
                if self.room[link] > 0 {
                    return Some((place, link));
                }
                for other in 0..groups.len() {
                    let gives_up = self.flow[other * self.degree + link] > 0;
                    if gives_up && self.reached.iter().all(|reached| reached.group != other) {
                        self.reached.push(Reached { group: other, by: Some((place, link)) });
                    }
                }
            }
            place += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn groups() -> impl Strategy<Value = Vec<Group>> {
        prop::collection::vec((1_u64..64, 0_u64..50), 1..12)
            .prop_map(|pairs| pairs.into_iter().map(|(links, count)| Group { links, count }).collect())
    }

    proptest! {
        /// All sets of six links.
        #[test]
        fn the_largest_quotient_of_all_sets_is_found(groups in groups()) {
            let mut expected = Largest::default();
            for set in 1_u64..64 {
                let inside = groups.iter().filter(|group| group.links & !set == 0).map(|group| group.count).sum();
                expected.raise(inside, set.count_ones().into());
            }
            let mut found = Largest::default();
            Divider::new(6).raise(&mut found, &groups);
            prop_assert_eq!(found.fraction(), expected.fraction());
        }
    }

    #[test]
    fn figure_3_5() {
        let mut load = Largest::default();
        let (first, second) = (Group { links: 0b011, count: 1 }, Group { links: 0b110, count: 1 });
        let mut divider = Divider::new(3);
        divider.raise(&mut load, &[first, second]);
        assert_eq!(load.fraction(), Fraction { numerator: 2, denominator: 3 });
        divider.raise(&mut load, &[first, Group { links: 0b010, count: 1 }]);
        assert_eq!(load.fraction(), Fraction { numerator: 1, denominator: 1 });
    }
}
