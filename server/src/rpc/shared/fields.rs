//! Fields of listed things: what filters compare and orders sort by.

use std::cmp::Ordering;
use std::str::FromStr;

use canopy_schedule::CollectiveKind;
use canopy_topology::Ratio;
use prost_types::Timestamp;

/// A field that things of type `T` have.
#[derive(Debug)]
pub(in crate::rpc) struct Field<T: 'static> {
    /// Its name in filters and orders.
    pub(in crate::rpc) name: &'static str,
    /// What its values are, and which one a thing has.
    pub(in crate::rpc) kind: Kind<T>,
}

/// What the values of a field are, and which one a thing has.
#[derive(Debug)]
pub(in crate::rpc) enum Kind<T: 'static> {
    /// Any text.
    Text(fn(&T) -> String),
    /// An id: a text with an order, so that those which begin alike are a range.
    Id(fn(&T) -> String),
    /// One of these words.
    Word(&'static [&'static str], fn(&T) -> &'static str),
    Number(fn(&T) -> u64),
    /// `num/den`, or a whole number.
    Ratio(fn(&T) -> Ratio),
    /// RFC 3339, such as `2026-01-31T12:00:00Z`; in milliseconds since 1970 UTC.
    Time(fn(&T) -> u64),
    /// `true` or `false`.
    Flag(fn(&T) -> bool),
}

/// The names of all collectives.
pub(in crate::rpc) const COLLECTIVES: &[&str] = &{
    let mut names = [""; CollectiveKind::ALL.len()];
    let mut position = 0;
    while position < names.len() {
        names[position] = CollectiveKind::ALL[position].name();
        position += 1;
    }
    names
};

/// The value of a field. Those of one field are all of one variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::rpc) enum Value {
    Text(String),
    Number(u64),
    Ratio(Ratio),
    /// In milliseconds since 1970 UTC.
    Time(u64),
    Flag(bool),
}

impl<T> Kind<T> {
    /// The value of a thing.
    pub(in crate::rpc) fn of(&self, item: &T) -> Value {
        match self {
            Self::Text(get) | Self::Id(get) => Value::Text(get(item)),
            Self::Word(_, get) => Value::Text(get(item).to_owned()),
            Self::Number(get) => Value::Number(get(item)),
            Self::Ratio(get) => Value::Ratio(get(item)),
            Self::Time(get) => Value::Time(get(item)),
            Self::Flag(get) => Value::Flag(get(item)),
        }
    }

    /// Whether `<` and its like mean something.
    pub(in crate::rpc) const fn is_ordered(&self) -> bool {
        matches!(self, Self::Id(_) | Self::Number(_) | Self::Ratio(_) | Self::Time(_))
    }

    /// Reads a value as people write it. The error says what would be accepted.
    pub(in crate::rpc) fn parse(&self, text: &str) -> Result<Value, String> {
        let refused = |wanted: &str| format!("`{}` is not {wanted}", text.chars().take(80).collect::<String>());
        match self {
            Self::Text(_) | Self::Id(_) => Ok(Value::Text(text.to_owned())),
            Self::Word(words, _) if words.contains(&text) => Ok(Value::Text(text.to_owned())),
            Self::Word(words, _) => Err(refused(&format!("one of {}", words.join(", ")))),
            Self::Number(_) => text.parse().map(Value::Number).map_err(|_| refused("a whole number")),
            Self::Ratio(_) => text.parse().map(Value::Ratio).map_err(|_| refused("a fraction such as 9/10")),
            Self::Time(_) => {
                let time = Timestamp::from_str(text).ok().and_then(unix_ms);
                time.map(Value::Time).ok_or_else(|| refused("a time such as 2026-01-31T12:00:00Z"))
            }
            Self::Flag(_) => text.parse().map(Value::Flag).map_err(|_| refused("true or false")),
        }
    }

    /// Reads what [`Value::encode`] wrote.
    pub(in crate::rpc) fn decode(&self, text: &str) -> Option<Value> {
        match self {
            Self::Time(_) => text.parse().ok().map(Value::Time),
            kind => kind.parse(text).ok(),
        }
    }
}

impl Value {
    /// The value in a page token.
    pub(in crate::rpc) fn encode(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) | Self::Time(number) => number.to_string(),
            Self::Ratio(ratio) => ratio.to_string(),
            Self::Flag(flag) => flag.to_string(),
        }
    }

    /// Which of two values of one field is greater.
    pub(in crate::rpc) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (Self::Number(left), Self::Number(right)) | (Self::Time(left), Self::Time(right)) => left.cmp(right),
            (Self::Ratio(left), Self::Ratio(right)) => left.cmp(right),
            (Self::Flag(left), Self::Flag(right)) => left.cmp(right),
            // Values of different fields are never compared.
            _ => Ordering::Equal,
        }
    }
}

/// Milliseconds since 1970 UTC; none before that.
pub(in crate::rpc) fn unix_ms(time: Timestamp) -> Option<u64> {
    let seconds = u64::try_from(time.seconds).ok()?;
    let millis = u64::try_from(time.nanos).ok()? / 1_000_000;
    seconds.checked_mul(1000)?.checked_add(millis)
}
