//! Networks that canopy can price, and their possible sizes.

use std::fmt;

/// Most endpoints of a network, and most switches.
pub const ENDPOINTS_MAX: u64 = 1_000_000_000;
/// Greatest parameter of a network.
pub const SIZE_MAX: u64 = 1_000_000;
/// Most dimensions of a torus.
const DIMENSIONS_MAX: usize = 16;

/// A network of switches with endpoints; [`Network::checked`] says whether it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// A switch in each cell of a grid, all of a row joined and all of a column.
    Dfc2 {
        /// Rows, m₂.
        rows: u64,
        /// Columns, m₁.
        columns: u64,
        /// Endpoints of each switch, T.
        terminals: u64,
    },
    /// Groups of switches that are all joined, and a cable between every two groups: as many groups as there can be.
    DragonflyRouter {
        /// Endpoints of each switch.
        p: u64,
        /// Switches of each group.
        a: u64,
        /// Cables of each switch to other groups.
        h: u64,
    },
    /// A McKay–Miller–Širáň graph of diameter 2.
    SlimFly {
        /// Its order, a power of a prime: there are 2q² switches.
        q: u64,
        /// Endpoints of each switch.
        terminals: u64,
    },
    /// Rings of switches in each dimension, folded.
    Torus {
        /// Switches of a ring, by dimension.
        extents: Vec<u64>,
        /// Endpoints of each switch.
        terminals: u64,
    },
    /// Three levels of switches of one kind, half of whose ports lead up, without oversubscription.
    FatTree {
        /// Ports of each switch.
        k: u64,
    },
}

/// Errors of a network to price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum NetworkError {
    #[error("{key}: {found} is out of range; use {least} to {SIZE_MAX}")]
    Size { key: &'static str, found: u64, least: u64 },
    #[error("q: no Slim Fly has order {found}; use a power of a prime from 3, such as 19, 25 or 32")]
    Order { found: u64 },
    #[error("k: {found} ports cannot be halved; use an even number")]
    Odd { found: u64 },
    #[error("canopy cannot price a torus of {found} dimensions; use 1 to {DIMENSIONS_MAX}")]
    Dimensions { found: usize },
    #[error("{found} {what} are too many; use at most {max}")]
    TooMany { what: &'static str, found: u128, max: u64 },
    #[error("a network needs endpoints; ask for at least 1")]
    Endpoints,
}

impl Network {
    /// The network, if it exists and is not too large.
    ///
    /// # Errors
    /// [`NetworkError`], the first. O(√q) for a Slim Fly, else O(numbers).
    pub fn checked(self) -> Result<Self, NetworkError> {
        let size = |key, found, least| match (least..=SIZE_MAX).contains(&found) {
            true => Ok(()),
            false => Err(NetworkError::Size { key, found, least }),
        };
        match &self {
            Self::Dfc2 { rows, columns, terminals } => {
                for (key, found) in [("rows", rows), ("columns", columns), ("terminals", terminals)] {
                    size(key, *found, 1)?;
                }
            }
            Self::DragonflyRouter { p, a, h } => {
                for (key, found) in [("p", p), ("a", a), ("h", h)] {
                    size(key, *found, 1)?;
                }
            }
            Self::SlimFly { q, terminals } => {
                size("q", *q, 3)?;
                size("terminals", *terminals, 1)?;
                if !is_prime_power(*q) {
                    return Err(NetworkError::Order { found: *q });
                }
            }
            Self::Torus { extents, terminals } => {
                if !(1..=DIMENSIONS_MAX).contains(&extents.len()) {
                    return Err(NetworkError::Dimensions { found: extents.len() });
                }
                extents.iter().try_for_each(|extent| size("extents", *extent, 3))?;
                size("terminals", *terminals, 1)?;
            }
            Self::FatTree { k } => {
                size("k", *k, 2)?;
                if !k.is_multiple_of(2) {
                    return Err(NetworkError::Odd { found: *k });
                }
            }
        }
        for (what, found) in [("switches", self.wide_switches()), ("endpoints", self.wide_endpoints())] {
            if found > u128::from(ENDPOINTS_MAX) {
                return Err(NetworkError::TooMany { what, found, max: ENDPOINTS_MAX });
            }
        }
        Ok(self)
    }

    /// Number of switches; saturating.
    pub(crate) fn wide_switches(&self) -> u128 {
        match self {
            Self::Dfc2 { rows, columns, .. } => product(&[*rows, *columns]),
            Self::DragonflyRouter { a, h, .. } => product(&[*a, *h]).saturating_add(1).saturating_mul((*a).into()),
            Self::SlimFly { q, .. } => product(&[2, *q, *q]),
            Self::Torus { extents, .. } => product(extents),
            Self::FatTree { k } => product(&[5, *k, *k]) / 4,
        }
    }

    /// Number of endpoints; saturating.
    pub(crate) fn wide_endpoints(&self) -> u128 {
        let terminals = match self {
            Self::FatTree { k } => return product(&[*k, *k, *k]) / 4,
            Self::DragonflyRouter { p, .. } => *p,
            Self::Dfc2 { terminals, .. } | Self::SlimFly { terminals, .. } | Self::Torus { terminals, .. } => {
                *terminals
            }
        };
        self.wide_switches().saturating_mul(terminals.into())
    }

    /// Links that cross every halving of the switches, over those of half the endpoints, as a fraction in lowest terms; none
    /// where no formula says it.
    ///
    /// * **Source.** Pham 2026, equation (2.13), for even sides: `min(m₁, m₂)/(2T)`; a fat tree has 1.
    #[must_use]
    pub fn bisection(&self) -> Option<(u64, u64)> {
        match self {
            Self::Dfc2 { rows, columns, terminals } if rows.is_multiple_of(2) && columns.is_multiple_of(2) => {
                let (top, bottom) = (*rows.min(columns), terminals.checked_mul(2)?);
                let common = num_integer::gcd(top, bottom);
                Some((top / common, bottom / common))
            }
            Self::FatTree { .. } => Some((1, 1)),
            _ => None,
        }
    }
}

/// The degree of a Slim Fly without its endpoints, (3q − δ)/2 with q = 4w + δ.
///
/// * **Source.** Besta and Hoefler 2014, section II-B.
pub(crate) const fn slim_fly_degree(q: u64) -> u64 {
    match q % 4 {
        3 => (3 * q).div_ceil(2),
        _ => 3 * q / 2,
    }
}

/// The expression that names it, complete.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dfc2 { rows, columns, terminals } => write!(f, "dfc2:{rows}x{columns},terminals={terminals}"),
            Self::DragonflyRouter { p, a, h } => write!(f, "dragonfly-router:p={p},a={a},h={h}"),
            Self::SlimFly { q, terminals } => write!(f, "slim-fly:q={q},terminals={terminals}"),
            Self::Torus { extents, terminals } => {
                let extents: Vec<String> = extents.iter().map(u64::to_string).collect();
                write!(f, "torus:{},terminals={terminals}", extents.join("x"))
            }
            Self::FatTree { k } => write!(f, "fat-tree:k={k}"),
        }
    }
}

fn product(factors: &[u64]) -> u128 {
    factors.iter().fold(1, |product: u128, factor| product.saturating_mul((*factor).into()))
}

/// Whether a number is a power of one prime.
pub(crate) fn is_prime_power(number: u64) -> bool {
    let divisors = (2..).take_while(|divisor| divisor * divisor <= number);
    let least = divisors.into_iter().find(|divisor| number.is_multiple_of(*divisor)).unwrap_or(number);
    let mut left = number;
    while least > 1 && left.is_multiple_of(least) {
        left /= least;
    }
    number > 1 && left == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slim_flies_have_orders_that_are_powers_of_primes() {
        let orders: Vec<u64> = (0..34).filter(|&q| is_prime_power(q)).collect();
        assert_eq!(orders, [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32]);
        // The Hoffman–Singleton graph, and the network of figure 1 of its authors.
        assert_eq!([4, 5, 19].map(slim_fly_degree), [6, 7, 29]);
        assert_eq!(
            Network::SlimFly { q: 2, terminals: 1 }.checked(),
            Err(NetworkError::Size { key: "q", found: 2, least: 3 })
        );
        assert_eq!(Network::SlimFly { q: 6, terminals: 1 }.checked(), Err(NetworkError::Order { found: 6 }));
    }

    #[test]
    fn sizes_are_refused_before_anything_is_counted() {
        let torus = |extents: &[u64]| Network::Torus { extents: extents.to_vec(), terminals: 1 }.checked();
        assert_eq!(torus(&[]), Err(NetworkError::Dimensions { found: 0 }));
        assert_eq!(torus(&[3; 17]), Err(NetworkError::Dimensions { found: 17 }));
        assert_eq!(torus(&[4, 2]), Err(NetworkError::Size { key: "extents", found: 2, least: 3 }));
        assert!(matches!(torus(&[SIZE_MAX; 16]), Err(NetworkError::TooMany { what: "switches", .. })));
        let dfc2 = Network::Dfc2 { rows: 1000, columns: 1000, terminals: 1001 }.checked();
        assert_eq!(dfc2, Err(NetworkError::TooMany { what: "endpoints", found: 1_001_000_000, max: ENDPOINTS_MAX }));
        assert_eq!(Network::FatTree { k: 7 }.checked(), Err(NetworkError::Odd { found: 7 }));
        let huge = Network::DragonflyRouter { p: 1, a: u64::MAX, h: 1 }.checked().unwrap_err().to_string();
        assert_eq!(huge, "a: 18446744073709551615 is out of range; use 1 to 1000000");
    }

    #[test]
    fn bisection_is_told_where_a_formula_says_it() {
        let dfc2 = |side, terminals| Network::Dfc2 { rows: side, columns: side, terminals }.bisection();
        assert_eq!(
            [dfc2(32, 64), dfc2(32, 32), dfc2(32, 16), dfc2(31, 31)],
            [Some((1, 4)), Some((1, 2)), Some((1, 1)), None]
        );
    }
}
