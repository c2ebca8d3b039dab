//! The exported functions of MPI, generic over the ABI; [`export!`](crate::export) gives them their names.

use std::ffi::{c_int, c_void};

use canopy_schedule::CollectiveKind;

use crate::abi::Abi;
use crate::collectives::{Block, run};
use crate::library::Library;
use crate::reason::Reason;

/// Counts a call that returns before it is complete, which no plan can serve.
fn pass<A: Abi>(library: &'static Library<A>, function: &'static str) {
    library.count(|report| report.count_fallback(function, Reason::Nonblocking));
}

/// `MPI_Allreduce`.
///
/// # Safety
/// The arguments are as the MPI standard demands.
pub unsafe fn allreduce<A: Abi>(
    library: &'static Library<A>,
    send: *const c_void,
    receive: *mut c_void,
    count: c_int,
    datatype: A::Handle,
    op: A::Handle,
    comm: A::Handle,
) -> c_int {
    // SAFETY: the caller's arguments, read as the standard says, or passed on as they are.
    unsafe {
        run(
            library,
            "MPI_Allreduce",
            comm,
            |context| {
                context.reduction(CollectiveKind::Allreduce, send, Block { buffer: receive, count, datatype }, op, None)
            },
            |native| (native.allreduce)(send, receive, count, datatype, op, comm),
        )
    }
}

/// `MPI_Allgather`.
///
/// # Safety
/// The arguments are as the MPI standard demands.
#[expect(clippy::too_many_arguments, reason = "those of the MPI standard")]
pub unsafe fn allgather<A: Abi>(
    library: &'static Library<A>,
    send: *const c_void,
    send_count: c_int,
    send_type: A::Handle,
    receive: *mut c_void,
    receive_count: c_int,
    receive_type: A::Handle,
    comm: A::Handle,
) -> c_int {
    // SAFETY: the caller's arguments, read as the standard says, or passed on as they are.
    unsafe {
        run(
            library,
            "MPI_Allgather",
            comm,
            |context| {
                context.gathering(
                    CollectiveKind::Allgather,
                    Block { buffer: send.cast_mut(), count: send_count, datatype: send_type },
                    Block { buffer: receive, count: receive_count, datatype: receive_type },
                    None,
                )
            },
            |native| (native.allgather)(send, send_count, send_type, receive, receive_count, receive_type, comm),
        )
    }
}

/// `MPI_Reduce_scatter_block`.
///
/// # Safety
/// The arguments are as the MPI standard demands.
pub unsafe fn reduce_scatter_block<A: Abi>(
    library: &'static Library<A>,
    send: *const c_void,
    receive: *mut c_void,
    count: c_int,
    datatype: A::Handle,
    op: A::Handle,
    comm: A::Handle,
) -> c_int {
    // SAFETY: the caller's arguments, read as the standard says, or passed on as they are.
    unsafe {
        run(
            library,
            "MPI_Reduce_scatter_block",
            comm,
            |context| {
                context.reduction(
                    CollectiveKind::ReduceScatter,
                    send,
                    Block { buffer: receive, count, datatype },
                    op,
                    None,
                )
            },
            |native| (native.reduce_scatter_block)(send, receive, count, datatype, op, comm),
        )
    }
}

/// `MPI_Bcast`.
///
/// # Safety
/// The arguments are as the MPI standard demands.
pub unsafe fn bcast<A: Abi>(
    library: &'static Library<A>,
    buffer: *mut c_void,
    count: c_int,
    datatype: A::Handle,
    root: c_int,
    comm: A::Handle,
) -> c_int {
    // SAFETY: the caller's arguments, read as the standard says, or passed on as they are.
    unsafe {
        run(
            library,
            "MPI_Bcast",
            comm,
            |context| context.broadcast(Block { buffer, count, datatype }, root),
            |native| (native.bcast)(buffer, count, datatype, root, comm),
        )
    }
}

/// `MPI_Reduce`.
///
/// # Safety
/// The arguments are as the MPI standard demands.
#[expect(clippy::too_many_arguments, reason = "those of the MPI standard")]
pub unsafe fn reduce<A: Abi>(
    library: &'static Library<A>,
    send: *const c_void,
    receive: *mut c_void,
    count: c_int,
    datatype: A::Handle,
    op: A::Handle,
    root: c_int,
    comm: A::Handle,
) -> c_int {
    // SAFETY: the caller's arguments, read as the standard says, or passed on as they are.
    unsafe {
        run(
            library,
            "MPI_Reduce",
            comm,
            |context| {
                context.reduction(
                    CollectiveKind::Reduce,
                    send,
                    Block { buffer: receive, count, datatype },
                    op,
                    Some(root),
                )
            },
            |native| (native.reduce)(send, receive, count, datatype, op, root, comm),
        )
    }
}

/// `MPI_Alltoall`.
///
/// # Safety
/// The arguments are as the MPI standard demands.
#[expect(clippy::too_many_arguments, reason = "those of the MPI standard")]
pub unsafe fn alltoall<A: Abi>(
    library: &'static Library<A>,
    send: *const c_void,
    send_count: c_int,
    send_type: A::Handle,
    receive: *mut c_void,
    receive_count: c_int,
    receive_type: A::Handle,
    comm: A::Handle,
) -> c_int {
    // SAFETY: the caller's arguments, read as the standard says, or passed on as they are.
    unsafe {
        run(
            library,
            "MPI_Alltoall",
            comm,
            |context| {
                context.all_to_all(
                    Block { buffer: send.cast_mut(), count: send_count, datatype: send_type },
                    Block { buffer: receive, count: receive_count, datatype: receive_type },
                )
            },
            |native| (native.alltoall)(send, send_count, send_type, receive, receive_count, receive_type, comm),
        )
    }
}

/// `MPI_Gather`.
///
/// # Safety
/// The arguments are as the MPI standard demands.
#[expect(clippy::too_many_arguments, reason = "those of the MPI standard")]
pub unsafe fn gather<A: Abi>(
    library: &'static Library<A>,
    send: *const c_void,
    send_count: c_int,
    send_type: A::Handle,
    receive: *mut c_void,
    receive_count: c_int,
    receive_type: A::Handle,
    root: c_int,
    comm: A::Handle,
) -> c_int {
    // SAFETY: the caller's arguments, read as the standard says, or passed on as they are.
    unsafe {
        run(
            library,
            "MPI_Gather",
            comm,
            |context| {
                context.gathering(
                    CollectiveKind::Gather,
                    Block { buffer: send.cast_mut(), count: send_count, datatype: send_type },
                    Block { buffer: receive, count: receive_count, datatype: receive_type },
                    Some(root),
                )
            },
            |native| (native.gather)(send, send_count, send_type, receive, receive_count, receive_type, root, comm),
        )
    }
}

/// `MPI_Scatter`.
///
/// # Safety
/// The arguments are as the MPI standard demands.
#[expect(clippy::too_many_arguments, reason = "those of the MPI standard")]
pub unsafe fn scatter<A: Abi>(
    library: &'static Library<A>,
    send: *const c_void,
    send_count: c_int,
    send_type: A::Handle,
    receive: *mut c_void,
    receive_count: c_int,
    receive_type: A::Handle,
    root: c_int,
    comm: A::Handle,
) -> c_int {
    // SAFETY: the caller's arguments, read as the standard says, or passed on as they are.
    unsafe {
        run(
            library,
            "MPI_Scatter",
            comm,
            |context| {
                context.scatter(
                    Block { buffer: send.cast_mut(), count: send_count, datatype: send_type },
                    Block { buffer: receive, count: receive_count, datatype: receive_type },
                    root,
                )
            },
            |native| (native.scatter)(send, send_count, send_type, receive, receive_count, receive_type, root, comm),
        )
    }
}

/// `MPI_Iallreduce`, passed on.
///
/// # Safety
/// The arguments are as the MPI standard demands.
#[expect(clippy::too_many_arguments, reason = "those of the MPI standard")]
pub unsafe fn iallreduce<A: Abi>(
    library: &'static Library<A>,
    send: *const c_void,
    receive: *mut c_void,
    count: c_int,
    datatype: A::Handle,
    op: A::Handle,
    comm: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    pass(library, "MPI_Iallreduce");
    // SAFETY: the caller's arguments, passed on as they are.
    unsafe { (library.mpi.functions.iallreduce)(send, receive, count, datatype, op, comm, request) }
}

/// `MPI_Iallgather`, passed on.
///
/// # Safety
/// The arguments are as the MPI standard demands.
#[expect(clippy::too_many_arguments, reason = "those of the MPI standard")]
pub unsafe fn iallgather<A: Abi>(
    library: &'static Library<A>,
    send: *const c_void,
    send_count: c_int,
    send_type: A::Handle,
    receive: *mut c_void,
    receive_count: c_int,
    receive_type: A::Handle,
    comm: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    pass(library, "MPI_Iallgather");
    // SAFETY: the caller's arguments, passed on as they are.
    unsafe {
        (library.mpi.functions.iallgather)(
            send,
            send_count,
            send_type,
            receive,
            receive_count,
            receive_type,
            comm,
            request,
        )
    }
}

/// `MPI_Ireduce_scatter_block`, passed on.
///
/// # Safety
/// The arguments are as the MPI standard demands.
#[expect(clippy::too_many_arguments, reason = "those of the MPI standard")]
pub unsafe fn ireduce_scatter_block<A: Abi>(
    library: &'static Library<A>,
    send: *const c_void,
    receive: *mut c_void,
    count: c_int,
    datatype: A::Handle,
    op: A::Handle,
    comm: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    pass(library, "MPI_Ireduce_scatter_block");
    // SAFETY: the caller's arguments, passed on as they are.
    unsafe { (library.mpi.functions.ireduce_scatter_block)(send, receive, count, datatype, op, comm, request) }
}

/// `MPI_Ibcast`, passed on.
///
/// # Safety
/// The arguments are as the MPI standard demands.
pub unsafe fn ibcast<A: Abi>(
    library: &'static Library<A>,
    buffer: *mut c_void,
    count: c_int,
    datatype: A::Handle,
    root: c_int,
    comm: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    pass(library, "MPI_Ibcast");
    // SAFETY: the caller's arguments, passed on as they are.
    unsafe { (library.mpi.functions.ibcast)(buffer, count, datatype, root, comm, request) }
}

/// `MPI_Ireduce`, passed on.
///
/// # Safety
/// The arguments are as the MPI standard demands.
#[expect(clippy::too_many_arguments, reason = "those of the MPI standard")]
pub unsafe fn ireduce<A: Abi>(
    library: &'static Library<A>,
    send: *const c_void,
    receive: *mut c_void,
    count: c_int,
    datatype: A::Handle,
    op: A::Handle,
    root: c_int,
    comm: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    pass(library, "MPI_Ireduce");
    // SAFETY: the caller's arguments, passed on as they are.
    unsafe { (library.mpi.functions.ireduce)(send, receive, count, datatype, op, root, comm, request) }
}

/// `MPI_Ialltoall`, passed on.
///
/// # Safety
/// The arguments are as the MPI standard demands.
#[expect(clippy::too_many_arguments, reason = "those of the MPI standard")]
pub unsafe fn ialltoall<A: Abi>(
    library: &'static Library<A>,
    send: *const c_void,
    send_count: c_int,
    send_type: A::Handle,
    receive: *mut c_void,
    receive_count: c_int,
    receive_type: A::Handle,
    comm: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    pass(library, "MPI_Ialltoall");
    // SAFETY: the caller's arguments, passed on as they are.
    unsafe {
        (library.mpi.functions.ialltoall)(
            send,
            send_count,
            send_type,
            receive,
            receive_count,
            receive_type,
            comm,
            request,
        )
    }
}

/// `MPI_Igather`, passed on.
///
/// # Safety
/// The arguments are as the MPI standard demands.
#[expect(clippy::too_many_arguments, reason = "those of the MPI standard")]
pub unsafe fn igather<A: Abi>(
    library: &'static Library<A>,
    send: *const c_void,
    send_count: c_int,
    send_type: A::Handle,
    receive: *mut c_void,
    receive_count: c_int,
    receive_type: A::Handle,
    root: c_int,
    comm: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    pass(library, "MPI_Igather");
    // SAFETY: the caller's arguments, passed on as they are.
    unsafe {
        (library.mpi.functions.igather)(
            send,
            send_count,
            send_type,
            receive,
            receive_count,
            receive_type,
            root,
            comm,
            request,
        )
    }
}

/// `MPI_Iscatter`, passed on.
///
/// # Safety
/// The arguments are as the MPI standard demands.
#[expect(clippy::too_many_arguments, reason = "those of the MPI standard")]
pub unsafe fn iscatter<A: Abi>(
    library: &'static Library<A>,
    send: *const c_void,
    send_count: c_int,
    send_type: A::Handle,
    receive: *mut c_void,
    receive_count: c_int,
    receive_type: A::Handle,
    root: c_int,
    comm: A::Handle,
    request: *mut A::Handle,
) -> c_int {
    pass(library, "MPI_Iscatter");
    // SAFETY: the caller's arguments, passed on as they are.
    unsafe {
        (library.mpi.functions.iscatter)(
            send,
            send_count,
            send_type,
            receive,
            receive_count,
            receive_type,
            root,
            comm,
            request,
        )
    }
}

/// `MPI_Finalize`.
///
/// # Safety
/// As the MPI standard demands: once, when no call of MPI is under way.
pub unsafe fn finalize<A: Abi>(library: &'static Library<A>) -> c_int {
    library.end();
    // SAFETY: the caller's call, passed on.
    unsafe { (library.mpi.functions.finalize)() }
}
