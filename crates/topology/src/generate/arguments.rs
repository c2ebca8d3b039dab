//! Arguments of a family or an operator: checked against what it takes, then read with their types.

use crate::generate::error::ExpressionError;
use crate::generate::grammar::Argument;
use crate::quantity::QuantityError;
use crate::shorten::shorten;
use crate::spelling::{did_you_mean, same_word};
use crate::units::{Capacity, Latency};

/// What a bare first value is called in messages.
pub(super) const BARE_KEY: &str = "size";
/// The key that even what stands within a composition takes.
pub(super) const LATENCY_KEY: &str = "lat";
/// Keys every family takes.
pub(super) const COMMON_KEYS: &[&str] = &[LATENCY_KEY, "down", "nodes-down", "degrade", "faults", "host", "nicforward"];

/// What a family or an operator takes.
#[derive(Debug)]
pub(super) struct Takes {
    pub(super) name: &'static str,
    /// An expression that works.
    pub(super) example: &'static str,
    /// What its bare first value is, if it takes one.
    pub(super) bare: Option<&'static str>,
    /// Keys it takes besides [`COMMON_KEYS`].
    pub(super) keys: &'static [&'static str],
}

impl Takes {
    /// All keys it takes.
    fn all_keys(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().chain(COMMON_KEYS).copied()
    }
}

/// Keys by the words that people use for them, for families that have them.
const MEANT: [(&str, &str); 16] = [
    ("bandwidth", "bw"),
    ("degree", "d"),
    ("gbps", "bw"),
    ("hosts", "boxes"),
    ("latency", "lat"),
    ("machines", "boxes"),
    ("nodes", "boxes"),
    ("nodes", "racks"),
    ("nodes", "hosts"),
    ("nodes", "n"),
    ("nvlink", "nv"),
    ("ports", "d"),
    ("ranks", "n"),
    ("servers", "boxes"),
    ("size", "n"),
    ("speed", "bw"),
];

/// Which key was probably meant by one that the family does not have.
fn suggestion(takes: &Takes, key: &str) -> String {
    let meant = MEANT.iter().find(|(typed, meant)| same_word(typed, key) && takes.all_keys().any(|one| one == *meant));
    match meant {
        Some((_, meant)) => format!("did you mean `{meant}`?"),
        None => {
            let keys = takes.all_keys().collect::<Vec<_>>().join(", ");
            did_you_mean(key, takes.all_keys(), &format!("use {keys}"))
        }
    }
}

/// Where a family or an operator stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the whole expression.
    Whole,
    /// It stands within a composition: what is done to the finished network is said there.
    Within,
}

/// Arguments of one family or operator, each key known and given once.
pub(super) struct Arguments<'a> {
    takes: &'static Takes,
    /// Where the name stands, in characters from 1.
    position: usize,
    given: Vec<Argument<'a>>,
}

impl<'a> Arguments<'a> {
    /// Refuses unknown and repeated keys, a bare value that is of no use, and keys that do not belong in this place.
    pub(super) fn new(
        takes: &'static Takes,
        position: usize,
        given: Vec<Argument<'a>>,
        place: Place,
    ) -> Result<Self, ExpressionError> {
        let family = takes.name;
        for (count, &Argument { key, value, position }) in given.iter().enumerate() {
            let Some(key) = key else {
                if takes.bare.is_some() {
                    continue;
                }
                let example = takes.example;
                return Err(ExpressionError::BareValue { family, value: shorten(value), position, example });
            };
            if !takes.keys.contains(&key) && !COMMON_KEYS.contains(&key) {
                let suggestion = suggestion(takes, key);
                return Err(ExpressionError::UnknownKey { family, key: shorten(key), position, suggestion });
            }
            if place == Place::Within && !takes.keys.contains(&key) && key != LATENCY_KEY {
                return Err(ExpressionError::KeyWithin { key: key.to_owned(), position });
            }
            if given[..count].iter().any(|earlier| earlier.key == Some(key)) {
                return Err(ExpressionError::DuplicateKey { key: key.to_owned(), position });
            }
        }
        Ok(Self { takes, position, given })
    }

    /// The argument of a key, or the bare value for [`BARE_KEY`].
    pub(super) fn find(&self, key: &str) -> Option<&Argument<'a>> {
        let wanted = (key != BARE_KEY).then_some(key);
        self.given.iter().find(|argument| argument.key == wanted)
    }

    /// The bare value, which the family needs.
    pub(super) fn bare(&self) -> Result<&Argument<'a>, ExpressionError> {
        self.find(BARE_KEY).ok_or_else(|| self.missing(self.takes.bare.unwrap_or("a value").to_owned()))
    }

    /// Where the value of a key stands, or the name where it is not given.
    pub(super) fn position_of(&self, key: &str) -> usize {
        self.find(key).map_or(self.position, |argument| argument.position)
    }

    fn missing(&self, what: String) -> ExpressionError {
        ExpressionError::Missing { family: self.takes.name, what, example: self.takes.example }
    }

    /// That the value of a key is not what is expected, or that the key is missing.
    pub(super) fn refused(&self, key: &str, expected: &'static str) -> ExpressionError {
        self.find(key).map_or_else(|| self.missing(format!("`{key}`")), |argument| value_error(argument, expected))
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

    /// The same as a number of 64 bits.
    pub(super) fn number(&self, key: &'static str, default: Option<usize>) -> Result<u64, ExpressionError> {
        self.count(key, default).map(wide)
    }

    /// The bare value as a number ≥ 1.
    pub(super) fn bare_number(&self) -> Result<u64, ExpressionError> {
        let argument = self.bare()?;
        count(argument, argument.value).map(wide)
    }

    /// The bare value `4x4x4` as numbers ≥ 1.
    pub(super) fn extents(&self) -> Result<Vec<u64>, ExpressionError> {
        let argument = self.bare()?;
        argument.value.split('x').map(|extent| count(argument, extent).map(wide)).collect()
    }

    /// The argument of a key, if its value is `true`.
    pub(super) fn flag(&self, key: &str) -> Result<Option<&Argument<'a>>, ExpressionError> {
        let Some(argument) = self.find(key) else { return Ok(None) };
        match argument.value {
            "true" => Ok(Some(argument)),
            "false" => Ok(None),
            _ => Err(value_error(argument, "`true` or `false`")),
        }
    }

    /// The latency of every link, if it is given.
    pub(super) fn latency(&self) -> Result<Option<Latency>, ExpressionError> {
        let Some(argument) = self.find(LATENCY_KEY) else { return Ok(None) };
        argument.value.parse().map(Some).map_err(|problem| quantity_error(argument, problem))
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

/// No machine counts beyond 64 bits.
fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
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
