//! Prices of links, and the least time that they prove: a certificate, added up here without any solver.

use canopy_optimize::Fraction;

use crate::matrix::Matrix;
use crate::tiers::Tiers;

/// Lengths of links by rank: what a byte pays that passes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prices {
    /// From ranks to the switches of their boxes.
    pub inner_out: Vec<u32>,
    /// From the switches to ranks.
    pub inner_in: Vec<u32>,
    /// Out of NICs.
    pub outer_out: Vec<u32>,
    /// Into NICs.
    pub outer_in: Vec<u32>,
}

/// Longer than any way that exists: at most 2¹² ranks, with four links of less than 2³² each.
const NO_WAY: u64 = 1 << 50;

/// Why prices prove nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PricesError {
    #[error("the network has {ranks} ranks, and the matrix {matrix}; give it a row and a column for each")]
    Ranks { ranks: usize, matrix: usize },
    #[error("`prices.{field}` has {found} entries for {expected} ranks; state one for each")]
    PriceCount { field: &'static str, found: usize, expected: usize },
    #[error("all links with a price are dead; give a working link a price")]
    Free,
    #[error("rank {from} cannot reach rank {to}: no live NICs join their boxes; mend one, or send nothing there")]
    Unreachable { from: usize, to: usize },
}

impl Prices {
    /// All links free.
    pub(crate) fn free(ranks: usize) -> Self {
        let zero = || vec![0; ranks];
        Self { inner_out: zero(), inner_in: zero(), outer_out: zero(), outer_in: zero() }
    }

    /// The least time in seconds that these prices prove: what all bytes pay on their cheapest ways, over what all
    /// links take in a second: `Σ bytes·distance ÷ Σ rate·price`.
    ///
    /// Each byte pays for its way at least the distance, and a link of rate `c` takes at most `c·price` a second. Bytes
    /// for another box may be relayed by all ranks of all boxes, those within a box take its switch.
    ///
    /// * **Source.** Duality of linear programs, for multicommodity flows.
    /// * **Errors.** [`PricesError`].
    /// * **Cost.** O(ranks²·rails + boxes·rails² + rails³), with 1 for the rails of a full fabric.
    pub fn least_time(&self, tiers: &Tiers, matrix: &Matrix) -> Result<Fraction, PricesError> {
        let ranks = tiers.ranks();
        if matrix.ranks() != ranks {
            return Err(PricesError::Ranks { ranks, matrix: matrix.ranks() });
        }
        let rates = tiers.rates();
        let classes = [
            ("inner_out", &self.inner_out, &rates.inner_out),
            ("inner_in", &self.inner_in, &rates.inner_in),
            ("outer_out", &self.outer_out, &rates.outer_out),
            ("outer_in", &self.outer_in, &rates.outer_in),
        ];
        let mut takes = 0_u128;
        for (field, prices, rates) in classes {
            if prices.len() != ranks {
                return Err(PricesError::PriceCount { field, found: prices.len(), expected: ranks });
            }
            let products = prices.iter().zip(rates).map(|(&price, &rate)| u128::from(price) * u128::from(rate));
            takes += products.sum::<u128>();
        }
        let ways = Ways::new(self, tiers);
        let mut pays = 0_u128;
        for from in 0..ranks {
            pays += ways.pays(from, matrix.row(from))?;
        }
        Fraction::new(pays, takes).ok_or(PricesError::Free)
    }
}

/// Distances between ranks and the networks that join NICs.
struct Ways<'a> {
    prices: &'a Prices,
    size: usize,
    hubs: usize,
    /// By rank and network, the distance to it, and from it.
    to_hub: Vec<u64>,
    from_hub: Vec<u64>,
}

impl<'a> Ways<'a> {
    fn new(prices: &'a Prices, tiers: &Tiers) -> Self {
        let (ranks, size, hubs, boxes) = (tiers.ranks(), tiers.box_size(), tiers.hubs(), tiers.boxes());
        let price = |price: u32, rate: u64| if rate == 0 { NO_WAY } else { u64::from(price) };
        let out = |rank: usize| price(prices.outer_out[rank], tiers.rates().outer_out[rank]);
        let into = |rank: usize| price(prices.outer_in[rank], tiers.rates().outer_in[rank]);
        // From the switch of a box to a network, and back.
        let (mut up, mut down) = (vec![NO_WAY; boxes * hubs], vec![NO_WAY; boxes * hubs]);
        for rank in 0..ranks {
            let place = rank / size * hubs + tiers.hub(rank);
            up[place] = up[place].min(u64::from(prices.inner_in[rank]) + out(rank));
            down[place] = down[place].min(u64::from(prices.inner_out[rank]) + into(rank));
        }
        let between = between(hubs, &up, &down);
        let (mut to_hub, mut from_hub) = (vec![NO_WAY; ranks * hubs], vec![NO_WAY; ranks * hubs]);
        for rank in 0..ranks {
            let home = rank / size * hubs;
            let at = rank * hubs..(rank + 1) * hubs;
            let mut first: Vec<u64> =
                up[home..home + hubs].iter().map(|way| way + u64::from(prices.inner_out[rank])).collect();
            first[tiers.hub(rank)] = first[tiers.hub(rank)].min(out(rank));
            for (hub, way) in to_hub[at.clone()].iter_mut().enumerate() {
                let relayed = first.iter().enumerate().map(|(at, way)| way + between[at * hubs + hub]);
                *way = relayed.min().unwrap_or(NO_WAY).min(first[hub]).min(NO_WAY);
            }
            let last = down[home..home + hubs].iter().map(|way| way + u64::from(prices.inner_in[rank]));
            from_hub[at.clone()].iter_mut().zip(last).for_each(|(way, last)| *way = last.min(NO_WAY));
            let own = &mut from_hub[at.start + tiers.hub(rank)];
            *own = into(rank).min(*own);
        }
        Self { prices, size, hubs, to_hub, from_hub }
    }

    /// What the bytes of one rank pay.
    fn pays(&self, from: usize, row: &[u64]) -> Result<u128, PricesError> {
        let to_hub = &self.to_hub[from * self.hubs..(from + 1) * self.hubs];
        let mut pays = 0_u128;
        for ((to, &bytes), from_hub) in row.iter().enumerate().zip(self.from_hub.chunks(self.hubs)) {
            if bytes == 0 || to == from {
                continue;
            }
            let distance = if to / self.size == from / self.size {
                u64::from(self.prices.inner_out[from]) + u64::from(self.prices.inner_in[to])
            } else {
                let ways = to_hub.iter().zip(from_hub).map(|(one, other)| one + other);
                ways.min().unwrap_or(NO_WAY)
            };
            if distance >= NO_WAY {
                return Err(PricesError::Unreachable { from, to });
            }
            pays += u128::from(bytes) * u128::from(distance);
        }
        Ok(pays)
    }
}

/// From network to network, over any number of boxes (Floyd and Warshall).
fn between(hubs: usize, up: &[u64], down: &[u64]) -> Vec<u64> {
    let mut ways = vec![NO_WAY; hubs * hubs];
    for (up, down) in up.chunks(hubs).zip(down.chunks(hubs)) {
        for (ways, down) in ways.chunks_mut(hubs).zip(down) {
            ways.iter_mut().zip(up).for_each(|(way, up)| *way = (*way).min(down + up));
        }
    }
    for middle in 0..hubs {
        for from in 0..hubs {
            let first = ways[from * hubs + middle];
            for to in 0..hubs {
                let way = first + ways[middle * hubs + to];
                let known = &mut ways[from * hubs + to];
                *known = way.min(*known);
            }
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiers::{Fabric, Rates};

    /// Three boxes of two ranks: that of box 0 on rail 1 and that of box 1 on rail 0 are dead.
    fn tiers() -> Tiers {
        let all = |rate: u64| vec![rate; 6];
        let nics = vec![2, 0, 0, 2, 2, 2];
        let rates = Rates { inner_out: all(10), inner_in: all(10), outer_out: nics.clone(), outer_in: nics };
        Tiers::new(Fabric::Rails, 2, rates).unwrap()
    }

    /// 60 bytes from rank 0 to rank 3.
    fn matrix() -> Matrix {
        let mut bytes = vec![0; 36];
        bytes[3] = 60;
        Matrix::new(6, bytes).unwrap()
    }

    #[test]
    fn ways_lead_over_third_boxes() {
        // Out of rank 0, into and out of the ranks of the third box over its switch, into rank 3.
        let all = |price: u32| vec![price; 6];
        let prices = Prices { inner_out: all(1), inner_in: all(10), outer_out: all(100), outer_in: all(1_000) };
        let takes = 60 * 11 + 8 * 1_100;
        assert_eq!(prices.least_time(&tiers(), &matrix()), Ok(Fraction::new(60 * 2_211, takes).unwrap()));
    }

    #[test]
    fn what_proves_nothing_is_refused() {
        let text =
            |prices: Prices, matrix: &Matrix| prices.least_time(&tiers(), matrix).map_err(|error| error.to_string());
        let free = || Prices::free(6);
        let only_dead = Prices { outer_in: vec![0, 1, 1, 0, 0, 0], ..free() };
        let expected = "all links with a price are dead; give a working link a price";
        assert_eq!(text(only_dead, &matrix()), Err(expected.to_owned()));
        let few = Prices { inner_in: vec![1; 5], ..free() };
        let expected = "`prices.inner_in` has 5 entries for 6 ranks; state one for each";
        assert_eq!(text(few, &matrix()), Err(expected.to_owned()));
        let other = Matrix::new(2, vec![0; 4]).unwrap();
        let expected = "the network has 6 ranks, and the matrix 2; give it a row and a column for each";
        assert_eq!(text(free(), &other), Err(expected.to_owned()));
    }
}
