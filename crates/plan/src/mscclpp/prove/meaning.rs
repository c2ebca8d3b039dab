//! Whether every rank ends with what the collective promises: the plan is executed on sums of contributions.
//!
//! It is free of races, so one order gives the values of all.

use crate::meaning::{NOTHING, Values, Wrong};
use crate::msccl::{Buffer, Findings, Place};
use crate::mscclpp::contract::{Contract, Memory};
use crate::mscclpp::machine::{Effect, Machine, Role};

/// Most contributions that are told apart.
const CONTRIBUTIONS_MAX: u64 = 1 << 30;

/// Executes the order and compares the outputs.
pub(super) fn check(machine: &Machine, contract: &Contract, order: &[(usize, usize)], findings: &mut Findings<'_>) {
    let ranks = machine.memories.len() as u64;
    let inputs = contract.input_chunks() * machine.grain;
    let Ok(input_cells) = u32::try_from(inputs) else { return };
    if ranks * inputs > CONTRIBUTIONS_MAX {
        findings.problem(
            Place::FILE,
            format!("the plan has {} contributions, more than the proof can follow", ranks * inputs),
        );
        return;
    }
    let cells = machine.memories.iter().map(Memory::cells);
    let mut values = Values::new(contract.promises(machine.grain), input_cells, cells);
    for (rank, memory) in (0_u32..).zip(&machine.memories) {
        values.give(rank, memory.cell(Buffer::Input, 0), input_cells);
    }
    for &(block, step) in order {
        let Some(event) = machine.blocks.get(block).and_then(|block| block.events.get(step)) else { return };
        if findings.is_full() || findings.must_stop(1 + event.effects.iter().map(Effect::work).sum::<u64>()) {
            return;
        }
        if !matches!(event.role, Role::Data | Role::Port { .. }) {
            continue;
        }
        for effect in &event.effects {
            if let Err(message) = apply(&mut values, effect) {
                findings.problem(machine.blocks[block].place(step), message);
            }
        }
    }
    for (rank, memory) in (0_u32..).zip(&machine.memories) {
        if findings.must_stop(memory.cells()) {
            return;
        }
        compare(&mut values, rank, memory, machine.grain, contract, findings);
    }
}

impl Effect {
    fn work(&self) -> u64 {
        self.targets.iter().chain(&self.sources).map(|span| span.count).sum()
    }
}

fn apply(values: &mut Values, effect: &Effect) -> Result<(), String> {
    let count = effect.targets.first().map_or(0, |span| span.count);
    for offset in 0..count {
        let mut total = None;
        for source in &effect.sources {
            let value = values.get(source.rank, source.first + offset);
            total = match total {
                None => Some(value),
                Some(_) if value == NOTHING => return Err("adds data that has not been written".to_owned()),
                Some(NOTHING) => return Err("adds to data that has not been written".to_owned()),
                Some(total) => Some(values.sum(total, value).map_err(|fault| fault.to_string())?),
            };
        }
        let value = total.unwrap_or(NOTHING);
        if value == NOTHING {
            return Err("forwards data that has not been written".to_owned());
        }
        for target in &effect.targets {
            values.put(target.rank, target.first + offset, value);
        }
    }
    Ok(())
}

/// Compares what a rank holds with what is promised, each chunk in so many cells.
fn compare(
    values: &mut Values,
    rank: u32,
    memory: &Memory,
    grain: u64,
    contract: &Contract,
    findings: &mut Findings<'_>,
) {
    let first = memory.cell(Buffer::Output, 0);
    for chunk in 0..contract.output_chunks() {
        let mut places = chunk * grain..(chunk + 1) * grain;
        let wrong = places.find_map(|place| values.check_output(rank, place, first + place).err());
        if let Some(Wrong { found, expected }) = wrong {
            let (found, expected) = (values.describe(found), values.describe(expected));
            findings.problem(Place::rank(rank), format!("output chunk {chunk} holds {found} instead of {expected}"));
        }
    }
    if !contract.keeps_input() {
        return;
    }
    let inputs = u32::try_from(contract.input_chunks() * grain).unwrap_or(u32::MAX);
    if let Err(place) = values.check_input(rank, memory.cell(Buffer::Input, 0), inputs) {
        let chunk = u64::from(place) / grain;
        let message = format!("input chunk {chunk} has changed, but the call is out of place");
        findings.problem(Place::rank(rank), message);
    }
}
