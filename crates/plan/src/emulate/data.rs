//! What ranks start with and must end with.

use canopy_schedule::CollectiveKind;

use super::element::ElementType;
use super::{EmulateOptions, EmulationError, Operator};
use crate::msccl::{Buffer, Memory, Program, RankProgram, expected_chunks, has_buffer, share_chunks};

/// Elements between two looks at the stop request.
const ELEMENTS_PER_LOOK: usize = 1 << 14;

/// Random elements as a function of where they are: only sums are kept for the comparison.
pub(super) struct Data<'s> {
    seed: u64,
    elements: usize,
    operator: Operator,
    element: ElementType,
    /// All ranks' elements combined, by input chunk; empty for collectives that add nothing.
    reduced: Vec<u64>,
    stop: &'s (dyn Fn() -> bool + Sync),
}

/// One step of `SplitMix64` (Steele, Lea and Flood 2014): an invertible mixing of 64 bits.
pub(crate) fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl<'s> Data<'s> {
    /// Draws the data of a validated program. The caller has bounded its cells times elements.
    pub(super) fn new(
        program: &Program,
        options: &EmulateOptions,
        stop: &'s (dyn Fn() -> bool + Sync),
    ) -> Result<Self, EmulationError> {
        let mut data = Self {
            seed: options.seed,
            elements: options.elements_per_chunk as usize,
            operator: options.operator,
            element: options.element,
            reduced: Vec::new(),
            stop,
        };
        let reduces = matches!(
            program.purpose.collective(),
            Some(CollectiveKind::Allreduce | CollectiveKind::Reduce | CollectiveKind::ReduceScatter)
        );
        let chunks = if reduces { u64::from(program.chunk_count) } else { 0 };
        let mut reduced = Vec::new();
        for chunk in 0..chunks {
            data.look()?;
            for element in 0..data.elements {
                let rest = (1..program.rank_count).map(|rank| data.input(rank, chunk, element));
                reduced.push(rest.fold(data.input(0, chunk, element), |sum, next| data.combine(sum, next)));
            }
        }
        data.reduced = reduced;
        Ok(data)
    }

    fn look(&self) -> Result<(), EmulationError> {
        if (self.stop)() { Err(EmulationError::Stopped) } else { Ok(()) }
    }

    /// Elements per chunk.
    pub(super) fn elements(&self) -> usize {
        self.elements
    }

    pub(super) fn combine(&self, first: u64, second: u64) -> u64 {
        self.element.combine(self.operator, first, second)
    }

    /// Element of an input chunk of a rank. Factors are odd: they have inverses, so a missing or doubled one shows.
    fn input(&self, rank: u32, chunk: u64, element: usize) -> u64 {
        let random = mix(mix(mix(self.seed ^ u64::from(rank)) ^ chunk) ^ element as u64);
        self.element.truncate(if self.operator == Operator::Product { random | 1 } else { random })
    }

    fn reduced(&self, chunk: u64, element: usize) -> Option<u64> {
        let first = usize::try_from(chunk).ok()?.checked_mul(self.elements)?;
        self.reduced.get(first + element).copied()
    }

    /// Memory of a rank at the start: its input, and garbage everywhere else.
    pub(super) fn initial(
        &self,
        program: &Program,
        rank: &RankProgram,
        memory: &Memory,
    ) -> Result<Vec<u64>, EmulationError> {
        let cells = usize::try_from(memory.cell_count()).expect("the size of memory was checked");
        let garbage = mix(!self.seed ^ u64::from(rank.rank));
        let mut values = Vec::with_capacity(cells * self.elements);
        for index in 0..cells * self.elements {
            if index % ELEMENTS_PER_LOOK == 0 {
                self.look()?;
            }
            values.push(self.element.truncate(mix(garbage ^ index as u64)));
        }
        for chunk in 0..self.input_chunks(program, rank) {
            if chunk % ELEMENTS_PER_LOOK as u64 == 0 {
                self.look()?;
            }
            let start = usize::try_from(memory.cell(Buffer::Input, chunk)).expect("the size of memory was checked");
            let range = start * self.elements..(start + 1) * self.elements;
            for (element, value) in values[range].iter_mut().enumerate() {
                *value = self.input(rank.rank, chunk, element);
            }
        }
        Ok(values)
    }

    /// Chunks of a rank's input that the caller has filled.
    fn input_chunks(&self, program: &Program, rank: &RankProgram) -> u64 {
        let is_filled = has_buffer(program, rank.rank, Buffer::Input)
            && (program.purpose.collective() != Some(CollectiveKind::Broadcast) || rank.rank == 0);
        if is_filled { u64::from(expected_chunks(program, rank).0) } else { 0 }
    }

    /// What an element of an output chunk must be; `None` where the collective promises nothing.
    fn expected(&self, program: &Program, rank: u32, chunk: u64, element: usize) -> Option<u64> {
        let share = u64::from(share_chunks(program));
        let origin = || u32::try_from(chunk / share).ok();
        match program.purpose.collective()? {
            CollectiveKind::Allgather => Some(self.input(origin()?, chunk % share, element)),
            CollectiveKind::Gather if rank == 0 => Some(self.input(origin()?, chunk % share, element)),
            CollectiveKind::AllToAll => Some(self.input(origin()?, u64::from(rank) * share + chunk % share, element)),
            CollectiveKind::ReduceScatter => self.reduced(u64::from(rank) * share + chunk, element),
            CollectiveKind::Allreduce => self.reduced(chunk, element),
            CollectiveKind::Broadcast => Some(self.input(0, chunk, element)),
            CollectiveKind::Scatter => Some(self.input(0, u64::from(rank) * share + chunk, element)),
            CollectiveKind::Reduce if rank == 0 => self.reduced(chunk, element),
            CollectiveKind::Reduce | CollectiveKind::Gather => None,
        }
    }

    /// Compares outputs, and inputs where they must be unchanged. Returns the number of output elements compared.
    pub(super) fn check(
        &self,
        program: &Program,
        memories: &[Memory],
        cells: &[Vec<u64>],
    ) -> Result<u64, EmulationError> {
        let mut compared = 0;
        for ((rank, memory), cells) in program.ranks.iter().zip(memories).zip(cells) {
            let at = |buffer, chunk: u64, element: usize| {
                let cell = usize::try_from(memory.cell(buffer, chunk)).expect("the size of memory was checked");
                cells[cell * self.elements + element]
            };
            for chunk in 0..u64::from(expected_chunks(program, rank).1) {
                self.look()?;
                for element in 0..self.elements {
                    let Some(expected) = self.expected(program, rank.rank, chunk, element) else { continue };
                    compared += 1;
                    if at(Buffer::Output, chunk, element) != expected {
                        return Err(EmulationError::WrongOutput { rank: rank.rank, chunk });
                    }
                }
            }
            if program.in_place || program.purpose.collective().is_none() {
                continue;
            }
            for chunk in 0..self.input_chunks(program, rank) {
                let is_changed = |element| at(Buffer::Input, chunk, element) != self.input(rank.rank, chunk, element);
                if (0..self.elements).any(is_changed) {
                    return Err(EmulationError::InputChanged { rank: rank.rank, chunk });
                }
            }
        }
        Ok(compared)
    }
}
