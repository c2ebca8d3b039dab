//! Vector clocks over blocks and proxies that can hear of each other.
//!
//! A block's operations since its threads last met are not ordered among themselves. So a block knows of its own
//! operations only up to the last meeting, and what it learns counts from the next one on. Each clock is kept twice: what
//! has *happened*, and whose *writes are seen*; a relaxed signal carries only the former.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::mscclpp::machine::{Event, Machine, Role};

/// Most numbers in all clocks together that are kept for later: 1 GiB.
pub(super) const NUMBERS_MAX: u64 = 1 << 28;

/// What an event knows of others: by position in the group of its thread, how many operations have happened, and whose
/// writes are seen.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    pub(super) happened: Box<[u32]>,
    pub(super) seen: Box<[u32]>,
}

impl Clock {
    fn zero(width: usize) -> Self {
        Self { happened: vec![0; width].into(), seen: vec![0; width].into() }
    }

    pub(super) fn join(&mut self, other: &Self, is_relaxed: bool) {
        raise(&mut self.happened, &other.happened);
        if !is_relaxed {
            raise(&mut self.seen, &other.seen);
        }
    }

    fn tick(&mut self, thread: usize, time: u32) {
        self.happened[thread] = self.happened[thread].max(time);
        self.seen[thread] = self.seen[thread].max(time);
    }
}

fn raise(own: &mut [u32], other: &[u32]) {
    own.iter_mut().zip(other).for_each(|(own, other)| *own = (*own).max(*other));
}

/// Threads: blocks first, then the proxies of lines over ports. Each is in a group with all it may hear of.
pub(super) struct Threads {
    /// By thread: group, and position in it.
    pub(super) seat: Vec<(usize, usize)>,
    /// By group: the rank whose block each position is; none for proxies.
    pub(super) ranks: Vec<Vec<Option<u32>>>,
    /// By line: the thread of its proxy.
    proxies: Vec<Option<usize>>,
}

impl Threads {
    /// Groups the threads of a machine.
    ///
    /// # Errors
    /// The numbers that their clocks would have together, if they are too many.
    pub(super) fn new(machine: &Machine) -> Result<Self, u64> {
        let blocks = machine.blocks.len();
        let mut proxies = vec![None; machine.lines.len()];
        let mut count = blocks;
        for (line, proxy) in machine.lines.iter().zip(&mut proxies) {
            if line.is_port {
                *proxy = Some(count);
                count += 1;
            }
        }
        let mut groups = Groups((0..count).collect());
        let mut users: BTreeMap<(u8, u64, u64), usize> = BTreeMap::new();
        for (number, block) in machine.blocks.iter().enumerate() {
            for event in &block.events {
                let mut meet = |key| groups.join(number, *users.entry(key).or_insert(number));
                event.lines.iter().for_each(|&line| meet((0, line as u64, 0)));
                event.semaphores.iter().for_each(|&semaphore| meet((1, semaphore as u64, 0)));
                if let Role::Barrier(barrier) = event.role {
                    meet((2, barrier as u64, 0));
                }
                let spans = event.effects.iter().flat_map(|effect| effect.sources.iter().chain(&effect.targets));
                for span in spans.filter(|span| span.is_packet) {
                    (span.first..span.first + span.count).for_each(|cell| meet((3, span.rank.into(), cell)));
                }
                event.lines.iter().filter_map(|&line| proxies[line]).for_each(|proxy| groups.join(number, proxy));
            }
        }
        let mut names: BTreeMap<usize, usize> = BTreeMap::new();
        let mut ranks: Vec<Vec<Option<u32>>> = Vec::new();
        let mut seat = Vec::with_capacity(count);
        for thread in 0..count {
            let name = groups.name(thread);
            let group = *names.entry(name).or_insert_with(|| {
                ranks.push(Vec::new());
                ranks.len() - 1
            });
            seat.push((group, ranks[group].len()));
            ranks[group].push(machine.blocks.get(thread).map(|block| block.rank));
        }
        // Each thread keeps two clocks of two numbers for each thread of its group, and signals that are not taken one:
        // those of one operation the same, but for those of proxies.
        let signals = |event: &Event| {
            let of_proxies = event.lines.iter().filter(|&&line| proxies[line].is_some()).count();
            match event.role {
                Role::Signal { .. } | Role::Port { .. } => {
                    (of_proxies + usize::from(of_proxies < event.lines.len())) as u64
                }
                _ => 0,
            }
        };
        let sent = |thread: usize| machine.blocks.get(thread).map_or(0, |block| block.events.iter().map(signals).sum());
        let numbers = (0..count).map(|thread| (4 + sent(thread)) * ranks[seat[thread].0].len() as u64);
        let need = numbers.sum();
        if need > NUMBERS_MAX { Err(need) } else { Ok(Self { seat, ranks, proxies }) }
    }

    pub(super) fn proxy(&self, line: usize) -> Option<usize> {
        self.proxies.get(line).copied().flatten()
    }
}

/// Sets that grow together.
struct Groups(Vec<usize>);

impl Groups {
    fn name(&mut self, mut member: usize) -> usize {
        while self.0[member] != member {
            self.0[member] = self.0[self.0[member]];
            member = self.0[member];
        }
        member
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.name(a), self.name(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// What a thread knows.
pub(super) struct Knowledge {
    /// Since its threads last met, or of a proxy: since its last operation. Signals sent since then share it.
    pub(super) known: Rc<Clock>,
    /// What it has learnt since.
    learnt: Clock,
    /// Its operations so far. The first is that it has begun.
    time: u32,
    position: usize,
}

impl Knowledge {
    pub(super) fn new(position: usize, width: usize) -> Self {
        let mut known = Clock::zero(width);
        known.tick(position, 1);
        Self { learnt: known.clone(), known: Rc::new(known), time: 1, position }
    }

    /// Begins an operation; returns its time, which others know of once their clock has reached the next.
    pub(super) const fn begin(&mut self) -> u32 {
        let time = self.time;
        self.time += 1;
        time
    }

    pub(super) fn learn(&mut self, other: &Clock, is_relaxed: bool) {
        self.learnt.join(other, is_relaxed);
    }

    /// All threads meet: what was done and learnt is known.
    pub(super) fn meet(&mut self) {
        self.learnt.tick(self.position, self.time);
        Rc::make_mut(&mut self.known).join(&self.learnt, false);
    }
}
