//! With bounded queues the program always ends.
//!
//! The nodes of the graph are transfers: a step of `c` chunks is `⌈c / chunks per transfer⌉` of them at the largest
//! message the file admits. Smaller messages take fewer transfers per step, alike at both ends; joining neighbouring
//! transfers turns every cycle of theirs into one of the larger message, so that one decides. The edges are program
//! order, waits, k-th send → k-th receive, and k-th receive → (k+Q)-th send for queues of Q slots.
//!
//! It is a marked graph: each place has one writer and one reader, so a step that may run stays able to run until it
//! does. Hence all maximal executions are the same set of steps, and one execution decides: it reaches the end
//! exactly when the graph has no cycle, that is, when no interleaving can deadlock.

use super::model::Model;
use super::place::Findings;

/// Most steps of a cycle named in a message.
const CYCLE_SHOWN: usize = 8;

/// Executes every transfer as early as possible. Returns the steps in an order of completion, which is a
/// linearisation of happens-before; partial when a deadlock was found. O(transfers).
pub(super) fn check(model: &Model<'_>, findings: &mut Findings<'_>) -> Vec<usize> {
    let (program, profile) = (model.program, model.profile);
    let bytes = profile.bytes_max_of(program.bytes_max);
    let chunks_per_transfer = profile.chunks_per_transfer(program.protocol, bytes, program.chunk_count);
    let mut machine = Machine::new(model, chunks_per_transfer);
    let mut ready: Vec<usize> = (0..model.blocks.len()).rev().collect();
    while let Some(block) = ready.pop() {
        let transfers = machine.run(block, &mut ready);
        if findings.must_stop(transfers) {
            return machine.order;
        }
    }
    if machine.order.len() < model.steps.len() {
        machine.report_cycle(findings);
    }
    machine.order
}

/// Whether the program ends with messages of which so many chunks fit into a transfer. O(transfers).
pub(super) fn ends(model: &Model<'_>, chunks_per_transfer: u32) -> bool {
    let mut machine = Machine::new(model, chunks_per_transfer);
    let mut ready: Vec<usize> = (0..model.blocks.len()).rev().collect();
    while let Some(block) = ready.pop() {
        machine.run(block, &mut ready);
    }
    machine.order.len() == model.steps.len()
}

struct Machine<'m, 'p> {
    model: &'m Model<'p>,
    slots: u64,
    chunks_per_transfer: u32,
    /// Next step of each block.
    next: Vec<usize>,
    /// Transfers of that step already done.
    done: Vec<u32>,
    /// Transfers sent and received on each connection.
    queues: Vec<(u64, u64)>,
    /// Blocks that wait for a step of this block.
    waiting: Vec<Vec<usize>>,
    order: Vec<usize>,
}

/// What keeps a block from running, and which block must act.
enum Obstacle {
    Wait(usize),
    NoData(usize),
    NoSlot(usize),
}

impl<'m, 'p> Machine<'m, 'p> {
    fn new(model: &'m Model<'p>, chunks_per_transfer: u32) -> Self {
        Self {
            model,
            slots: u64::from(model.profile.limits().queue(model.program.protocol).slots),
            chunks_per_transfer,
            next: model.blocks.iter().map(|block| block.steps.start).collect(),
            done: vec![0; model.blocks.len()],
            queues: vec![(0, 0); model.connections.len()],
            waiting: vec![Vec::new(); model.blocks.len()],
            order: Vec::with_capacity(model.steps.len()),
        }
    }

    /// Runs a block as far as it goes, and adds those that may go on because of it to `ready`. Returns the number of
    /// transfers tried.
    fn run(&mut self, block: usize, ready: &mut Vec<usize>) -> u64 {
        let mut tried = 1;
        while self.next[block] < self.model.blocks[block].steps.end {
            match self.obstacle(block) {
                Some(Obstacle::Wait(other)) => {
                    self.waiting[other].push(block);
                    return tried;
                }
                Some(_) => return tried,
                None => self.transfer(block, ready),
            }
            tried += 1;
        }
        tried
    }

    fn obstacle(&self, block: usize) -> Option<Obstacle> {
        let BlockEnds { sends_on, receives_on } = self.ends(block);
        if self.done[block] == 0
            && let Some(awaited) = self.model.steps[self.next[block]].awaited
        {
            let other = self.model.steps[awaited].block;
            if self.next[other] <= awaited {
                return Some(Obstacle::Wait(other));
            }
        }
        if let Some(connection) = receives_on
            && self.queues[connection].0 == self.queues[connection].1
        {
            return Some(Obstacle::NoData(self.model.connections[connection].sender));
        }
        if let Some(connection) = sends_on
            && self.queues[connection].0 - self.queues[connection].1 >= self.slots
        {
            return Some(Obstacle::NoSlot(self.model.connections[connection].receiver));
        }
        None
    }

    /// Does one transfer of the next step.
    fn transfer(&mut self, block: usize, ready: &mut Vec<usize>) {
        let BlockEnds { sends_on, receives_on } = self.ends(block);
        if let Some(connection) = receives_on {
            self.queues[connection].1 += 1;
            ready.push(self.model.connections[connection].sender);
        }
        if let Some(connection) = sends_on {
            self.queues[connection].0 += 1;
            ready.push(self.model.connections[connection].receiver);
        }
        self.done[block] += 1;
        let step = self.model.steps[self.next[block]].step;
        let is_local = sends_on.is_none() && receives_on.is_none();
        if is_local || self.done[block] >= step.chunk_count.div_ceil(self.chunks_per_transfer) {
            self.order.push(self.next[block]);
            self.next[block] += 1;
            self.done[block] = 0;
            ready.append(&mut self.waiting[block]);
        }
    }

    /// Connections that the next step of a block uses.
    fn ends(&self, block: usize) -> BlockEnds {
        let operation = self.model.steps[self.next[block]].step.operation;
        let block = &self.model.blocks[block];
        BlockEnds {
            sends_on: block.sends_on.filter(|_| operation.sends()),
            receives_on: block.receives_on.filter(|_| operation.receives()),
        }
    }

    /// Every stuck block waits for another stuck one, so following them runs into a cycle.
    fn report_cycle(&self, findings: &mut Findings<'_>) {
        let is_stuck = |&block: &usize| self.next[block] < self.model.blocks[block].steps.end;
        let stuck: Vec<usize> = (0..self.model.blocks.len()).filter(is_stuck).collect();
        let Some(&first) = stuck.first() else { return };
        let (mut path, mut position) = (Vec::new(), vec![None; self.model.blocks.len()]);
        let mut block = first;
        let start = loop {
            if let Some(start) = position[block] {
                break start;
            }
            position[block] = Some(path.len());
            path.push(block);
            match self.culprit(block) {
                Some(next) => block = next,
                None => break 0,
            }
        };
        let cycle = &path[start..];
        let mut text = format!("deadlock: {} of {} blocks never end: ", stuck.len(), self.model.blocks.len());
        let shown: Vec<String> = cycle.iter().take(CYCLE_SHOWN).map(|&block| self.describe(block)).collect();
        text.push_str(&shown.join(", "));
        if cycle.len() > CYCLE_SHOWN {
            text.push_str(&format!(", and {} more in the cycle", cycle.len() - CYCLE_SHOWN));
        }
        findings.problem(self.model.place(self.next[cycle[0]]), text);
    }

    fn culprit(&self, block: usize) -> Option<usize> {
        (self.next[block] < self.model.blocks[block].steps.end).then_some(())?;
        match self.obstacle(block)? {
            Obstacle::Wait(other) | Obstacle::NoData(other) | Obstacle::NoSlot(other) => Some(other),
        }
    }

    fn describe(&self, block: usize) -> String {
        let place = self.model.place(self.next[block]);
        match self.obstacle(block) {
            Some(Obstacle::Wait(other)) => format!("{place} waits for {}", self.model.place_of_block(other)),
            Some(Obstacle::NoData(other)) => {
                format!("{place} waits for data from {}", self.model.place_of_block(other))
            }
            Some(Obstacle::NoSlot(other)) => {
                let slots = self.slots;
                format!("{place} waits for one of {slots} slots to {}", self.model.place_of_block(other))
            }
            None => format!("{place} could run"),
        }
    }
}

struct BlockEnds {
    sends_on: Option<usize>,
    receives_on: Option<usize>,
}
