//! Whose turn it is on a route: what is of a later step lets all that is of earlier ones go first.
//!
//! A rank sends another what it has for it in the order in which that was scheduled, as thread blocks and queues do. Were it
//! otherwise, what is ready early would take a part of a link from what others wait for, and a run without barriers could take
//! longer than one with them.

use std::collections::BTreeMap;

use canopy_schedule::TransferGraph;

use crate::gates::checked_steps;
use crate::options::SimulateError;
use crate::workload::{Workload, number_of};

/// No turn.
const NONE: u32 = u32::MAX;

/// What takes one route in one step.
#[derive(Debug)]
struct Turn {
    /// Messages that have not left.
    left: u32,
    /// The one after it on its route.
    next: u32,
    is_open: bool,
}

/// All turns, and who waits for them.
#[derive(Debug)]
pub(crate) struct Turns {
    turns: Vec<Turn>,
    /// By lane.
    turn_of: Vec<u32>,
    /// By turn: messages that are ready to go.
    ready: BTreeMap<u32, Vec<u32>>,
}

impl Turns {
    /// The turns of a graph in steps; none of others.
    ///
    /// # Errors
    /// Those of [`checked_steps`], whose cost is added to O(lanes).
    pub(crate) fn new(graph: &TransferGraph, workload: &Workload) -> Result<Option<Self>, SimulateError> {
        if graph.steps.is_empty() {
            return Ok(None);
        }
        let steps = checked_steps(graph, &graph.steps)?;
        let (mut turns, mut turn_of) = (Vec::<Turn>::new(), Vec::with_capacity(workload.lanes.len()));
        // By route: its latest turn and the step of that. Transfers are in the order of steps.
        let mut latest: Vec<Option<(u32, u32)>> = vec![None; graph.routes.len()];
        for (lane, number) in workload.lanes.iter().zip(0..) {
            let step = steps[lane.transfer as usize];
            let latest = &mut latest[lane.route as usize];
            let turn = match *latest {
                Some((turn, of)) if of == step => turn,
                before => {
                    let turn = number_of(turns.len());
                    if let Some((before, _)) = before {
                        turns[before as usize].next = turn;
                    }
                    turns.push(Turn { left: 0, next: NONE, is_open: before.is_none() });
                    *latest = Some((turn, step));
                    turn
                }
            };
            turns[turn as usize].left += workload.pieces_of(number);
            turn_of.push(turn);
        }
        Ok(Some(Self { turns, turn_of, ready: BTreeMap::new() }))
    }

    /// Whether a message of a lane has to wait; then it is kept until its turn comes.
    pub(crate) fn keeps(&mut self, lane: u32, message: u32) -> bool {
        let turn = self.turn_of[lane as usize];
        let is_kept = !self.turns[turn as usize].is_open;
        if is_kept {
            self.ready.entry(turn).or_default().push(message);
        }
        is_kept
    }

    /// A message of a lane has left: whose turn it is now, of those that were kept.
    pub(crate) fn leave(&mut self, lane: u32) -> Vec<u32> {
        let turn = &mut self.turns[self.turn_of[lane as usize] as usize];
        turn.left -= 1;
        if turn.left > 0 || turn.next == NONE {
            return Vec::new();
        }
        let next = turn.next;
        self.turns[next as usize].is_open = true;
        self.ready.remove(&next).unwrap_or_default()
    }
}
