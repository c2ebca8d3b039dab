//! Which rank sits where: boxes, numbered by digits, with places.

use std::ops::Range;

use canopy_topology::Rank;

/// Boxes of places, and the ranks on them.
///
/// The number of a box is made of its digits, the first one lowest: `d₁ + n₁·(d₂ + n₂·(d₃ + …))`. A *seat* is a place
/// of a box: `box · places + place`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxGrid {
    /// Places of each box, P ≥ 1.
    pub places: u32,
    /// Sizes of the digits, n₁, n₂, …, each ≥ 1; the digit of the first stage is the first. Their product is the number
    /// of boxes.
    pub digits: Vec<u32>,
    /// The ranks on the seats.
    pub seats: Seats,
}

/// Ranks on seats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seats {
    /// Ranks in the order of seats, one on each but on these, which are sorted.
    InOrder {
        /// Seats without a rank.
        empty: Vec<u32>,
    },
    /// The same where ranks count the digits of boxes in another order: as in a number whose lowest digit is the first
    /// of `order`.
    Turned {
        /// Every digit once, by its position.
        order: Vec<u32>,
        /// Seats without a rank, sorted.
        empty: Vec<u32>,
    },
    /// The seat of each rank.
    Listed(Vec<u32>),
}

impl Seats {
    /// The ranks of all seats of a grid, [`NOBODY`] where there is none, in as few numbers as they can be told.
    /// O(seats · digits).
    pub fn of(places: u32, digits: &[u32], seats: &[u32]) -> Self {
        let is_free = |seat: &u32| seats.get(*seat as usize) == Some(&NOBODY);
        let empty = || (0..).take(seats.len()).filter(is_free).collect();
        let of_box = |of_box: u32| seats.chunks(places.max(1) as usize).nth(of_box as usize).into_iter().flatten();
        let in_order = |boxes: &mut dyn Iterator<Item = u32>| {
            let mut expected = 0..;
            boxes.flat_map(of_box).filter(|&&rank| rank != NOBODY).all(|&rank| expected.next() == Some(rank))
        };
        let count = u32::try_from(seats.len()).unwrap_or(u32::MAX) / places.max(1);
        if in_order(&mut (0..count)) {
            return Self::InOrder { empty: empty() };
        }
        for order in orders(digits.len()) {
            if turned(digits, &order).is_some_and(|boxes| in_order(&mut boxes.into_iter())) {
                return Self::Turned { order, empty: empty() };
            }
        }
        let mut listed = vec![0; seats.iter().filter(|&&rank| rank != NOBODY).count()];
        for (seat, &rank) in (0..).zip(seats) {
            if let Some(listed) = listed.get_mut(rank as usize) {
                *listed = seat;
            }
        }
        Self::Listed(listed)
    }
}

/// The positions of digits where those of larger sets come first, but ranks count the members of the smallest sets
/// first: parts of consecutive digits, the last part first. At most 32.
fn orders(digits: usize) -> impl Iterator<Item = Vec<u32>> {
    let positions: Vec<u32> = (0..).take(digits.min(6)).collect();
    let count = 1_u32 << positions.len().saturating_sub(1);
    let beyond: Vec<u32> = (0..).take(digits).skip(positions.len()).collect();
    (1..count).map(move |cuts| {
        let parts = positions.chunk_by(|_, &after| cuts >> (after - 1) & 1 == 0);
        let mut parts: Vec<&[u32]> = parts.collect();
        parts.reverse();
        [&parts.concat(), beyond.as_slice()].concat()
    })
}

/// All boxes, in the order of the number whose digits are these, the lowest first. `None`: `order` does not hold every
/// digit once, or there are too many boxes.
fn turned(digits: &[u32], order: &[u32]) -> Option<Vec<u32>> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if sorted.len() != digits.len() || !sorted.iter().zip(0..).all(|(&position, expected)| position == expected) {
        return None;
    }
    let mut boxes = vec![0_u32];
    for &position in order {
        let unit = digits.iter().take(position as usize).try_fold(1_u32, |unit, &digit| unit.checked_mul(digit))?;
        let before = boxes.len();
        for digit in 1..*digits.get(position as usize)? {
            let more = unit.checked_mul(digit)?;
            for lower in 0..before {
                boxes.push(boxes[lower].checked_add(more)?);
            }
        }
    }
    Some(boxes)
}

/// Why ranks and seats do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SeatError {
    #[error("boxes have no places; state one at least")]
    NoPlaces,
    #[error("digits[{digit}] is 0; a digit has one value at least")]
    NoValues { digit: usize },
    #[error("there are {digits} digits; 32 number all boxes, as digits with one value change nothing")]
    TooManyDigits { digits: usize },
    #[error("digits and places make more than {max} seats")]
    TooManySeats { max: u32 },
    #[error("{seats} seats, {empty} of them empty, are not for {rank_count} ranks")]
    RankCount { seats: u32, empty: usize, rank_count: u32 },
    #[error("seat {seat} of rank {rank} does not exist; there are {seats}")]
    UnknownSeat { rank: usize, seat: u32, seats: u32 },
    #[error("empty seat {seat} does not exist, or is listed after a later one; there are {seats}")]
    Empty { seat: u32, seats: u32 },
    #[error("the order of digits must have each of the {digits} positions once, from 0 on")]
    Order { digits: usize },
    #[error("ranks {first} and {second} are both on seat {seat}")]
    Taken { seat: u32, first: u32, second: usize },
}

/// Marks a seat without a rank.
pub const NOBODY: u32 = u32::MAX;

/// Most digits: more of them with several values make more boxes than there are numbers.
const DIGITS_MAX: usize = 32;

/// Most seats for each rank, beyond some that are too few to matter.
const SEATS_PER_RANK: u32 = 64;
const SEATS_FEW: u32 = 1024;

/// Most seats: each has a number of 32 bits, and one number is for none.
const SEATS_MAX: u32 = u32::MAX - 1;

impl BoxGrid {
    /// Number of boxes. `None`: there are too many, or a digit has no value.
    pub fn box_count(&self) -> Option<u32> {
        let product = self.digits.iter().try_fold(1_u32, |product, &digit| product.checked_mul(digit));
        product.filter(|&product| product > 0)
    }

    /// Number of boxes that agree in all digits from this one on.
    pub fn unit(&self, stage: usize) -> u32 {
        self.digits.iter().take(stage).product()
    }

    /// The digit of a box in a stage.
    pub fn digit(&self, of_box: u32, stage: usize) -> u32 {
        self.digits.get(stage).map_or(0, |&size| of_box / self.unit(stage) % size)
    }

    /// The same grid where rank `r` is `ranks[r]`. O(seats + ranks).
    ///
    /// * **In.** A permutation. **Errors.** [`SeatError`], as of [`BoxGrid::seating`].
    pub(crate) fn relabelled(&self, ranks: &[Rank]) -> Result<Self, SeatError> {
        let seating = self.seating(u32::try_from(ranks.len()).unwrap_or(u32::MAX))?;
        let renamed = |&rank: &u32| ranks.get(rank as usize).map_or(NOBODY, |rank| rank.number());
        let seats: Vec<u32> = seating.ranks.iter().map(renamed).collect();
        Ok(Self { seats: Seats::of(self.places, &self.digits, &seats), ..self.clone() })
    }

    /// Puts ranks on their seats. O(seats + ranks).
    ///
    /// # Errors
    /// [`SeatError`].
    pub fn seating(&self, rank_count: u32) -> Result<Seating, SeatError> {
        if self.places == 0 {
            return Err(SeatError::NoPlaces);
        }
        // What is done for each digit is little, but not for millions.
        if self.digits.len() > DIGITS_MAX {
            return Err(SeatError::TooManyDigits { digits: self.digits.len() });
        }
        if let Some(digit) = self.digits.iter().position(|&size| size == 0) {
            return Err(SeatError::NoValues { digit });
        }
        // Seats cost memory, and a few numbers can state many.
        let max = rank_count.saturating_mul(SEATS_PER_RANK).saturating_add(SEATS_FEW).min(SEATS_MAX);
        let seats = self.box_count().and_then(|boxes| boxes.checked_mul(self.places));
        let seats = seats.filter(|&seats| seats <= max).ok_or(SeatError::TooManySeats { max })?;
        let empty = match &self.seats {
            Seats::InOrder { empty } | Seats::Turned { empty, .. } => empty.len(),
            Seats::Listed(_) => seats.saturating_sub(rank_count) as usize,
        };
        let wrong = SeatError::RankCount { seats, empty, rank_count };
        // What does not fit is refused before anything of that size is built.
        if u64::from(rank_count) + empty as u64 != u64::from(seats) {
            return Err(wrong);
        }
        let mut ranks = vec![NOBODY; seats as usize];
        match &self.seats {
            Seats::InOrder { empty } => {
                require_sorted(empty, seats)?;
                let boxes = 0..seats / self.places;
                self.seat_in_order(&mut ranks, boxes, empty);
            }
            Seats::Turned { order, empty } => {
                require_sorted(empty, seats)?;
                let boxes = turned(&self.digits, order).ok_or(SeatError::Order { digits: self.digits.len() })?;
                self.seat_in_order(&mut ranks, boxes.into_iter(), empty);
            }
            Seats::Listed(listed) => {
                if listed.len() != rank_count as usize {
                    return Err(wrong);
                }
                for (rank, &seat) in listed.iter().enumerate() {
                    let taken = ranks.get_mut(seat as usize).ok_or(SeatError::UnknownSeat { rank, seat, seats })?;
                    if *taken != NOBODY {
                        return Err(SeatError::Taken { seat, first: *taken, second: rank });
                    }
                    *taken = u32::try_from(rank).map_err(|_| wrong.clone())?;
                }
            }
        }
        Ok(Seating::new(self.places, ranks))
    }

    /// Puts ranks on all seats but the empty ones, box after box.
    fn seat_in_order(&self, ranks: &mut [u32], boxes: impl Iterator<Item = u32>, empty: &[u32]) {
        let mut next = 0;
        for of_box in boxes {
            let first = of_box * self.places;
            let from = empty.partition_point(|&seat| seat < first);
            let mut free = empty[from..].iter().copied().peekable();
            for seat in first..first + self.places {
                if free.next_if_eq(&seat).is_none() {
                    (ranks[seat as usize], next) = (next, next + 1);
                }
            }
        }
    }
}

/// Whether these are seats, each after the one before.
fn require_sorted(empty: &[u32], seats: u32) -> Result<(), SeatError> {
    let mut least = 0;
    for &seat in empty {
        if seat < least || seat >= seats {
            return Err(SeatError::Empty { seat, seats });
        }
        least = seat + 1;
    }
    Ok(())
}

/// Ranks by seat, and how many sit before each box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seating {
    places: u32,
    ranks: Vec<u32>,
    before: Vec<u32>,
    is_in_order: bool,
}

impl Seating {
    fn new(places: u32, ranks: Vec<u32>) -> Self {
        let mut before = Vec::with_capacity(ranks.len() / places as usize + 1);
        let mut count = 0;
        for of_box in ranks.chunks(places as usize) {
            before.push(count);
            count += of_box.iter().map(|&rank| u32::from(rank != NOBODY)).sum::<u32>();
        }
        before.push(count);
        let is_in_order =
            ranks.iter().filter(|&&rank| rank != NOBODY).zip(0..).all(|(&rank, expected)| rank == expected);
        Self { places, ranks, before, is_in_order }
    }

    /// Places of each box.
    pub const fn places(&self) -> u32 {
        self.places
    }

    /// Number of boxes, those without ranks included.
    pub fn box_count(&self) -> u32 {
        u32::try_from(self.before.len() - 1).expect("seats have numbers of 32 bits")
    }

    /// The rank at a place of a box, if there is one.
    pub fn rank(&self, of_box: u32, place: u32) -> Option<u32> {
        let ranks = self.of_box(of_box);
        ranks.get(place as usize).copied().filter(|&rank| rank != NOBODY)
    }

    /// Places of a box that have ranks, with these.
    pub fn live(&self, of_box: u32) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        (0..).zip(self.of_box(of_box)).filter(|(_, rank)| **rank != NOBODY).map(|(place, &rank)| (place, rank))
    }

    /// Whether a box has no ranks.
    pub fn is_empty(&self, of_box: u32) -> bool {
        self.live(of_box).next().is_none()
    }

    /// The ranks of a box by place, if all places have one.
    pub fn full(&self, of_box: u32) -> Option<&[u32]> {
        let ranks = self.of_box(of_box);
        (self.ranks_in(of_box..of_box.checked_add(1)?) == self.places).then_some(ranks)
    }

    /// Number of ranks in boxes of consecutive numbers; those beyond the last one have none.
    pub fn ranks_in(&self, boxes: Range<u32>) -> u32 {
        let before = |at: u32| self.before.get(at as usize).or(self.before.last()).copied().unwrap_or(0);
        before(boxes.end) - before(boxes.start)
    }

    /// The seat of a rank. O(seats), or O(log seats) where ranks are in the order of seats.
    pub fn seat_of(&self, rank: u32) -> Option<u32> {
        let seat = match self.is_in_order {
            true => {
                let first =
                    (self.before.partition_point(|&before| before <= rank).checked_sub(1)?) * self.places as usize;
                let of_box = self.ranks.get(first..first + self.places as usize)?;
                first + of_box.iter().position(|&other| other == rank)?
            }
            false => self.ranks.iter().position(|&other| other == rank).filter(|_| rank != NOBODY)?,
        };
        u32::try_from(seat).ok()
    }

    /// The chunks of the vector of all shares that are these of the run of some boxes, where each share has k: ranges
    /// in the order of the run, as few as there can be.
    pub fn chunks(&self, boxes: Range<u32>, chunks: Range<u64>, k: u64) -> Vec<Range<u64>> {
        let before = self.before.get(boxes.start as usize).copied().unwrap_or(0);
        if self.is_in_order {
            let first = u64::from(before) * k;
            return std::iter::once(first + chunks.start..first + chunks.end).collect();
        }
        let live = boxes.flat_map(|of_box| self.live(of_box).map(|(_, rank)| u64::from(rank)));
        let mut found: Vec<Range<u64>> = Vec::new();
        let shares = (0_u64..).map(|number| number * k..(number + 1) * k).zip(live);
        for (share, rank) in shares.skip_while(|(share, _)| share.end <= chunks.start) {
            let part = share.start.max(chunks.start)..share.end.min(chunks.end);
            if part.is_empty() {
                break;
            }
            let first = rank * k + (part.start - share.start);
            let range = first..first + (part.end - part.start);
            match found.last_mut().filter(|last| last.end == range.start) {
                Some(last) => last.end = range.end,
                None => found.push(range),
            }
        }
        found
    }

    fn of_box(&self, of_box: u32) -> &[u32] {
        let start = of_box as usize * self.places as usize;
        self.ranks.get(start..start + self.places as usize).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(digits: &[u32], seats: Seats) -> BoxGrid {
        BoxGrid { places: 2, digits: digits.to_vec(), seats }
    }

    #[test]
    fn ranks_may_count_the_digits_of_boxes_in_another_order() {
        // Boxes 0, 3, 1, 4, 2, 5 of two digits 3 and 2; the second place of box 3 is free.
        let turned = grid(&[3, 2], Seats::Turned { order: vec![1, 0], empty: vec![7] });
        let seating = turned.seating(11).unwrap();
        let at = |of_box| [0, 1].map(|place| seating.rank(of_box, place));
        assert_eq!([0, 3, 1].map(at), [[Some(0), Some(1)], [Some(2), None], [Some(3), Some(4)]]);
        // The same seats are told in the same way, whatever the number of digits.
        for digits in [&[3, 2][..], &[2, 3, 4], &[4, 1, 3, 2], &[5]] {
            for turn in 1..digits.len() {
                let positions: Vec<u32> = (0..).take(digits.len()).collect();
                let order = [&positions[turn..], &positions[..turn]].concat();
                let turned = grid(digits, Seats::Turned { order, empty: vec![0, 5] });
                let rank_count = 2 * digits.iter().product::<u32>() - 2;
                let ranks: Vec<Rank> = (0..rank_count).map(Rank::new).collect();
                let same = turned.relabelled(&ranks).unwrap();
                assert_eq!(same.seating(rank_count), turned.seating(rank_count));
                assert!(!matches!(same.seats, Seats::Listed(_)), "{turned:?}");
            }
        }
        // Others are listed.
        let swapped: Vec<Rank> = [1, 0, 2, 3].map(Rank::new).into();
        let listed = grid(&[2], Seats::InOrder { empty: Vec::new() }).relabelled(&swapped).unwrap();
        assert_eq!(listed.seats, Seats::Listed(vec![1, 0, 2, 3]));
    }

    #[test]
    fn more_seats_than_ranks_can_need_are_refused_before_they_are_there() {
        let listed = |digits: &[u32]| grid(digits, Seats::Listed(vec![0, 1, 2, 3]));
        assert!(listed(&[500]).seating(4).is_ok());
        for digits in [&[641][..], &[1 << 16, 1 << 14], &[u32::MAX], &[1 << 20, 1 << 20]] {
            assert_eq!(listed(digits).seating(4), Err(SeatError::TooManySeats { max: 4 * 64 + 1024 }));
        }
    }

    #[test]
    fn more_digits_than_number_boxes_are_refused() {
        let of_one = |digits: usize| grid(&vec![1; digits], Seats::InOrder { empty: Vec::new() }).seating(2);
        assert!(of_one(32).is_ok());
        assert_eq!(of_one(33), Err(SeatError::TooManyDigits { digits: 33 }));
    }

    #[test]
    fn orders_and_empty_seats_that_are_none_are_refused() {
        for order in [vec![], vec![0], vec![0, 0], vec![1, 2], vec![0, 1, 2]] {
            let refused = grid(&[3, 2], Seats::Turned { order, empty: Vec::new() }).seating(12);
            assert_eq!(refused, Err(SeatError::Order { digits: 2 }));
        }
        for empty in [vec![12], vec![3, 3], vec![4, 3]] {
            for seats in
                [Seats::InOrder { empty: empty.clone() }, Seats::Turned { order: vec![1, 0], empty: empty.clone() }]
            {
                let count = 12 - u32::try_from(empty.len()).unwrap();
                let refused = grid(&[3, 2], seats).seating(count);
                assert!(matches!(refused, Err(SeatError::Empty { .. })), "{refused:?}");
            }
        }
    }
}
