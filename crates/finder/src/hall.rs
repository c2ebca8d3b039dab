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

/// Raises `largest` to the load of the busiest of `degree` ≤ 64 links.
///
/// By Newton's method on the load (Dinkelbach 1967): a load suffices when a flow brings every source to its links; if
/// not, the cut that stops it is a set of links with a larger quotient, and there are at most `degree` sizes of sets.
/// Dividing all groups evenly mostly shows at once that nothing is larger.
pub(crate) fn raise_by_groups(largest: &mut Largest, groups: &[Group], degree: u64) {
    let total: u64 = groups.iter().map(|group| group.count).sum();
    largest.raise(total, degree);
    if even_division_suffices(largest, groups, degree) {
        return;
    }
    while let Some((count, size)) = overfull(largest, groups, degree) {
        if !largest.raise(count, size) {
            return;
        }
    }
}

/// Whether no link has more than the load when every group is divided evenly among its links, each load rounded up.
fn even_division_suffices(largest: &Largest, groups: &[Group], degree: u64) -> bool {
    const UNIT_BITS: u32 = 24;
    let mut loads = [0_u64; 64];
    for group in groups {
        let share = (group.count << UNIT_BITS).div_ceil(u64::from(group.links.count_ones()));
        for_each_bit(group.links, |link| loads[link] += share);
    }
    let busiest = loads.iter().take(usize::try_from(degree).unwrap_or(64)).max().copied().unwrap_or(0);
    u128::from(busiest) * u128::from(largest.denominator) <= u128::from(largest.numerator) << UNIT_BITS
}

fn for_each_bit(bits: u64, mut work: impl FnMut(usize)) {
    let mut left = bits;
    while left != 0 {
        work(left.trailing_zeros() as usize);
        left &= left - 1;
    }
}

/// Sources and size of a set of links that cannot bear the load; none when all can.
fn overfull(load: &Largest, groups: &[Group], degree: u64) -> Option<(u64, u64)> {
    // A source counts `denominator`, a link bears `numerator`.
    let degree = usize::try_from(degree).unwrap_or(64);
    let mut room = vec![load.numerator; degree];
    let mut flow = vec![[0_u64; 64]; groups.len()];
    for index in 0..groups.len() {
        let mut left = groups[index].count * load.denominator;
        while left > 0 {
            let Some(sent) = augment(index, left, groups, &mut flow, &mut room) else {
                return Some(blocked(index, groups, &flow));
            };
            left -= sent;
        }
    }
    None
}

/// What can be reached from a group over links that it may use and groups that could give up some of these: links, and
/// groups, each with the place in the list of the one before it and the link between.
struct Reach {
    links: u64,
    groups: Vec<(usize, Option<(usize, usize)>)>,
}

fn reach(start: usize, groups: &[Group], flow: &[[u64; 64]], mut ends_at: impl FnMut(usize, usize) -> bool) -> Reach {
    let mut reach = Reach { links: 0, groups: vec![(start, None)] };
    let mut seen = vec![false; groups.len()];
    seen[start] = true;
    let mut next = 0;
    while next < reach.groups.len() {
        let place = next;
        let group = reach.groups[place].0;
        next += 1;
        let mut fresh = groups[group].links & !reach.links;
        while fresh != 0 {
            let link = fresh.trailing_zeros() as usize;
            fresh &= fresh - 1;
            reach.links |= 1 << link;
            if ends_at(place, link) {
                return reach;
            }
            for other in 0..groups.len() {
                if !seen[other] && flow[other][link] > 0 {
                    seen[other] = true;
                    reach.groups.push((other, Some((place, link))));
                }
            }
        }
    }
    reach
}

/// Sends some of a group to a link with room, moving others out of the way; none when no link can be reached.
fn augment(start: usize, left: u64, groups: &[Group], flow: &mut [[u64; 64]], room: &mut [u64]) -> Option<u64> {
    let mut end = None;
    let found = reach(start, groups, flow, |place, link| {
        let free = room[link] > 0;
        if free {
            end = Some((place, link));
        }
        free
    });
    let end = end?;
    // Each group on the way takes more of the link after it and gives up as much of the link before it.
    let mut amount = left.min(room[end.1]);
    let mut at = end.0;
    while let (group, Some((before, link))) = found.groups[at] {
        amount = amount.min(flow[group][link]);
        at = before;
    }
    room[end.1] -= amount;
    let (mut at, mut takes) = end;
    loop {
        let (group, by) = found.groups[at];
        flow[group][takes] += amount;
        let Some((before, link)) = by else { return Some(amount) };
        flow[group][link] -= amount;
        (at, takes) = (before, link);
    }
}

/// The sources that only the links within reach could take, and the number of these.
fn blocked(start: usize, groups: &[Group], flow: &[[u64; 64]]) -> (u64, u64) {
    let found = reach(start, groups, flow, |_, _| false);
    let count = groups.iter().filter(|group| group.links & !found.links == 0).map(|group| group.count).sum();
    (count, found.links.count_ones().into())
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
            raise_by_groups(&mut found, &groups, 6);
            prop_assert_eq!(found.fraction(), expected.fraction());
        }
    }

    #[test]
    fn figure_3_5() {
        let mut load = Largest::default();
        let (first, second) = (Group { links: 0b011, count: 1 }, Group { links: 0b110, count: 1 });
        raise_by_groups(&mut load, &[first, second], 3);
        assert_eq!(load.fraction(), Fraction { numerator: 2, denominator: 3 });
        raise_by_groups(&mut load, &[first, Group { links: 0b010, count: 1 }], 3);
        assert_eq!(load.fraction(), Fraction { numerator: 1, denominator: 1 });
    }
}
