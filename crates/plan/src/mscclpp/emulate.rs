//! Runs a plan on real bytes in a random but reproducible interleaving.
//!
//! A second opinion beside the proof: between two meetings of a block's threads its operations run in any order, proxies
//! take their time, ranks begin when chance has it, and touching the memory of a rank that has not begun or has ended is
//! an error. It shows one execution per seed, and never a proof that there are none that fail.

mod machine;

use canopy_schedule::Collective;

use self::machine::Run;
use super::contract::{Contract, Promise};
use super::loader;
use super::machine::{Machine, scales};
use super::profile::ExecutorProfile;
use super::program::ExecutionPlan;
use crate::emulate::{ElementType, EmulationError, EmulationReport, Operator, mix};
use crate::msccl::{Buffer, Place, Report};

/// Most elements of all ranks' buffers together.
const ELEMENTS_MAX: u64 = 1 << 25;

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionOptions {
    /// The version of the runtime.
    pub profile: ExecutorProfile,
    /// Seed of data and interleaving.
    pub seed: u64,
    /// Elements in each part of a chunk that operations tell apart, ≥ 1.
    pub elements: u32,
    /// Type of the elements. They are summed, as the runtime does nothing else.
    pub element: ElementType,
}

impl ExecutionOptions {
    /// The runs that a plan made here must survive: they differ in data, interleaving and type.
    pub const fn various(profile: ExecutorProfile, seed: u64) -> [Self; 3] {
        let first = Self { profile, seed, elements: 2, element: ElementType::U64 };
        let second = Self { seed: seed.wrapping_add(1), element: ElementType::I32, ..first };
        [first, second, Self { seed: seed.wrapping_add(2), elements: 1, element: ElementType::U8, ..first }]
    }
}

/// Runs a plan once, with pipelines once for messages of several sizes, and compares every rank's output with what the collective promises; of one that promises nothing,
/// only that it ends is seen. `asked` is as for [`prove_execution_plan`](super::prove_execution_plan).
///
/// Memory that the collective does not fill begins with garbage, so reading it shows.
///
/// # Errors
/// The plan cannot be followed, needs too much memory, touches memory outside its owner's launch, deadlocks, or gives a
/// wrong result; `stop`, asked about every millisecond, returned true. O(elements moved). Never panics.
pub fn emulate_execution_plan(
    plan: &ExecutionPlan,
    asked: Option<Collective>,
    options: &ExecutionOptions,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<EmulationReport, EmulationError> {
    if options.elements == 0 {
        return Err(EmulationError::ZeroOption { option: "elements" });
    }
    let malformed = |place, what| EmulationError::Malformed { place, what };
    let contract = Contract::new(plan, asked);
    let contract = contract.map_err(|_| malformed(Place::FILE, "its buffers do not fit its collective"))?;
    let mut report = Report::new(stop);
    report.run("structure", |findings| loader::structure(plan, options.profile, findings));
    let mut machines = Vec::new();
    report.run("operations", |findings| {
        let scales = scales(plan, findings);
        machines = scales.iter().map_while(|scale| Machine::new(plan, &contract, scale, findings)).collect();
    });
    let proof = report.finish().map_err(|_| EmulationError::Stopped)?;
    if let Some(problem) = proof.problems.first() {
        return Err(malformed(problem.where_, "a number or reference is wrong"));
    }
    let mut total = EmulationReport { steps: 0, transfers: 0, chunks: 0, elements_compared: 0 };
    for machine in &machines {
        let EmulationReport { steps, transfers, chunks, elements_compared } = run(machine, &contract, options, stop)?;
        total.steps += steps;
        total.transfers += transfers;
        total.chunks += chunks;
        total.elements_compared += elements_compared;
    }
    Ok(total)
}

/// Runs a plan with messages of one size.
fn run(
    machine: &Machine,
    contract: &Contract,
    options: &ExecutionOptions,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<EmulationReport, EmulationError> {
    let cells: u64 = machine.memories.iter().map(|memory| memory.cells()).sum();
    let elements = cells.saturating_mul(options.elements.into());
    if elements > ELEMENTS_MAX {
        return Err(EmulationError::TooLarge { bytes: elements.saturating_mul(8), limit: ELEMENTS_MAX * 8 });
    }
    let data = Data { machine, contract, options };
    let memories = (0..).zip(&machine.memories).map(|(rank, memory)| data.initial(rank, memory.cells())).collect();
    let mut run = Run::new(machine, *options, memories);
    run.finish(stop)?;
    let elements_compared = data.check(&run.memories)?;
    Ok(run.report(elements_compared))
}

/// What ranks begin with and must end with.
struct Data<'a> {
    machine: &'a Machine,
    contract: &'a Contract,
    options: &'a ExecutionOptions,
}

impl Data<'_> {
    /// An element of a rank's input.
    fn input(&self, rank: u32, cell: u64, element: u64) -> u64 {
        let random = mix(mix(mix(self.options.seed ^ u64::from(rank)) ^ cell) ^ element);
        self.options.element.truncate(random)
    }

    fn elements(&self) -> u64 {
        self.options.elements.into()
    }

    fn initial(&self, rank: u32, cells: u64) -> Vec<u64> {
        let garbage = mix(!self.options.seed ^ u64::from(rank));
        let total = cells * self.elements();
        let mut memory: Vec<u64> = (0..total).map(|at| self.options.element.truncate(mix(garbage ^ at))).collect();
        if self.contract.is_filled(rank) && self.contract.has_buffer(rank, Buffer::Input) {
            let first = self.first(rank, Buffer::Input, 0);
            let inputs = self.contract.input_chunks() * self.machine.grain;
            let filled = memory.iter_mut().skip(first).take(usize::try_from(inputs * self.elements()).unwrap_or(0));
            for (at, value) in (0_u64..).zip(filled) {
                *value = self.input(rank, at / self.elements(), at % self.elements());
            }
        }
        memory
    }

    /// Position in a rank's memory of a chunk's first element.
    fn first(&self, rank: u32, buffer: Buffer, chunk: u64) -> usize {
        let cell = self.machine.memories.get(rank as usize).map_or(0, |memory| memory.cell(buffer, chunk));
        usize::try_from(cell * self.elements()).unwrap_or(usize::MAX)
    }

    fn expected(&self, promise: Promise, part: u64, element: u64) -> u64 {
        let cell = |chunk: u64| chunk * self.machine.grain + part;
        match promise {
            Promise::Chunk { rank, chunk } => self.input(rank, cell(chunk), element),
            Promise::Sum { chunk } => {
                let ranks = u32::try_from(self.machine.memories.len()).unwrap_or(0);
                let inputs = (0..ranks).map(|rank| self.input(rank, cell(chunk), element));
                inputs.fold(0, |sum, next| self.options.element.combine(Operator::Sum, sum, next))
            }
        }
    }

    /// Compares outputs, and inputs where they must be unchanged. Returns the number of elements compared.
    fn check(&self, memories: &[Vec<u64>]) -> Result<u64, EmulationError> {
        let mut compared = 0;
        for (rank, memory) in (0_u32..).zip(memories) {
            for chunk in 0..self.contract.output_chunks() {
                let Some(promise) = self.contract.promise(rank, chunk) else { continue };
                let found = memory.iter().skip(self.first(rank, Buffer::Output, chunk));
                let places = (0..self.machine.grain).flat_map(|part| (0..self.elements()).map(move |at| (part, at)));
                for ((part, element), &found) in places.zip(found) {
                    compared += 1;
                    if found != self.expected(promise, part, element) {
                        return Err(EmulationError::WrongOutput { rank, chunk });
                    }
                }
            }
            let is_given = self.contract.is_filled(rank) && self.contract.has_buffer(rank, Buffer::Input);
            if !self.contract.keeps_input() || !is_given {
                continue;
            }
            let found = memory.iter().skip(self.first(rank, Buffer::Input, 0));
            let inputs = self.contract.input_chunks() * self.machine.grain * self.elements();
            for (at, &found) in (0..inputs).zip(found) {
                if found != self.input(rank, at / self.elements(), at % self.elements()) {
                    let chunk = at / self.elements() / self.machine.grain;
                    return Err(EmulationError::InputChanged { rank, chunk });
                }
            }
        }
        Ok(compared)
    }
}
