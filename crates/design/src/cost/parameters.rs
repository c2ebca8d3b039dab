//! Prices and lengths, as a data file that a user can replace.

use serde::Deserialize;

/// The default parameters, as the text of their file.
pub const STANDARD_PARAMETERS: &str = include_str!("parameters.toml");

/// Greatest price in a file: ten thousand million of the currency.
const CENTS_MAX: u64 = 1_000_000_000_000;
/// Greatest length in a file: ten kilometres.
const LENGTH_CM_MAX: u64 = 1_000_000;
/// Longest name of a currency, in characters.
const CURRENCY_CHARS_MAX: usize = 16;
/// The one version of the file there is.
const FORMAT: u64 = 1;

/// Prices of cables and switches, and distances of racks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    format: u64,
    /// Currency of amounts, such as `USD`.
    pub currency: String,
    /// Copper cables.
    pub electrical: CablePrice,
    /// Fibre, with its transceivers.
    pub optical: CablePrice,
    /// Switches.
    pub switch: SwitchPrice,
    /// The floor.
    pub layout: Layout,
}

/// Price of a cable by its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CablePrice {
    /// Of any length, in hundredths of the currency.
    pub base_cents: u64,
    /// For each metre beyond that, in hundredths of the currency.
    pub metre_cents: u64,
}

/// Price of a switch by its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchPrice {
    /// Of any number of ports, in hundredths of the currency.
    pub base_cents: u64,
    /// For each port beyond that, in hundredths of the currency.
    pub port_cents: u64,
    /// The ports that are priced.
    pub ports: PortsPaid,
}

/// The ports of a switch that are priced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PortsPaid {
    /// All of them.
    All,
    /// Those that lead to terminals; the published costs of 2dfc networks relate to each other as if these alone were.
    Terminals,
}

/// Where cables lie, in centimetres.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// From a rack to the next one in its row.
    pub rack_width_cm: u64,
    /// From a row to the next.
    pub rack_depth_cm: u64,
    /// A cable that stays within its rack.
    pub inside_rack_cm: u64,
    /// What a cable to another rack has beyond the way between the two.
    pub overhead_cm: u64,
    /// A cable of a folded torus.
    pub folded_cm: u64,
}

/// Errors of a file of parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ParametersError {
    #[error("the file cannot be read: {problem}")]
    Text { problem: String },
    #[error("format: {found} is unknown; write format = 1")]
    Format { found: u64 },
    #[error("currency: write 1 to {CURRENCY_CHARS_MAX} letters, such as \"USD\"")]
    Currency,
    #[error("{field}: {found} is too large; use at most {max}")]
    TooMuch { field: &'static str, found: u64, max: u64 },
    #[error("{field}: a length cannot be 0; write at least 1 centimetre")]
    NoLength { field: &'static str },
    #[error("[{section}]: both prices are 0; give at least one")]
    Free { section: &'static str },
}

impl Parameters {
    /// The parameters of [`STANDARD_PARAMETERS`].
    pub fn standard() -> Self {
        Self::read(STANDARD_PARAMETERS).expect("a test reads the file that is part of the program")
    }

    /// Reads a file of parameters in TOML. Every field is required, and unknown fields are refused.
    ///
    /// # Errors
    /// [`ParametersError`], the first. O(text).
    pub fn read(text: &str) -> Result<Self, ParametersError> {
        let read: Self = toml::from_str(text)
            .map_err(|error| ParametersError::Text { problem: error.to_string().trim_end().replace('\n', "\n  ") })?;
        read.check()?;
        Ok(read)
    }

    fn check(&self) -> Result<(), ParametersError> {
        if self.format != FORMAT {
            return Err(ParametersError::Format { found: self.format });
        }
        let letters = self.currency.chars().count();
        if !(1..=CURRENCY_CHARS_MAX).contains(&letters) || !self.currency.chars().all(char::is_alphabetic) {
            return Err(ParametersError::Currency);
        }
        let Self { electrical, optical, switch, layout, .. } = self;
        for (field, found) in [
            ("electrical.base_cents", electrical.base_cents),
            ("electrical.metre_cents", electrical.metre_cents),
            ("optical.base_cents", optical.base_cents),
            ("optical.metre_cents", optical.metre_cents),
            ("switch.base_cents", switch.base_cents),
            ("switch.port_cents", switch.port_cents),
        ] {
            at_most(field, found, CENTS_MAX)?;
        }
        for (section, base, more) in [
            ("electrical", electrical.base_cents, electrical.metre_cents),
            ("optical", optical.base_cents, optical.metre_cents),
            ("switch", switch.base_cents, switch.port_cents),
        ] {
            if base == 0 && more == 0 {
                return Err(ParametersError::Free { section });
            }
        }
        at_most("layout.overhead_cm", layout.overhead_cm, LENGTH_CM_MAX)?;
        for (field, found) in [
            ("layout.rack_width_cm", layout.rack_width_cm),
            ("layout.rack_depth_cm", layout.rack_depth_cm),
            ("layout.inside_rack_cm", layout.inside_rack_cm),
            ("layout.folded_cm", layout.folded_cm),
        ] {
            at_most(field, found, LENGTH_CM_MAX)?;
            if found == 0 {
                return Err(ParametersError::NoLength { field });
            }
        }
        Ok(())
    }
}

const fn at_most(field: &'static str, found: u64, max: u64) -> Result<(), ParametersError> {
    if found > max { Err(ParametersError::TooMuch { field, found, max }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(from: &str, to: &str) -> String {
        assert!(STANDARD_PARAMETERS.contains(from), "{from}");
        Parameters::read(&STANDARD_PARAMETERS.replacen(from, to, 1)).unwrap_err().to_string()
    }

    #[test]
    fn the_standard_file_is_the_published_model() {
        let parameters = Parameters::standard();
        assert_eq!(parameters.electrical, CablePrice { base_cents: 11_141, metre_cents: 2_276 });
        assert_eq!(parameters.optical, CablePrice { base_cents: 62_468, metre_cents: 676 });
        let switch = SwitchPrice { base_cents: 880_620, port_cents: 41_425, ports: PortsPaid::All };
        assert_eq!(parameters.switch, switch);
    }

    #[test]
    fn refusals_name_the_field_and_what_is_accepted() {
        for (from, to, words) in [
            ("format = 1", "format = 2", "format: 2 is unknown; write format = 1"),
            ("currency = \"USD\"", "currency = \"\"", "currency: write 1 to 16 letters"),
            ("currency = \"USD\"", "currency = \"\\u001b[2J\"", "currency: write 1 to 16 letters"),
            ("base_cents = 11141", "base_cents = 1000000000001", "electrical.base_cents: 1000000000001 is too large"),
            (
                "overhead_cm = 100",
                "overhead_cm = 9000000",
                "layout.overhead_cm: 9000000 is too large; use at most 1000000",
            ),
            ("rack_depth_cm = 100", "rack_depth_cm = 0", "layout.rack_depth_cm: a length cannot be 0"),
            (
                "base_cents = 62468\nmetre_cents = 676",
                "base_cents = 0\nmetre_cents = 0",
                "[optical]: both prices are 0",
            ),
            ("base_cents = 11141", "base_cents = -1", "-1"),
            ("base_cents = 11141", "base_cents = 1.5", "1.5"),
            ("base_cents = 11141", "base_cents = 99999999999999999999", "99999999999999999999"),
            ("base_cents = 11141\n", "", "missing field `base_cents`"),
            ("folded_cm = 200", "folded_cm = 200\nslack_cm = 1", "unknown field `slack_cm`"),
            ("[switch]", "[router]", "unknown field `router`"),
            ("ports = \"all\"", "ports = \"some\"", "unknown variant `some`, expected `all` or `terminals`"),
        ] {
            let found = refused(from, to);
            assert!(found.contains(words), "{to}: {found}");
        }
        assert!(Parameters::read("\u{0}").is_err());
        assert!(Parameters::read("").unwrap_err().to_string().contains("missing field"));
    }
}
