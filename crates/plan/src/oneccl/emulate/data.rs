//! What ranks start with and must end with.

use canopy_topology::Rank;

use super::{EmulateOptions, EmulationError};
use crate::emulate::{ElementType, Operator, mix};
use crate::msccl::Buffer;
use crate::oneccl::lengths::Lengths;
use crate::oneccl::memory::Memory;
use crate::oneccl::program::Program;
use crate::oneccl::promise::{Promise, promise};

/// A chunk's elements.
pub(super) type Chunk = Vec<u64>;

/// Random elements as a function of where they are.
pub(super) struct Data<'p> {
    program: &'p Program,
    seed: u64,
    elements: u64,
    element: ElementType,
    operator: Operator,
    lengths: Lengths,
}

impl<'p> Data<'p> {
    pub(super) fn new(program: &'p Program, options: &EmulateOptions, lengths: Lengths) -> Self {
        let EmulateOptions { seed, elements, element, operator, .. } = *options;
        Self { program, seed, elements, element, operator, lengths }
    }

    pub(super) fn combine(&self, first: u64, second: u64) -> u64 {
        self.element.combine(self.operator, first, second)
    }

    /// An element of a rank's input. Factors are odd: they have inverses, so a missing or doubled one shows.
    fn input(&self, rank: u32, place: u64) -> u64 {
        let random = mix(mix(self.seed ^ u64::from(rank)) ^ place);
        self.element.truncate(if self.operator == Operator::Product { random | 1 } else { random })
    }

    fn expected(&self, rank: u32, place: u64) -> u64 {
        match promise(self.program.collective, Rank::new(rank), place, self.elements) {
            Promise::From(origin, place) => self.input(origin.number(), place),
            Promise::All(place) => {
                let rest = (1..self.program.rank_count).map(|rank| self.input(rank, place));
                rest.fold(self.input(0, place), |sum, next| self.combine(sum, next))
            }
        }
    }

    /// Elements of a chunk of the caller's buffers.
    fn places(&self, offset: u64) -> std::ops::Range<u64> {
        self.lengths.start(offset)..self.lengths.start(offset + 1)
    }

    /// Memory of a rank at the start: its input, and garbage everywhere else.
    pub(super) fn initial(&self, rank: u32, memory: &Memory) -> Vec<Chunk> {
        let garbage = |place: u64| self.element.truncate(mix(mix(!self.seed ^ u64::from(rank)) ^ place));
        let cells = usize::try_from(memory.cell_count()).expect("the size of memory was checked");
        let mut values: Vec<Chunk> = vec![Vec::new(); cells];
        for buffer in [Buffer::Scratch, Buffer::Output, Buffer::Input] {
            for (offset, cell) in (0..).zip(indices(memory, buffer)) {
                values[cell] = match buffer {
                    Buffer::Scratch => (0..self.lengths.longest()).map(garbage).collect(),
                    Buffer::Output => self.places(offset).map(garbage).collect(),
                    Buffer::Input => self.places(offset).map(|place| self.input(rank, place)).collect(),
                };
            }
        }
        values
    }

    /// Compares outputs, and inputs where they must be unchanged. Returns the number of output elements compared.
    pub(super) fn check(
        &self,
        memories: &[Memory],
        cells: &[Vec<Chunk>],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<u64, EmulationError> {
        let mut compared = 0;
        for ((rank, memory), cells) in (0..).zip(memories).zip(cells) {
            if stop() {
                return Err(EmulationError::Stopped);
            }
            for (offset, cell) in (0..).zip(indices(memory, Buffer::Output)) {
                for (place, &found) in self.places(offset).zip(&cells[cell]) {
                    compared += 1;
                    if found != self.expected(rank, place) {
                        return Err(EmulationError::WrongOutput { rank, element: place });
                    }
                }
            }
            if memory.is_free(Buffer::Input) || self.program.in_place {
                continue;
            }
            for (offset, cell) in (0..).zip(indices(memory, Buffer::Input)) {
                let mut own = self.places(offset).zip(&cells[cell]);
                if let Some((element, _)) = own.find(|(place, found)| **found != self.input(rank, *place)) {
                    return Err(EmulationError::InputChanged { rank, element });
                }
            }
        }
        Ok(compared)
    }
}

/// Cells of a buffer.
fn indices(memory: &Memory, buffer: Buffer) -> std::ops::Range<usize> {
    let (base, chunks) = memory.place(buffer);
    let index = |cell| usize::try_from(cell).expect("the size of memory was checked");
    index(base)..index(base + chunks)
}
