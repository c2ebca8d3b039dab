//! Moves branches off the links that are busiest.

use canopy_optimize::Stop;
use canopy_schedule::{Action, RouteIndex};
use canopy_topology::LinkIndex;

use crate::repair::RepairError;
use crate::repair::balance::{Movable, balance};
use crate::repair::finder::Finder;
use crate::repair::forest::branches::sides;
use crate::repair::forest::{Entry, Trees};
use crate::repair::loads::Loads;
use crate::repair::tree::Tree;

/// Hops that are looked at for one link, at most.
const USERS_MAX: usize = 1 << 14;

/// A hop over a link, by the rank that hangs on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    phase: usize,
    entry: usize,
    rank: u32,
    route: RouteIndex,
}

impl Trees<'_> {
    /// Brings the level of the busiest link down, towards what no rank can do without.
    pub(super) fn balance(&mut self) -> Result<(), RepairError> {
        let least = self.least_level()?;
        balance(self, least)
    }

    /// The level that some rank's links have at least, whatever is moved.
    fn least_level(&self) -> Result<u128, RepairError> {
        let left = self.of.remainder.left;
        let mut own = vec![[0_u64; 2]; left.rank_count() as usize];
        let mut totals = [0_u64; 2];
        for (at, phase) in self.phases.iter().enumerate() {
            let copies = usize::from(phase.action == Action::Copy);
            for entry in &phase.entries {
                let weight = self.weight_of(at, entry);
                let sum = totals[copies].checked_add(weight).ok_or(RepairError::TooLarge)?;
                totals[copies] = sum;
                own[entry.root as usize][copies] += weight;
            }
        }
        let [reduced, copied] = totals;
        let levels = own.iter().zip(left.degrees()).map(|(&[sums, copies], (entering, leaving))| {
            // What a rank has to give away or to take, of each kind of tree.
            let level = |chunks: u64, capacity| self.loads.level(chunks, capacity);
            level(copied - copies + sums, entering).max(level(reduced - sums + copies, leaving))
        });
        Ok(levels.max().unwrap_or(0))
    }

    /// Whether no link of a route carries more than it shall.
    fn is_within(&self, route: RouteIndex) -> bool {
        self.routes[route.index()].iter().all(|&link| self.loads.has_room(link, 0))
    }

    /// Chunks of an entry.
    pub(super) fn weight_of(&self, phase: usize, entry: &Entry) -> u64 {
        let base = || self.forest.phases[phase].trees[entry.base].multiplicity * self.factor;
        entry.changed.as_ref().map_or_else(base, |tree| tree.weight)
    }
}

impl Movable for Trees<'_> {
    type User = User;

    fn loads(&mut self) -> &mut Loads {
        &mut self.loads
    }

    fn finder(&mut self) -> &mut Finder {
        &mut self.finder
    }

    fn stop(&self) -> &dyn Stop {
        self.stop
    }

    /// By link: the hops over it. O(hops).
    fn users(&mut self, over: &[LinkIndex]) -> Vec<Vec<User>> {
        // A hop takes a quarter of the time of a link.
        self.finder.visits += self.forest.hops.len() as u64 / 4;
        let mut position = vec![None; self.opposites.len()];
        for (at, link) in over.iter().enumerate() {
            position[link.index()] = Some(at);
        }
        let crossed: Vec<Vec<usize>> =
            self.routes.iter().map(|links| links.iter().filter_map(|link| position[link.index()]).collect()).collect();
        let mut users = vec![Vec::new(); over.len()];
        let mut note = |user: User| {
            for &at in &crossed[user.route.index()] {
                if users[at].len() < USERS_MAX {
                    users[at].push(user);
                }
            }
        };
        for (phase, of_phase) in self.phases.iter().enumerate() {
            for (entry, Entry { base, changed, .. }) in of_phase.entries.iter().enumerate() {
                if let Some(tree) = changed {
                    for (rank, up) in (0_u32..).zip(&tree.ups) {
                        let parts = up.iter().flat_map(|up| up.ways.parts(tree.weight));
                        parts.for_each(|(route, _)| note(User { phase, entry, rank, route }));
                    }
                    continue;
                }
                for hop in self.forest.hops_of(&self.forest.phases[phase].trees[*base]) {
                    let child = if of_phase.action == Action::Copy { hop.to } else { hop.from };
                    let Some(rank) = self.of.remainder.rank(child).map(canopy_topology::Rank::number) else { continue };
                    let carriers = self.forest.carriers_of(hop).iter();
                    carriers.for_each(|carrier| note(User { phase, entry, rank, route: carrier.route }));
                }
            }
        }
        users
    }

    /// Hangs the branch of a hop somewhere else.
    fn move_off(&mut self, user: User, _: LinkIndex, most: u64) -> Result<(), RepairError> {
        let User { phase, entry, rank, route } = user;
        let Entry { root, base, ref changed } = self.phases[phase].entries[entry];
        let amount_of = |tree: &Tree| {
            let up = tree.ups[rank as usize].as_ref();
            up.map_or(0, |up| up.ways.count(tree.weight, |way| way == route)).min(most)
        };
        if changed.as_ref().is_some_and(|tree| amount_of(tree) == 0) {
            return Ok(());
        }
        let mut tree = changed.clone().map_or_else(|| self.opened(phase, base), Ok)?;
        // The tree is copied, and gone through to see what hangs where.
        self.finder.visits += tree.ups.len() as u64;
        let amount = amount_of(&tree);
        if amount == 0 {
            return Ok(());
        }
        let rest = (amount < tree.weight).then(|| {
            let part = tree.divide(amount, rank, |way| way == route);
            std::mem::replace(&mut tree, part)
        });
        let before = self.loads.potential();
        tree.ups[rank as usize] = None;
        self.loads.remove(&self.routes[route.index()], amount);
        let relief = before - self.loads.potential();
        let way = self.way_for(phase, &tree, rank, relief, &sides(&tree, rank));
        if let Some(way) = way {
            let changes = self.hang(phase, &mut tree, &way)?;
            // Where a branch is turned around, a link may have been counted on that was chosen twice.
            if self.loads.potential() < before && changes.iter().all(|(route, ..)| self.is_within(*route)) {
                let entries = &mut self.phases[phase].entries;
                if let Some(rest) = rest {
                    entries[entry].changed = Some(rest);
                    entries.push(Entry { root, base, changed: Some(tree) });
                } else {
                    entries[entry].changed = Some(tree);
                }
                return Ok(());
            }
            for (route, count, came) in changes {
                let links = &self.routes[route.index()];
                if came {
                    self.loads.remove(links, count);
                } else {
                    self.loads.add(links, count)?;
                }
            }
        }
        self.loads.add(&self.routes[route.index()], amount)
    }
}
