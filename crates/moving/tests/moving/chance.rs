//! Networks and matrices by chance, the same each time.

use canopy_moving::{Fabric, Matrix, Rates, Tiers};

/// A walk of numbers that repeats itself late.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }

    /// 2 to 4 boxes of 2 to 4 ranks. The wilder, the more rates differ: NICs die or slow down, links to switches are as
    /// slow as NICs.
    pub(crate) fn network(&mut self, fabric: Fabric, wildness: u64) -> Tiers {
        let (boxes, size) = (2 + self.below(3), 2 + self.below(3));
        let ranks = usize::try_from(boxes * size).expect("within limits");
        let inner = if wildness == 2 { 20 + self.below(200) } else { 300 };
        let mut rates = |rate: u64, may_die: bool| -> Vec<u64> {
            let one = |chance: &mut Self| match (wildness, chance.below(10)) {
                (1 | 2, 0) if may_die => 0,
                (1 | 2, 1) => rate / 2,
                (2, 2..5) => rate / 4 + chance.below(rate),
                _ => rate,
            };
            (0..ranks).map(|_| one(self).max(u64::from(!may_die))).collect()
        };
        let (inner_out, inner_in) = (rates(inner, false), rates(inner, false));
        let (outer_out, outer_in) = (rates(50, true), rates(50, true));
        let size = u32::try_from(size).expect("within limits");
        Tiers::new(fabric, size, Rates { inner_out, inner_in, outer_out, outer_in }).expect("within limits")
    }

    /// Traffic of some skew, about a million bytes a pair.
    pub(crate) fn matrix(&mut self, ranks: usize) -> Matrix {
        let hot: Vec<u64> = (0..ranks).map(|_| if self.below(4) == 0 { 20 } else { 1 + self.below(4) }).collect();
        let mut bytes = Vec::with_capacity(ranks * ranks);
        for _ in 0..ranks {
            let row = 1 + self.below(3);
            for &hot in &hot {
                let is_none = self.below(5) == 0;
                bytes.push(if is_none { 0 } else { row * hot * (500_000 + self.below(1_000_000)) });
            }
        }
        Matrix::new(u32::try_from(ranks).expect("within limits"), bytes).expect("within limits")
    }

    /// The same network with boxes joined in pairs. The wilder, the more links are slow or dead; each rank keeps one.
    pub(crate) fn mesh(&mut self, tiers: Tiers, wildness: u64) -> Tiers {
        let (ranks, size) = (tiers.ranks(), tiers.box_size());
        let mut pairs = vec![0; ranks * size];
        for from in 0..ranks {
            let home = from / size * size;
            for place in (0..size).filter(|place| home + place != from) {
                let next = (from + 1 - home) % size == place;
                pairs[from * size + place] = match (wildness, self.below(8)) {
                    (1 | 2, 0) if !next => 0,
                    (1 | 2, 1) => 20,
                    (2, 2..5) => 5 + self.below(90),
                    _ => 60,
                };
            }
        }
        let mut rates = tiers.rates().clone();
        for rank in 0..ranks {
            let home = rank / size * size;
            rates.inner_out[rank] = pairs[rank * size..(rank + 1) * size].iter().sum();
            rates.inner_in[rank] = (home..home + size).map(|from| pairs[from * size + rank - home]).sum();
        }
        let size = u32::try_from(size).expect("within limits");
        Tiers::new(tiers.fabric(), size, rates).expect("within limits").in_pairs(pairs).expect("as many as there are")
    }

    /// Traffic of a kind: of all pairs, of few, within boxes alone, of one sender, of one pair.
    pub(crate) fn traffic(&mut self, tiers: &Tiers, kind: usize) -> Matrix {
        let (ranks, size) = (tiers.ranks(), tiers.box_size());
        let dense = self.matrix(ranks);
        let below = |chance: &mut Self, bound: usize| usize::try_from(chance.below(bound as u64)).expect("small");
        let (sender, receiver) = (below(self, ranks), below(self, ranks));
        let mate = sender / size * size + below(self, size);
        let mut bytes = Vec::with_capacity(ranks * ranks);
        for from in 0..ranks {
            for to in 0..ranks {
                let is_wanted = match kind % 6 {
                    0 => true,
                    1 => self.below(8) == 0,
                    2 => from / size == to / size,
                    3 => from == sender,
                    4 => (from, to) == (sender, receiver) || (from, to) == (sender, mate),
                    _ => from / size == to / size || self.below(6) == 0,
                };
                bytes.push(if is_wanted && from != to { dense.row(from)[to] } else { 0 });
            }
        }
        Matrix::new(u32::try_from(ranks).expect("within limits"), bytes).expect("within limits")
    }
}
