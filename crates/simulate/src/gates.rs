//! What may start: transfers wait at gates, which open piece by piece as data arrives.

use std::collections::HashMap;

use canopy_schedule::{Transfer, TransferGraph};

use crate::options::{SimulateError, Sync};
use crate::workload::{Workload, number_of};

/// Lists of numbers, one after the other.
#[derive(Debug)]
struct Lists {
    start: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    /// Groups items by key, each list in the order of the pairs.
    fn group(key_count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut start = vec![0_u32; key_count + 1];
        for (key, _) in pairs.clone() {
            start[key as usize + 1] += 1;
        }
        for index in 1..start.len() {
            start[index] += start[index - 1];
        }
        let mut items = vec![0; start[key_count] as usize];
        let mut next = start.clone();
        for (key, item) in pairs {
            items[next[key as usize] as usize] = item;
            next[key as usize] += 1;
        }
        Self { start, items }
    }

    fn of(&self, key: u32) -> &[u32] {
        &self.items[self.start[key as usize] as usize..self.start[key as usize + 1] as usize]
    }
}

/// Transfers that wait for the same others and have as many pieces.
#[derive(Debug)]
struct Gate {
    /// One of its transfers, for what it waits for.
    example: u32,
    pieces: u32,
    /// Pieces that may start.
    open: u32,
    /// Dependencies that have not brought the next piece.
    missing: u32,
}

/// Where every transfer waits, and what has arrived.
#[derive(Debug)]
pub(crate) struct Gates<'a> {
    graph: &'a TransferGraph,
    gates: Vec<Gate>,
    /// Gate of each transfer.
    gate_of: Vec<u32>,
    /// By transfer: the gates that wait for it.
    waiting: Lists,
    /// By gate: its transfers.
    members: Lists,
    /// Pieces of each transfer that have arrived whole.
    arrived: Vec<u32>,
    barrier: Option<Barrier>,
}

/// The barriers of a stepped run.
#[derive(Debug)]
struct Barrier {
    /// Step of each transfer, among the step numbers that occur.
    step_of: Vec<u32>,
    /// By step: its transfers.
    members: Lists,
    /// Transfers of each step that have not arrived.
    left: Vec<u32>,
    /// The step that is under way.
    current: u32,
}

/// Transfers that may have become free to start.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    /// By data.
    pub(crate) by_data: Vec<u32>,
    /// By the end of a step.
    pub(crate) by_step: Vec<u32>,
}

impl<'a> Gates<'a> {
    /// All gates as they are at the start. O(transfers + dependencies of all gates).
    pub(crate) fn new(graph: &'a TransferGraph, workload: &Workload, sync: Sync<'_>) -> Result<Self, SimulateError> {
        let mut known = HashMap::new();
        let (mut gates, mut gate_of) = (Vec::new(), Vec::with_capacity(graph.transfers.len()));
        for ((number, transfer), &pieces) in (0_u32..).zip(&graph.transfers).zip(&workload.pieces) {
            checked_waits(graph, number, transfer)?;
            let key = (transfer.dependencies.start, transfer.dependencies.end, pieces);
            let gate = *known.entry(key).or_insert_with(|| {
                gates.push(Gate { example: number, pieces, open: 0, missing: 0 });
                number_of(gates.len() - 1)
            });
            gate_of.push(gate);
        }
        let waits = |gate: &Gate| graph.dependencies_of(&graph.transfers[gate.example as usize]);
        let edges = (0_u32..).zip(&gates).flat_map(|(number, gate)| waits(gate).iter().map(move |&of| (of, number)));
        let waiting = Lists::group(graph.transfers.len(), edges);
        for gate in &mut gates {
            gate.missing = number_of(waits(gate).len());
            gate.open = if gate.missing == 0 { gate.pieces } else { 0 };
        }
        let members = Lists::group(gates.len(), gate_of.iter().zip(0..).map(|(&gate, transfer)| (gate, transfer)));
        let barrier = match sync {
            Sync::Deps => None,
            Sync::Steps(numbers) => Some(Barrier::new(graph, numbers)?),
        };
        let arrived = vec![0; graph.transfers.len()];
        Ok(Self { graph, gates, gate_of, waiting, members, arrived, barrier })
    }

    /// Whether nothing but the pieces before it keeps a piece of a transfer.
    pub(crate) fn is_open(&self, transfer: u32, piece: u32) -> bool {
        let in_step = self.barrier.as_ref().is_none_or(|barrier| barrier.step_of[transfer as usize] <= barrier.current);
        in_step && piece < self.gates[self.gate_of[transfer as usize] as usize].open
    }

    /// Pieces of a transfer that have arrived whole.
    pub(crate) fn arrived(&self, transfer: u32) -> u32 {
        self.arrived[transfer as usize]
    }

    /// Notes that the next piece of a transfer has arrived whole, and lists whom that may free. O(gates that wait for it),
    /// and O(what it waits for) for each that opens.
    pub(crate) fn arrive(&mut self, transfer: u32, pieces: &[u32], freed: &mut Freed) {
        let arrived = self.arrived[transfer as usize] + 1;
        self.arrived[transfer as usize] = arrived;
        for &number in self.waiting.of(transfer) {
            let gate = &mut self.gates[number as usize];
            if gate.open == gate.pieces || needed(pieces[transfer as usize], gate) != arrived {
                continue;
            }
            gate.missing -= 1;
            if gate.missing > 0 {
                continue;
            }
            let waits = self.graph.dependencies_of(&self.graph.transfers[gate.example as usize]);
            while gate.missing == 0 && gate.open < gate.pieces {
                gate.open += 1;
                if gate.open < gate.pieces {
                    let lacks = |&&of: &&u32| self.arrived[of as usize] < needed(pieces[of as usize], gate);
                    let missing = waits.iter().filter(lacks).count();
                    gate.missing = number_of(missing);
                }
            }
            freed.by_data.extend_from_slice(self.members.of(number));
        }
        if let Some(barrier) = &mut self.barrier
            && arrived == pieces[transfer as usize]
        {
            barrier.arrive(transfer, &mut freed.by_step);
        }
    }
}

/// Pieces of a dependency that cover the next piece of a gate: the same part of the chunks.
fn needed(pieces: u32, gate: &Gate) -> u32 {
    let part = (u64::from(gate.open) + 1) * u64::from(pieces);
    u32::try_from(part.div_ceil(gate.pieces.into())).expect("at most all pieces")
}

/// What a transfer waits for: all of it exists and is before it.
pub(crate) fn checked_waits<'a>(
    graph: &'a TransferGraph,
    number: u32,
    transfer: &Transfer,
) -> Result<&'a [u32], SimulateError> {
    let waits = graph.dependencies_of(transfer);
    let listed = transfer.dependencies.end.saturating_sub(transfer.dependencies.start);
    if waits.len() != listed as usize || waits.iter().any(|&before| before >= number) {
        return Err(SimulateError::Malformed { transfer: number, what: "waits for a transfer that is not before it" });
    }
    Ok(waits)
}

/// Step numbers, one for each transfer and none below one of what it waits for.
pub(crate) fn checked_steps<'a>(graph: &TransferGraph, numbers: &'a [u32]) -> Result<&'a [u32], SimulateError> {
    let (found, expected) = (numbers.len(), graph.transfers.len());
    if found != expected {
        return Err(SimulateError::StepCount { found, expected });
    }
    for ((number, transfer), &step) in (0..).zip(&graph.transfers).zip(numbers) {
        let before = graph.dependencies_of(transfer).iter().filter_map(|&before| numbers.get(before as usize));
        if let Some(&later) = before.filter(|&&before| before > step).max() {
            return Err(SimulateError::StepOrder { transfer: number, step, later });
        }
    }
    Ok(numbers)
}

impl Barrier {
    fn new(graph: &TransferGraph, numbers: &[u32]) -> Result<Self, SimulateError> {
        let numbers = checked_steps(graph, numbers)?;
        let mut known = numbers.to_vec();
        known.sort_unstable();
        known.dedup();
        let place = |step: &u32| number_of(known.partition_point(|known| known < step));
        let step_of: Vec<u32> = numbers.iter().map(place).collect();
        let members = Lists::group(known.len(), step_of.iter().zip(0..).map(|(&step, transfer)| (step, transfer)));
        let left = (0..number_of(known.len())).map(|step| number_of(members.of(step).len())).collect();
        Ok(Self { step_of, members, left, current: 0 })
    }

    fn arrive(&mut self, transfer: u32, freed: &mut Vec<u32>) {
        let left = &mut self.left[self.step_of[transfer as usize] as usize];
        *left -= 1;
        if *left == 0 && (self.current as usize) + 1 < self.left.len() {
            self.current += 1;
            freed.extend_from_slice(self.members.of(self.current));
        }
    }
}
