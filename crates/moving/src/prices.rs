//! Prices of links, and the least time that they prove: a certificate, added up here without any solver.

use canopy_optimize::Fraction;

use crate::matrix::Matrix;
use crate::tiers::Tiers;

/// Lengths of links by rank: what a byte pays that passes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prices {
    /// From ranks to the switches of their boxes, or on each link to others of the box.
    pub inner_out: Vec<u32>,
    /// From the switches to ranks, or on each link from others of the box.
    pub inner_in: Vec<u32>,
    /// Out of NICs.
    pub outer_out: Vec<u32>,
    /// Into NICs.
    pub outer_in: Vec<u32>,
    /// From each rank to each place of its box, beside the two above; empty where switches join boxes.
    pub pairs: Vec<u32>,
}

/// Longer than any way that exists: at most 2¹² ranks, with four links of less than 2³² each.
const NO_WAY: u64 = 1 << 50;

/// Why prices prove nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum PricesError {
    #[error("the network has {ranks} ranks, and the matrix {matrix}; give it a row and a column for each")]
    Ranks { ranks: usize, matrix: usize },
    #[error("`prices.{field}` has {found} entries instead of {expected}; state one for each link")]
    PriceCount { field: &'static str, found: usize, expected: usize },
    #[error("all links with a price are dead; give a working link a price")]
    Free,
    #[error("rank {from} cannot reach rank {to}: no live NICs join their boxes; mend one, or send nothing there")]
    Unreachable { from: usize, to: usize },
}

impl Prices {
    /// All links free.
    pub fn free(tiers: &Tiers) -> Self {
        let zero = || vec![0; tiers.ranks()];
        let pairs = vec![0; tiers.pairs().len()];
        Self { inner_out: zero(), inner_in: zero(), outer_out: zero(), outer_in: zero(), pairs }
    }

    /// Distances within boxes, over ranks of the same box: by rank and place.
    fn inside(&self, tiers: &Tiers) -> Vec<u64> {
        let size = tiers.box_size();
        let mut inside = vec![0; tiers.ranks() * size];
        for (rank, ways) in inside.chunks_mut(size).enumerate() {
            let home = rank / size * size;
            for (place, way) in ways.iter_mut().enumerate().filter(|(place, _)| home + place != rank) {
                let link = rank * size + place;
                *way = u64::from(self.inner_out[rank]) + u64::from(self.inner_in[home + place]);
                if let Some(&rate) = tiers.pairs().get(link) {
                    *way = if rate == 0 { NO_WAY } else { *way + u64::from(self.pairs[link]) };
                }
            }
        }
        if !tiers.pairs().is_empty() {
            inside.chunks_mut(size * size).for_each(|ways| close(ways, size));
        }
        inside
    }

    /// The least time in seconds that these prices prove: what all bytes pay on their cheapest ways, over what all
    /// links take in a second: `Σ bytes·distance ÷ Σ rate·price`.
    ///
    /// Each byte pays for its way at least the distance, and a link of rate `c` takes at most `c·price` a second. Ways
    /// lead over any ranks of any boxes, also between two ranks of one box.
    ///
    /// * **Source.** Duality of linear programs, for multicommodity flows.
    /// * **Errors.** [`PricesError`].
    /// * **Cost.** O(ranks²·rails + ranks·(box size + rails²) + rails³), with 1 for the rails of a full fabric; O(ranks·box
    ///   size²) for boxes joined in pairs.
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
        let (found, expected) = (self.pairs.len(), tiers.pairs().len());
        if found != expected {
            return Err(PricesError::PriceCount { field: "pairs", found, expected });
        }
        let products = self.pairs.iter().zip(tiers.pairs()).map(|(&price, &rate)| u128::from(price) * u128::from(rate));
        takes += products.sum::<u128>();
        let ways = Ways::new(self, tiers);
        let mut pays = 0_u128;
        for from in 0..ranks {
            pays += ways.pays(from, matrix.row(from))?;
        }
        Fraction::new(pays, takes).ok_or(PricesError::Free)
    }
}

/// Distances between ranks, and between them and the networks that join NICs.
struct Ways {
    size: usize,
    hubs: usize,
    /// By rank and place of its box.
    inside: Vec<u64>,
    /// By rank and network, the distance to it, and from it by way of the rank's own box.
    to_hub: Vec<u64>,
    from_hub: Vec<u64>,
}

impl Ways {
    fn new(prices: &Prices, tiers: &Tiers) -> Self {
        let (ranks, size, hubs) = (tiers.ranks(), tiers.box_size(), tiers.hubs());
        let inside = prices.inside(tiers);
        let price = |price: u32, rate: u64| if rate == 0 { NO_WAY } else { u64::from(price) };
        let out = |rank: usize| price(prices.outer_out[rank], tiers.rates().outer_out[rank]);
        let into = |rank: usize| price(prices.outer_in[rank], tiers.rates().outer_in[rank]);
        let mut up = vec![NO_WAY; ranks * hubs];
        let mut from_hub = vec![NO_WAY; ranks * hubs];
        for rank in 0..ranks {
            let home = rank / size * size;
            for nic in home..home + size {
                let at = rank * hubs + tiers.hub(nic);
                up[at] = up[at].min(inside[rank * size + nic - home] + out(nic));
                from_hub[at] = from_hub[at].min(into(nic) + inside[nic * size + rank - home]);
            }
        }
        let mut between = vec![NO_WAY; hubs * hubs];
        for rank in 0..ranks {
            for (way, up) in between[tiers.hub(rank) * hubs..].iter_mut().zip(&up[rank * hubs..(rank + 1) * hubs]) {
                *way = (*way).min(into(rank) + up);
            }
        }
        close(&mut between, hubs);
        let mut to_hub = up.clone();
        for (to_hub, up) in to_hub.chunks_mut(hubs).zip(up.chunks(hubs)) {
            for (first, between) in up.iter().zip(between.chunks(hubs)) {
                to_hub.iter_mut().zip(between).for_each(|(way, between)| *way = (*way).min(first + between));
            }
        }
        Self { size, hubs, inside, to_hub, from_hub }
    }

    /// What the bytes of one rank pay.
    fn pays(&self, from: usize, row: &[u64]) -> Result<u128, PricesError> {
        let to_hub = &self.to_hub[from * self.hubs..(from + 1) * self.hubs];
        let mut pays = 0_u128;
        for ((to, &bytes), from_hub) in row.iter().enumerate().zip(self.from_hub.chunks(self.hubs)) {
            if bytes == 0 || to == from {
                continue;
            }
            let ways = to_hub.iter().zip(from_hub).map(|(one, other)| one + other);
            let mut distance = ways.min().unwrap_or(NO_WAY);
            if to / self.size == from / self.size {
                distance = distance.min(self.inside[from * self.size + to % self.size]);
            }
            if distance >= NO_WAY {
                return Err(PricesError::Unreachable { from, to });
            }
            pays += u128::from(bytes) * u128::from(distance);
        }
        Ok(pays)
    }
}

/// All distances of a graph from the lengths of its links (Floyd and Warshall).
fn close(ways: &mut [u64], count: usize) {
    for middle in 0..count {
        for from in 0..count {
            let first = ways[from * count + middle];
            for to in 0..count {
                let way = first + ways[middle * count + to];
                let known = &mut ways[from * count + to];
                *known = way.min(*known);
            }
        }
    }
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
        let (outer_out, outer_in) = (all(100), all(1_000));
        let prices = Prices { inner_out: all(1), inner_in: all(10), outer_out, outer_in, pairs: Vec::new() };
        let takes = 60 * 11 + 8 * 1_100;
        assert_eq!(prices.least_time(&tiers(), &matrix()), Ok(Fraction::new(60 * 2_211, takes).unwrap()));
    }

    #[test]
    fn what_proves_nothing_is_refused() {
        let text =
            |prices: Prices, matrix: &Matrix| prices.least_time(&tiers(), matrix).map_err(|error| error.to_string());
        let free = || Prices::free(&tiers());
        let only_dead = Prices { outer_in: vec![0, 1, 1, 0, 0, 0], ..free() };
        let expected = "all links with a price are dead; give a working link a price";
        assert_eq!(text(only_dead, &matrix()), Err(expected.to_owned()));
        let few = Prices { inner_in: vec![1; 5], ..free() };
        let expected = "`prices.inner_in` has 5 entries instead of 6; state one for each link";
        assert_eq!(text(few, &matrix()), Err(expected.to_owned()));
        let other = Matrix::new(2, vec![0; 4]).unwrap();
        let expected = "the network has 6 ranks, and the matrix 2; give it a row and a column for each";
        assert_eq!(text(free(), &other), Err(expected.to_owned()));
    }
}
