//! Rates that a person states: `nic=400Gb/s,leaf-spine=800Gb/s,oversub=2`.

use std::str::FromStr;

use canopy_topology::{Capacity, QuantityError, did_you_mean, shorten};

/// Names of the lowest levels of switches, from those that machines are joined to.
const LEVELS: [&str; 3] = ["leaf", "spine", "core"];

/// Most levels of switches that have a name.
pub(super) const LEVELS_MAX: usize = 16;

/// What files do not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Rate of a NIC's port and its cable, in each direction.
    pub nic: Option<Capacity>,
    /// By level from 0, the leaves: rate of one cable from a switch of it to one of the next.
    uplinks: Vec<Option<Capacity>>,
    /// How much more machines can send into a switch than leaves it upwards, as a fraction; 1 if nothing is said.
    oversubscription: Option<(u64, u64)>,
}

/// Errors of reading rates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RatesError {
    #[error("`{item}` has no `=`; write rates as in nic=400Gb/s,leaf-spine=800Gb/s")]
    NoValue { item: String },
    #[error("`{key}` is not a rate; {hint}")]
    Key { key: String, hint: String },
    #[error("`{key}` is given twice; give it once")]
    Twice { key: String },
    #[error("{key}")]
    Quantity {
        key: String,
        #[source]
        source: QuantityError,
    },
    #[error("oversub is `{found}`; write a ratio of at least 1 such as 2 or 3/2")]
    Ratio { found: String },
}

/// What a level is called in keys.
pub(super) fn level_name(level: usize) -> String {
    LEVELS.get(level).map_or_else(|| format!("level{}", level + 1), |name| (*name).to_owned())
}

impl Rates {
    /// Rate of a cable from a switch of a level to one of the next, if it is stated.
    pub(super) fn uplink(&self, level: usize) -> Option<Capacity> {
        self.uplinks.get(level).copied().flatten()
    }

    /// Numerator and denominator of how much more goes into a switch than leaves it upwards.
    pub(super) fn oversubscription(&self) -> (u64, u64) {
        self.oversubscription.unwrap_or((1, 1))
    }
}

impl FromStr for Rates {
    type Err = RatesError;

    fn from_str(text: &str) -> Result<Self, RatesError> {
        let mut rates = Self { uplinks: vec![None; LEVELS_MAX], ..Self::default() };
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (key, value) = item.split_once('=').ok_or_else(|| RatesError::NoValue { item: shorten(item) })?;
            let twice = || RatesError::Twice { key: shorten(key) };
            if key == "oversub" {
                let ratio = ratio(value).ok_or_else(|| RatesError::Ratio { found: shorten(value) })?;
                if rates.oversubscription.replace(ratio).is_some() {
                    return Err(twice());
                }
                continue;
            }
            let place = match key {
                "nic" => &mut rates.nic,
                _ => {
                    let is_key = |level: &usize| key == format!("{}-{}", level_name(*level), level_name(level + 1));
                    let level = (0..LEVELS_MAX)
                        .find(is_key)
                        .ok_or_else(|| RatesError::Key { key: shorten(key), hint: hint(key) })?;
                    &mut rates.uplinks[level]
                }
            };
            let rate = value.parse().map_err(|source| RatesError::Quantity { key: key.to_owned(), source })?;
            if place.replace(rate).is_some() {
                return Err(twice());
            }
        }
        Ok(rates)
    }
}

fn ratio(text: &str) -> Option<(u64, u64)> {
    let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
    let (numerator, denominator) = (numerator.parse().ok()?, denominator.parse().ok()?);
    (denominator > 0 && numerator >= denominator).then_some((numerator, denominator))
}

fn hint(key: &str) -> String {
    const KEYS: [&str; 4] = ["nic", "leaf-spine", "spine-core", "oversub"];
    did_you_mean(key, KEYS, "use nic, leaf-spine, spine-core or oversub")
}
