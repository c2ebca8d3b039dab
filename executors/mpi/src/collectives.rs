//! What each collective's arguments mean for a plan.

use std::ffi::{c_int, c_void};

use canopy_schedule::CollectiveKind;

use crate::abi::Abi;
use crate::choice::Wanted;
use crate::communicator::{Communicator, Failure, State};
use crate::execute::Reduction;
use crate::functions::Functions;
use crate::library::Library;
use crate::mpi::Mpi;
use crate::reason::Reason;
use crate::staging::{Side, Sides};

/// A call that a plan could serve.
pub(crate) struct Operation<A: Abi> {
    wanted: Wanted,
    sides: Sides<A>,
    reduction: Option<Reduction<A>>,
}

/// Arguments of a call, as they were passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<A: Abi> {
    /// The buffer.
    pub(crate) buffer: *mut c_void,
    /// Elements of it, or of a share of it.
    pub(crate) count: c_int,
    /// Their type.
    pub(crate) datatype: A::Handle,
}

/// Runs a blocking collective: by a plan if one serves it, else by `native`.
///
/// # Safety
/// The arguments are those of the caller's call of MPI.
pub(crate) unsafe fn run<A: Abi>(
    library: &'static Library<A>,
    function: &'static str,
    comm: A::Handle,
    operation: impl FnOnce(&Context<'_, A>) -> Result<Operation<A>, Reason>,
    native: impl FnOnce(&Functions<A::Handle>) -> c_int,
) -> c_int {
    let mpi = &library.mpi;
    let fall_back = |reason| {
        library.count(|report| report.count_fallback(function, reason));
        native(&mpi.functions)
    };
    if comm == mpi.handles.comm_null {
        return fall_back(Reason::Arguments);
    }
    let own = match library.communicator(comm) {
        Ok(own) => own,
        Err(code) => return code.0,
    };
    let active = match &own.state {
        State::Active(active) => active,
        State::Passive(reason) => return fall_back(*reason),
        State::Refused => return mpi.raise(comm, A::ERR_OTHER),
    };
    let operation = match operation(&Context { mpi, own: &own }) {
        Ok(operation) => operation,
        Err(reason) => return fall_back(reason),
    };
    let Operation { wanted, sides, reduction } = operation;
    let (file, plan) = match active.choose(&wanted) {
        Ok(found) => found,
        Err(reason) => return fall_back(reason),
    };
    library.count(|report| report.count_plan(function, plan, wanted.bytes));
    // SAFETY: as of this function.
    match unsafe { active.run(mpi, own.rank, file, &wanted, &sides, reduction) } {
        Ok(()) => 0,
        Err(Failure::Mpi(code)) => mpi.raise(comm, code.0),
        Err(Failure::Own(problem)) => {
            eprintln!("canopy-mpi: {function} by {plan} on rank {}: {problem}", own.rank);
            mpi.raise(comm, A::ERR_OTHER)
        }
    }
}

/// What the arguments of a call are read with.
pub(crate) struct Context<'c, A: Abi> {
    mpi: &'c Mpi<A>,
    own: &'c Communicator<A>,
}

impl<A: Abi> Context<'_, A> {
    /// `MPI_Allreduce` and, for a root, `MPI_Reduce`; `MPI_Reduce_scatter_block` where there are shares.
    ///
    /// # Errors
    /// No plan can serve the call.
    pub(crate) fn reduction(
        &self,
        kind: CollectiveKind,
        send: *const c_void,
        receive: Block<A>,
        op: A::Handle,
        root: Option<c_int>,
    ) -> Result<Operation<A>, Reason> {
        let operator = self.mpi.operator(op).ok_or(Reason::Operator)?;
        let class = self.mpi.class(receive.datatype).ok_or(Reason::Type)?;
        if !class.allows(operator) {
            return Err(Reason::Type);
        }
        let is_root = self.is_root(root)?;
        let shares = if kind.has_shares() { self.own.size } else { 1 };
        let is_in_place = is_in_place::<A>(send);
        let whole = self.side(receive, shares)?;
        let input = if is_in_place { whole } else { Side { pointer: send.cast_mut().cast(), ..whole } };
        let output = whole.blocks_from(0, 1);
        let has_output = root.is_none() || is_root;
        let sides = Sides { kind, input: Some(input), output: has_output.then_some(output), is_in_place };
        let element_bytes = whole.element_bytes;
        let reduction = Reduction { datatype: receive.datatype, op, element_bytes };
        let elements = whole.block_elements as u64;
        let wanted = self.wanted(kind, root, elements, element_bytes as u64)?;
        Ok(Operation { wanted, sides, reduction: Some(reduction) })
    }

    /// `MPI_Bcast`.
    ///
    /// # Errors
    /// No plan can serve the call.
    pub(crate) fn broadcast(&self, buffer: Block<A>, root: c_int) -> Result<Operation<A>, Reason> {
        let kind = CollectiveKind::Broadcast;
        let is_root = self.is_root(Some(root))?;
        let side = self.side(buffer, 1)?;
        let sides = Sides { kind, input: is_root.then_some(side), output: Some(side), is_in_place: is_root };
        self.moving(kind, Some(root), &side, sides)
    }

    /// `MPI_Allgather`, and `MPI_Gather` for a root.
    ///
    /// # Errors
    /// No plan can serve the call.
    pub(crate) fn gathering(
        &self,
        kind: CollectiveKind,
        send: Block<A>,
        receive: Block<A>,
        root: Option<c_int>,
    ) -> Result<Operation<A>, Reason> {
        let has_output = self.is_root(root)? || root.is_none();
        if !has_output {
            let side = self.side(send, 1)?;
            let sides = Sides { kind, input: Some(side), output: None, is_in_place: false };
            return self.moving(kind, root, &side, sides);
        }
        let output = self.side(receive, self.own.size)?;
        let is_in_place = is_in_place::<A>(send.buffer);
        let input = if is_in_place { output.blocks_from(self.own.rank as usize, 1) } else { self.side(send, 1)? };
        if bytes(&input) != bytes(&output.blocks_from(0, 1)) {
            return Err(Reason::Arguments);
        }
        let sides = Sides { kind, input: Some(input), output: Some(output), is_in_place };
        self.moving(kind, root, &input, sides)
    }

    /// `MPI_Scatter`.
    ///
    /// # Errors
    /// No plan can serve the call.
    pub(crate) fn scatter(&self, send: Block<A>, receive: Block<A>, root: c_int) -> Result<Operation<A>, Reason> {
        let kind = CollectiveKind::Scatter;
        if !self.is_root(Some(root))? {
            let side = self.side(receive, 1)?;
            let sides = Sides { kind, input: None, output: Some(side), is_in_place: false };
            return self.moving(kind, Some(root), &side, sides);
        }
        let input = self.side(send, self.own.size)?;
        let share = input.blocks_from(0, 1);
        let output = if is_in_place::<A>(receive.buffer) { None } else { Some(self.side(receive, 1)?) };
        if output.is_some_and(|output| bytes(&output) != bytes(&share)) {
            return Err(Reason::Arguments);
        }
        let sides = Sides { kind, input: Some(input), output, is_in_place: false };
        self.moving(kind, Some(root), &share, sides)
    }

    /// `MPI_Alltoall`.
    ///
    /// # Errors
    /// No plan can serve the call.
    pub(crate) fn all_to_all(&self, send: Block<A>, receive: Block<A>) -> Result<Operation<A>, Reason> {
        let kind = CollectiveKind::AllToAll;
        let output = self.side(receive, self.own.size)?;
        let is_in_place = is_in_place::<A>(send.buffer);
        let input = if is_in_place { output } else { self.side(send, self.own.size)? };
        if bytes(&input) != bytes(&output) {
            return Err(Reason::Arguments);
        }
        let sides = Sides { kind, input: Some(input), output: Some(output), is_in_place };
        self.moving(kind, None, &output.blocks_from(0, 1), sides)
    }

    /// A collective that only moves data: its element is a byte, because ranks may describe the same data by different
    /// types.
    fn moving(
        &self,
        kind: CollectiveKind,
        root: Option<c_int>,
        share: &Side<A>,
        sides: Sides<A>,
    ) -> Result<Operation<A>, Reason> {
        let wanted = self.wanted(kind, root, bytes(share).ok_or(Reason::Arguments)?, 1)?;
        Ok(Operation { wanted, sides, reduction: None })
    }

    fn wanted(
        &self,
        kind: CollectiveKind,
        root: Option<c_int>,
        elements: u64,
        element_bytes: u64,
    ) -> Result<Wanted, Reason> {
        let shares = if kind.has_shares() { u64::from(self.own.size) } else { 1 };
        let bytes = elements.checked_mul(element_bytes).and_then(|bytes| bytes.checked_mul(shares));
        let bytes = bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or(Reason::Arguments)?;
        let root = root.map(u32::try_from).transpose().map_err(|_| Reason::Arguments)?;
        Ok(Wanted { kind, root, elements, element_bytes, bytes })
    }

    /// Whether this rank is the root, which must be one of the communicator.
    fn is_root(&self, root: Option<c_int>) -> Result<bool, Reason> {
        let Some(root) = root else { return Ok(false) };
        let root = u32::try_from(root).map_err(|_| Reason::Arguments)?;
        if root < self.own.size { Ok(root == self.own.rank) } else { Err(Reason::Arguments) }
    }

    /// A buffer of some blocks.
    fn side(&self, block: Block<A>, blocks: u32) -> Result<Side<A>, Reason> {
        let Block { buffer, count, datatype } = block;
        let block_elements = usize::try_from(count).map_err(|_| Reason::Arguments)?;
        if datatype == self.mpi.handles.datatype_null {
            return Err(Reason::Arguments);
        }
        let wrong = |_| Reason::Arguments;
        let element_bytes = self.mpi.type_bytes(datatype).map_err(wrong)?;
        let extent = self.mpi.extent(datatype).map_err(wrong)?;
        let is_plain = extent == element_bytes.cast_signed() && self.mpi.is_named(datatype).map_err(wrong)?;
        let (pointer, blocks) = (buffer.cast(), blocks as usize);
        Ok(Side { pointer, blocks, block_elements, datatype, element_bytes, extent, is_plain })
    }
}

/// Bytes of the data of a buffer.
fn bytes<A: Abi>(side: &Side<A>) -> Option<u64> {
    let elements = (side.blocks as u64).checked_mul(side.block_elements as u64)?;
    elements.checked_mul(side.element_bytes as u64)
}

/// Whether an address is `MPI_IN_PLACE`.
fn is_in_place<A: Abi>(buffer: *const c_void) -> bool {
    buffer.addr().cast_signed() == A::IN_PLACE
}
