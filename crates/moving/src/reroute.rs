//! Moves bytes from busy links to cheaper routes over any boxes, by prices that follow the loads; and the best of these
//! prices, which prove how little time is possible.
//!
//! Floats propose here. What routes load and what prices prove is added up elsewhere, in integers.

use std::collections::BTreeMap;

use crate::matrix::{Matrix, whole};
use crate::paths::{Links, Paths};
use crate::prices::Prices;
use crate::proof::Proof;
use crate::route::{Hop, Part, Route};
use crate::tiers::Tiers;

/// Passes over all parts.
const PASSES_MAX: usize = 1_000;

/// Work of all passes together, in looks at a link.
const WORK_MAX: usize = 150_000_000;

/// How near to the proven time the routes must come.
const NEAR: f64 = 3e-4;

/// Steepness of prices: at first and at last.
const STEEPNESS: f64 = 10.0;
const STEEPNESS_LAST: f64 = 4_000.0;

/// Steepness by what the greatest load is in excess: the closer the end, the finer the steps.
const STEEPNESS_BY_GAP: f64 = 4.0;

/// A route must be cheaper by this part of its price to count.
const MARGIN: f64 = 0.0002;

/// The price of an idle link, as a part of that of the busiest: of routes over idle links, the shortest is cheapest.
const IDLE: f64 = 1e-9;

/// Routes and prices.
pub(crate) struct Rerouted {
    pub(crate) parts: Vec<Part>,
    /// The time of the busiest link, about.
    pub(crate) seconds: f64,
    pub(crate) prices: Vec<Prices>,
}

/// Bytes that have no way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Apart {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// Brings links that take longer than demanded closer to the least time, and proves more than `least` seconds.
///
/// A byte pays `exp(steepness·load ÷ (rate·greatest)) ÷ rate` on a link, so that what all pay together is the gradient
/// of a smooth form of the greatest load. Bytes on the busiest links move to their cheapest routes, about as far as
/// prices become equal, and prices follow at once. They grow steeper from pass to pass. Any prices prove a time, and
/// the more bytes are on cheapest routes, the nearer it is to the greatest load.
///
/// * **In.** Parts that add up to the matrix; those relayed without hops, and those over dead links, get other routes.
/// * **Out.** Parts by sender and receiver.
/// * **Errors.** [`Apart`].
/// * **Cost.** At most [`WORK_MAX`] looks at a link.
pub(crate) fn reroute(tiers: &Tiers, matrix: &Matrix, parts: &[Part], least: f64) -> Result<Rerouted, Apart> {
    let mut market = Market::new(tiers, least);
    let mut groups = groups(parts);
    market.find_lost(&mut groups)?;
    let mut proof = Proof::new(tiers, matrix, least);
    let mut work = 0;
    for pass in 0..PASSES_MAX {
        let progress = (pass as f64 / PASSES_MAX as f64).max(work as f64 / WORK_MAX as f64);
        market.least = proof.best();
        market.price_all(STEEPNESS * (STEEPNESS_LAST / STEEPNESS).powf(progress));
        let paths = Paths::new(tiers, market.lengths());
        work += proof.offer(&market.lengths(), &paths);
        if market.greatest <= proof.best() * (1.0 + NEAR) || work > WORK_MAX {
            break;
        }
        work += market.pass(&mut groups, paths);
    }
    let parts = groups.into_iter().flat_map(|group| group.parts(tiers.box_size())).collect();
    Ok(Rerouted { parts, seconds: market.busiest(), prices: proof.prices() })
}

/// Bytes on one route.
struct Piece {
    hops: Vec<Hop>,
    bytes: u64,
}

/// Bytes from a rank to another.
struct Group {
    from: u32,
    to: u32,
    pieces: Vec<Piece>,
}

impl Group {
    fn parts(self, box_size: usize) -> impl Iterator<Item = Part> {
        let Self { from, to, pieces } = self;
        let is_inside = from as usize / box_size == to as usize / box_size;
        let part = move |Piece { hops, bytes }| Part { from, to, route: route([from, to], is_inside, hops), bytes };
        pieces.into_iter().filter(|piece| piece.bytes > 0).map(part)
    }

    /// Moves bytes from a piece to a route.
    fn shift(&mut self, piece: usize, hops: Vec<Hop>, bytes: u64) {
        self.pieces[piece].bytes -= bytes;
        match self.pieces.iter_mut().find(|piece| piece.hops == hops) {
            Some(other) => other.bytes += bytes,
            None => self.pieces.push(Piece { hops, bytes }),
        }
    }
}

/// Parts by sender and receiver.
fn groups(parts: &[Part]) -> Vec<Group> {
    let mut by_pair: BTreeMap<(u32, u32), Vec<Piece>> = BTreeMap::new();
    for part in parts {
        let &Part { from, to, ref route, bytes } = part;
        let hops = match *route {
            Route::Inside => vec![Hop::Inside(to)],
            Route::Across { leaves, enters } => {
                let mut hops = Vec::with_capacity(3);
                if leaves != from {
                    hops.push(Hop::Inside(leaves));
                }
                hops.push(Hop::Across(enters));
                if enters != to {
                    hops.push(Hop::Inside(to));
                }
                hops
            }
            Route::Relayed(ref hops) => hops.clone(),
        };
        by_pair.entry((from, to)).or_default().push(Piece { hops, bytes });
    }
    by_pair.into_iter().map(|((from, to), pieces)| Group { from, to, pieces }).collect()
}

/// The route of some hops between two ranks.
fn route([from, to]: [u32; 2], is_inside: bool, hops: Vec<Hop>) -> Route {
    match hops[..] {
        [Hop::Inside(_)] => Route::Inside,
        _ if is_inside => Route::Relayed(hops),
        [Hop::Across(enters)] => Route::Across { leaves: from, enters },
        [Hop::Inside(leaves), Hop::Across(enters)] if enters == to => Route::Across { leaves, enters },
        [Hop::Across(enters), Hop::Inside(_)] => Route::Across { leaves: from, enters },
        [Hop::Inside(leaves), Hop::Across(enters), Hop::Inside(_)] => Route::Across { leaves, enters },
        _ => Route::Relayed(hops),
    }
}

/// Prices and loads of links.
struct Market<'a> {
    tiers: &'a Tiers,
    links: Links<'a>,
    /// Seconds that a byte takes, infinite on dead links.
    each: Vec<f64>,
    /// Seconds that all bytes take.
    used: Vec<f64>,
    price: Vec<f64>,
    /// Proven seconds.
    least: f64,
    steepness: f64,
    /// The greatest seconds of a link as the pass began, and what a link must take to be hot.
    greatest: f64,
    hot: f64,
}

impl<'a> Market<'a> {
    fn new(tiers: &'a Tiers, least: f64) -> Self {
        let links = Links::new(tiers);
        let each: Vec<f64> = links.rates().into_iter().map(|rate| 1.0 / rate).collect();
        let used = vec![0.0; each.len()];
        let price = each.clone();
        Self { tiers, links, each, used, price, least, steepness: 0.0, greatest: 0.0, hot: 0.0 }
    }

    /// Adds up loads, after it has given a route to bytes that have none.
    fn find_lost(&mut self, groups: &mut [Group]) -> Result<(), Apart> {
        let paths = Paths::new(self.tiers, self.lengths());
        for Group { from, to, pieces } in groups {
            let from = *from as usize;
            let to = *to as usize;
            for piece in pieces {
                if piece.hops.is_empty() || !self.route(from, &piece.hops).0.is_finite() {
                    let (length, choice) = paths.distance(from, to);
                    let hops = if length.is_finite() { paths.hops(from, to, choice) } else { None };
                    piece.hops = hops.ok_or(Apart { from, to })?;
                }
                self.load(from, &piece.hops, piece.bytes as f64);
            }
        }
        Ok(())
    }

    fn lengths(&self) -> Vec<f64> {
        self.price.clone()
    }

    /// Adds bytes to the links of a route.
    fn load(&mut self, from: usize, hops: &[Hop], bytes: f64) {
        let Self { links, each, used, price, steepness, greatest, .. } = self;
        links.route(from, hops, |link| {
            used[link] += bytes * each[link];
            price[link] = priced(used[link], each[link], *steepness, *greatest);
        });
    }

    /// The time of the busiest link in seconds.
    fn busiest(&self) -> f64 {
        self.used.iter().copied().fold(0.0, f64::max)
    }

    fn price_all(&mut self, steepness: f64) {
        self.greatest = self.busiest();
        let gap = (self.greatest / self.least - 1.0).max(STEEPNESS_BY_GAP / STEEPNESS_LAST);
        self.steepness = steepness.max(STEEPNESS_BY_GAP / gap);
        self.hot = (self.greatest * (1.0 - 8.0 / self.steepness)).max(self.least);
        for ((price, &used), &each) in self.price.iter_mut().zip(&self.used).zip(&self.each) {
            *price = priced(used, each, self.steepness, self.greatest);
        }
    }

    /// What a byte pays for a route, and the greatest use on the way.
    fn route(&self, from: usize, hops: &[Hop]) -> (f64, f64) {
        let (mut price, mut used) = (0.0, 0.0_f64);
        self.links.route(from, hops, |link| {
            price += self.price[link];
            used = used.max(self.used[link]);
        });
        (price, used)
    }

    /// Moves bytes of all groups, and says how many looks that took.
    fn pass(&mut self, groups: &mut [Group], mut paths: Paths<'a>) -> usize {
        let afresh = paths.work();
        let (mut work, mut due) = (0, afresh);
        for group in groups {
            for piece in 0..group.pieces.len() {
                let (looks, is_moved) = self.mend(group, piece, &paths);
                work += looks;
                if is_moved && work >= due {
                    paths = Paths::new(self.tiers, self.lengths());
                    work += afresh;
                    due = work + afresh;
                }
            }
            if group.pieces.len() > 1 {
                group.pieces.retain(|piece| piece.bytes > 0);
            }
        }
        work
    }

    /// Moves bytes of a piece on a hot link to the cheapest route. Returns looks, and whether bytes have moved.
    fn mend(&mut self, group: &mut Group, piece: usize, paths: &Paths<'_>) -> (usize, bool) {
        let from = group.from as usize;
        let to = group.to as usize;
        let Piece { hops, bytes } = &group.pieces[piece];
        let looks = 2 * hops.len();
        let (price, used) = self.route(from, hops);
        if used <= self.hot || *bytes == 0 {
            return (looks, false);
        }
        let looks = looks + self.tiers.hubs();
        let (length, choice) = paths.distance(from, to);
        if length * (1.0 + MARGIN) >= price {
            return (looks, false);
        }
        let Some(cheaper) = paths.hops(from, to, choice) else { return (looks, false) };
        let looks = looks + 4 * cheaper.len();
        // Prices have moved since the paths were found.
        let (cheapest, _) = self.route(from, &cheaper);
        let ratio = price / cheapest;
        if ratio < 1.0 + MARGIN {
            return (looks, false);
        }
        let moved = self.levelling(from, [hops, &cheaper], ratio).min(*bytes);
        let before = hops.clone();
        self.load(from, &before, -(moved as f64));
        self.load(from, &cheaper, moved as f64);
        group.shift(piece, cheaper, moved);
        (looks, true)
    }

    /// About how many bytes make two routes as dear.
    fn levelling(&self, from: usize, routes: [&[Hop]; 2], ratio: f64) -> u64 {
        let mut each = 0.0;
        for (route, other) in [(routes[0], routes[1]), (routes[1], routes[0])] {
            self.links.route(from, route, |link| {
                let mut is_common = false;
                self.links.route(from, other, |other| is_common |= other == link);
                if !is_common {
                    each += self.each[link];
                }
            });
        }
        whole(ratio.ln() * self.greatest / (self.steepness * each)).max(1)
    }
}

/// The price of a link.
fn priced(used: f64, each: f64, steepness: f64, greatest: f64) -> f64 {
    if each.is_finite() { ((steepness * (used / greatest - 1.0)).exp() + IDLE) * each } else { each }
}
