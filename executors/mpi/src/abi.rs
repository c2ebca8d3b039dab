//! What differs between MPI libraries: the type of handles, and where the predefined ones come from.
//!
//! Open MPI's handles are addresses of objects that the library exports; MPICH's are numbers. All else that callers see
//! has the same form. Both tables follow the libraries' headers: Open MPI 4.0 to 5.0, MPICH 3.x to 4.x and all
//! libraries of MPICH's common ABI.

mod mpich;
mod open_mpi;

pub use mpich::Mpich;
pub use open_mpi::OpenMpi;

use std::ffi::{CStr, c_int};
use std::fmt::Debug;

use crate::operators::{Class, Operator};

/// Finds the address of a symbol of the MPI library.
pub(crate) type Find<'f> = &'f dyn Fn(&CStr) -> Option<usize>;

/// The ABI of a family of MPI libraries.
pub trait Abi: Copy + Debug + Send + Sync + 'static {
    /// Communicators, datatypes, operators, requests: an address, or an `int`.
    type Handle: Copy + Eq + Debug + Send + Sync + 'static;
    /// How the table below names predefined handles.
    type Name: Copy + 'static;

    /// The name of the family, which the version text of its libraries contains.
    const NAME: &'static str;
    /// File of the build of this library for the family.
    const OWN_FILE: &'static str;
    /// Names under which a process has the library loaded.
    const LIBRARIES: &'static [&'static CStr];
    /// `MPI_IN_PLACE`.
    const IN_PLACE: isize;
    /// `MPI_STATUSES_IGNORE`.
    const STATUSES_IGNORE: usize;
    /// `MPI_COMBINER_NAMED`.
    const COMBINER_NAMED: c_int;
    /// `MPI_ERR_OTHER`.
    const ERR_OTHER: c_int;

    /// Predefined handles.
    const COMM_WORLD: Self::Name;
    /// `MPI_COMM_NULL`.
    const COMM_NULL: Self::Name;
    /// `MPI_DATATYPE_NULL`.
    const DATATYPE_NULL: Self::Name;
    /// `MPI_BYTE`.
    const BYTE: Self::Name;
    /// `MPI_UINT64_T`.
    const UINT64: Self::Name;
    /// `MPI_ERRORS_RETURN`.
    const ERRORS_RETURN: Self::Name;
    /// Operators that plans can apply.
    const OPERATORS: &'static [(Operator, Self::Name)];
    /// Types on which MPI defines them. Each is as long as the distance between its elements.
    const TYPES: &'static [(Class, Self::Name)];

    /// A predefined handle; `None` if the library lacks it.
    fn handle(name: Self::Name, find: Find<'_>) -> Option<Self::Handle>;
}
