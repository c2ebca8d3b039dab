//! Where the memory of a plan is during one call: in the caller's buffers where that is possible, else in memory of our
//! own to which the input is copied and from which the output is.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr;

use canopy_schedule::CollectiveKind;

use crate::abi::Abi;
use crate::mpi::{Code, Mpi, check};
use crate::script::Script;

/// Most bytes of one call of `MPI_Pack`, whose counts are `int`.
const PACK_BYTES_MAX: usize = 1 << 30;

/// A buffer of the caller: some blocks in a row of so many elements each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side<A: Abi> {
    pub(crate) pointer: *mut u8,
    pub(crate) blocks: usize,
    pub(crate) block_elements: usize,
    pub(crate) datatype: A::Handle,
    /// Bytes of the data of an element.
    pub(crate) element_bytes: usize,
    /// Bytes from an element to the next.
    pub(crate) extent: isize,
    /// Whether the data are in a row in their order, so that bytes may be used as they are.
    pub(crate) is_plain: bool,
}

/// The buffers of a call at one rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sides<A: Abi> {
    pub(crate) kind: CollectiveKind,
    /// What the plan reads.
    pub(crate) input: Option<Side<A>>,
    /// Where the caller wants the result.
    pub(crate) output: Option<Side<A>>,
    /// Whether the input is in the caller's output.
    pub(crate) is_in_place: bool,
}

/// Memory that is kept from call to call, aligned for every type.
#[derive(Debug, Default)]
pub(crate) struct Buffer(Vec<u128>);

impl Buffer {
    /// At least so many bytes, with whatever is in them.
    fn bytes(&mut self, bytes: usize) -> Result<*mut u8, OutOfMemory> {
        let words = bytes.div_ceil(size_of::<u128>());
        if self.0.len() < words {
            self.0.clear();
            self.0.try_reserve_exact(words).map_err(|_| OutOfMemory { bytes })?;
            self.0.resize(words, 0);
        }
        Ok(self.0.as_mut_ptr().cast())
    }
}

/// Memory could not be had.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("no memory for {bytes} bytes")]
pub(crate) struct OutOfMemory {
    bytes: usize,
}

/// Why a call cannot begin or end.
#[derive(Debug)]
pub(crate) enum StagingError {
    /// MPI says so.
    Mpi(Code),
    /// Memory could not be had.
    Memory(OutOfMemory),
}

impl From<Code> for StagingError {
    fn from(code: Code) -> Self {
        Self::Mpi(code)
    }
}

impl From<OutOfMemory> for StagingError {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

/// Buffers of our own.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    input: Buffer,
    output: Buffer,
    scratch: Buffer,
}

/// Where places in the memory of a plan are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// First place and address of each region, by place.
    regions: [(usize, *mut u8); 3],
}

impl Places {
    /// The address of a place.
    pub(crate) fn address(&self, place: usize) -> *mut u8 {
        let [first, second, third] = self.regions;
        let (start, base) = if place >= third.0 {
            third
        } else if place >= second.0 {
            second
        } else {
            first
        };
        base.wrapping_add(place - start)
    }
}

/// The memory of a call, and what is to be copied at its end.
pub(crate) struct Staged<A: Abi> {
    pub(crate) places: Places,
    result: Option<Kept<A>>,
}

/// An output in memory of our own, and where the caller wants it.
type Kept<A> = (*mut u8, Side<A>);

impl<A: Abi> Staged<A> {
    /// Finds a place for each region and copies the input where the caller's buffer does not serve.
    ///
    /// # Safety
    /// The sides are the buffers of a call of MPI that has not returned.
    pub(crate) unsafe fn new(
        mpi: &Mpi<A>,
        comm: A::Handle,
        script: &Script,
        sides: &Sides<A>,
        buffers: &mut Buffers,
    ) -> Result<Self, StagingError> {
        let scratch = buffers.scratch.bytes(script.scratch.len())?;
        let place = |input: *mut u8, output: *mut u8| Places {
            regions: if script.input.start <= script.output.start {
                [(script.input.start, input), (script.output.start, output), (script.scratch.start, scratch)]
            } else {
                [(script.output.start, output), (script.input.start, input), (script.scratch.start, scratch)]
            },
        };
        if script.is_shared() {
            // SAFETY: as of this function.
            let (whole, result) = unsafe { whole(mpi, comm, script, sides, buffers)? };
            let at = |range: &Range<usize>| whole.wrapping_add(range.start);
            return Ok(Self { places: place(at(&script.input), at(&script.output)), result });
        }
        let input = match sides.input {
            None => ptr::null_mut(),
            Some(side) if side.is_plain && (!sides.is_in_place || sides.kind == CollectiveKind::Broadcast) => {
                side.pointer
            }
            Some(side) => {
                let own = buffers.input.bytes(script.input.len())?;
                // SAFETY: the caller's input has this many bytes, and so has ours.
                unsafe { side.pack(mpi, comm, own, script.input.len())? };
                own
            }
        };
        let is_root_of_broadcast = sides.kind == CollectiveKind::Broadcast && !script.input.is_empty();
        let (output, result) = match sides.output {
            // The caller of a broadcast has its result already.
            _ if is_root_of_broadcast && script.output_repeats_input() => (input, None),
            Some(side) if !is_root_of_broadcast && side.is_plain => (side.pointer, None),
            Some(side) if !is_root_of_broadcast => {
                let own = buffers.output.bytes(script.output.len())?;
                (own, Some((own, side)))
            }
            _ => (buffers.output.bytes(script.output.len())?, None),
        };
        Ok(Self { places: place(input, output), result })
    }

    /// Copies the output to the caller where it is not there already.
    ///
    /// # Safety
    /// As [`Self::new`]; the plan has ended.
    pub(crate) unsafe fn finish(self, mpi: &Mpi<A>, comm: A::Handle, script: &Script) -> Result<(), StagingError> {
        if let Some((from, side)) = self.result {
            // SAFETY: the output of the plan has as many bytes as the caller's.
            unsafe { side.unpack(mpi, comm, from, script.output.len())? };
        }
        Ok(())
    }
}

/// The one region of a plan that is in place, with the input in it, and what is to be copied at the end.
///
/// # Safety
/// As [`Staged::new`].
unsafe fn whole<A: Abi>(
    mpi: &Mpi<A>,
    comm: A::Handle,
    script: &Script,
    sides: &Sides<A>,
    buffers: &mut Buffers,
) -> Result<(*mut u8, Option<Kept<A>>), StagingError> {
    let length = script.input.end.max(script.output.end);
    // The caller's input is never written, and what is behind the output in its buffer is its own.
    let direct = sides.output.filter(|side| side.is_plain && script.output == (0..length));
    let whole = match direct {
        Some(side) => side.pointer,
        None => buffers.output.bytes(length)?,
    };
    if let Some(input) = sides.input.filter(|_| direct.is_none() || !sides.is_in_place) {
        // SAFETY: the caller's input has this many bytes, and so has its part of the region.
        unsafe { input.pack(mpi, comm, whole.wrapping_add(script.input.start), script.input.len())? };
    }
    let result = sides.output.filter(|_| direct.is_none());
    Ok((whole, result.map(|side| (whole.wrapping_add(script.output.start), side))))
}

impl<A: Abi> Side<A> {
    /// The same buffer from one of its blocks on.
    pub(crate) fn blocks_from(self, first: usize, blocks: usize) -> Self {
        let step = self.block_elements.wrapping_mul(first);
        let bytes = self.extent.wrapping_mul(isize::try_from(step).unwrap_or(isize::MAX));
        Self { pointer: self.pointer.wrapping_offset(bytes), blocks, ..self }
    }

    /// Copies the data to memory of our own, in a row.
    ///
    /// # Safety
    /// The caller's buffer has the elements, and `to` has room for so many bytes.
    unsafe fn pack(self, mpi: &Mpi<A>, comm: A::Handle, to: *mut u8, bytes: usize) -> Result<(), StagingError> {
        if self.is_plain {
            // SAFETY: as of this function; callers may break the rule that buffers do not overlap.
            unsafe { ptr::copy(self.pointer, to, bytes) };
            return Ok(());
        }
        self.in_pieces(|elements, count, at, length| {
            let mut position = 0;
            let to = to.wrapping_add(at).cast::<c_void>();
            let from = elements.cast::<c_void>();
            // SAFETY: a part of the caller's elements, and the room for them.
            check(unsafe { (mpi.functions.pack)(from, count, self.datatype, to, length, &raw mut position, comm) })?;
            Self::complete(position, length)
        })
    }

    /// Copies the data from memory of our own.
    ///
    /// # Safety
    /// The caller's buffer has room for the elements, and `from` has so many bytes.
    unsafe fn unpack(self, mpi: &Mpi<A>, comm: A::Handle, from: *mut u8, bytes: usize) -> Result<(), StagingError> {
        if self.is_plain {
            // SAFETY: as of this function.
            unsafe { ptr::copy(from, self.pointer, bytes) };
            return Ok(());
        }
        self.in_pieces(|elements, count, at, length| {
            let mut position = 0;
            let from = from.wrapping_add(at).cast::<c_void>();
            let to = elements.cast::<c_void>();
            let unpack = mpi.functions.unpack;
            // SAFETY: a part of our bytes, and the caller's room for them.
            check(unsafe { unpack(from, length, &raw mut position, to, count, self.datatype, comm) })?;
            Self::complete(position, length)
        })
    }

    /// Packed data that are not as long as the data itself belong to machines of different kinds.
    fn complete(position: c_int, length: c_int) -> Result<(), Code> {
        if position == length { Ok(()) } else { Err(Code(A::ERR_OTHER)) }
    }

    /// Calls for parts of the elements: their address, number, the byte at which they begin in a row, and their bytes.
    fn in_pieces(
        self,
        mut piece: impl FnMut(*mut u8, c_int, usize, c_int) -> Result<(), Code>,
    ) -> Result<(), StagingError> {
        let elements = self.blocks * self.block_elements;
        let step = (PACK_BYTES_MAX / self.element_bytes.max(1)).clamp(1, PACK_BYTES_MAX);
        let mut first = 0;
        while first < elements && self.element_bytes > 0 {
            let count = step.min(elements - first);
            let of = |value: usize| c_int::try_from(value).map_err(|_| Code(A::ERR_OTHER));
            let offset = self.extent.wrapping_mul(isize::try_from(first).unwrap_or(isize::MAX));
            let (at, length) = (first * self.element_bytes, of(count * self.element_bytes)?);
            piece(self.pointer.wrapping_offset(offset), of(count)?, at, length)?;
            first += count;
        }
        Ok(())
    }
}
