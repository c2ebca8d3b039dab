//! A communicator of the caller, and what plans need on it: a communicator of their own, scripts and memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::abi::Abi;
use crate::choice::{Table, Wanted};
use crate::execute::{Compiled, Reduction};
use crate::folder::Folder;
use crate::mpi::{Code, Mpi};
use crate::reason::Reason;
use crate::script::Part;
use crate::staging::{Buffers, Sides, Staged, StagingError};

/// Most scripts that are kept: one for each plan, size and length of elements.
const SCRIPTS_MAX: usize = 32;

/// A communicator as the first call on it found it.
pub(crate) struct Communicator<A: Abi> {
    /// The handle of the caller.
    pub(crate) handle: A::Handle,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) state: State<A>,
}

/// What calls on a communicator do.
pub(crate) enum State<A: Abi> {
    /// They run without plans.
    Passive(Reason),
    /// They fail, because the caller wants plans and has none that can be used.
    Refused,
    /// They look for a plan. One call at a time.
    Active(Box<Active<A>>),
}

/// A communicator with plans.
pub(crate) struct Active<A: Abi> {
    /// Carries the messages of plans, which never meet those of the caller.
    twin: A::Handle,
    folder: Arc<Folder>,
    table: Table,
    work: Mutex<WorkMemory<A>>,
}

/// What is kept from call to call.
struct WorkMemory<A: Abi> {
    /// By place in the folder.
    parts: BTreeMap<usize, Part>,
    /// The latest first.
    scripts: Vec<(Key, Arc<Compiled<A>>)>,
    buffers: Buffers,
    requests: Vec<A::Handle>,
    /// A call failed on the way, so that messages of it may still be about.
    is_broken: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    file: usize,
    elements: u64,
    element_bytes: u64,
}

/// Why a call with a plan failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// MPI says so.
    Mpi(Code),
    /// In words.
    Own(String),
}

impl From<Code> for Failure {
    fn from(code: Code) -> Self {
        Self::Mpi(code)
    }
}

impl From<StagingError> for Failure {
    fn from(error: StagingError) -> Self {
        match error {
            StagingError::Mpi(code) => Self::Mpi(code),
            StagingError::Memory(error) => Self::Own(error.to_string()),
        }
    }
}

impl<A: Abi> Active<A> {
    /// Makes the communicator of the plans. Collective.
    pub(crate) fn new(
        mpi: &Mpi<A>,
        comm: A::Handle,
        rank: u32,
        folder: Arc<Folder>,
        table: Table,
    ) -> Result<Self, Code> {
        let work = WorkMemory {
            parts: BTreeMap::new(),
            scripts: Vec::new(),
            buffers: Buffers::default(),
            requests: Vec::new(),
            is_broken: false,
        };
        Ok(Self { twin: mpi.twin(comm, rank)?, folder, table, work: Mutex::new(work) })
    }

    /// The plan for a call: its place in the folder and its name.
    ///
    /// # Errors
    /// Why there is none: the same on all ranks.
    pub(crate) fn choose(&self, wanted: &Wanted) -> Result<(usize, &str), Reason> {
        let file = self.table.choose(wanted)?;
        let program = self.folder.files().get(file).and_then(|file| file.proved().ok());
        program.map(|program| (file, program.name.as_str())).ok_or(Reason::NoPlan)
    }

    /// Runs a plan.
    ///
    /// # Safety
    /// The sides are the buffers of a call of MPI with this plan, which has not returned.
    pub(crate) unsafe fn run(
        &self,
        mpi: &Mpi<A>,
        rank: u32,
        file: usize,
        wanted: &Wanted,
        sides: &Sides<A>,
        reduction: Option<Reduction<A>>,
    ) -> Result<(), Failure> {
        // After a panic elsewhere the memory is as good as before: it is written anew by each call.
        let mut work = self.work.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if work.is_broken {
            return Err(Failure::Own("an earlier call on this communicator failed".to_owned()));
        }
        work.is_broken = true;
        let key = Key { file, elements: wanted.elements, element_bytes: wanted.element_bytes };
        let compiled = self.compiled(mpi, rank, key, &mut work)?;
        let WorkMemory { buffers, requests, is_broken, .. } = &mut *work;
        let script = &compiled.script;
        // SAFETY: as of this function; the lock keeps other calls from the buffers of our own.
        unsafe {
            let staged = Staged::new(mpi, self.twin, script, sides, buffers)?;
            compiled.run(mpi, self.twin, &staged.places, reduction, requests)?;
            staged.finish(mpi, self.twin, script)?;
        }
        *is_broken = false;
        Ok(())
    }

    /// The script of a plan for a size, from memory if it is there.
    fn compiled(
        &self,
        mpi: &Mpi<A>,
        rank: u32,
        key: Key,
        work: &mut WorkMemory<A>,
    ) -> Result<Arc<Compiled<A>>, Failure> {
        let scripts = &mut work.scripts;
        if let Some(found) = scripts.iter().position(|(own, _)| *own == key) {
            scripts[..=found].rotate_right(1);
        } else {
            let part = match work.parts.entry(key.file) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    let file = self.folder.files().get(key.file);
                    let file = file.ok_or_else(|| Failure::Own("the plan is not in the folder".to_owned()))?;
                    let part = Part::new(file.proved().map_err(Failure::Own)?, rank);
                    entry.insert(part.map_err(|error| Failure::Own(error.to_string()))?)
                }
            };
            let element_bytes = usize::try_from(key.element_bytes).unwrap_or(usize::MAX);
            let script = part.script(key.elements, element_bytes).map_err(|error| Failure::Own(error.to_string()))?;
            let compiled = Arc::new(Compiled::new(mpi, script)?);
            if scripts.len() >= SCRIPTS_MAX
                && let Some((_, oldest)) = scripts.pop()
            {
                oldest.free(mpi);
            }
            scripts.insert(0, (key, compiled));
        }
        let latest = scripts.first().map(|(_, compiled)| Arc::clone(compiled));
        latest.ok_or_else(|| Failure::Own("no script was kept".to_owned()))
    }

    /// Frees what MPI keeps for it. Collective.
    pub(crate) fn free(&self, mpi: &Mpi<A>) {
        let mut work = self.work.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (_, compiled) in work.scripts.drain(..) {
            compiled.free(mpi);
        }
        let mut twin = self.twin;
        // SAFETY: a communicator that was made here; no message of it is under way between calls.
        let _outcome = unsafe { (mpi.functions.comm_free)(&raw mut twin) };
    }
}
