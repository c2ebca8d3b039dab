//! The state of the library in one process: the MPI library underneath, plans, communicators, counts.

use std::ffi::{c_int, c_void};
use std::fs;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::abi::Abi;
use crate::choice::Table;
use crate::communicator::{Active, Communicator, State};
use crate::folder::Folder;
use crate::mpi::{Code, Mpi, check};
use crate::reason::Reason;
use crate::report::Report;
use crate::settings::{ReportTo, Settings};

/// The one instance of a process.
pub struct Library<A: Abi> {
    pub(crate) mpi: Mpi<A>,
    settings: Settings,
    folder: OnceLock<Option<Result<Arc<Folder>, String>>>,
    /// The attribute of communicators that has what we know of them.
    keyval: OnceLock<c_int>,
    /// In the order in which they were first used, which ranks that share two of them agree on.
    live: Mutex<Vec<Arc<Communicator<A>>>>,
    report: Mutex<Report>,
}

/// A lock whose holder panicked: what it guards is a list or a count, whole after every step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all ranks must agree on where one of them has no plans that it can read.
const UNREADABLE: [u64; 2] = [1, 1];

impl<A: Abi> Library<A> {
    /// Finds the MPI library and reads the environment, or ends the process with the reason: without the library no call
    /// can be answered.
    #[must_use]
    pub fn load() -> Self {
        match Mpi::load() {
            Ok(mpi) => Self {
                mpi,
                settings: Settings::from_environment(),
                folder: OnceLock::new(),
                keyval: OnceLock::new(),
                live: Mutex::default(),
                report: Mutex::default(),
            },
            Err(error) => {
                eprintln!("canopy-mpi: {error}");
                std::process::abort();
            }
        }
    }

    /// Counts a call.
    pub(crate) fn count(&self, count: impl FnOnce(&mut Report)) {
        if self.settings.report != ReportTo::Nowhere {
            count(&mut lock(&self.report));
        }
    }

    /// What is known of a communicator, found out if this is the first call on it. Then it is collective.
    ///
    /// # Errors
    /// MPI's.
    pub(crate) fn communicator(&'static self, comm: A::Handle) -> Result<Arc<Communicator<A>>, Code> {
        let keyval = self.keyval()?;
        let (mut found, mut flag) = (ptr::null_mut::<Communicator<A>>(), 0);
        let place = (&raw mut found).cast::<c_void>();
        // SAFETY: a communicator of the caller, and places for the results.
        check(unsafe { (self.mpi.functions.comm_get_attr)(comm, keyval, place, &raw mut flag) })?;
        if flag != 0 {
            // SAFETY: the attribute is what `Arc::into_raw` gave below, and lives until the attribute is deleted.
            return Ok(unsafe {
                Arc::increment_strong_count(found);
                Arc::from_raw(found)
            });
        }
        let communicator = Arc::new(self.set_up(comm)?);
        let kept = Arc::into_raw(Arc::clone(&communicator)).cast_mut().cast::<c_void>();
        // SAFETY: the attribute holds one count of the communicator, which `forget` gives back.
        check(unsafe { (self.mpi.functions.comm_set_attr)(comm, keyval, kept) })?;
        lock(&self.live).push(Arc::clone(&communicator));
        Ok(communicator)
    }

    fn keyval(&'static self) -> Result<c_int, Code> {
        if let Some(&keyval) = self.keyval.get() {
            return Ok(keyval);
        }
        let mut keyval = 0;
        let state = ptr::from_ref(self).cast_mut().cast::<c_void>();
        let create = self.mpi.functions.comm_create_keyval;
        // SAFETY: the functions have the types of the standard, and the state lives as long as the process.
        check(unsafe { create(keep_from_copies::<A>, forget::<A>, &raw mut keyval, state) })?;
        // Of two threads here for the first time, one leaves a key unused.
        Ok(*self.keyval.get_or_init(|| keyval))
    }

    fn folder(&self) -> Option<&Result<Arc<Folder>, String>> {
        let read = || {
            let path = self.settings.plans.as_ref()?;
            Some(Folder::read(path).map(Arc::new).map_err(|error| error.to_string()))
        };
        self.folder.get_or_init(read).as_ref()
    }

    /// Finds out what calls on a communicator do. Collective, unless it has one rank or two groups.
    fn set_up(&self, comm: A::Handle) -> Result<Communicator<A>, Code> {
        let mpi = &self.mpi;
        let (rank, size) = (mpi.rank(comm)?, mpi.size(comm)?);
        let state = if mpi.is_inter(comm)? {
            State::Passive(Reason::InterCommunicator)
        } else if size < 2 {
            State::Passive(Reason::OneRank)
        } else {
            self.agree(comm, (rank, size))?
        };
        if matches!(state, State::Refused) {
            // The calls that fail now may end the program: not before rank 0 has said why.
            let _met = mpi.greatest(comm, [0])?;
        }
        Ok(Communicator { handle: comm, rank, size, state })
    }

    /// What calls do that all ranks make together. Collective, and the answer is the same on all ranks.
    fn agree(&self, comm: A::Handle, (rank, size): (u32, u32)) -> Result<State<A>, Code> {
        let mpi = &self.mpi;
        let folder = self.folder();
        let digest = match folder {
            None => [0, 0],
            Some(Err(_)) => UNREADABLE,
            Some(Ok(folder)) => folder.digest(),
        };
        let [first, second] = digest;
        let strict = u64::from(self.settings.is_strict);
        let words = mpi.greatest(comm, [first, !first, second, !second, strict])?;
        let is_strict = words[4] != 0;
        let refused = |reason| if is_strict { State::Refused } else { State::Passive(reason) };
        if words[0] != !words[1] || words[2] != !words[3] {
            let all = mpi.of_all(comm, digest, size)?;
            let others = (0..size).zip(&all).filter(|(_, own)| all.first() != Some(own));
            let others: Vec<String> = others.take(8).map(|(rank, _)| rank.to_string()).collect();
            let text = format!(
                "ranks {} of {size} have other plans than rank 0; help: give all ranks the same CANOPY_PLAN_DIR",
                others.join(", ")
            );
            say(rank, is_strict, &text);
            return Ok(refused(Reason::Disagreement));
        }
        let folder = match folder {
            None => return Ok(State::Passive(Reason::NoFolder)),
            Some(Err(problem)) => {
                say(rank, is_strict, problem);
                return Ok(refused(Reason::BadFolder));
            }
            Some(Ok(folder)) => folder,
        };
        Ok(match self.table(comm, (rank, size), folder, is_strict)? {
            Ok(table) => State::Active(Box::new(Active::new(mpi, comm, rank, Arc::clone(folder), table)?)),
            Err(None) => State::Refused,
            Err(Some(reason)) => State::Passive(reason),
        })
    }

    /// The plans for the ranks of a communicator on their machines. Without any, the reason why calls run without
    /// plans, or none if they are to fail. Collective, and the answer is the same on all ranks.
    fn table(
        &self,
        comm: A::Handle,
        (rank, size): (u32, u32),
        folder: &Folder,
        is_strict: bool,
    ) -> Result<Result<Table, Option<Reason>>, Code> {
        let (mut table, problems) = Table::new(folder, size);
        for problem in &problems {
            say(rank, is_strict, &format!("{problem}; help: look at it with `canopy verify`"));
        }
        if is_strict && !problems.is_empty() {
            return Ok(Err(None));
        }
        if table.is_empty() {
            return Ok(Err(Some(Reason::NoPlan)));
        }
        if let Some(own) = table.elsewhere(folder, rank, host().as_deref()) {
            // A plan is for all ranks or for none.
            table.leave_out(&self.mpi.any(comm, own)?);
        }
        if !table.is_empty() {
            return Ok(Ok(table));
        }
        let text =
            format!("all plans for {size} ranks are for other machines; help: plan with the job's `--placement`");
        say(rank, is_strict, &text);
        Ok(Err(Some(Reason::OtherMachines).filter(|_| !is_strict)))
    }

    /// Frees what is left and writes the report; to be called before MPI ends. Collective.
    pub(crate) fn end(&'static self) {
        loop {
            // MPI is called without the lock: deleting the attribute comes back to `forget`, which takes it.
            let Some(next) = lock(&self.live).first().map(Arc::clone) else { break };
            let keyval = self.keyval.get().copied().unwrap_or_default();
            // SAFETY: the communicator is live: the attribute of one that was freed is deleted.
            let _outcome = unsafe { (self.mpi.functions.comm_delete_attr)(next.handle, keyval) };
            lock(&self.live).retain(|own| !Arc::ptr_eq(own, &next));
        }
        if self.settings.report != ReportTo::Nowhere && self.mpi.rank(self.mpi.handles.comm_world) == Ok(0) {
            self.write_report();
        }
    }

    fn write_report(&self) {
        let report = lock(&self.report);
        match &self.settings.report {
            ReportTo::Nowhere => {}
            ReportTo::Stderr => eprint!("{}", report.text()),
            ReportTo::File(path) => {
                if let Err(error) = fs::write(path, format!("{:#}\n", report.json())) {
                    eprintln!(
                        "canopy-mpi: {}: cannot be written: {error}; help: set CANOPY_MPI_REPORT",
                        path.display()
                    );
                }
            }
        }
    }
}

/// The name of this machine, if the system tells it.
fn host() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Rank 0 says why plans do not run.
fn say(rank: u32, is_strict: bool, text: &str) {
    if rank == 0 {
        let outcome = if is_strict { "error" } else { "running without" };
        eprintln!("canopy-mpi: {outcome}: {text}");
    }
}

/// A duplicate of a communicator begins without what we know of the first.
extern "C" fn keep_from_copies<A: Abi>(
    _comm: A::Handle,
    _keyval: c_int,
    _state: *mut c_void,
    _attribute: *mut c_void,
    _copy: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: MPI gives a place for the flag.
    unsafe { flag.write(0) };
    0
}

/// Frees what belongs to a communicator that is being freed.
extern "C" fn forget<A: Abi>(_comm: A::Handle, _keyval: c_int, attribute: *mut c_void, state: *mut c_void) -> c_int {
    // SAFETY: the state is the library of the process, which lives to its end, and the attribute what `Arc::into_raw` gave.
    let (library, own) = unsafe {
        (&*state.cast_const().cast::<Library<A>>(), Arc::from_raw(attribute.cast_const().cast::<Communicator<A>>()))
    };
    lock(&library.live).retain(|live| !Arc::ptr_eq(live, &own));
    if let State::Active(active) = &own.state {
        active.free(&library.mpi);
    }
    0
}
