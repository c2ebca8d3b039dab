//! What threads and proxies do, one thing at a time, and what each of these things touches.

use std::rc::Rc;

use super::moves::{Move, Place, Unit};
use super::{Misread, UNIT, World, mix};
use crate::execution_interpreter::rank::{Channel, Op};

/// Something that acts touch: two of them may change places unless they touch the same and one changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Object {
    /// Eight bytes of a rank.
    Memory {
        rank: usize,
        unit: usize,
    },
    /// Whether a rank's launch is under way.
    Launch(usize),
    /// The end of a line where signals are given.
    Signals(usize),
    /// Its other end.
    Waits(usize),
    Releases(usize),
    Acquires(usize),
    /// What a proxy has yet to do.
    Queue(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) object: Object,
    pub(crate) is_write: bool,
    /// A packet: it says itself that it is there.
    pub(crate) is_packet: bool,
}

/// What a thread does at once.
#[derive(Debug)]
pub(crate) enum Does {
    /// Waits for the other threads of its block.
    Meet,
    /// Waits for as many blocks at a barrier.
    Barrier(usize, usize),
    Signal {
        line: usize,
        is_relaxed: bool,
    },
    Wait {
        line: usize,
        is_relaxed: bool,
    },
    Release(usize),
    Acquire(usize),
    /// Hands something to a proxy, once packets are there.
    Push {
        line: usize,
        orders: Vec<Rc<Order>>,
        awaited: Vec<Unit>,
    },
    /// Waits until a proxy has done all of it.
    Drain(usize),
    Move(Vec<Unit>),
}

#[derive(Debug)]
pub(crate) struct Act {
    pub(crate) does: Does,
    pub(crate) uses: Vec<Use>,
}

/// What a proxy does at once.
#[derive(Debug)]
pub(crate) enum Order {
    Move { units: Vec<Unit>, is_misread: bool, uses: Vec<Use> },
    Signal { uses: [Use; 1] },
}

impl Order {
    pub(crate) fn uses(&self) -> &[Use] {
        match self {
            Self::Move { uses, .. } => uses,
            Self::Signal { uses } => uses,
        }
    }
}

const fn writes(object: Object) -> Use {
    Use { object, is_write: true, is_packet: false }
}

impl World {
    /// What the threads of a block do of an operation, each for itself.
    pub(super) fn add_acts(
        &mut self,
        (rank, at, op): (usize, usize, &Op),
        threads: &mut [Vec<Act>],
    ) -> Result<(), String> {
        match op.name.as_str() {
            "nop" if self.is_misread(Misread::NopMeetsNobody) => {}
            "barrier" if self.is_misread(Misread::BarrierPasses) => {}
            // As the kernel is written, it does nothing.
            "flush" => {}
            "nop" => threads.iter_mut().for_each(|acts| acts.push(Act { does: Does::Meet, uses: Vec::new() })),
            "barrier" => {
                let barrier = self.barrier(rank, op.barrier.0);
                let act = || Act { does: Does::Barrier(barrier, op.barrier.1), uses: Vec::new() };
                threads.iter_mut().for_each(|acts| acts.push(act()));
            }
            "signal" | "rlxsignal" | "wait" | "rlxwait" => {
                for (&channel, acts) in op.channels.iter().zip(threads) {
                    acts.push(self.notice(op, channel));
                }
            }
            "sem_release" | "sem_acquire" => {
                for (&id, acts) in op.semaphores.iter().zip(threads) {
                    let id = *self.semaphores.get(&(rank, id)).ok_or("no such semaphore")?;
                    let (does, object) = match op.name == "sem_acquire" {
                        true => (Does::Acquire(id), Object::Acquires(id)),
                        false => (Does::Release(id), Object::Releases(id)),
                    };
                    acts.push(Act { does, uses: vec![writes(object)] });
                }
            }
            _ if op.is_port => self.add_port(op, threads)?,
            _ => {
                let moves = self.moves(op)?;
                let count = threads.len();
                for (thread, acts) in threads.iter_mut().enumerate() {
                    // Which thread has which unit is another matter in every operation.
                    let own = |unit: usize| mix((at * 65_536 + unit) as u64) % count as u64 == thread as u64;
                    let units: Vec<Unit> = moves.iter().flat_map(|of| units(of, &own)).collect();
                    if !units.is_empty() {
                        let uses = self.uses_of(&units, Some(rank));
                        acts.push(Act { does: Does::Move(units), uses });
                    }
                }
            }
        }
        Ok(())
    }

    /// A signal, or a wait for one of the other end.
    fn notice(&mut self, op: &Op, channel: Channel) -> Act {
        let Channel { is_port, own, peer, ordinal } = channel;
        let is_relaxed = op.name.starts_with("rlx");
        if op.name.ends_with("wait") {
            let line = self.line(Channel { is_port, own: peer, peer: own, ordinal });
            return Act { does: Does::Wait { line, is_relaxed }, uses: vec![writes(Object::Waits(line))] };
        }
        let line = self.line(channel);
        match is_port {
            true => self.push(line, vec![signal(line)], Vec::new()),
            false => Act { does: Does::Signal { line, is_relaxed }, uses: vec![writes(Object::Signals(line))] },
        }
    }

    fn barrier(&mut self, rank: usize, id: usize) -> usize {
        let found = self.barriers.iter().position(|known| *known == (rank, id));
        found.unwrap_or_else(|| {
            self.barriers.push((rank, id));
            self.barriers.len() - 1
        })
    }

    fn push(&self, line: usize, orders: Vec<Rc<Order>>, awaited: Vec<Unit>) -> Act {
        let packets = self.uses_of(&awaited, None).into_iter().filter(|used| used.is_packet && !used.is_write);
        let uses = packets.chain([writes(Object::Queue(line))]).collect();
        Act { does: Does::Push { line, orders, awaited }, uses }
    }

    /// What each thread hands to its proxy, and what it then waits for.
    fn add_port(&mut self, op: &Op, threads: &mut [Vec<Act>]) -> Result<(), String> {
        let moves = self.moves(op)?;
        let (signals, flushes) = match op.name.as_str() {
            "put" | "rppkt" => (false, false),
            "pws" => (true, false),
            "pwsf" => (true, true),
            other => return Err(format!("{other} over port channels")),
        };
        let is_misread = flushes && self.launch.misreads_flushing_puts;
        for ((part, &channel), acts) in moves.iter().zip(&op.channels).zip(threads) {
            if part.targets.iter().any(|target| target.rank != channel.peer) {
                return Err("a put over the channel of another peer".to_owned());
            }
            let line = self.line(channel);
            let units = units(part, &|_| true).collect::<Vec<_>>();
            let uses = self.uses_of(&units, None);
            let mut orders = vec![Rc::new(Order::Move { units, is_misread, uses })];
            if signals && !self.is_misread(Misread::PutsWithoutSignal) {
                let at = usize::from(!self.is_misread(Misread::SignalsAheadOfData));
                orders.insert(at, signal(line));
            }
            let awaited = moves.iter().flat_map(units_of_packets).collect();
            acts.push(self.push(line, orders, awaited));
            if flushes {
                acts.push(Act { does: Does::Drain(line), uses: vec![writes(Object::Queue(line))] });
            }
        }
        Ok(())
    }

    /// What a thread of a rank, or a proxy, touches when it moves units.
    fn uses_of(&self, units: &[Unit], by: Option<usize>) -> Vec<Use> {
        let mut uses = Vec::new();
        for unit in units {
            let places = unit.sources.iter().map(|place| (place, false));
            for (place, is_write) in places.chain(unit.targets.iter().map(|place| (place, true))) {
                let is_packet = place.is_packets;
                for part in 0..if is_packet { 2 } else { 1 } {
                    let object = Object::Memory { rank: place.rank, unit: place.at / UNIT + part };
                    uses.push(Use { object, is_write, is_packet });
                }
                if by != Some(place.rank) && !(is_packet && self.is_alternating) {
                    uses.push(Use { object: Object::Launch(place.rank), is_write: false, is_packet: false });
                }
            }
        }
        uses
    }
}

fn signal(line: usize) -> Rc<Order> {
    Rc::new(Order::Signal { uses: [writes(Object::Signals(line))] })
}

/// Those units of a move that are somebody's.
fn units<'m>(of: &'m Move, is_own: &'m dyn Fn(usize) -> bool) -> impl Iterator<Item = Unit> + 'm {
    let at = |place: &Place, unit: usize| {
        let wide = if place.is_packets { 2 * UNIT } else { UNIT };
        Place { at: place.at + unit * wide, ..*place }
    };
    (0..of.bytes / UNIT).filter(|&unit| is_own(unit)).map(move |unit| Unit {
        sources: of.sources.iter().map(|place| at(place, unit)).collect(),
        targets: of.targets.iter().map(|place| at(place, unit)).collect(),
    })
}

/// The units of a move whose sources are packets.
fn units_of_packets(of: &Move) -> Vec<Unit> {
    let has_packets = of.sources.iter().any(|place| place.is_packets);
    if has_packets { units(of, &|_| true).collect() } else { Vec::new() }
}
