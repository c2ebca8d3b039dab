//! Runs a plan on real bytes in a random but reproducible interleaving.
//!
//! A second opinion beside the proof: between two meetings of a block's threads its operations run in any order, proxies
//! take their time, ranks begin when chance has it, and touching the memory of a rank that has not begun or has ended is
//! an error. It shows one execution per seed, and never a proof that there are none that fail.

mod machine;

use canopy_schedule::Collective;

use self::machine::Run;
use super::contract::{Contract, Memory};
use super::loader;
use super::machine::{Machine, scales};
use super::profile::ExecutorProfile;
use super::program::ExecutionPlan;
use crate::elements::{Data, ElementType, Operator, Random};
use crate::msccl::emulate::{EmulationError, EmulationReport, wrong};
use crate::msccl::{Buffer, Place, Report};
use crate::proof::Stop;

/// Most elements of all ranks' buffers together.
const ELEMENTS_MAX: u64 = 1 << 25;

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExecutionOptions {
    /// Seed of data and interleaving.
    pub(crate) seed: u64,
    /// Elements in each part of a chunk that operations tell apart, ≥ 1.
    pub(crate) elements: u32,
    /// Type of the elements. They are summed, as the runtime does nothing else.
    pub(crate) element: ElementType,
}

impl ExecutionOptions {
    /// Runs that differ in data, interleaving and type.
    const fn various(seed: u64) -> [Self; 3] {
        let first = Self { seed, elements: 2, element: ElementType::U64 };
        let second = Self { seed: seed.wrapping_add(1), element: ElementType::I32, ..first };
        [first, second, Self { seed: seed.wrapping_add(2), elements: 1, element: ElementType::U8 }]
    }
}

/// Runs a plan that was made here: for each seed, three times with other data, interleavings and types.
///
/// `asked` is as for [`prove_execution_plan`](super::prove_execution_plan).
///
/// # Errors
/// The first of [`Emulator::new`] and [`Emulator::run`].
pub fn emulate_execution_plan(
    plan: &ExecutionPlan,
    asked: Option<Collective>,
    profile: ExecutorProfile,
    seeds: impl IntoIterator<Item = u64>,
    stop: Stop<'_>,
) -> Result<(), EmulationError> {
    Emulator::new(plan, asked, profile, stop)?.run_various(seeds, stop)
}

/// A plan that can be run.
pub(crate) struct Emulator {
    contract: Contract,
    /// By size of the messages.
    machines: Vec<Machine>,
    profile: ExecutorProfile,
}

impl Emulator {
    /// Resolves a plan. `asked` is as for [`prove_execution_plan`](super::prove_execution_plan).
    ///
    /// # Errors
    /// The plan cannot be followed; `stop`, asked about every millisecond, returned true. O(operations). Never panics.
    pub(crate) fn new(
        plan: &ExecutionPlan,
        asked: Option<Collective>,
        profile: ExecutorProfile,
        stop: Stop<'_>,
    ) -> Result<Self, EmulationError> {
        Self::held_to(plan, Contract::new(plan, asked), profile, stop)
    }

    /// Resolves a plan that is held to a contract.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(super) fn held_to(
        plan: &ExecutionPlan,
        contract: Result<Contract, String>,
        profile: ExecutorProfile,
        stop: Stop<'_>,
    ) -> Result<Self, EmulationError> {
        let malformed = |place, what| EmulationError::Malformed { place, what };
        let contract = contract.map_err(|_| malformed(Place::FILE, "its buffers do not fit its collective"))?;
        let mut report = Report::new(stop);
        report.run("structure", |findings| loader::structure(plan, profile, findings));
        let mut machines = Vec::new();
        report.run("operations", |findings| {
            let scales = scales(plan, findings);
            machines = scales.iter().map_while(|scale| Machine::new(plan, &contract, scale, findings)).collect();
        });
        let proof = report.finish().map_err(|_| EmulationError::Stopped)?;
        if let Some(problem) = proof.problems.first() {
            return Err(malformed(problem.place, "a number or reference is wrong"));
        }
        Ok(Self { contract, machines, profile })
    }

    /// Runs the plan three times for each seed.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub(super) fn run_various(
        &self,
        seeds: impl IntoIterator<Item = u64>,
        stop: Stop<'_>,
    ) -> Result<(), EmulationError> {
        seeds.into_iter().flat_map(ExecutionOptions::various).try_for_each(|options| self.run(&options, stop).map(drop))
    }

    /// Runs the plan once, with pipelines once for messages of several sizes, and compares every rank's output with what
    /// the collective promises; of one that promises nothing, only that it ends is seen.
    ///
    /// Memory that the collective does not fill begins with garbage, so reading it shows.
    ///
    /// # Errors
    /// The plan needs too much memory, touches memory outside its owner's launch, deadlocks, or gives a wrong result;
    /// `stop`, asked about every millisecond, returned true. O(elements moved). Never panics.
    pub(crate) fn run(&self, options: &ExecutionOptions, stop: Stop<'_>) -> Result<EmulationReport, EmulationError> {
        if options.elements == 0 {
            return Err(EmulationError::ZeroOption { option: "elements" });
        }
        let mut total = EmulationReport { steps: 0, transfers: 0, chunks: 0, elements_compared: 0 };
        for machine in &self.machines {
            let EmulationReport { steps, transfers, chunks, elements_compared } =
                run((machine, self.profile), &self.contract, options, stop)?;
            total.steps += steps;
            total.transfers += transfers;
            total.chunks += chunks;
            total.elements_compared += elements_compared;
        }
        Ok(total)
    }
}

/// Runs a plan with messages of one size.
fn run(
    (machine, profile): (&Machine, ExecutorProfile),
    contract: &Contract,
    options: &ExecutionOptions,
    stop: Stop<'_>,
) -> Result<EmulationReport, EmulationError> {
    let cells: u64 = machine.memories.iter().map(|memory| memory.cells()).sum();
    let elements = cells.saturating_mul(options.elements.into());
    if elements > ELEMENTS_MAX {
        return Err(EmulationError::TooLarge { bytes: elements.saturating_mul(8), limit: ELEMENTS_MAX * 8 });
    }
    let ExecutionOptions { seed, element, .. } = *options;
    let per_chunk = machine.grain * u64::from(options.elements);
    let inputs = contract.input_chunks() * per_chunk;
    let ranks = u32::try_from(machine.memories.len()).unwrap_or(0);
    let random = Random { seed, element, operator: Operator::Sum, chunk_elements: options.elements.into() };
    let data = Data::new(random, ranks, contract.promises(per_chunk), inputs, stop);
    let data = data.map_err(|fault| wrong(0, fault, per_chunk))?;
    // Where a buffer of a rank begins.
    let first = |memory: &Memory, buffer| memory.cell(buffer, 0) * u64::from(options.elements);
    let mut memories = Vec::with_capacity(machine.memories.len());
    for (rank, memory) in (0..).zip(&machine.memories) {
        let start = first(memory, Buffer::Input);
        let has_input = contract.has_buffer(rank, Buffer::Input);
        let input = start..if has_input { start + inputs } else { start };
        let own = data.memory(rank, memory.cells() * u64::from(options.elements), input);
        memories.push(own.map_err(|fault| wrong(rank, fault, per_chunk))?);
    }
    let mut run = Run::new(machine, profile, *options, memories);
    run.finish(stop)?;
    let mut elements_compared = 0;
    for ((rank, memory), cells) in (0..).zip(&machine.memories).zip(&run.memories) {
        let part = |buffer, chunks: u64| {
            let index = |place| usize::try_from(place).unwrap_or(usize::MAX);
            cells.iter().copied().skip(index(first(memory, buffer))).take(index(chunks * per_chunk))
        };
        let keeps_input = contract.keeps_input() && contract.has_buffer(rank, Buffer::Input);
        let input = keeps_input.then(|| part(Buffer::Input, contract.input_chunks()));
        let compared = data.check(rank, part(Buffer::Output, contract.output_chunks()), input);
        elements_compared += compared.map_err(|fault| wrong(rank, fault, per_chunk))?;
        let output = (first(memory, Buffer::Output)..).zip(part(Buffer::Output, contract.output_chunks()));
        data.check_rests(rank, output).map_err(|fault| wrong(rank, fault, per_chunk))?;
    }
    Ok(run.report(elements_compared))
}
