//! Whether every rank ends with what the collective promises: the plan is executed on sums of contributions.
//!
//! It is free of races, so one order gives the values of all.

use crate::msccl::symbols::{NOTHING, Symbol, Symbols};
use crate::msccl::{Buffer, Findings, Place};
use crate::mscclpp::contract::{Contract, Promise};
use crate::mscclpp::machine::{Effect, Machine, Role, Span};

/// Most contributions that are told apart.
const CONTRIBUTIONS_MAX: u64 = 1 << 30;

/// Executes the order and compares the outputs.
pub(super) fn check(machine: &Machine, contract: &Contract, order: &[(usize, usize)], findings: &mut Findings<'_>) {
    let ranks = machine.memories.len() as u64;
    let inputs = contract.input_chunks() * machine.grain;
    let (Ok(rank_count), Ok(input_cells)) = (u32::try_from(ranks), u32::try_from(inputs)) else { return };
    if ranks * inputs > CONTRIBUTIONS_MAX {
        findings.problem(Place::FILE, format!("{} contributions, more than can be followed", ranks * inputs));
        return;
    }
    let mut values = Values { symbols: Symbols::new(rank_count, input_cells), cells: Vec::new() };
    for (rank, memory) in (0_u32..).zip(&machine.memories) {
        let mut cells = vec![NOTHING; usize::try_from(memory.cells()).unwrap_or(0)];
        let base = memory.cell(Buffer::Input, 0);
        for cell in 0..input_cells {
            let at = usize::try_from(base + u64::from(cell)).unwrap_or(usize::MAX);
            if let Some(value) = cells.get_mut(at).filter(|_| contract.is_filled(rank)) {
                *value = values.symbols.contribution(rank, cell);
            }
        }
        values.cells.push(cells);
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
            if let Err(message) = values.apply(effect) {
                findings.problem(machine.blocks[block].place(step), message);
            }
        }
    }
    for (rank, memory) in (0_u32..).zip(&machine.memories) {
        if findings.must_stop(memory.cells()) {
            return;
        }
        values.compare(rank, machine, contract, findings);
    }
}

impl Effect {
    fn work(&self) -> u64 {
        self.targets.iter().chain(&self.sources).map(|span| span.count).sum()
    }
}

struct Values {
    symbols: Symbols,
    /// By rank.
    cells: Vec<Vec<Symbol>>,
}

impl Values {
    fn get(&self, span: &Span, offset: u64) -> Symbol {
        let at = usize::try_from(span.first + offset).unwrap_or(usize::MAX);
        self.cells.get(span.rank as usize).and_then(|cells| cells.get(at)).copied().unwrap_or(NOTHING)
    }

    fn apply(&mut self, effect: &Effect) -> Result<(), String> {
        let count = effect.targets.first().map_or(0, |span| span.count);
        for offset in 0..count {
            let mut total = None;
            for source in &effect.sources {
                let value = self.get(source, offset);
                total = match total {
                    None => Some(value),
                    Some(_) if value == NOTHING => return Err("adds what nothing has written".to_owned()),
                    Some(NOTHING) => return Err("adds to what nothing has written".to_owned()),
                    Some(total) => Some(self.symbols.sum(total, value).map_err(|fault| fault.to_string())?),
                };
            }
            let value = total.unwrap_or(NOTHING);
            if value == NOTHING {
                return Err("passes on what nothing has written".to_owned());
            }
            for target in &effect.targets {
                let at = usize::try_from(target.first + offset).unwrap_or(usize::MAX);
                if let Some(cell) = self.cells.get_mut(target.rank as usize).and_then(|cells| cells.get_mut(at)) {
                    *cell = value;
                }
            }
        }
        Ok(())
    }

    fn compare(&mut self, rank: u32, machine: &Machine, contract: &Contract, findings: &mut Findings<'_>) {
        let Some(memory) = machine.memories.get(rank as usize) else { return };
        let narrow = |cell: u64| u32::try_from(cell).unwrap_or(u32::MAX);
        for chunk in 0..contract.output_chunks() {
            let Some(promise) = contract.promise(rank, chunk) else { continue };
            for part in 0..machine.grain {
                let expected = match promise {
                    Promise::Chunk { rank, chunk } => {
                        self.symbols.contribution(rank, narrow(chunk * machine.grain + part))
                    }
                    Promise::Sum { chunk } => self.symbols.total(narrow(chunk * machine.grain + part)),
                };
                let at = Span { rank, first: memory.cell(Buffer::Output, chunk) + part, count: 1, is_packet: false };
                let found = self.get(&at, 0);
                if found != expected {
                    let (found, expected) = (self.symbols.describe(found), self.symbols.describe(expected));
                    findings
                        .problem(Place::rank(rank), format!("output chunk {chunk} is {found} instead of {expected}"));
                    break;
                }
            }
        }
        if !contract.keeps_input() || !contract.is_filled(rank) {
            return;
        }
        for cell in 0..contract.input_chunks() * machine.grain {
            let at = Span { rank, first: memory.cell(Buffer::Input, 0) + cell, count: 1, is_packet: false };
            if self.get(&at, 0) != self.symbols.contribution(rank, narrow(cell)) {
                let chunk = cell / machine.grain;
                findings.problem(
                    Place::rank(rank),
                    format!("input chunk {chunk} has changed, but the call is out of place"),
                );
                return;
            }
        }
    }
}
