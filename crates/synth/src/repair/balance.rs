//! Moves things off the links that are busiest, whatever these things are.

use canopy_optimize::Stop;
use canopy_topology::LinkIndex;

use super::RepairError;
use super::finder::Finder;
use super::loads::Loads;
use crate::reach::ask;

/// Steps to the level of the busiest link, as powers of two: what is nearly as busy is told apart ever more finely.
const STEPS_LOG2: [u32; 7] = [4, 5, 6, 7, 8, 9, 10];

/// From these on all links are looked at; coarser steps are for those that stand out, at most one in so many.
const FINE_LOG2: u32 = 6;
const FEW: usize = 8;

/// Steps while what was cut off is joined.
pub(super) const STEPS_LOG2_AT_FIRST: u32 = FINE_LOG2;

/// A level is good enough if this part of it is all that lies between it and the least.
const CLOSE: u128 = 128;

/// How often all busy links are gone through with steps of one size, at most.
const SWEEPS: u32 = 12;

/// They are not gone through again once that takes less than this part off the potential.
const WORTHWHILE: i128 = 16;

/// Looks at links, ranks and hops, at most, and that for each link: some 10 ns each.
const VISITS_MAX: u64 = 1 << 20;
const VISITS_PER_LINK: u64 = 1 << 8;

/// A schedule of which parts can take other ways.
pub(super) trait Movable {
    /// A part of it that is on some link.
    type User: Copy;

    fn loads(&mut self) -> &mut Loads;
    fn finder(&mut self) -> &mut Finder;
    fn stop(&self) -> &dyn Stop;

    /// By link: what is on it.
    fn users(&mut self, over: &[LinkIndex]) -> Vec<Vec<Self::User>>;

    /// Moves what is still there of a user, at most so many chunks of it, to where the potential is less; nothing, if there is
    /// no such place.
    fn move_off(&mut self, user: Self::User, link: LinkIndex, most: u64) -> Result<(), RepairError>;
}

/// Brings the level of the busiest link down, towards one below which it cannot be. No link ever gets busier than the
/// busiest was before, and each move takes something off the potential.
pub(super) fn balance(schedule: &mut impl Movable, least: u128) -> Result<(), RepairError> {
    let links = schedule.loads().link_count();
    let visits_max = VISITS_MAX + links as u64 * VISITS_PER_LINK;
    schedule.finder().visits = 0;
    for steps_log2 in STEPS_LOG2 {
        for _ in 0..SWEEPS {
            let level = schedule.loads().worst();
            if level <= least + level / CLOSE || schedule.finder().visits > visits_max {
                return Ok(());
            }
            schedule.loads().aim_at(level, steps_log2);
            let before = schedule.loads().potential();
            let over = schedule.loads().over();
            if steps_log2 < FINE_LOG2 && over.len() * FEW > links {
                break;
            }
            let users = schedule.users(&over);
            for (&link, users) in over.iter().zip(users) {
                relieve(schedule, (link, &users), visits_max)?;
            }
            if schedule.loads().potential() > before - before / WORTHWHILE {
                break;
            }
        }
    }
    Ok(())
}

/// Moves things off one link, as far as that goes.
fn relieve<M: Movable>(
    schedule: &mut M,
    (link, users): (LinkIndex, &[M::User]),
    visits_max: u64,
) -> Result<(), RepairError> {
    for &user in users {
        let excess = schedule.loads().excess(link);
        if excess == 0 || schedule.finder().visits > visits_max {
            return Ok(());
        }
        ask(schedule.stop())?;
        schedule.move_off(user, link, excess)?;
    }
    Ok(())
}
