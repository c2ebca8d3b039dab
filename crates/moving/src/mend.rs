//! Moves bytes from rails with overloaded links to cheaper ones.

use crate::fill::{Filled, Piece};
use crate::matrix::whole;
use crate::route::Loads;
use crate::tiers::{Rates, Tiers};

/// How much longer than demanded a link may take.
const EXCESS: f64 = 3e-4;

/// Passes over all pairs of boxes.
const PASSES_MAX: usize = 300;

/// Looks at a rail for a piece, of all passes together.
const LOOKS_MAX: usize = 4_000_000;

/// Steepness of prices: at first and at last.
const STEEPNESS: f64 = 10.0;
const STEEPNESS_LAST: f64 = 4_000.0;

/// At least so much over what the greatest load is in excess: the closer the end, the finer the steps.
const STEEPNESS_BY_GAP: f64 = 4.0;

/// Steps of the exponent by which a link must be cheaper to count.
const MARGIN: f64 = 0.1;

/// Brings links that take longer than `time` seconds closer to it.
///
/// A byte pays `exp(steepness·load ÷ (rate·greatest)) ÷ rate` on a link, so that what all pay together is the gradient
/// of a smooth form of the greatest load. Pieces on the busiest links move to their cheapest rail, about as far as
/// prices become equal, and prices follow at once. They grow steeper from pass to pass.
///
/// * **Cost.** None if no link is overloaded; else at most [`LOOKS_MAX`] looks at a rail.
pub(crate) fn mend(tiers: &Tiers, time: f64, filled: &mut Filled) {
    if time <= 0.0 {
        return;
    }
    let mut market = Market::new(tiers.rates(), time, tiers.ranks());
    let (size, boxes) = (tiers.box_size(), tiers.boxes());
    let mut looks = 0;
    for pass in 0..PASSES_MAX {
        let progress = (pass as f64 / PASSES_MAX as f64).max(looks as f64 / LOOKS_MAX as f64);
        market.price_all(&filled.loads, STEEPNESS * (STEEPNESS_LAST / STEEPNESS).powf(progress));
        if market.greatest <= 1.0 + EXCESS || looks > LOOKS_MAX {
            return;
        }
        for (pair, pieces) in filled.pairs.iter_mut().enumerate() {
            let homes = [pair / boxes * size, pair % boxes * size];
            if !pieces.is_empty() && market.is_hot(homes, size) {
                looks += mend_pair(&mut market, &mut filled.loads, pieces, homes, size);
            }
        }
    }
}

/// Prices of links.
struct Market<'a> {
    rates: &'a Rates,
    time: f64,
    steepness: f64,
    /// The greatest part of the time that a link used as the pass began.
    greatest: f64,
    /// What a link must use to be hot.
    hot: f64,
    inner_out: Vec<Link>,
    inner_in: Vec<Link>,
    outer_out: Vec<Link>,
    outer_in: Vec<Link>,
}

/// What a byte pays, and what part of the time is used.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    price: f64,
    used: f64,
    /// Part of the time that a byte takes.
    each: f64,
}

impl<'a> Market<'a> {
    fn new(rates: &'a Rates, time: f64, ranks: usize) -> Self {
        let links = || vec![Link::default(); ranks];
        let (inner_out, inner_in, outer_out, outer_in) = (links(), links(), links(), links());
        Self { rates, time, steepness: 0.0, greatest: 0.0, hot: 0.0, inner_out, inner_in, outer_out, outer_in }
    }

    fn price_all(&mut self, loads: &Loads, steepness: f64) {
        let time = self.time;
        let mut greatest = 0.0_f64;
        let rates = self.rates;
        let classes = [
            (&mut self.inner_out, &rates.inner_out, &loads.inner_out),
            (&mut self.inner_in, &rates.inner_in, &loads.inner_in),
            (&mut self.outer_out, &rates.outer_out, &loads.outer_out),
            (&mut self.outer_in, &rates.outer_in, &loads.outer_in),
        ];
        for (links, rates, loads) in classes {
            for ((link, &rate), &load) in links.iter_mut().zip(rates).zip(loads) {
                link.each = 1.0 / (rate as f64 * time);
                link.used = if rate == 0 { 0.0 } else { load as f64 * link.each };
                greatest = greatest.max(link.used);
            }
        }
        self.greatest = greatest;
        let steepness = steepness.max(STEEPNESS_BY_GAP / (greatest - 1.0).max(STEEPNESS_BY_GAP / STEEPNESS_LAST));
        self.steepness = steepness;
        self.hot = (greatest * (1.0 - 4.0 / steepness)).max(1.0);
        let all = self.inner_out.iter_mut().chain(&mut self.inner_in).chain(&mut self.outer_out);
        all.chain(&mut self.outer_in).for_each(|link| reprice(link, steepness, greatest));
    }

    /// Whether a link between two boxes, given by their first ranks, is hot.
    fn is_hot(&self, [from, to]: [usize; 2], size: usize) -> bool {
        let any = |links: &[Link], first: usize| links[first..first + size].iter().any(|link| link.used > self.hot);
        any(&self.outer_out, from)
            || any(&self.outer_in, to)
            || any(&self.inner_out, from)
            || any(&self.inner_in, from)
            || any(&self.inner_out, to)
            || any(&self.inner_in, to)
    }

    /// What a byte pays for a rail, and the greatest use on the way.
    fn way(&self, [from, to]: [usize; 2], piece: Piece, rail: usize) -> (f64, f64) {
        let (leaves, enters) = (from + rail, to + rail);
        let (out, into) = (self.outer_out[leaves], self.outer_in[enters]);
        let mut price = out.price + into.price;
        let mut used = out.used.max(into.used);
        if usize::from(piece.from) != rail {
            let (up, down) = (self.inner_out[from + usize::from(piece.from)], self.inner_in[leaves]);
            price += up.price + down.price;
            used = used.max(up.used).max(down.used);
        }
        if usize::from(piece.to) != rail {
            let (up, down) = (self.inner_out[enters], self.inner_in[to + usize::from(piece.to)]);
            price += up.price + down.price;
            used = used.max(up.used).max(down.used);
        }
        (price, used)
    }

    /// Adds bytes to a rail, or takes them away.
    fn shift(&mut self, loads: &mut Loads, [from, to]: [usize; 2], piece: Piece, rail: usize, is_more: bool) {
        let (steepness, greatest) = (self.steepness, self.greatest);
        let apply = |links: &mut Vec<Link>, loads: &mut Vec<u64>, rank: usize| {
            let load = &mut loads[rank];
            *load = if is_more { *load + piece.bytes } else { *load - piece.bytes };
            links[rank].used = *load as f64 * links[rank].each;
            reprice(&mut links[rank], steepness, greatest);
        };
        apply(&mut self.outer_out, &mut loads.outer_out, from + rail);
        apply(&mut self.outer_in, &mut loads.outer_in, to + rail);
        if usize::from(piece.from) != rail {
            apply(&mut self.inner_out, &mut loads.inner_out, from + usize::from(piece.from));
            apply(&mut self.inner_in, &mut loads.inner_in, from + rail);
        }
        if usize::from(piece.to) != rail {
            apply(&mut self.inner_out, &mut loads.inner_out, to + rail);
            apply(&mut self.inner_in, &mut loads.inner_in, to + usize::from(piece.to));
        }
    }

    /// About how many bytes make two rails as dear.
    fn levelling(&self, [from, to]: [usize; 2], piece: Piece, rails: [usize; 2], ratio: f64) -> u64 {
        let each = |rail: usize| {
            let nics = self.outer_out[from + rail].each + self.outer_in[to + rail].each;
            let relays = if usize::from(piece.from) == rail { 0.0 } else { self.inner_in[from + rail].each };
            let returns = if usize::from(piece.to) == rail { 0.0 } else { self.inner_out[to + rail].each };
            nics + relays + returns
        };
        let bytes = ratio.ln() * self.greatest / (self.steepness * (each(rails[0]) + each(rails[1])));
        whole(bytes).max(1)
    }
}

fn reprice(link: &mut Link, steepness: f64, greatest: f64) {
    // Dead links have no time for a byte.
    link.price =
        if link.each.is_finite() { (steepness * (link.used / greatest - 1.0)).exp() * link.each } else { link.each };
}

/// Moves pieces of a pair of boxes, given by their first ranks, and says how many looks that took.
fn mend_pair(
    market: &mut Market<'_>,
    loads: &mut Loads,
    pieces: &mut Vec<Piece>,
    homes: [usize; 2],
    size: usize,
) -> usize {
    let mut by_rail = vec![0_u64; size];
    let mut looks = pieces.len();
    let mut mended = Vec::with_capacity(pieces.len() + size);
    for group in pieces.chunk_by(|one, other| (one.from, one.to) == (other.from, other.to)) {
        by_rail.fill(0);
        group.iter().for_each(|piece| by_rail[usize::from(piece.rail)] += piece.bytes);
        for &piece in group {
            looks += mend_piece(market, loads, piece, homes, &mut by_rail);
        }
        for (rail, &bytes) in (0_u16..).zip(&by_rail) {
            if bytes > 0 {
                mended.push(Piece { rail, bytes, ..group[0] });
            }
        }
    }
    *pieces = mended;
    looks
}

/// Moves bytes of a piece to the cheapest rail, if they are on a hot link, and says how many looks that took.
fn mend_piece(
    market: &mut Market<'_>,
    loads: &mut Loads,
    piece: Piece,
    homes: [usize; 2],
    by_rail: &mut [u64],
) -> usize {
    let rail = usize::from(piece.rail);
    let (price, used) = market.way(homes, piece, rail);
    if used <= market.hot {
        return 0;
    }
    let mut best = (price, rail);
    for other in 0..by_rail.len() {
        let (price, _) = market.way(homes, piece, other);
        if price < best.0 {
            best = (price, other);
        }
    }
    let (cheapest, other) = best;
    let ratio = price / cheapest;
    if other == rail || ratio < 1.0 + MARGIN {
        return by_rail.len();
    }
    let bytes = market.levelling(homes, piece, [rail, other], ratio).min(by_rail[rail]);
    let moved = Piece { bytes, ..piece };
    market.shift(loads, homes, moved, rail, false);
    market.shift(loads, homes, moved, other, true);
    by_rail[rail] -= bytes;
    by_rail[other] += bytes;
    by_rail.len()
}
