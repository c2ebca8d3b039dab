//! Lists whose items are handed on as the text goes by, and values that are a number or a list.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, SeqAccess, Unexpected, Visitor};

/// Reads a list, which the error for anything else calls `expected`, and hands each item on. What `add` objects to is
/// an error.
pub(super) fn each<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    expected: &'static str,
    add: impl FnMut(T) -> Result<(), String>,
) -> Result<(), D::Error> {
    deserializer.deserialize_seq(Each { expected, add, item: PhantomData })
}

struct Each<T, F> {
    expected: &'static str,
    add: F,
    item: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>, F: FnMut(T) -> Result<(), String>> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element()? {
            (self.add)(item).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// Reads a list whole.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let mut list = Vec::new();
    each(deserializer, "a list", |item| {
        list.push(item);
        Ok(())
    })?;
    Ok(list)
}

/// Refuses what follows the last part of an entry, which then has at least `length` parts.
pub(super) fn end<'de, D: Deserializer<'de>>(
    deserializer: D,
    length: usize,
    expected: &'static str,
) -> Result<(), D::Error> {
    IgnoredAny::deserialize(deserializer)?;
    Err(D::Error::invalid_length(length, &expected))
}

/// A number, or a list of items.
pub(super) enum OneOrMany<N, T = N> {
    One(N),
    Many(Vec<T>),
}

impl<'de, N: TryFrom<u64>, T: Deserialize<'de>> OneOrMany<N, T> {
    /// Reads one item or a list with at least this many.
    pub(super) fn read<D: Deserializer<'de>>(
        deserializer: D,
        expected: &'static str,
        length_min: usize,
    ) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrManyVisitor { expected, length_min, value: PhantomData })
    }
}

struct OneOrManyVisitor<N, T> {
    expected: &'static str,
    length_min: usize,
    value: PhantomData<OneOrMany<N, T>>,
}

impl<'de, N: TryFrom<u64>, T: Deserialize<'de>> Visitor<'de> for OneOrManyVisitor<N, T> {
    type Value = OneOrMany<N, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        let one = N::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))?;
        Ok(OneOrMany::One(one))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut many = Vec::new();
        while let Some(item) = items.next_element()? {
            many.push(item);
        }
        if many.len() < self.length_min {
            return Err(A::Error::invalid_length(many.len(), &self));
        }
        Ok(OneOrMany::Many(many))
    }
}
