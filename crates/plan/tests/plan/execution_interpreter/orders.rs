//! Runs a small plan in every order in which its threads and proxies can act, as far as orders differ in anything.
//!
//! Two things that touch nothing in common may change places: of all orders that only such changes tell apart, one is
//! run. After each run, for every two things that met in one order and could have met in the other, the other is tried
//! too (dynamic partial-order reduction with sleep sets: Flanagan and Godefroid 2005). So a plan without races costs one
//! run, whatever its size. Each actor knows by two clocks what has happened and what it can see: a relaxed signal tells
//! of the former only, and reading what cannot be seen is wrong even if the bytes are there.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

use crate::execution_interpreter::world::{Actor, Does, Object, Order, State, Use, World};

/// Things done in all runs before a plan is left undecided.
const STEPS_MAX: usize = 300_000;

/// What the search says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every order ends well; how many were run.
    Right(usize),
    Wrong(String),
    Undecided,
}

/// Of each actor, how many things an actor knows.
#[derive(Clone)]
struct Clock {
    happened: Vec<u32>,
    seen: Vec<u32>,
}

impl Clock {
    fn new(count: usize) -> Self {
        Self { happened: vec![0; count], seen: vec![0; count] }
    }

    fn learn(&mut self, other: &Self, is_seen: bool) {
        let raise =
            |own: &mut Vec<u32>, other: &Vec<u32>| own.iter_mut().zip(other).for_each(|(a, b)| *a = (*a).max(*b));
        raise(&mut self.happened, &other.happened);
        if is_seen {
            raise(&mut self.seen, &other.seen);
        }
    }
}

/// Something that was done.
struct Event {
    actor: usize,
    /// The how manieth of its actor, from 1.
    number: u32,
    clock: Rc<Clock>,
}

/// Who touched an object last: events of the present run.
#[derive(Clone, Default)]
struct History {
    written: Option<usize>,
    read: Vec<usize>,
    /// What was written is a packet that was not there before: whoever reads it comes after.
    is_new_packet: bool,
}

/// One choice of the search.
struct Choice {
    able: Vec<bool>,
    chosen: usize,
    todo: BTreeSet<usize>,
    done: BTreeSet<usize>,
    /// Whose turn here was tried before, and would lead to nothing new.
    asleep: BTreeSet<usize>,
}

/// The present run.
struct Run<'w> {
    world: &'w World,
    actors: &'w [Actor],
    state: State,
    clocks: Vec<Clock>,
    events: Vec<Event>,
    histories: HashMap<Object, History>,
    /// By line: what signals that nobody has waited for tell, and whether they are relaxed.
    told: Vec<VecDeque<(Rc<Clock>, bool)>>,
    pushed: Vec<VecDeque<Rc<Clock>>>,
    released: Vec<VecDeque<Rc<Clock>>>,
}

/// Runs a plan in all orders; `check` judges how each ends.
pub(crate) fn search(world: &World, check: &dyn Fn(&State) -> Result<(), String>) -> Verdict {
    let actors = world.actors();
    let mut choices: Vec<Choice> = Vec::new();
    let (mut steps, mut runs) = (0, 0);
    loop {
        let mut run = Run::new(world, &actors);
        match run.follow(&mut choices, STEPS_MAX.saturating_sub(steps)) {
            Err(reason) => return Verdict::Wrong(reason),
            Ok(None) => return Verdict::Undecided,
            Ok(Some(false)) => {}
            Ok(Some(true)) => {
                if let Err(reason) = world.require_end(&run.state).and_then(|()| check(&run.state)) {
                    return Verdict::Wrong(reason);
                }
                runs += 1;
            }
        }
        steps += run.events.len();
        // The last choice that has something left.
        loop {
            let Some(choice) = choices.last_mut() else { return Verdict::Right(runs) };
            choice.done.insert(choice.chosen);
            let left = choice.todo.iter().find(|actor| !choice.done.contains(actor) && !choice.asleep.contains(actor));
            if let Some(&left) = left {
                choice.chosen = left;
                break;
            }
            choices.pop();
        }
    }
}

fn conflict(one: &[Use], other: &[Use]) -> bool {
    one.iter().any(|a| other.iter().any(|b| a.object == b.object && (a.is_write || b.is_write)))
}

impl<'w> Run<'w> {
    fn new(world: &'w World, actors: &'w [Actor]) -> Self {
        let state = world.start();
        let unknown = Rc::new(Clock::new(actors.len()));
        let initial = |&count: &u64| (0..count).map(|_| Rc::clone(&unknown)).collect();
        Self {
            world,
            actors,
            clocks: vec![Clock::new(actors.len()); actors.len()],
            events: Vec::new(),
            histories: HashMap::new(),
            told: vec![VecDeque::new(); world.line_count()],
            pushed: vec![VecDeque::new(); world.line_count()],
            released: state.semaphores.iter().map(initial).collect(),
            state,
        }
    }

    /// Runs as was chosen, then on to the end, choosing. Says whether it came to the end; none if that takes too long.
    fn follow(&mut self, choices: &mut Vec<Choice>, steps_max: usize) -> Result<Option<bool>, String> {
        let mut asleep = BTreeSet::new();
        for depth in 0.. {
            if depth >= steps_max {
                return Ok(None);
            }
            if depth == choices.len() {
                let able: Vec<bool> = self.actors.iter().map(|&actor| self.world.can_act(&self.state, actor)).collect();
                let mut candidates = (0..able.len()).filter(|&actor| able[actor]);
                let Some(chosen) = candidates.clone().find(|actor| !asleep.contains(actor)) else {
                    return Ok(Some(candidates.next().is_none()));
                };
                let todo = BTreeSet::from([chosen]);
                choices.push(Choice { able, chosen, todo, done: BTreeSet::new(), asleep });
            }
            let choice = &choices[depth];
            let chosen = choice.chosen;
            let uses = self.uses(chosen);
            let sleepers = choice.asleep.iter().chain(&choice.done).copied();
            asleep = sleepers.filter(|&other| other != chosen && !conflict(&uses, &self.uses(other))).collect();
            self.step(chosen, &uses, choices)?;
        }
        Ok(None)
    }

    /// What an actor touches next.
    fn uses(&self, actor: usize) -> Vec<Use> {
        match self.actors[actor] {
            Actor::Launch(rank) => vec![Use { object: Object::Launch(rank), is_write: true, is_packet: false }],
            actor => self.world.uses(&self.state, actor).to_vec(),
        }
    }

    fn thread(&self, thread: usize) -> usize {
        self.actors.iter().position(|&actor| actor == Actor::Thread(thread)).expect("every thread is an actor")
    }

    /// What has to come before the next thing of an actor, whatever the order.
    fn base(&self, actor: usize) -> Clock {
        let mut base = self.clocks[actor].clone();
        let learn_all = |base: &mut Clock, threads: Vec<usize>| {
            threads.into_iter().for_each(|thread| base.learn(&self.clocks[self.thread(thread)], true));
        };
        match self.actors[actor] {
            Actor::Launch(rank) => {
                learn_all(&mut base, self.world.threads_of(rank).collect());
            }
            meeting @ (Actor::Block(_) | Actor::Barrier(_)) => {
                learn_all(&mut base, self.world.together(&self.state, meeting));
            }
            Actor::Proxy(line) => self.pushed[line].front().into_iter().for_each(|clock| base.learn(clock, true)),
            Actor::Thread(thread) => match self.world.act(&self.state, thread).map(|act| &act.does) {
                Some(&Does::Wait { line, is_relaxed }) => {
                    if let Some((clock, was_relaxed)) = self.told[line].front() {
                        base.learn(clock, !is_relaxed && !was_relaxed);
                    }
                }
                Some(&Does::Acquire(id)) => {
                    self.released[id].front().into_iter().for_each(|clock| base.learn(clock, true))
                }
                Some(&Does::Drain(line)) => {
                    let proxy = self.actors.iter().position(|&other| other == Actor::Proxy(line));
                    proxy.into_iter().for_each(|proxy| base.learn(&self.clocks[proxy], true));
                }
                _ => {}
            },
        }
        base
    }

    /// Lets an actor do its next thing, and remembers what could have come in another order.
    fn step(&mut self, actor: usize, uses: &[Use], choices: &mut [Choice]) -> Result<(), String> {
        let base = self.base(actor);
        let mut clock = base.clone();
        for used in uses {
            let Some(history) = self.histories.get(&used.object) else { continue };
            let others = history.written.iter().chain(history.read.iter().filter(|_| used.is_write));
            for &event in others {
                let other = &self.events[event];
                clock.learn(&other.clock, false);
                let is_before = other.actor == actor || base.happened[other.actor] >= other.number;
                let is_data = matches!(used.object, Object::Memory { .. }) && !used.is_packet;
                let is_written = history.written == Some(event);
                if is_before {
                    if is_data && is_written && other.actor != actor && base.seen[other.actor] < other.number {
                        return Err(format!("{:?} is not sure to see {:?}", self.actors[actor], used.object));
                    }
                } else if !(used.is_packet && !used.is_write && is_written && history.is_new_packet) {
                    self.try_before(event, actor, &base, &mut choices[event]);
                }
            }
        }
        let number = base.happened[actor] + 1;
        (clock.happened[actor], clock.seen[actor]) = (number, number);
        let clock = Rc::new(clock);
        self.remember(uses);
        self.tell(actor, &clock);
        self.world.go(&mut self.state, self.actors[actor])?;
        self.clocks[actor] = Clock::clone(&clock);
        self.events.push(Event { actor, number, clock });
        Ok(())
    }

    /// Where an event was chosen, somebody must be tried who leads to what this actor does now.
    fn try_before(&self, event: usize, actor: usize, base: &Clock, choice: &mut Choice) {
        if choice.able[actor] {
            choice.todo.insert(actor);
            return;
        }
        let leads = |later: &&Event| choice.able[later.actor] && base.happened[later.actor] >= later.number;
        let leading: BTreeSet<usize> = self.events[event + 1..].iter().filter(leads).map(|later| later.actor).collect();
        if leading.iter().any(|actor| choice.todo.contains(actor)) {
            return;
        }
        match leading.first() {
            Some(&first) => drop(choice.todo.insert(first)),
            None => choice.todo.extend((0..choice.able.len()).filter(|&other| choice.able[other])),
        }
    }

    /// The next event is the last that touched these objects.
    fn remember(&mut self, uses: &[Use]) {
        let event = self.events.len();
        for used in uses {
            let history = self.histories.entry(used.object).or_default();
            if !used.is_write {
                history.read.push(event);
                continue;
            }
            let is_new_packet = match used.object {
                Object::Memory { rank, unit } if used.is_packet => !self.state.has_flag(rank, unit),
                _ => false,
            };
            *history = History { written: Some(event), read: Vec::new(), is_new_packet };
        }
    }

    /// Passes on what an actor knows after its next thing.
    fn tell(&mut self, actor: usize, clock: &Rc<Clock>) {
        let world = self.world;
        match self.actors[actor] {
            Actor::Launch(rank) => {
                for thread in world.threads_of(rank) {
                    let thread = self.thread(thread);
                    self.clocks[thread].learn(clock, true);
                }
            }
            meeting @ (Actor::Block(_) | Actor::Barrier(_)) => {
                for thread in world.together(&self.state, meeting) {
                    let thread = self.thread(thread);
                    self.clocks[thread].learn(clock, true);
                }
            }
            Actor::Proxy(line) => {
                self.pushed[line].pop_front();
                if let Some(Order::Signal { .. }) = self.state.order(line) {
                    self.told[line].push_back((Rc::clone(clock), false));
                }
            }
            Actor::Thread(thread) => match world.act(&self.state, thread).map(|act| &act.does) {
                Some(&Does::Signal { line, is_relaxed }) => self.told[line].push_back((Rc::clone(clock), is_relaxed)),
                Some(Does::Wait { line, .. }) => drop(self.told[*line].pop_front()),
                Some(Does::Release(id)) => self.released[*id].push_back(Rc::clone(clock)),
                Some(Does::Acquire(id)) => drop(self.released[*id].pop_front()),
                Some(Does::Push { line, orders, .. }) => {
                    self.pushed[*line].extend(orders.iter().map(|_| Rc::clone(clock)));
                }
                _ => {}
            },
        }
    }
}
