//! Runs a script with messages of MPI.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr;

use crate::abi::Abi;
use crate::mpi::{Code, Mpi, check};
use crate::script::{Message, PART_BYTES_MAX, Script, Stage, Work};
use crate::staging::Places;

/// A script whose messages are ready to be posted.
pub(crate) struct Compiled<A: Abi> {
    pub(crate) script: Script,
    /// The messages of each stage that exchanges some.
    exchanges: Vec<Exchange<A>>,
    /// Types of messages that are not in a row.
    types: Vec<A::Handle>,
}

/// Messages of MPI that proceed together.
struct Exchange<A: Abi> {
    receives: Vec<Post<A>>,
    sends: Vec<Post<A>>,
}

/// One message of MPI.
struct Post<A: Abi> {
    peer: c_int,
    tag: c_int,
    /// Place of its first byte.
    place: usize,
    count: c_int,
    datatype: A::Handle,
}

/// How elements are combined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction<A: Abi> {
    pub(crate) datatype: A::Handle,
    pub(crate) op: A::Handle,
    pub(crate) element_bytes: usize,
}

impl<A: Abi> Compiled<A> {
    /// Makes the messages of a script.
    pub(crate) fn new(mpi: &Mpi<A>, script: Script) -> Result<Self, Code> {
        let (mut exchanges, mut types) = (Vec::new(), Vec::new());
        for stage in &script.stages {
            if let Stage::Exchange { receives, sends } = stage {
                let mut posts = |messages| posts(mpi, messages, &mut types);
                exchanges.push(Exchange { receives: posts(receives)?, sends: posts(sends)? });
            }
        }
        Ok(Self { script, exchanges, types })
    }

    /// Runs it to its end. `requests` is memory that is kept from call to call.
    ///
    /// # Safety
    /// The places are the memory of the script, which nothing else uses during the call.
    pub(crate) unsafe fn run(
        &self,
        mpi: &Mpi<A>,
        comm: A::Handle,
        places: &Places,
        reduction: Option<Reduction<A>>,
        requests: &mut Vec<A::Handle>,
    ) -> Result<(), Code> {
        let mut exchanges = self.exchanges.iter();
        for stage in &self.script.stages {
            match stage {
                Stage::Exchange { .. } => {
                    if let Some(messages) = exchanges.next() {
                        // SAFETY: as of this function.
                        unsafe { exchange(mpi, comm, places, messages, requests)? };
                    }
                }
                // SAFETY: a communicator that plans alone use.
                Stage::Barrier => check(unsafe { (mpi.functions.barrier)(comm) })?,
                Stage::Local(works) => {
                    for work in works {
                        // SAFETY: as of this function.
                        unsafe { apply(mpi, places, work, reduction)? };
                    }
                }
            }
        }
        Ok(())
    }

    /// Frees what MPI keeps for it.
    pub(crate) fn free(&self, mpi: &Mpi<A>) {
        for &datatype in &self.types {
            mpi.free_type(datatype);
        }
    }
}

fn posts<A: Abi>(mpi: &Mpi<A>, messages: &[Message], types: &mut Vec<A::Handle>) -> Result<Vec<Post<A>>, Code> {
    let number = |value: usize| c_int::try_from(value).map_err(|_| Code(A::ERR_OTHER));
    let mut found = Vec::new();
    for message in messages {
        let (peer, tag) = (number(message.peer as usize)?, number(message.tag as usize)?);
        for ranges in message.parts(PART_BYTES_MAX) {
            let Some(place) = ranges.first().map(|first| first.start) else { continue };
            let (count, datatype) = match ranges.as_slice() {
                [range] => (number(range.len())?, mpi.handles.byte),
                _ => {
                    let lengths = ranges.iter().map(|range| number(range.len())).collect::<Result<Vec<_>, _>>()?;
                    let distance = |range: &Range<usize>| range.start.wrapping_sub(place).cast_signed();
                    let distances: Vec<isize> = ranges.iter().map(distance).collect();
                    let made = mpi.bytes_at(&lengths, &distances)?;
                    types.push(made);
                    (1, made)
                }
            };
            found.push(Post { peer, tag, place, count, datatype });
        }
    }
    Ok(found)
}

/// Posts all messages of a stage, receives first, and waits for them.
///
/// # Safety
/// As [`Compiled::run`].
unsafe fn exchange<A: Abi>(
    mpi: &Mpi<A>,
    comm: A::Handle,
    places: &Places,
    messages: &Exchange<A>,
    requests: &mut Vec<A::Handle>,
) -> Result<(), Code> {
    requests.clear();
    let mut request = mpi.handles.comm_null;
    for Post { peer, tag, place, count, datatype } in &messages.receives {
        let to = places.address(*place).cast::<c_void>();
        // SAFETY: the bytes are in the memory of the script, and no other message of the stage uses them: that is proved.
        check(unsafe { (mpi.functions.irecv)(to, *count, *datatype, *peer, *tag, comm, &raw mut request) })?;
        requests.push(request);
    }
    for Post { peer, tag, place, count, datatype } in &messages.sends {
        let from = places.address(*place).cast_const().cast::<c_void>();
        // SAFETY: as above; other messages of the stage only read them.
        check(unsafe { (mpi.functions.isend)(from, *count, *datatype, *peer, *tag, comm, &raw mut request) })?;
        requests.push(request);
    }
    let count = c_int::try_from(requests.len()).map_err(|_| Code(A::ERR_OTHER))?;
    let nowhere = ptr::without_provenance_mut::<c_void>(A::STATUSES_IGNORE);
    // SAFETY: all requests were made above, and their statuses are not asked for.
    check(unsafe { (mpi.functions.waitall)(count, requests.as_mut_ptr(), nowhere) })
}

/// Copies or combines bytes within the memory of a script.
///
/// # Safety
/// As [`Compiled::run`].
unsafe fn apply<A: Abi>(
    mpi: &Mpi<A>,
    places: &Places,
    work: &Work,
    reduction: Option<Reduction<A>>,
) -> Result<(), Code> {
    let (from, to) = (places.address(work.source.start), places.address(work.destination));
    let bytes = work.source.len();
    if !work.is_reduction {
        if !ptr::eq(from, to) {
            // SAFETY: both ranges are in the memory of the script.
            unsafe { ptr::copy(from, to, bytes) };
        }
        return Ok(());
    }
    // Only plans of collectives that add up have reductions: that is proved.
    let Reduction { datatype, op, element_bytes } = reduction.ok_or(Code(A::ERR_OTHER))?;
    let step = (c_int::MAX as usize / 2).min(bytes / element_bytes.max(1)).max(1) * element_bytes.max(1);
    let mut done = 0;
    while done < bytes {
        let length = step.min(bytes - done);
        let count = c_int::try_from(length / element_bytes.max(1)).map_err(|_| Code(A::ERR_OTHER))?;
        let (from, to) = (from.wrapping_add(done).cast::<c_void>(), to.wrapping_add(done).cast::<c_void>());
        // SAFETY: both ranges are in the memory of the script, apart from each other, and hold elements of the type.
        check(unsafe { (mpi.functions.reduce_local)(from, to, count, datatype, op) })?;
        done += length;
    }
    Ok(())
}
