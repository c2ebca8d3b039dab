//! What ranks start with and must end with.

use canopy_schedule::CollectiveKind;

use super::{EmulateOptions, EmulationError, Operator};
use crate::msccl::{Buffer, Memory, Program, RankProgram, expected_chunks};

/// Random elements as a function of where they are: nothing needs to be kept for the comparison.
pub(super) struct Data {
    seed: u64,
    elements: usize,
    operator: Operator,
    rank_count: u32,
}

/// One step of `SplitMix64` (Steele, Lea and Flood 2014): an invertible mixing of 64 bits.
pub(super) fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Data {
    pub(super) fn new(program: &Program, options: &EmulateOptions) -> Self {
        Self {
            seed: options.seed,
            elements: options.elements_per_chunk as usize,
            operator: options.operator,
            rank_count: program.rank_count,
        }
    }

    /// Elements per chunk.
    pub(super) fn elements(&self) -> usize {
        self.elements
    }

    pub(super) fn combine(&self, first: u64, second: u64) -> u64 {
        match self.operator {
            Operator::Sum => first.wrapping_add(second),
            Operator::Min => first.min(second),
            Operator::Max => first.max(second),
            Operator::Xor => first ^ second,
        }
    }

    /// Element of an input chunk of a rank.
    fn input(&self, rank: u32, chunk: u64, element: usize) -> u64 {
        mix(mix(mix(self.seed ^ u64::from(rank)) ^ chunk) ^ element as u64)
    }

    fn reduced(&self, chunk: u64, element: usize) -> u64 {
        let rest = (1..self.rank_count).map(|rank| self.input(rank, chunk, element));
        rest.fold(self.input(0, chunk, element), |sum, next| self.combine(sum, next))
    }

    /// Memory of a rank at the start: its input, and garbage everywhere else.
    pub(super) fn initial(&self, program: &Program, rank: &RankProgram, memory: &Memory) -> Vec<u64> {
        let cells = usize::try_from(memory.cell_count()).expect("the size of memory was checked");
        let garbage = mix(!self.seed ^ u64::from(rank.rank));
        let mut values: Vec<u64> = (0..cells * self.elements).map(|index| mix(garbage ^ index as u64)).collect();
        let has_input = program.collective != CollectiveKind::Broadcast || rank.rank == 0;
        let input_chunks = if has_input { expected_chunks(program).0 } else { 0 };
        for chunk in 0..u64::from(input_chunks) {
            for (element, value) in
                self.chunk_mut(&mut values, memory.cell(Buffer::Input, chunk)).iter_mut().enumerate()
            {
                *value = self.input(rank.rank, chunk, element);
            }
        }
        values
    }

    fn chunk_mut<'v>(&self, values: &'v mut [u64], cell: u64) -> &'v mut [u64] {
        let start = usize::try_from(cell).expect("the size of memory was checked") * self.elements;
        &mut values[start..start + self.elements]
    }

    /// What an element of an output chunk must be; `None` where the collective promises nothing.
    fn expected(&self, program: &Program, rank: u32, chunk: u64, element: usize) -> Option<u64> {
        let share = u64::from(program.chunk_count / program.rank_count);
        let origin = || u32::try_from(chunk / share).ok();
        Some(match program.collective {
            CollectiveKind::Allgather => self.input(origin()?, chunk % share, element),
            CollectiveKind::AllToAll => self.input(origin()?, u64::from(rank) * share + chunk % share, element),
            CollectiveKind::ReduceScatter => self.reduced(u64::from(rank) * share + chunk, element),
            CollectiveKind::Allreduce => self.reduced(chunk, element),
            CollectiveKind::Broadcast => self.input(0, chunk, element),
            CollectiveKind::Reduce if rank == 0 => self.reduced(chunk, element),
            CollectiveKind::Reduce | CollectiveKind::Gather | CollectiveKind::Scatter => return None,
        })
    }

    /// Compares outputs, and inputs where they must be unchanged. Returns the number of output elements compared.
    pub(super) fn check(
        &self,
        program: &Program,
        memories: &[Memory],
        cells: &[Vec<u64>],
    ) -> Result<u64, EmulationError> {
        let (input_chunks, output_chunks) = expected_chunks(program);
        let mut compared = 0;
        for ((rank, memory), cells) in program.ranks.iter().zip(memories).zip(cells) {
            let at = |buffer, chunk: u64, element: usize| {
                let cell = usize::try_from(memory.cell(buffer, chunk)).expect("the size of memory was checked");
                cells[cell * self.elements + element]
            };
            for chunk in 0..u64::from(output_chunks) {
                for element in 0..self.elements {
                    let Some(expected) = self.expected(program, rank.rank, chunk, element) else { continue };
                    compared += 1;
                    if at(Buffer::Output, chunk, element) != expected {
                        return Err(EmulationError::WrongOutput { rank: rank.rank, chunk });
                    }
                }
            }
            if program.in_place || program.collective == CollectiveKind::Broadcast && rank.rank > 0 {
                continue;
            }
            for chunk in 0..u64::from(input_chunks) {
                let is_changed = |element| at(Buffer::Input, chunk, element) != self.input(rank.rank, chunk, element);
                if (0..self.elements).any(is_changed) {
                    return Err(EmulationError::InputChanged { rank: rank.rank, chunk });
                }
            }
        }
        Ok(compared)
    }
}
