//! The functions of the MPI library underneath, by their profiling names (`PMPI_…`), which nothing overrides.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;

/// `MPI_Aint`.
pub(crate) type Aint = isize;
/// A send buffer.
type Input = *const c_void;
/// A receive buffer.
type Output = *mut c_void;
/// `MPI_Comm_copy_attr_function`.
pub(crate) type CopyAttribute<H> = extern "C" fn(H, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
/// `MPI_Comm_delete_attr_function`.
pub(crate) type DeleteAttribute<H> = extern "C" fn(H, c_int, *mut c_void, *mut c_void) -> c_int;

macro_rules! functions {
    ($($field:ident = $symbol:literal ($($argument:ty),* $(,)?);)*) => {
        /// Pointers to the functions, with handles of type `H`. Arguments are those of the MPI standard.
        pub(crate) struct Functions<H: 'static> {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl<H: 'static> Functions<H> {
            /// Finds all functions, or names the first that is missing.
            ///
            /// # Safety
            /// The symbols are those of an MPI library whose handles are of type `H`.
            pub(crate) unsafe fn load(find: &dyn Fn(&CStr) -> Option<NonNull<c_void>>) -> Result<Self, &'static CStr> {
                Ok(Self {
                    $($field: {
                        let found = find($symbol).ok_or($symbol)?;
                        // SAFETY: an address becomes a pointer to the function that the MPI standard describes; the caller
                        // answers for the type of handles.
                        unsafe {
                            std::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn($($argument),*) -> c_int>(found)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    // What is overridden.
    allreduce = c"PMPI_Allreduce" (Input, Output, c_int, H, H, H);
    allgather = c"PMPI_Allgather" (Input, c_int, H, Output, c_int, H, H);
    reduce_scatter_block = c"PMPI_Reduce_scatter_block" (Input, Output, c_int, H, H, H);
    bcast = c"PMPI_Bcast" (Output, c_int, H, c_int, H);
    reduce = c"PMPI_Reduce" (Input, Output, c_int, H, H, c_int, H);
    alltoall = c"PMPI_Alltoall" (Input, c_int, H, Output, c_int, H, H);
    gather = c"PMPI_Gather" (Input, c_int, H, Output, c_int, H, c_int, H);
    scatter = c"PMPI_Scatter" (Input, c_int, H, Output, c_int, H, c_int, H);
    iallreduce = c"PMPI_Iallreduce" (Input, Output, c_int, H, H, H, *mut H);
    iallgather = c"PMPI_Iallgather" (Input, c_int, H, Output, c_int, H, H, *mut H);
    ireduce_scatter_block = c"PMPI_Ireduce_scatter_block" (Input, Output, c_int, H, H, H, *mut H);
    ibcast = c"PMPI_Ibcast" (Output, c_int, H, c_int, H, *mut H);
    ireduce = c"PMPI_Ireduce" (Input, Output, c_int, H, H, c_int, H, *mut H);
    ialltoall = c"PMPI_Ialltoall" (Input, c_int, H, Output, c_int, H, H, *mut H);
    igather = c"PMPI_Igather" (Input, c_int, H, Output, c_int, H, c_int, H, *mut H);
    iscatter = c"PMPI_Iscatter" (Input, c_int, H, Output, c_int, H, c_int, H, *mut H);
    finalize = c"PMPI_Finalize" ();
    // Messages and work.
    isend = c"PMPI_Isend" (Input, c_int, H, c_int, c_int, H, *mut H);
    irecv = c"PMPI_Irecv" (Output, c_int, H, c_int, c_int, H, *mut H);
    waitall = c"PMPI_Waitall" (c_int, *mut H, *mut c_void);
    barrier = c"PMPI_Barrier" (H);
    reduce_local = c"PMPI_Reduce_local" (Input, Output, c_int, H, H);
    // Types.
    type_size = c"PMPI_Type_size" (H, *mut c_int);
    type_get_extent = c"PMPI_Type_get_extent" (H, *mut Aint, *mut Aint);
    type_get_envelope = c"PMPI_Type_get_envelope" (H, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
    type_create_hindexed = c"PMPI_Type_create_hindexed" (c_int, *const c_int, *const Aint, H, *mut H);
    type_commit = c"PMPI_Type_commit" (*mut H);
    type_free = c"PMPI_Type_free" (*mut H);
    pack = c"PMPI_Pack" (Input, c_int, H, Output, c_int, *mut c_int, H);
    unpack = c"PMPI_Unpack" (Input, c_int, *mut c_int, Output, c_int, H, H);
    // Communicators.
    comm_size = c"PMPI_Comm_size" (H, *mut c_int);
    comm_rank = c"PMPI_Comm_rank" (H, *mut c_int);
    comm_test_inter = c"PMPI_Comm_test_inter" (H, *mut c_int);
    comm_split = c"PMPI_Comm_split" (H, c_int, c_int, *mut H);
    comm_free = c"PMPI_Comm_free" (*mut H);
    comm_set_errhandler = c"PMPI_Comm_set_errhandler" (H, H);
    comm_call_errhandler = c"PMPI_Comm_call_errhandler" (H, c_int);
    comm_create_keyval =
        c"PMPI_Comm_create_keyval" (CopyAttribute<H>, DeleteAttribute<H>, *mut c_int, *mut c_void);
    comm_get_attr = c"PMPI_Comm_get_attr" (H, c_int, *mut c_void, *mut c_int);
    comm_set_attr = c"PMPI_Comm_set_attr" (H, c_int, *mut c_void);
    comm_delete_attr = c"PMPI_Comm_delete_attr" (H, c_int);
}
