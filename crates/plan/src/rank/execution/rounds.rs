//! The program of a rank as rounds: what is exchanged at one distance along a digit, with the spreading in the box.

use std::collections::BTreeMap;
use std::ops::Range;

use canopy_schedule::{Action, BoxGrid, Exchange, Move, Piece, Pieces, ProgramPhase, Seating, Stages};

use super::slots::{PieceKey, Slots};

/// What is exchanged at one distance, or the spreading of the own shares.
pub(super) struct Round {
    /// Stage and distance; `None` for the own shares.
    pub(super) at: Option<(usize, u32)>,
    /// One after the other.
    pub(super) steps: Vec<RoundStep>,
}

impl Round {
    /// Whether the box spreads in one step what enters it.
    pub(super) fn is_flat(&self) -> bool {
        self.steps.iter().filter(|step| !step.is_port).count() <= 1
    }
}

/// Messages that may be under way at once.
#[derive(Default)]
pub(super) struct RoundStep {
    /// Whether they are between boxes.
    pub(super) is_port: bool,
    pub(super) sends: Vec<Message>,
    pub(super) receives: Vec<Message>,
}

/// All that one rank sends another in a step.
pub(super) struct Message {
    pub(super) peer: u32,
    pub(super) parts: Vec<Part>,
}

/// Chunks in a row.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) chunks: Range<u32>,
    /// Of sums: where they wait in the receiver's scratch.
    pub(super) slot: u32,
}

/// One rank of an exchange, and where it sits.
pub(super) struct Seat<'a> {
    pub(super) stages: &'a Stages,
    pub(super) seating: &'a Seating,
    pub(super) slots: &'a Slots,
    pub(super) of_box: u32,
    pub(super) place: u32,
}

/// What goes wrong where the rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// Stages and distances in the order of copies.
pub(super) fn distances(grid: &BoxGrid) -> impl DoubleEndedIterator<Item = (usize, u32)> {
    grid.digits.iter().enumerate().flat_map(|(stage, &size)| (1..size).map(move |distance| (stage, distance)))
}

impl Seat<'_> {
    /// The rounds of a phase.
    pub(super) fn rounds(&self, phase: &ProgramPhase) -> Result<Vec<Round>, Broken> {
        let mut at: Vec<Option<(usize, u32)>> =
            std::iter::once(None).chain(distances(&self.stages.grid).map(Some)).collect();
        let depth = phase.steps.len().checked_sub(at.len() - 1).ok_or(Broken)? / at.len();
        if phase.action == Action::Reduce {
            at.reverse();
        }
        let mut filling = Filling::new(self, phase.action)?;
        let mut steps = phase.steps.iter();
        let mut rounds = Vec::with_capacity(at.len());
        for at in at {
            let count = depth + usize::from(at.is_some());
            let of_round: Vec<_> = steps.by_ref().take(count).collect();
            let mut filled = Vec::with_capacity(count);
            for step in of_round {
                filled.push(match at.filter(|_| !step.is_inside) {
                    Some((stage, distance)) => filling.outside(stage, distance, &step.sends, &step.receives)?,
                    None => filling.inside(&step.sends, &step.receives)?,
                });
            }
            rounds.push(Round { at, steps: filled });
        }
        Ok(rounds)
    }

    /// The box at a distance ahead.
    fn ahead(&self, stage: usize, distance: u32) -> u32 {
        let grid = &self.stages.grid;
        let (unit, own) = (grid.unit(stage), grid.digit(self.of_box, stage));
        let size = grid.digits.get(stage).copied().unwrap_or(1);
        let digit = (u64::from(own) + u64::from(distance)) % u64::from(size);
        self.of_box - own * unit + u32::try_from(digit).unwrap_or(0) * unit
    }
}

/// Gives each chunk of a phase its place at its receiver.
struct Filling<'a> {
    seat: &'a Seat<'a>,
    rules: Pieces<'a>,
    action: Action,
    /// Of the ranks of the box: the next slot there for this rank's chunks, and here for theirs.
    next: BTreeMap<u32, (u64, u64)>,
    /// Exchanges of other boxes in which this rank sends pieces.
    relayed: Vec<Exchange>,
}

impl<'a> Filling<'a> {
    fn new(seat: &'a Seat<'a>, action: Action) -> Result<Self, Broken> {
        let Seat { stages, seating, slots, of_box, place } = *seat;
        let inside = stages.inside_of(of_box).ok_or(Broken)?;
        let (own, _) = slots.inside(inside, place);
        let mut next = BTreeMap::new();
        for (other, rank) in seating.live(of_box).filter(|&(other, _)| other != place) {
            let (theirs, _) = slots.inside(inside, other);
            let slots = theirs.get(place as usize).copied().zip(own.get(other as usize).copied());
            let slots = if action == Action::Reduce { slots.ok_or(Broken)? } else { (0, 0) };
            next.insert(rank, slots);
        }
        let sends = |piece: &Piece| piece.sender == of_box && piece.leaves == place;
        let others = stages.exceptions.iter().filter(|((from, _), pieces)| *from != of_box && pieces.iter().any(sends));
        let relayed = others.filter_map(|(&(from, to), _)| Exchange::between(&stages.grid, from, to)).collect();
        Ok(Self { seat, rules: Pieces::new(stages, seating), action, next, relayed })
    }

    /// Messages in the box.
    fn inside(&mut self, sends: &[Move], receives: &[Move]) -> Result<RoundStep, Broken> {
        let mut step = RoundStep::default();
        for one in sends {
            let (next, _) = self.next.get_mut(&one.peer).ok_or(Broken)?;
            add(&mut step.sends, one, next)?;
        }
        for one in receives {
            let (_, next) = self.next.get_mut(&one.peer).ok_or(Broken)?;
            add(&mut step.receives, one, next)?;
        }
        Ok(step)
    }

    /// Messages between boxes.
    fn outside(&self, stage: usize, distance: u32, sends: &[Move], receives: &[Move]) -> Result<RoundStep, Broken> {
        let mut step = RoundStep { is_port: true, ..RoundStep::default() };
        let (mut of_sends, mut of_receives) = (vec![0; sends.len()], vec![0; receives.len()]);
        // Only sums wait: they go back the way that copies come.
        if self.action == Action::Reduce {
            of_sends = self.entering(stage, distance)?;
            of_receives = self.leaving(stage, distance)?;
        }
        for (list, moves, slots) in
            [(&mut step.sends, sends, &mut of_sends), (&mut step.receives, receives, &mut of_receives)]
        {
            if moves.len() != slots.len() {
                return Err(Broken);
            }
            moves.iter().zip(slots).try_for_each(|(one, next)| add(list, one, next))?;
        }
        Ok(step)
    }

    /// Slots, at their senders, of the pieces that enter here.
    fn entering(&self, stage: usize, distance: u32) -> Result<Vec<u64>, Broken> {
        let seat = self.seat;
        let size = seat.stages.grid.digits.get(stage).copied().ok_or(Broken)?;
        let behind = Exchange { stage, from: seat.ahead(stage, size - distance), to: seat.of_box };
        self.slots(behind, distance, |piece| piece.enters == seat.place)
    }

    /// Slots, here, of the pieces that leave from here.
    fn leaving(&self, stage: usize, distance: u32) -> Result<Vec<u64>, Broken> {
        let seat = self.seat;
        let ahead = |of_box: u32| Seat { of_box, ..*seat }.ahead(stage, distance);
        let is_at = |exchange: &&Exchange| exchange.stage == stage && ahead(exchange.from) == exchange.to;
        let mut exchanges: Vec<Exchange> = self.relayed.iter().filter(is_at).copied().collect();
        exchanges.push(Exchange { stage, from: seat.of_box, to: ahead(seat.of_box) });
        exchanges.sort_by_key(|exchange| exchange.to);
        let own = |piece: &Piece| piece.sender == seat.of_box && piece.leaves == seat.place;
        let slots = exchanges.into_iter().map(|exchange| self.slots(exchange, distance, own));
        Ok(slots.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Slots of what goes in the box first, if anything does, and of some pieces of an exchange, in their order.
    fn slots(&self, exchange: Exchange, distance: u32, wants: impl Fn(&Piece) -> bool) -> Result<Vec<u64>, Broken> {
        let mut pieces = Vec::new();
        if !self.seat.seating.is_empty(exchange.to) && self.rules.chunks(exchange) > 0 {
            self.rules.put(exchange, &mut pieces);
        }
        // Only pieces that are stated are sent for other boxes, and nothing else is then exchanged.
        let inside_first = self.rules.inside_first(exchange);
        let has_rank = |of_box: u32| self.seat.seating.rank(of_box, self.seat.place).is_some();
        let is_for_all = inside_first > 0 && has_rank(exchange.from) && has_rank(exchange.to);
        let for_all = is_for_all.then(|| self.seat.slots.network(exchange.stage, distance, 0).ok_or(Broken));
        let slot = |(position, piece): (usize, &Piece)| {
            let key: PieceKey = (exchange.from, exchange.to, position);
            if piece.sender != exchange.from {
                return self.seat.slots.relayed(key);
            }
            let same = |other: &&Piece| other.sender == piece.sender && other.leaves == piece.leaves;
            let before = pieces.iter().take(position).filter(same).map(|other| other.chunk_count).sum::<u64>();
            self.seat.slots.network(exchange.stage, distance, inside_first.checked_add(before)?)
        };
        let wanted = pieces.iter().enumerate().filter(|(_, piece)| wants(piece));
        for_all.into_iter().chain(wanted.map(|piece| slot(piece).ok_or(Broken))).collect()
    }
}

/// Adds a move to the message to or from its peer.
fn add(messages: &mut Vec<Message>, one: &Move, next: &mut u64) -> Result<(), Broken> {
    let position = messages.iter().position(|message| message.peer == one.peer).unwrap_or(messages.len());
    if position == messages.len() {
        messages.push(Message { peer: one.peer, parts: Vec::with_capacity(one.chunks.len()) });
    }
    let message = messages.get_mut(position).ok_or(Broken)?;
    let narrow = |number: u64| u32::try_from(number).map_err(|_| Broken);
    for chunks in &one.chunks {
        let slot = narrow(*next)?;
        *next = next.checked_add(chunks.end.checked_sub(chunks.start).ok_or(Broken)?).ok_or(Broken)?;
        message.parts.push(Part { chunks: narrow(chunks.start)?..narrow(chunks.end)?, slot });
    }
    Ok(())
}
