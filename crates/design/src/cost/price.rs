//! Amounts of money, and the total of a bill.

use std::fmt;

use crate::cost::bill::{Bill, Cables, Medium, Part};
use crate::cost::parameters::{Parameters, PortsPaid};

/// An amount in ten-thousandths of the currency: what a whole number of centimetres costs at whole hundredths for each metre.
///
/// `u128`, because the greatest network at the greatest prices has some 10³³ of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(u128);

impl Price {
    /// Wraps an amount in ten-thousandths of the currency.
    pub const fn from_ten_thousandths(amount: u128) -> Self {
        Self(amount)
    }

    /// The amount in ten-thousandths of the currency.
    pub const fn ten_thousandths(self) -> u128 {
        self.0
    }

    /// The amount divided by a number, in whole hundredths, half of one rounded up; `None` for zero.
    pub fn hundredths_for_each(self, number: u64) -> Option<u128> {
        let divisor = u128::from(number).checked_mul(100).filter(|divisor| *divisor > 0)?;
        Some((self.0 + divisor / 2) / divisor)
    }

    /// The amount divided by a number, for people: two decimals.
    pub fn for_each(self, number: u64) -> Option<String> {
        self.hundredths_for_each(number).map(decimal)
    }
}

/// Prints two decimals, half of a hundredth rounded up.
impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal(self.hundredths_for_each(1).unwrap_or_default()))
    }
}

fn decimal(hundredths: u128) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Price of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// All cables.
    pub cables: Price,
    /// All switches.
    pub switches: Price,
    /// Both.
    pub total: Price,
}

impl Parameters {
    /// Price of one cable.
    pub fn cable(&self, medium: Medium, length_cm: u64) -> Price {
        let price = match medium {
            Medium::Electrical => &self.electrical,
            Medium::Optical => &self.optical,
        };
        let base = u128::from(price.base_cents) * 100;
        Price(base + u128::from(price.metre_cents) * u128::from(length_cm))
    }

    /// Price of equal cables together.
    pub fn cables(&self, cables: &Cables) -> Price {
        Price(self.cable(cables.medium, cables.length_cm).0 * cables.count)
    }

    /// Price of one switch of this kind.
    pub fn switch(&self, part: &Part) -> Price {
        let ports = match self.switch.ports {
            PortsPaid::All => part.ports,
            PortsPaid::Terminals => part.terminal_ports,
        };
        Price((u128::from(self.switch.base_cents) + u128::from(self.switch.port_cents) * u128::from(ports)) * 100)
    }

    /// Price of a whole bill: equations (4.12) and (4.13) and the switches, for 2dfc networks. O(lines).
    pub fn cost(&self, bill: &Bill) -> Cost {
        let cables = Price(bill.cables.iter().map(|cables| self.cables(cables).0).sum());
        let switches = bill.switches.iter().map(|part| self.switch(part).0 * u128::from(part.count));
        let switches = Price(switches.sum());
        Cost { cables, switches, total: Price(cables.0 + switches.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_two_decimals_and_are_rounded_once() {
        assert_eq!(Price(0).to_string(), "0.00");
        assert_eq!(Price(1_341_700).to_string(), "134.17");
        assert_eq!(Price(49).to_string(), "0.00");
        assert_eq!(Price(50).to_string(), "0.01");
        assert_eq!(Price(10_000).for_each(3).as_deref(), Some("0.33"));
        assert_eq!(Price(20_000).for_each(3).as_deref(), Some("0.67"));
        assert_eq!(Price(1).for_each(0), None);
    }
}
