//! Networks of two tiers: boxes of ranks around a switch or joined in pairs, and a NIC for each rank. It knows no
//! traffic.

/// Most ranks of a network.
pub const RANKS_MAX: u32 = 4_096;

/// Greatest rate of a link in bytes per second. Sums over all links of a network stay below 2^62.
pub const RATE_MAX: u64 = 1 << 48;

/// What joins the NICs of all boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fabric {
    /// The NICs at the same place of each box are joined, and only those.
    Rails,
    /// Each NIC reaches each NIC of other boxes.
    Full,
}

/// Rates of the links of each rank, in bytes per second and direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates {
    /// From the rank to the switch of its box, or over all its links to others of the box.
    pub inner_out: Vec<u64>,
    /// From the switch of its box to the rank, or over all links from others of the box.
    pub inner_in: Vec<u64>,
    /// Out of the rank's NIC; 0 if that is dead.
    pub outer_out: Vec<u64>,
    /// Into the rank's NIC; 0 if that is dead.
    pub outer_in: Vec<u64>,
}

/// Why a network is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TiersError {
    #[error("`box_size` is 0; a box has at least 1 rank")]
    EmptyBox,
    #[error("`rates.inner_out` is empty; state a rate for each rank")]
    NoRanks,
    #[error("the network has {ranks} ranks; {RANKS_MAX} is the limit, so divide it")]
    TooManyRanks { ranks: usize },
    #[error("{ranks} ranks do not fill boxes of {box_size}; change `box_size` or give idle ranks dead NICs")]
    UnevenBoxes { ranks: usize, box_size: u32 },
    #[error("`rates.{field}` has {found} entries for {expected} ranks; state one for each")]
    RateCount { field: &'static str, found: usize, expected: usize },
    #[error("`rates.{field}[{rank}]` is 0; a rank needs its link to the switch, so state a rate or leave its box out")]
    NoInner { field: &'static str, rank: usize },
    #[error("`rates.{field}[{rank}]` is {rate} B/s; {RATE_MAX} is the limit, so state bytes per second")]
    RateTooHigh { field: &'static str, rank: usize, rate: u64 },
    #[error("`pairs` has {found} entries; state {expected}, one for each rank and place of its box")]
    PairCount { found: usize, expected: usize },
    #[error("`pairs` of rank {rank} has {rate} B/s; {RATE_MAX} is the limit, so state bytes per second")]
    PairTooHigh { rank: usize, rate: u64 },
}

/// A network of two tiers, checked.
///
/// Rank `r` is at place `r % box_size` of box `r / box_size`. The switch of a box and the fabric carry what their ports
/// do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    fabric: Fabric,
    box_size: usize,
    rates: Rates,
    pairs: Vec<u64>,
}

impl Tiers {
    /// Checks a network.
    ///
    /// * **Errors.** [`TiersError`].
    /// * **Cost.** O(ranks).
    pub fn new(fabric: Fabric, box_size: u32, rates: Rates) -> Result<Self, TiersError> {
        let ranks = rates.inner_out.len();
        let size = usize::try_from(box_size).unwrap_or(usize::MAX);
        if size == 0 {
            return Err(TiersError::EmptyBox);
        }
        if ranks == 0 {
            return Err(TiersError::NoRanks);
        }
        if ranks > RANKS_MAX as usize {
            return Err(TiersError::TooManyRanks { ranks });
        }
        if !ranks.is_multiple_of(size) {
            return Err(TiersError::UnevenBoxes { ranks, box_size });
        }
        require("inner_out", &rates.inner_out, ranks, true)?;
        require("inner_in", &rates.inner_in, ranks, true)?;
        require("outer_out", &rates.outer_out, ranks, false)?;
        require("outer_in", &rates.outer_in, ranks, false)?;
        Ok(Self { fabric, box_size: size, rates, pairs: Vec::new() })
    }

    /// The same network with boxes joined in pairs: rates from each rank to each place of its box, 0 for a dead link. What
    /// a rank has inside limits its links together.
    ///
    /// # Errors
    /// [`TiersError::PairCount`], [`TiersError::PairTooHigh`].
    pub fn in_pairs(self, pairs: Vec<u64>) -> Result<Self, TiersError> {
        let expected = self.ranks() * self.box_size;
        if pairs.len() != expected {
            return Err(TiersError::PairCount { found: pairs.len(), expected });
        }
        match pairs.iter().position(|&rate| rate > RATE_MAX) {
            Some(link) => Err(TiersError::PairTooHigh { rank: link / self.box_size, rate: pairs[link] }),
            None => Ok(Self { pairs, ..self }),
        }
    }

    /// A network of equal ranks: `inner` and `outer` in bytes per second and direction.
    ///
    /// # Errors
    /// As [`Tiers::new`].
    pub fn even(fabric: Fabric, boxes: u32, box_size: u32, inner: u64, outer: u64) -> Result<Self, TiersError> {
        let ranks = u64::from(boxes) * u64::from(box_size);
        let ranks = usize::try_from(ranks).unwrap_or(usize::MAX);
        if ranks > RANKS_MAX as usize {
            return Err(TiersError::TooManyRanks { ranks });
        }
        let rates = Rates {
            inner_out: vec![inner; ranks],
            inner_in: vec![inner; ranks],
            outer_out: vec![outer; ranks],
            outer_in: vec![outer; ranks],
        };
        Self::new(fabric, box_size, rates)
    }

    /// What joins the NICs.
    pub const fn fabric(&self) -> Fabric {
        self.fabric
    }

    /// Ranks of all boxes.
    pub const fn ranks(&self) -> usize {
        self.rates.inner_out.len()
    }

    /// Ranks of a box.
    pub const fn box_size(&self) -> usize {
        self.box_size
    }

    /// Boxes.
    pub const fn boxes(&self) -> usize {
        self.ranks() / self.box_size
    }

    /// Rates by rank.
    pub const fn rates(&self) -> &Rates {
        &self.rates
    }

    /// From each rank to each place of its box, where links join pairs; empty where switches join boxes.
    pub fn pairs(&self) -> &[u64] {
        &self.pairs
    }

    /// Networks that join NICs: rails, or one fabric.
    pub(crate) const fn hubs(&self) -> usize {
        match self.fabric {
            Fabric::Rails => self.box_size,
            Fabric::Full => 1,
        }
    }

    /// The rail of a rank's NIC, or the only fabric.
    pub(crate) const fn hub(&self, rank: usize) -> usize {
        match self.fabric {
            Fabric::Rails => rank % self.box_size,
            Fabric::Full => 0,
        }
    }
}

fn require(field: &'static str, rates: &[u64], expected: usize, is_inner: bool) -> Result<(), TiersError> {
    if rates.len() != expected {
        return Err(TiersError::RateCount { field, found: rates.len(), expected });
    }
    for (rank, &rate) in rates.iter().enumerate() {
        if rate > RATE_MAX {
            return Err(TiersError::RateTooHigh { field, rank, rate });
        }
        if is_inner && rate == 0 {
            return Err(TiersError::NoInner { field, rank });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(ranks: usize) -> Rates {
        let all = |rate: u64| vec![rate; ranks];
        Rates { inner_out: all(9), inner_in: all(9), outer_out: all(1), outer_in: all(1) }
    }

    #[track_caller]
    fn refused(box_size: u32, rates: Rates, expected: &str) {
        assert_eq!(Tiers::new(Fabric::Rails, box_size, rates).map_err(|error| error.to_string()), Err(expected.into()));
    }

    #[test]
    fn refusals_name_the_field_and_the_remedy() {
        refused(0, rates(4), "`box_size` is 0; a box has at least 1 rank");
        refused(1, rates(0), "`rates.inner_out` is empty; state a rate for each rank");
        refused(1, rates(4_097), "the network has 4097 ranks; 4096 is the limit, so divide it");
        let uneven = "4 ranks do not fill boxes of 3; change `box_size` or give idle ranks dead NICs";
        refused(3, rates(4), uneven);
        let few = Rates { outer_in: vec![1; 3], ..rates(4) };
        refused(2, few, "`rates.outer_in` has 3 entries for 4 ranks; state one for each");
        let cut = Rates { inner_in: vec![1, 0], ..rates(2) };
        let expected =
            "`rates.inner_in[1]` is 0; a rank needs its link to the switch, so state a rate or leave its box out";
        refused(2, cut, expected);
        let fast = Rates { outer_out: vec![1, u64::MAX], ..rates(2) };
        let expected = "`rates.outer_out[1]` is 18446744073709551615 B/s; 281474976710656 is the limit, so state \
                        bytes per second";
        refused(2, fast, expected);
        assert_eq!(
            Tiers::even(Fabric::Full, u32::MAX, u32::MAX, 1, 1),
            Err(TiersError::TooManyRanks { ranks: 18_446_744_065_119_617_025 })
        );
    }

    #[test]
    fn the_largest_network_is_accepted() {
        let tiers = Tiers::even(Fabric::Rails, 512, 8, RATE_MAX, 0).unwrap();
        assert_eq!((tiers.ranks(), tiers.boxes(), tiers.hubs(), tiers.hub(13)), (4_096, 512, 8, 5));
    }
}
