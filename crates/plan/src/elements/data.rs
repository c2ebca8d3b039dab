//! What emulated ranks start with and must end with.

use std::ops::Range;

use canopy_topology::Rank;

use super::{ElementType, Operator};
use crate::promise::{Promise, Promises};
use crate::proof::Stop;

/// Elements between two looks at the stop request.
const ELEMENTS_PER_LOOK: u64 = 1 << 14;

/// One step of `SplitMix64` (Steele, Lea and Flood 2014): an invertible mixing of 64 bits.
pub(crate) fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Random elements as a function of where they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random {
    pub(crate) seed: u64,
    pub(crate) element: ElementType,
    pub(crate) operator: Operator,
    /// Elements of each chunk, which begin anew in every one; 0: places are not counted in chunks.
    pub(crate) chunk_elements: u64,
}

impl Random {
    pub(crate) const fn combine(self, first: u64, second: u64) -> u64 {
        self.element.combine(self.operator, first, second)
    }

    /// An element of a rank's input. Factors are odd: they have inverses, so a missing or doubled one shows.
    pub(crate) fn input(self, rank: u32, place: u64) -> u64 {
        let own = mix(self.seed ^ u64::from(rank));
        let random = match self.chunk_elements {
            0 => mix(own ^ place),
            elements => mix(mix(own ^ (place / elements)) ^ (place % elements)),
        };
        self.element.truncate(if self.operator == Operator::Product { random | 1 } else { random })
    }

    /// What lies in a rank's memory where nothing was put.
    pub(crate) fn garbage(self, rank: u32, place: u64) -> u64 {
        self.element.truncate(mix(mix(!self.seed ^ u64::from(rank)) ^ place))
    }
}

/// What is given to all ranks, and promised to them.
pub(crate) struct Data<'s> {
    random: Random,
    /// In elements.
    promises: Promises,
    /// All ranks' elements combined, by place of the input.
    sums: Vec<u64>,
    stop: Stop<'s>,
}

/// What is wrong with a rank's memory in the end; places are elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataFault {
    /// Asked to stop: nothing is known.
    Stopped,
    /// The first place of the output that is not what was promised.
    Output(u64),
    /// The first place of the input that has changed.
    Input(u64),
}

impl<'s> Data<'s> {
    /// Draws the elements; inputs, of so many at most, have been bounded by the caller.
    pub(crate) fn new(
        random: Random,
        rank_count: u32,
        promises: Promises,
        inputs: u64,
        stop: Stop<'s>,
    ) -> Result<Self, DataFault> {
        let sums_count = if promises.are_sums() { inputs } else { 0 };
        let mut data = Self { random, promises, sums: Vec::new(), stop };
        for place in 0..sums_count {
            data.look(place)?;
            let rest = (1..rank_count).map(|rank| random.input(rank, place));
            data.sums.push(rest.fold(random.input(0, place), |sum, next| random.combine(sum, next)));
        }
        Ok(data)
    }

    /// Gives up if asked to, now and then.
    fn look(&self, place: u64) -> Result<(), DataFault> {
        let is_due = place.is_multiple_of(ELEMENTS_PER_LOOK);
        if is_due && (self.stop)() { Err(DataFault::Stopped) } else { Ok(()) }
    }

    /// A rank's memory of so many elements, with its input at a place of it, and garbage everywhere else.
    pub(crate) fn memory(&self, rank: u32, elements: u64, input: Range<u64>) -> Result<Vec<u64>, DataFault> {
        let mut values = Vec::with_capacity(usize::try_from(elements).expect("the size of memory was checked"));
        let is_given = self.promises.is_given(Rank::new(rank));
        for index in 0..elements {
            self.look(index)?;
            values.push(match index.checked_sub(input.start).filter(|_| is_given && index < input.end) {
                Some(place) => self.random.input(rank, place),
                None => self.random.garbage(rank, index),
            });
        }
        Ok(values)
    }

    /// What an element of a rank's output must be; none where nothing is promised.
    fn expected(&self, rank: Rank, place: u64) -> Option<u64> {
        match self.promises.at(rank, place)? {
            Promise::From(origin, place) => Some(self.random.input(origin.number(), place)),
            Promise::All(place) => self.sums.get(usize::try_from(place).ok()?).copied(),
        }
    }

    /// Compares what must stay as it is of a rank's output, whose elements come with their places in its memory.
    pub(crate) fn check_rests(&self, rank: u32, output: impl Iterator<Item = (u64, u64)>) -> Result<(), DataFault> {
        for (place, (index, found)) in (0..).zip(output.filter(|_| self.promises.has_rests())) {
            self.look(place)?;
            if self.promises.leaves(Rank::new(rank), place) && found != self.random.garbage(rank, index) {
                return Err(DataFault::Output(place));
            }
        }
        Ok(())
    }

    /// Compares a rank's output, and its input where that must be unchanged. Returns the number of output elements compared.
    pub(crate) fn check(
        &self,
        rank: u32,
        output: impl Iterator<Item = u64>,
        input: Option<impl Iterator<Item = u64>>,
    ) -> Result<u64, DataFault> {
        let mut compared = 0;
        for (place, found) in (0..).zip(output) {
            self.look(place)?;
            let Some(expected) = self.expected(Rank::new(rank), place) else { continue };
            compared += 1;
            if found != expected {
                return Err(DataFault::Output(place));
            }
        }
        let is_given = self.promises.is_given(Rank::new(rank));
        for (place, found) in (0..).zip(input.filter(|_| is_given).into_iter().flatten()) {
            self.look(place)?;
            if found != self.random.input(rank, place) {
                return Err(DataFault::Input(place));
            }
        }
        Ok(compared)
    }
}
