//! Arguments of a family: checked against what it takes, then read with their types.

use crate::generate::error::ExpressionError;
use crate::generate::families::{BARE_KEY, COMMON_KEYS, Family, PLANNED_KEYS};
use crate::generate::grammar::Argument;
use crate::quantity::QuantityError;
use crate::shorten::shorten;
use crate::units::Capacity;

/// Arguments of one family, each key known and given once.
pub(super) struct Arguments<'a> {
    family: &'static Family,
    given: Vec<Argument<'a>>,
}

impl<'a> Arguments<'a> {
    /// Refuses unknown and repeated keys and a bare value the family has no use for.
    pub(super) fn new(family: &'static Family, given: Vec<Argument<'a>>) -> Result<Self, ExpressionError> {
        for (count, &Argument { key, value, position }) in given.iter().enumerate() {
            let Some(key) = key else {
                if family.bare.is_some() {
                    continue;
                }
                let (family, example) = (family.name, family.example);
                return Err(ExpressionError::BareValue { family, value: shorten(value), position, example });
            };
            if PLANNED_KEYS.contains(&key) {
                let available = family.keys_shown();
                return Err(ExpressionError::NotAvailable { what: "key", name: key.to_owned(), position, available });
            }
            if !family.keys.contains(&key) && !COMMON_KEYS.contains(&key) {
                let keys = family.keys_shown();
                return Err(ExpressionError::UnknownKey { family: family.name, key: shorten(key), position, keys });
            }
            if given[..count].iter().any(|earlier| earlier.key == Some(key)) {
                return Err(ExpressionError::DuplicateKey { key: key.to_owned(), position });
            }
        }
        Ok(Self { family, given })
    }

    /// The argument of a key, or the bare value for [`BARE_KEY`].
    pub(super) fn find(&self, key: &str) -> Option<&Argument<'a>> {
        let wanted = (key != BARE_KEY).then_some(key);
        self.given.iter().find(|argument| argument.key == wanted)
    }

    /// The bare value, which the family needs.
    pub(super) fn bare(&self) -> Result<&Argument<'a>, ExpressionError> {
        self.find(BARE_KEY).ok_or_else(|| self.missing(self.family.bare.unwrap_or("a value").to_owned()))
    }

    fn missing(&self, what: String) -> ExpressionError {
        ExpressionError::Missing { family: self.family.name, what, example: self.family.example }
    }

    /// A number ≥ 1 that the family needs, or its default. Numbers beyond the machine's saturate: as sizes they are
    /// over any limit.
    pub(super) fn count(&self, key: &'static str, default: Option<usize>) -> Result<usize, ExpressionError> {
        match (self.find(key), default) {
            (Some(argument), _) => count(argument, argument.value),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(self.missing(format!("`{key}`"))),
        }
    }

    /// The seed of what is drawn at random; 1 where none is given.
    pub(super) fn seed(&self) -> Result<u64, ExpressionError> {
        let Some(argument) = self.find("seed") else { return Ok(1) };
        argument.value.parse().map_err(|_| value_error(argument, "a whole number below 2^64"))
    }

    /// A rate, or its default in bytes per second.
    pub(super) fn rate(&self, key: &str, default: u64) -> Result<Capacity, ExpressionError> {
        let fallback = Capacity::from_bytes_per_sec(default).expect("defaults are positive");
        let Some(argument) = self.find(key) else { return Ok(fallback) };
        argument.value.parse().map_err(|problem| quantity_error(argument, problem))
    }

    /// A rate that may be zero, which is also its default, for something that is then left out.
    pub(super) fn optional_rate(&self, key: &str) -> Result<Option<Capacity>, ExpressionError> {
        let Some(argument) = self.find(key) else { return Ok(None) };
        match argument.value.parse() {
            Ok(rate) => Ok(Some(rate)),
            Err(QuantityError::Zero { .. }) => Ok(None),
            Err(problem) => Err(quantity_error(argument, problem)),
        }
    }
}

/// Puts the key and position in front of what is wrong with a quantity.
pub(super) fn quantity_error(argument: &Argument<'_>, problem: QuantityError) -> ExpressionError {
    let key = argument.key.unwrap_or(BARE_KEY).to_owned();
    ExpressionError::Quantity { key, position: argument.position, problem }
}

/// Says that the value of an argument is not usable.
pub(super) fn value_error(argument: &Argument<'_>, expected: &'static str) -> ExpressionError {
    let key = argument.key.unwrap_or(BARE_KEY).to_owned();
    let value = shorten(argument.value);
    ExpressionError::Value { key, position: argument.position, value, expected }
}

/// A number ≥ 1, saturating, that is the argument's value or part of it.
pub(super) fn count(argument: &Argument<'_>, text: &str) -> Result<usize, ExpressionError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().unwrap_or(usize::MAX));
    number.filter(|number| *number > 0).ok_or_else(|| value_error(argument, "whole numbers from 1"))
}
