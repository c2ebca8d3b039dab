//! Gives the functions of a library their names in C.

/// Exports `MPI_Allreduce` and all other functions that plans serve or that are counted, for one ABI.
#[macro_export]
macro_rules! export {
    ($abi:ty) => {
        /// A handle of the MPI library.
        type H = <$abi as $crate::Abi>::Handle;

        /// The library of this process, found at the first call.
        fn library() -> &'static $crate::Library<$abi> {
            static LIBRARY: std::sync::OnceLock<$crate::Library<$abi>> = std::sync::OnceLock::new();
            LIBRARY.get_or_init($crate::Library::load)
        }

        $crate::export! { @functions
            MPI_Allreduce = allreduce (send: *const std::ffi::c_void, receive: *mut std::ffi::c_void, count: std::ffi::c_int, datatype: H, op: H, comm: H);
            MPI_Iallreduce = iallreduce (send: *const std::ffi::c_void, receive: *mut std::ffi::c_void, count: std::ffi::c_int, datatype: H, op: H, comm: H, request: *mut H);
            MPI_Allgather = allgather (send: *const std::ffi::c_void, send_count: std::ffi::c_int, send_type: H, receive: *mut std::ffi::c_void, receive_count: std::ffi::c_int, receive_type: H, comm: H);
            MPI_Iallgather = iallgather (send: *const std::ffi::c_void, send_count: std::ffi::c_int, send_type: H, receive: *mut std::ffi::c_void, receive_count: std::ffi::c_int, receive_type: H, comm: H, request: *mut H);
            MPI_Reduce_scatter_block = reduce_scatter_block (send: *const std::ffi::c_void, receive: *mut std::ffi::c_void, count: std::ffi::c_int, datatype: H, op: H, comm: H);
            MPI_Ireduce_scatter_block = ireduce_scatter_block (send: *const std::ffi::c_void, receive: *mut std::ffi::c_void, count: std::ffi::c_int, datatype: H, op: H, comm: H, request: *mut H);
            MPI_Bcast = bcast (buffer: *mut std::ffi::c_void, count: std::ffi::c_int, datatype: H, root: std::ffi::c_int, comm: H);
            MPI_Ibcast = ibcast (buffer: *mut std::ffi::c_void, count: std::ffi::c_int, datatype: H, root: std::ffi::c_int, comm: H, request: *mut H);
            MPI_Reduce = reduce (send: *const std::ffi::c_void, receive: *mut std::ffi::c_void, count: std::ffi::c_int, datatype: H, op: H, root: std::ffi::c_int, comm: H);
            MPI_Ireduce = ireduce (send: *const std::ffi::c_void, receive: *mut std::ffi::c_void, count: std::ffi::c_int, datatype: H, op: H, root: std::ffi::c_int, comm: H, request: *mut H);
            MPI_Alltoall = alltoall (send: *const std::ffi::c_void, send_count: std::ffi::c_int, send_type: H, receive: *mut std::ffi::c_void, receive_count: std::ffi::c_int, receive_type: H, comm: H);
            MPI_Ialltoall = ialltoall (send: *const std::ffi::c_void, send_count: std::ffi::c_int, send_type: H, receive: *mut std::ffi::c_void, receive_count: std::ffi::c_int, receive_type: H, comm: H, request: *mut H);
            MPI_Gather = gather (send: *const std::ffi::c_void, send_count: std::ffi::c_int, send_type: H, receive: *mut std::ffi::c_void, receive_count: std::ffi::c_int, receive_type: H, root: std::ffi::c_int, comm: H);
            MPI_Igather = igather (send: *const std::ffi::c_void, send_count: std::ffi::c_int, send_type: H, receive: *mut std::ffi::c_void, receive_count: std::ffi::c_int, receive_type: H, root: std::ffi::c_int, comm: H, request: *mut H);
            MPI_Scatter = scatter (send: *const std::ffi::c_void, send_count: std::ffi::c_int, send_type: H, receive: *mut std::ffi::c_void, receive_count: std::ffi::c_int, receive_type: H, root: std::ffi::c_int, comm: H);
            MPI_Iscatter = iscatter (send: *const std::ffi::c_void, send_count: std::ffi::c_int, send_type: H, receive: *mut std::ffi::c_void, receive_count: std::ffi::c_int, receive_type: H, root: std::ffi::c_int, comm: H, request: *mut H);
            MPI_Finalize = finalize ();
        }
    };
    (@functions $($symbol:ident = $name:ident ($($argument:ident: $kind:ty),*);)*) => {$(
        /// The function of MPI of this name.
        ///
        /// # Safety
        /// The arguments are as the MPI standard demands.
        // SAFETY: the name is meant to come before that of the MPI library, whose function has the same type.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, non_snake_case, reason = "those of the MPI standard")]
        pub unsafe extern "C" fn $symbol($($argument: $kind),*) -> std::ffi::c_int {
            // SAFETY: the arguments of the caller, passed on.
            unsafe { $crate::entries::$name(library(), $($argument),*) }
        }
    )*};
}
