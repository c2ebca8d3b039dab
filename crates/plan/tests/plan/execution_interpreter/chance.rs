//! Runs a plan once: chance decides who goes on, one rank or all proxies being slow.

use std::collections::HashMap;

use crate::execution_interpreter::world::{Actor, Does, Object, State, World, mix};

/// Chance.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = mix(self.0.wrapping_add(1));
        usize::try_from(self.0 % bound.max(1) as u64).expect("below a usize")
    }
}

/// What somebody who cannot act waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Event {
    Touched(Object),
    /// Some packet has come.
    Packet,
    /// A rank's launch has begun.
    Begun(usize),
    /// A thread of the block has gone on.
    Arrived(usize),
    /// The threads of the block have met.
    Met(usize),
    /// A thread of the rank has come to a barrier, or to its end.
    Stopped(usize),
}

/// What somebody who cannot act now waits for; none at a thread's end.
fn awaited(world: &World, state: &State, actor: Actor) -> Option<Event> {
    let thread = match actor {
        Actor::Block(block) => return Some(Event::Arrived(block)),
        Actor::Launch(_) | Actor::Barrier(_) => return Some(Event::Stopped(world.rank_of(actor))),
        Actor::Proxy(line) => return Some(Event::Touched(Object::Queue(line))),
        Actor::Thread(thread) => thread,
    };
    let act = world.act(state, thread)?;
    let rank = world.rank_of(actor);
    Some(match act.does {
        _ if !state.has_begun(rank) => Event::Begun(rank),
        Does::Wait { line, .. } => Event::Touched(Object::Signals(line)),
        Does::Acquire(id) => Event::Touched(Object::Releases(id)),
        Does::Drain(line) => Event::Touched(Object::Queue(line)),
        Does::Move(_) | Does::Push { .. } => Event::Packet,
        _ => Event::Met(world.threads[thread].block),
    })
}

/// Lets somebody act; returns what happens by it.
fn go(world: &World, state: &mut State, actor: Actor) -> Result<Vec<Event>, String> {
    let uses = world.uses(state, actor);
    let is_packet = uses.iter().any(|used| used.is_packet && used.is_write);
    let touched = uses.iter().map(|used| used.object).filter(|object| !matches!(object, Object::Memory { .. }));
    let mut events: Vec<Event> = touched.map(Event::Touched).collect();
    events.extend(is_packet.then_some(Event::Packet));
    let gone_on = match actor {
        Actor::Thread(thread) => vec![thread],
        _ => world.together(state, actor),
    };
    world.go(state, actor)?;
    match actor {
        Actor::Launch(rank) => events.extend([Event::Begun(rank), Event::Stopped(rank)]),
        Actor::Proxy(line) => events.push(Event::Touched(Object::Queue(line))),
        _ => {}
    }
    for thread in gone_on {
        let block = world.threads[thread].block;
        events.push(Event::Arrived(block));
        if !matches!(actor, Actor::Thread(_)) {
            events.push(Event::Met(block));
        }
        if world.act(state, thread).is_none_or(|act| matches!(act.does, Does::Barrier(..))) {
            events.push(Event::Stopped(world.threads[thread].rank));
        }
    }
    Ok(events)
}

/// Goes on until all is done, or no actor can act.
pub(crate) fn run(world: &World, seed: u64) -> Result<State, String> {
    let mut dice = Dice(seed);
    let mut state = world.start();
    let mut active = world.actors();
    let mut idle: HashMap<Event, Vec<Actor>> = HashMap::new();
    let slow_rank = dice.below(state.memories.len() * 2);
    let are_proxies_slow = dice.below(2) == 0;
    while !active.is_empty() {
        let mut at = dice.below(active.len());
        for _ in 0..8 {
            let is_slow = match active[at] {
                Actor::Proxy(_) => are_proxies_slow,
                actor => world.rank_of(actor) == slow_rank,
            };
            if !is_slow {
                break;
            }
            at = dice.below(active.len());
        }
        let actor = active[at];
        if world.can_act(&state, actor) {
            for event in go(world, &mut state, actor)? {
                active.append(idle.entry(event).or_default());
            }
        } else {
            active.swap_remove(at);
            if let Some(event) = awaited(world, &state, actor) {
                idle.entry(event).or_default().push(actor);
            }
        }
    }
    world.require_end(&state)?;
    Ok(state)
}
