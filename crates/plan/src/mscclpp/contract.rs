//! What a plan is for: buffers, where they share memory, what ranks start with and must end with.

use std::sync::Arc;

use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::Rank;

use super::program::{ExecutionPlan, ExecutionRank};
use crate::msccl::Buffer;
use crate::promise::Promises;
use crate::slots::Slots;

/// The word of the runtime for a collective. It has none for those with a root: such plans are `custom`, and whoever
/// registers one says by its name, or by a selector, when it is to be used.
pub(crate) const fn word(kind: CollectiveKind) -> &'static str {
    match kind {
        CollectiveKind::Allgather => "allgather",
        CollectiveKind::ReduceScatter => "reducescatter",
        CollectiveKind::Allreduce => "allreduce",
        CollectiveKind::AllToAll => "alltoall",
        CollectiveKind::Broadcast | CollectiveKind::Reduce | CollectiveKind::Gather | CollectiveKind::Scatter => {
            "custom"
        }
    }
}

/// The collective that a word promises, where it promises one.
pub(crate) fn read_word(text: &str) -> Option<CollectiveKind> {
    CollectiveKind::ALL.into_iter().find(|&kind| !kind.has_root() && word(kind) == text)
}

/// What a plan is held to.
#[derive(Clone, Debug)]
pub(super) struct Contract {
    kind: Option<CollectiveKind>,
    root: u32,
    rank_count: u64,
    in_place: bool,
    input_chunks: u64,
    output_chunks: u64,
    /// Of an all-to-all in slots.
    slots: Option<Arc<Slots>>,
}

impl Contract {
    /// The contract of a plan by its own word, or by the collective that is asked for; else why it can keep none.
    pub(super) fn new(plan: &ExecutionPlan, asked: Option<Collective>) -> Result<Self, String> {
        let stated = read_word(&plan.collective);
        if let (Some(stated), Some(asked)) = (stated, asked.map(|asked| asked.kind()))
            && stated != asked
        {
            return Err(format!("the plan is for {stated}, not for {asked}; ask for {stated}"));
        }
        let kind = stated.or(asked.map(|asked| asked.kind()));
        let Some(first) = plan.ranks.first() else { return Err("gpus is empty; list the ranks".to_owned()) };
        let contract = Self {
            kind,
            root: asked.and_then(Collective::root).map_or(0, |root| root.number()),
            rank_count: plan.ranks.len() as u64,
            in_place: plan.in_place,
            input_chunks: first.input_chunks.into(),
            output_chunks: first.output_chunks.into(),
            slots: None,
        };
        contract.check_counts().map(|()| contract)
    }

    /// The contract of a plan for an all-to-all in slots, whose word promises nothing.
    pub(super) fn of_slots(plan: &ExecutionPlan, slots: &Slots) -> Result<Self, String> {
        if let Some(kind) = read_word(&plan.collective) {
            return Err(format!("the plan is for {kind}, which fills all slots; ask for {kind}"));
        }
        if plan.in_place {
            return Err("a plan for slots is out of place; set inplace to false".to_owned());
        }
        if plan.ranks.len() != slots.ranks() as usize {
            return Err(format!("the plan has {} ranks, and the slots {}", plan.ranks.len(), slots.ranks()));
        }
        let contract = Self { kind: Some(CollectiveKind::AllToAll), ..Self::new(plan, None)? };
        contract.check_counts()?;
        slots.units_of_chunk(contract.input_chunks / contract.rank_count.max(1))?;
        Ok(Self { slots: Some(Arc::new(slots.clone())), ..contract })
    }

    fn check_counts(&self) -> Result<(), String> {
        use CollectiveKind::{AllToAll, Allgather, Gather, ReduceScatter, Scatter};
        let (input, output, ranks) = (self.input_chunks, self.output_chunks, self.rank_count);
        let (is_right, rule) = match self.kind {
            None => (true, ""),
            Some(Allgather | Gather) => (output == input * ranks, "output_chunks must be input_chunks times the ranks"),
            Some(ReduceScatter | Scatter) => {
                (input == output * ranks, "input_chunks must be output_chunks times the ranks")
            }
            Some(AllToAll) => {
                (input == output && input.is_multiple_of(ranks), "both must be the same multiple of the ranks")
            }
            Some(_) => (input == output, "both must be the same"),
        };
        let kind = self.kind.map_or("", CollectiveKind::name);
        let found = format!("{kind} of {ranks} ranks with {input} input_chunks and {output} output_chunks");
        if is_right { Ok(()) } else { Err(format!("{found}: {rule}")) }
    }

    /// The collective, where one is promised.
    pub(super) const fn kind(&self) -> Option<CollectiveKind> {
        self.kind
    }

    /// Chunks of every rank's input.
    pub(super) const fn input_chunks(&self) -> u64 {
        self.input_chunks
    }

    /// Chunks of every rank's output.
    pub(super) const fn output_chunks(&self) -> u64 {
        self.output_chunks
    }

    /// Whether the input must be as it was at the end.
    pub(super) const fn keeps_input(&self) -> bool {
        !self.in_place && self.kind.is_some()
    }

    /// Whether a rank's caller gives it a buffer: the output of gather and reduce, and the input of scatter, belong to
    /// the root.
    pub(super) fn has_buffer(&self, rank: u32, buffer: Buffer) -> bool {
        match (self.kind, buffer) {
            (Some(CollectiveKind::Gather | CollectiveKind::Reduce), Buffer::Output) => {
                self.in_place || rank == self.root
            }
            (Some(CollectiveKind::Scatter), Buffer::Input) => self.in_place || rank == self.root,
            _ => true,
        }
    }

    /// What is promised of outputs whose chunks have so many places.
    pub(super) fn promises(&self, per_chunk: u64) -> Promises {
        let chunks = self.input_chunks.min(self.output_chunks);
        if let Some(slots) = &self.slots {
            return Promises::of_slots(Arc::clone(slots), chunks / self.rank_count.max(1) * per_chunk);
        }
        let share = if self.kind == Some(CollectiveKind::AllToAll) { chunks / self.rank_count } else { chunks };
        Promises::of(self.kind, Rank::new(self.root), share * per_chunk)
    }

    /// Where the buffers of a rank lie, each chunk in `grain` cells, of scratch in `scratch_grain`.
    pub(super) fn memory(&self, rank: &ExecutionRank, grain: u64, scratch_grain: u64) -> Memory {
        use CollectiveKind::{Allgather, Gather, ReduceScatter, Scatter};
        let (input, output) = (self.input_chunks, self.output_chunks);
        let own = u64::from(rank.id);
        let (input_base, output_base, shared) = match self.kind {
            _ if !self.in_place => (0, input, input + output),
            Some(Allgather | Gather) => (own * input, 0, output),
            Some(ReduceScatter | Scatter) => (0, own * output, input),
            _ => (0, 0, input.max(output)),
        };
        let scratch = shared * grain;
        let cells = scratch + u64::from(rank.scratch_chunks) * scratch_grain;
        Memory { input: input_base * grain, output: output_base * grain, scratch, cells, grain, scratch_grain }
    }
}

/// Where a rank's buffers lie in one array of cells: in place, input and output share some.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    input: u64,
    output: u64,
    scratch: u64,
    cells: u64,
    grain: u64,
    scratch_grain: u64,
}

impl Memory {
    /// Cells in all.
    pub(super) const fn cells(&self) -> u64 {
        self.cells
    }

    /// Whether a cell is one of scratch.
    pub(super) const fn is_scratch(&self, cell: u64) -> bool {
        cell >= self.scratch
    }

    /// First cell of a chunk of a buffer.
    pub(super) const fn cell(&self, buffer: Buffer, chunk: u64) -> u64 {
        match buffer {
            Buffer::Input => self.input + chunk * self.grain,
            Buffer::Output => self.output + chunk * self.grain,
            Buffer::Scratch => self.scratch + chunk * self.scratch_grain,
        }
    }
}
