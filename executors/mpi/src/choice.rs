//! Which plan serves a call: decided by the collective, the number of ranks, the root and the bytes of the message.
//!
//! Ranks may pass different types, and only some of them `MPI_IN_PLACE`. Nothing of this is looked at, so all choose alike.

use canopy_plan::oneccl::Program;
use canopy_schedule::CollectiveKind;

use crate::folder::Folder;
use crate::reason::Reason;

/// Most bytes of a rank's memory in a plan, beside a multiple of the message.
const MEMORY_BYTES: u128 = 64 << 20;

/// How many times the whole message the memory of a rank may be.
const MEMORY_TIMES: u128 = 64;

/// What a call says to choose by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) kind: CollectiveKind,
    pub(crate) root: Option<u32>,
    /// Elements of a share, or of the message where the collective has no shares.
    pub(crate) elements: u64,
    pub(crate) element_bytes: u64,
    /// Bytes of the whole message: all shares together.
    pub(crate) bytes: u64,
}

/// The plans for one number of ranks.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    kind: CollectiveKind,
    root: Option<u32>,
    bytes_min: u64,
    bytes_max: Option<u64>,
    /// Chunks of a share, or of the message.
    chunks: u64,
    /// Chunks of the largest memory of a rank.
    cells: u64,
    instances: u64,
    /// Place in the folder.
    file: usize,
}

impl Table {
    /// The table of the proved plans of a folder for a number of ranks, and what was refused.
    pub(crate) fn new(folder: &Folder, rank_count: u32) -> (Self, Vec<String>) {
        let (mut rows, mut refused) = (Vec::new(), Vec::new());
        for (place, file) in folder.files().iter().enumerate() {
            // What cannot be read may be meant for any number of ranks.
            if file.rank_count().is_some_and(|count| count != rank_count) {
                continue;
            }
            match file.proved() {
                Ok(program) => rows.push(Row::new(program, place)),
                Err(problem) => refused.push(format!("{}: {problem}", file.name())),
            }
        }
        (Self { rows }, refused)
    }

    /// Whether no call has a plan.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The first plan that serves a call, as a place in the folder.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn choose(&self, wanted: &Wanted) -> Result<usize, Reason> {
        let mut reason = Reason::NoPlan;
        for row in self.rows.iter().filter(|row| row.kind == wanted.kind) {
            if row.root != wanted.root {
                reason = reason.max(Reason::OtherRoot);
            } else if wanted.bytes < row.bytes_min || row.bytes_max.is_some_and(|most| wanted.bytes > most) {
                reason = reason.max(Reason::OtherSize);
            } else if row.memory_bytes(wanted) > MEMORY_TIMES * u128::from(wanted.bytes) + MEMORY_BYTES {
                reason = reason.max(Reason::Memory);
            } else {
                return Ok(row.file);
            }
        }
        Err(reason)
    }
}

impl Row {
    fn new(program: &Program, file: usize) -> Self {
        let kind = program.collective.kind();
        let shares = if kind.has_shares() { program.rank_count.max(1) } else { 1 };
        let cells = program
            .ranks
            .iter()
            .map(|rank| u64::from(rank.input_chunks) + u64::from(rank.output_chunks) + u64::from(rank.scratch_chunks));
        Self {
            kind,
            root: program.collective.root().map(canopy_topology::Rank::number),
            bytes_min: program.bytes_min,
            bytes_max: program.bytes_max,
            chunks: u64::from(program.chunk_count / shares).max(1),
            cells: cells.max().unwrap_or(0),
            instances: program.instances.into(),
            file,
        }
    }

    /// A bound on the bytes of any rank's memory.
    fn memory_bytes(&self, wanted: &Wanted) -> u128 {
        let stride = wanted.elements.div_ceil(self.chunks).div_ceil(self.instances);
        u128::from(self.cells) * u128::from(stride) * u128::from(self.instances) * u128::from(wanted.element_bytes)
    }
}

#[cfg(test)]
mod tests;
