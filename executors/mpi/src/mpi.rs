//! The MPI library underneath: its functions, its predefined handles, and calls with results of Rust.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};

use crate::abi::Abi;
use crate::functions::Functions;
use crate::operators::{Class, Operator};
use crate::symbols::Symbols;

/// A return code of MPI other than `MPI_SUCCESS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) c_int);

/// The outcome of a call.
pub(crate) fn check(code: c_int) -> Result<(), Code> {
    if code == 0 { Ok(()) } else { Err(Code(code)) }
}

/// Why the library cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("no MPI library is in this process; help: link the program with {family}, or do not preload {own}")]
    Missing { family: &'static str, own: &'static str },
    #[error("the MPI library has no `{symbol}`; help: use {family} of 2020 or later")]
    Symbol { symbol: String, family: &'static str },
    #[error("{own} is for {family}, but this program uses `{found}`; help: preload the library that is made for it")]
    OtherFamily { own: &'static str, family: &'static str, found: String },
}

/// Predefined handles.
pub(crate) struct Handles<A: Abi> {
    pub(crate) comm_world: A::Handle,
    pub(crate) comm_null: A::Handle,
    pub(crate) datatype_null: A::Handle,
    pub(crate) byte: A::Handle,
    pub(crate) uint64: A::Handle,
    pub(crate) errors_return: A::Handle,
    operators: Vec<(Operator, A::Handle)>,
    types: Vec<(Class, A::Handle)>,
}

/// Functions and handles.
pub(crate) struct Mpi<A: Abi> {
    pub(crate) functions: Functions<A::Handle>,
    pub(crate) handles: Handles<A>,
}

impl<A: Abi> Mpi<A> {
    /// Finds the library in the process and makes sure that its family is `A`.
    pub(crate) fn load() -> Result<Self, LoadError> {
        let (family, own) = (A::NAME, A::OWN_FILE);
        let missing = LoadError::Missing { family, own };
        let symbols = Symbols::with(c"PMPI_Get_library_version", A::LIBRARIES).ok_or(missing)?;
        let version = library_version(&symbols).ok_or(LoadError::Missing { family, own })?;
        // Only Open MPI has this symbol; libraries of MPICH's ABI have names of their own in their version texts.
        let is_open_mpi = symbols.find(c"ompi_mpi_comm_world").is_some();
        if is_open_mpi != (A::NAME == crate::abi::OpenMpi::NAME) {
            return Err(LoadError::OtherFamily { own, family, found: version });
        }
        let find = |name: &CStr| symbols.find(name);
        let lacking = |name: &CStr| LoadError::Symbol { symbol: name.to_string_lossy().into_owned(), family };
        // SAFETY: the library is of the family whose handles `A` describes.
        let functions = unsafe { Functions::load(&find) }.map_err(lacking)?;
        let handles = Handles::find(&|name| symbols.find(name).map(|place| place.as_ptr() as usize));
        let handles = handles.ok_or_else(|| lacking(c"a predefined handle"))?;
        Ok(Self { functions, handles })
    }

    /// The number of ranks of a communicator.
    pub(crate) fn size(&self, comm: A::Handle) -> Result<u32, Code> {
        let mut size = 0;
        // SAFETY: a communicator of the caller, and a place for the result.
        check(unsafe { (self.functions.comm_size)(comm, &raw mut size) })?;
        Ok(u32::try_from(size).unwrap_or(0))
    }

    /// The own rank in a communicator.
    pub(crate) fn rank(&self, comm: A::Handle) -> Result<u32, Code> {
        let mut rank = 0;
        // SAFETY: as above.
        check(unsafe { (self.functions.comm_rank)(comm, &raw mut rank) })?;
        Ok(u32::try_from(rank).unwrap_or(0))
    }

    /// Whether a communicator joins two groups.
    pub(crate) fn is_inter(&self, comm: A::Handle) -> Result<bool, Code> {
        let mut flag = 0;
        // SAFETY: as above.
        check(unsafe { (self.functions.comm_test_inter)(comm, &raw mut flag) })?;
        Ok(flag != 0)
    }

    /// The operator that a handle is, if plans can apply it.
    pub(crate) fn operator(&self, op: A::Handle) -> Option<Operator> {
        self.handles.operators.iter().find(|(_, handle)| *handle == op).map(|(operator, _)| *operator)
    }

    /// The class of a predefined type of C.
    pub(crate) fn class(&self, datatype: A::Handle) -> Option<Class> {
        self.handles.types.iter().find(|(_, handle)| *handle == datatype).map(|(class, _)| *class)
    }

    /// Bytes of the data of an element.
    pub(crate) fn type_bytes(&self, datatype: A::Handle) -> Result<usize, Code> {
        let mut size = 0;
        // SAFETY: a type of the caller, and a place for the result.
        check(unsafe { (self.functions.type_size)(datatype, &raw mut size) })?;
        // Negative only if the size does not fit into an int.
        usize::try_from(size).map_err(|_| Code(A::ERR_OTHER))
    }

    /// Bytes from an element to the next.
    pub(crate) fn extent(&self, datatype: A::Handle) -> Result<isize, Code> {
        let (mut low, mut extent) = (0, 0);
        // SAFETY: a type of the caller, and places for the results.
        check(unsafe { (self.functions.type_get_extent)(datatype, &raw mut low, &raw mut extent) })?;
        Ok(extent)
    }

    /// Whether a type is one of MPI's own, and not made from others.
    pub(crate) fn is_named(&self, datatype: A::Handle) -> Result<bool, Code> {
        if self.class(datatype).is_some() {
            return Ok(true);
        }
        let (mut integers, mut addresses, mut types, mut combiner) = (0, 0, 0, 0);
        let envelope = self.functions.type_get_envelope;
        // SAFETY: a type of the caller, and places for the results.
        check(unsafe { envelope(datatype, &raw mut integers, &raw mut addresses, &raw mut types, &raw mut combiner) })?;
        Ok(combiner == A::COMBINER_NAMED)
    }

    /// A communicator of the same ranks in the same order, for messages of plans alone. Unlike a duplicate it runs no
    /// callbacks of the caller's attributes. Collective.
    pub(crate) fn twin(&self, comm: A::Handle, rank: u32) -> Result<A::Handle, Code> {
        let mut twin = self.handles.comm_null;
        let key = c_int::try_from(rank).unwrap_or(c_int::MAX);
        // SAFETY: a communicator of the caller, and a place for the new one, to which errors are then returned.
        unsafe {
            check((self.functions.comm_split)(comm, 0, key, &raw mut twin))?;
            check((self.functions.comm_set_errhandler)(twin, self.handles.errors_return))?;
        }
        Ok(twin)
    }

    /// The greatest of each word over all ranks. Collective.
    pub(crate) fn greatest<const N: usize>(&self, comm: A::Handle, words: [u64; N]) -> Result<[u64; N], Code> {
        self.combined(comm, Operator::Max, words)
    }

    /// The bits that are set in the words of any rank. Collective.
    pub(crate) fn any<const N: usize>(&self, comm: A::Handle, words: [u64; N]) -> Result<[u64; N], Code> {
        self.combined(comm, Operator::BitOr, words)
    }

    fn combined<const N: usize>(&self, comm: A::Handle, operator: Operator, words: [u64; N]) -> Result<[u64; N], Code> {
        let mut combined = [0; N];
        let found = self.handles.operators.iter().find(|(own, _)| *own == operator);
        let handle = found.ok_or(Code(A::ERR_OTHER))?.1;
        let count = c_int::try_from(N).map_err(|_| Code(A::ERR_OTHER))?;
        let (from, to) = (words.as_ptr().cast(), combined.as_mut_ptr().cast());
        // SAFETY: both arrays have `N` words.
        check(unsafe { (self.functions.allreduce)(from, to, count, self.handles.uint64, handle, comm) })?;
        Ok(combined)
    }

    /// The words of all ranks, in their order. Collective.
    pub(crate) fn of_all(&self, comm: A::Handle, words: [u64; 2], ranks: u32) -> Result<Vec<[u64; 2]>, Code> {
        let mut all = vec![[0; 2]; ranks as usize];
        let (from, to, uint64) = (words.as_ptr().cast(), all.as_mut_ptr().cast(), self.handles.uint64);
        // SAFETY: the receive buffer has two words for each rank.
        check(unsafe { (self.functions.allgather)(from, 2, uint64, to, 2, uint64, comm) })?;
        Ok(all)
    }

    /// Gives an error to the error handler of a communicator, which may end the program. Returns the code.
    pub(crate) fn raise(&self, comm: A::Handle, code: c_int) -> c_int {
        // SAFETY: a communicator of the caller. What the handler returns is of no further use.
        let _outcome = unsafe { (self.functions.comm_call_errhandler)(comm, code) };
        code
    }

    /// A type of bytes at places, ready for messages.
    pub(crate) fn bytes_at(&self, lengths: &[c_int], places: &[isize]) -> Result<A::Handle, Code> {
        let mut made = self.handles.datatype_null;
        let count = c_int::try_from(lengths.len().min(places.len())).map_err(|_| Code(A::ERR_OTHER))?;
        let (lengths, places, byte) = (lengths.as_ptr(), places.as_ptr(), self.handles.byte);
        // SAFETY: both arrays have at least `count` entries.
        unsafe {
            check((self.functions.type_create_hindexed)(count, lengths, places, byte, &raw mut made))?;
            check((self.functions.type_commit)(&raw mut made))?;
        }
        Ok(made)
    }

    /// Frees a type that [`Self::bytes_at`] made.
    pub(crate) fn free_type(&self, mut datatype: A::Handle) {
        // SAFETY: the type was made here, and no message uses it any more.
        let _outcome = unsafe { (self.functions.type_free)(&raw mut datatype) };
    }
}

impl<A: Abi> Handles<A> {
    fn find(find: &dyn Fn(&CStr) -> Option<usize>) -> Option<Self> {
        let handle = |name| A::handle(name, find);
        Some(Self {
            comm_world: handle(A::COMM_WORLD)?,
            comm_null: handle(A::COMM_NULL)?,
            datatype_null: handle(A::DATATYPE_NULL)?,
            byte: handle(A::BYTE)?,
            uint64: handle(A::UINT64)?,
            errors_return: handle(A::ERRORS_RETURN)?,
            operators: A::OPERATORS.iter().filter_map(|&(own, name)| Some((own, handle(name)?))).collect(),
            // Libraries without a type of Fortran or C++ may lack some.
            types: A::TYPES.iter().filter_map(|&(class, name)| Some((class, handle(name)?))).collect(),
        })
    }
}

/// The first line of the version text of the library, which may be asked for at any time.
fn library_version(symbols: &Symbols) -> Option<String> {
    type Version = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    let found: NonNull<c_void> = symbols.find(c"PMPI_Get_library_version")?;
    // SAFETY: an address becomes a pointer to the function that the MPI standard describes; it has no handles.
    let version = unsafe { std::mem::transmute::<NonNull<c_void>, Version>(found) };
    // `MPI_MAX_LIBRARY_VERSION_STRING` is 256 in Open MPI and 8192 in MPICH.
    let mut text = vec![0_u8; 8193];
    let mut length = 0;
    // SAFETY: the text has more room than either library fills, and ends in zero.
    unsafe { check(version(text.as_mut_ptr().cast(), ptr::from_mut(&mut length))) }.ok()?;
    let text = CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy();
    Some(text.lines().next().unwrap_or_default().split(',').next().unwrap_or_default().to_owned())
}
