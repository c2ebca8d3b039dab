//! Moves things off the links that are busiest, whatever these things are.

use canopy_optimize::Stop;
use canopy_topology::LinkIndex;

use super::RepairError;
use super::finder::Finder;
use super::loads::Loads;
use crate::reach::ask;

/// How often the interval in which the least possible level is sought is halved.
const ROUNDS: u32 = 10;

/// The interval is not halved any more once it is this part of the level that is reached.
const CLOSE: u128 = 128;

/// How often all links that carry too much are gone through.
const SWEEPS: u32 = 4;

/// How often what uses a link is gone through; each time less is moved at once.
const PASSES: u32 = 4;

/// Looks at links, ranks and hops, at most: some 10 ns each.
const VISITS_MAX: u64 = 1 << 22;

/// A schedule of which parts can take other ways.
pub(super) trait Movable {
    /// A part of it that is on some link.
    type User: Copy;

    fn loads(&mut self) -> &mut Loads;
    fn finder(&mut self) -> &mut Finder;
    fn stop(&self) -> &dyn Stop;

    /// By link: what is on it.
    fn users(&mut self, over: &[LinkIndex]) -> Vec<Vec<Self::User>>;

    /// Moves what is still there of a user, at most so many chunks of it, to where there is room; nothing, if there is none.
    fn move_off(&mut self, user: Self::User, link: LinkIndex, most: Most) -> Result<(), RepairError>;
}

/// How much may be moved at once: what is too much for a link, and a part of it that is smaller in each pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    excess: u64,
    pass: u32,
}

impl Most {
    /// Chunks, of so many that are there.
    pub(super) fn of(self, there: u64) -> u64 {
        there.min(self.excess) >> self.pass
    }
}

/// Brings the level of the busiest link down, towards one below which it cannot be. No link ever gets busier than the
/// busiest was before.
///
/// The interval is halved a bounded number of times: where all links can be relieved to its middle, that is its new end,
/// else its new start.
pub(super) fn balance(schedule: &mut impl Movable, least: u128) -> Result<(), RepairError> {
    let mut low = least;
    schedule.finder().visits = 0;
    for _ in 0..ROUNDS {
        let high = schedule.loads().worst();
        if high <= low + high / CLOSE || schedule.finder().visits > VISITS_MAX {
            break;
        }
        let level = low + (high - low) / 2;
        schedule.loads().limit_to(level);
        if !relieve(schedule)? {
            low = level;
        }
    }
    Ok(())
}

/// Moves things until no link carries more than it shall; says whether that went well. What has no room at first may have some
/// once other links were relieved, so those that are left are tried again as long as that helps.
fn relieve<M: Movable>(schedule: &mut M) -> Result<bool, RepairError> {
    for _ in 0..SWEEPS {
        if schedule.finder().visits > VISITS_MAX {
            break;
        }
        let over = schedule.loads().over();
        let before: u128 = over.iter().map(|&link| u128::from(schedule.loads().excess(link))).sum();
        let users = schedule.users(&over);
        for (&link, users) in over.iter().zip(users) {
            relieve_link(schedule, link, &users)?;
        }
        let after: u128 = over.iter().map(|&link| u128::from(schedule.loads().excess(link))).sum();
        if after == 0 {
            return Ok(true);
        }
        if after == before {
            break;
        }
    }
    Ok(false)
}

/// Moves things off one link, as far as that goes.
fn relieve_link<M: Movable>(schedule: &mut M, link: LinkIndex, users: &[M::User]) -> Result<(), RepairError> {
    for pass in 0..PASSES {
        for &user in users {
            let excess = schedule.loads().excess(link);
            if excess == 0 || schedule.finder().visits > VISITS_MAX {
                return Ok(());
            }
            ask(schedule.stop())?;
            schedule.move_off(user, link, Most { excess, pass })?;
        }
    }
    Ok(())
}
