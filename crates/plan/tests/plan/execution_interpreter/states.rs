//! Runs a tiny plan through every state that it can come to: what the search of orders leaves out must not matter.
//!
//! Only for plans in which one thread pushes to each proxy: then the state says what the proxy has yet to do.

use std::collections::HashSet;

use crate::execution_interpreter::orders::Verdict;
use crate::execution_interpreter::world::{State, World};

/// States visited before a plan is left undecided.
const STATES_MAX: usize = 5_000;

/// Depth first through all states; `check` judges those in which nobody can go on.
pub(crate) fn search(world: &World, check: &dyn Fn(&State) -> Result<(), String>) -> Verdict {
    let actors = world.actors();
    let mut stack = vec![world.start()];
    let mut seen = HashSet::from([world.start().key()]);
    while let Some(state) = stack.pop() {
        let mut is_end = true;
        for &actor in actors.iter().filter(|&&actor| world.can_act(&state, actor)) {
            is_end = false;
            let mut next = state.clone();
            if let Err(reason) = world.go(&mut next, actor) {
                return Verdict::Wrong(reason);
            }
            if seen.insert(next.key()) {
                stack.push(next);
            }
        }
        if seen.len() > STATES_MAX {
            return Verdict::Undecided;
        }
        if is_end && let Err(reason) = world.require_end(&state).and_then(|()| check(&state)) {
            return Verdict::Wrong(reason);
        }
    }
    Verdict::Right(seen.len())
}
