//! Which earlier steps of a rank a step must follow, by the cells they touch.

use std::ops::Range;

use super::at::At;
use crate::msccl::lower::ranges::Ranges;
use crate::msccl::program::{Buffer, Chunks};

/// What has been done to some cells since they were last written.
#[derive(Clone, Default)]
struct Cell {
    writer: Option<At>,
    /// The latest of each block.
    readers: Vec<At>,
}

/// Cells of the three buffers of one rank. Programs in place use one name for each cell, so names do not alias.
pub(super) struct Hazards {
    cells: [Ranges<Cell>; 3],
}

impl Hazards {
    pub(super) const fn new() -> Self {
        Self { cells: [Ranges::new(), Ranges::new(), Ranges::new()] }
    }

    /// Adds the steps that must precede one that reads these cells.
    pub(super) fn before_read(&self, chunks: Chunks, count: u32, waits: &mut Vec<At>) {
        waits.extend(self.over(chunks, count).filter_map(|cell| cell.writer));
    }

    /// Adds the steps that must precede one that writes these cells.
    pub(super) fn before_write(&self, chunks: Chunks, count: u32, waits: &mut Vec<At>) {
        for cell in self.over(chunks, count) {
            waits.extend(cell.writer);
            waits.extend_from_slice(&cell.readers);
        }
    }

    pub(super) fn read(&mut self, chunks: Chunks, count: u32, at: At) {
        let buffer = &mut self.cells[index(chunks.buffer)];
        buffer.update(range(chunks, count), &Cell::default(), |cell| {
            match cell.readers.iter_mut().find(|reader| reader.block == at.block) {
                Some(reader) => *reader = at,
                None => cell.readers.push(at),
            }
        });
    }

    pub(super) fn write(&mut self, chunks: Chunks, count: u32, at: At) {
        let cell = Cell { writer: Some(at), readers: Vec::new() };
        self.cells[index(chunks.buffer)].set(range(chunks, count), cell);
    }

    fn over(&self, chunks: Chunks, count: u32) -> impl Iterator<Item = &Cell> {
        self.cells[index(chunks.buffer)].over(range(chunks, count)).map(|(_, cell)| cell)
    }
}

const fn index(buffer: Buffer) -> usize {
    match buffer {
        Buffer::Input => 0,
        Buffer::Output => 1,
        Buffer::Scratch => 2,
    }
}

fn range(chunks: Chunks, count: u32) -> Range<u32> {
    let first = chunks.offset.expect("every step says where it reads and writes");
    first..first + count
}
