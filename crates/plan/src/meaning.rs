//! What memory holds when a program is run on symbols: sums of some ranks' contributions to one place of the input's
//! numbering. Adding two that share a rank or differ in the place can never be part of a right result.

mod symbols;

use canopy_topology::Rank;

pub(crate) use self::symbols::{NOTHING, SumFault, Symbol};

use self::symbols::Symbols;
use crate::promise::{Promise, Promises};

/// Cells of every rank.
pub(crate) struct Values {
    symbols: Symbols,
    promises: Promises,
    cells: Vec<Vec<Symbol>>,
}

/// What a cell should hold and does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) found: Symbol,
    pub(crate) expected: Symbol,
}

impl Values {
    /// Memory of so many cells for each rank, in which nothing is, for inputs of so many places at most. The caller has bounded
    /// both.
    pub(crate) fn new(promises: Promises, inputs: u32, cells: impl Iterator<Item = u64>) -> Self {
        let cells: Vec<Vec<Symbol>> =
            cells.map(|count| vec![NOTHING; usize::try_from(count).expect("cells were counted before")]).collect();
        let rank_count = u32::try_from(cells.len()).expect("ranks are counted by u32");
        Self { symbols: Symbols::new(rank_count, inputs), promises, cells }
    }

    /// Puts so many places of a rank's input into cells from the first on, if its caller gives it one.
    pub(crate) fn give(&mut self, rank: u32, first: u64, places: u32) {
        if !self.promises.is_given(Rank::new(rank)) {
            return;
        }
        for place in 0..places {
            self.put(rank, first + u64::from(place), self.symbols.contribution(rank, place));
        }
    }

    /// What a cell holds; a cell that does not exist holds nothing.
    pub(crate) fn get(&self, rank: u32, cell: u64) -> Symbol {
        let cells = self.cells.get(rank as usize);
        cells.zip(usize::try_from(cell).ok()).and_then(|(cells, cell)| cells.get(cell)).copied().unwrap_or(NOTHING)
    }

    /// Changes a cell, if there is one, and says what it held.
    pub(crate) fn put(&mut self, rank: u32, cell: u64, value: Symbol) -> Symbol {
        let cells = self.cells.get_mut(rank as usize);
        let cell = cells.zip(usize::try_from(cell).ok()).and_then(|(cells, cell)| cells.get_mut(cell));
        cell.map_or(NOTHING, |cell| std::mem::replace(cell, value))
    }

    /// The sum of two; neither may be [`NOTHING`].
    pub(crate) fn sum(&mut self, first: Symbol, second: Symbol) -> Result<Symbol, SumFault> {
        self.symbols.sum(first, second)
    }

    /// The place of the input that a symbol other than [`NOTHING`] is of.
    pub(crate) fn place(&self, symbol: Symbol) -> u32 {
        self.symbols.chunk(symbol)
    }

    /// A symbol in words.
    pub(crate) fn describe(&self, symbol: Symbol) -> String {
        self.symbols.describe(symbol)
    }

    /// Compares the cell at a place of a rank's output with what is promised.
    pub(crate) fn check_output(&mut self, rank: u32, place: u64, cell: u64) -> Result<(), Wrong> {
        let number = |place: u64| u32::try_from(place).expect("a place of an input");
        let expected = match self.promises.at(Rank::new(rank), place) {
            None if self.promises.leaves(Rank::new(rank), place) => NOTHING,
            None => return Ok(()),
            Some(Promise::From(origin, place)) => self.symbols.contribution(origin.number(), number(place)),
            Some(Promise::All(place)) => self.symbols.total(number(place)),
        };
        let found = self.get(rank, cell);
        if found == expected { Ok(()) } else { Err(Wrong { found, expected }) }
    }

    /// Compares a rank's output of so many places, which begins at a cell; says in words what is wrong.
    pub(crate) fn check_outputs(&mut self, rank: u32, first: u64, places: u64) -> Result<(), String> {
        let (mut first_wrong, mut wrong_count) = (None, 0_u64);
        for place in 0..places {
            if let Err(wrong) = self.check_output(rank, place, first + place) {
                wrong_count += 1;
                first_wrong = first_wrong.or(Some((place, wrong)));
            }
        }
        first_wrong.map_or(Ok(()), |(place, Wrong { found, expected })| {
            let (found, expected) = (self.describe(found), self.describe(expected));
            let text = format!("output chunk {place} holds {found} instead of {expected}");
            Err(format!("{text} ({wrong_count} wrong in all)"))
        })
    }

    /// Whether so many places of a rank's input, which begin at a cell, are as they were; else the first that is not.
    pub(crate) fn check_input(&self, rank: u32, first: u64, places: u32) -> Result<(), u32> {
        let is_given = self.promises.is_given(Rank::new(rank));
        let is_changed =
            |place: &u32| self.get(rank, first + u64::from(*place)) != self.symbols.contribution(rank, *place);
        (0..places).filter(|_| is_given).find(is_changed).map_or(Ok(()), Err)
    }
}
