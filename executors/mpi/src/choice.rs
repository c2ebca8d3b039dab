//! Which plan serves a call: decided by the collective, the number of ranks, the root and the bytes of the message.
//!
//! Ranks may pass different types, and only some of them `MPI_IN_PLACE`. Nothing of this is looked at, so all choose alike.

use canopy_plan::oneccl::Program;
use canopy_schedule::CollectiveKind;
use canopy_topology::same_host;

use crate::folder::{FILES_MAX, Folder};
use crate::reason::Reason;

/// Most bytes of a rank's memory in a plan, beside a multiple of the message.
const MEMORY_BYTES: u128 = 64 << 20;

/// How many times the whole message the memory of a rank may be.
const MEMORY_TIMES: u128 = 64;

/// A set of files, a bit for each by its place in the folder.
pub(crate) type FileSet = [u64; FILES_MAX / 64];

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

    /// Which plans have this rank on another machine than this host; `None` if no plan states its machines, which is so on
    /// all ranks or on none. Where the host is not known, all plans are for it. O(bytes of the rank maps).
    pub(crate) fn elsewhere(&self, folder: &Folder, rank: u32, host: Option<&str>) -> Option<FileSet> {
        let mut elsewhere: Option<FileSet> = None;
        for row in &self.rows {
            let program = folder.files().get(row.file).and_then(|file| file.proved().ok());
            let Some(rank_map) = program.and_then(Program::rank_map) else { continue };
            let files = elsewhere.get_or_insert([0; FILES_MAX / 64]);
            let device = rank_map.split(',').nth(rank as usize).unwrap_or_default();
            let machine = device.rsplit_once(':').map_or(device, |(machine, _)| machine);
            if host.is_some_and(|host| !same_host(&machine.to_lowercase(), &host.to_lowercase()))
                && let Some(word) = files.get_mut(row.file / 64)
            {
                *word |= 1 << (row.file % 64);
            }
        }
        elsewhere
    }

    /// Leaves out the plans of these files.
    pub(crate) fn leave_out(&mut self, files: &FileSet) {
        self.rows.retain(|row| files.get(row.file / 64).is_none_or(|word| word >> (row.file % 64) & 1 == 0));
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
