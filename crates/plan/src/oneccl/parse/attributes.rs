//! Attributes of an element, taken one by one until none is left.

use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::Rank;

use super::error::{ParseError, ParseFault, shown};
use super::reader::Tag;
use crate::msccl::Buffer;
use crate::oneccl::program::Span;

/// Most ranks of a plan.
pub(crate) const RANKS_MAX: u32 = 65535;

/// How many ranks a plan may be for.
#[derive(Clone, Copy)]
pub(crate) struct RankLimit {
    pub(crate) most: u32,
    /// In words.
    pub(crate) expected: &'static str,
}

impl RankLimit {
    /// Of a plan that has a part for each rank.
    pub(crate) const LISTED: Self = Self { most: RANKS_MAX, expected: "2 to 65535" };
}

/// Most characters of a `<meta>` value: a rank map of 65535 ranks has about a million.
pub(in crate::oneccl) const VALUE_MAX: usize = 1 << 20;

/// Most characters of a name that may be any text.
const NAME_MAX: usize = 1024;

/// Attributes nobody has asked for yet.
pub(crate) struct Attributes<'t, 'a> {
    element: &'static str,
    tag: &'t Tag<'a>,
    taken: Vec<bool>,
}

impl<'t, 'a> Attributes<'t, 'a> {
    pub(crate) fn new(element: &'static str, tag: &'t Tag<'a>) -> Self {
        Self { element, tag, taken: vec![false; tag.attributes.len()] }
    }

    fn take(&mut self, name: &str) -> Option<&'t str> {
        let position = self.tag.attributes.iter().position(|(key, _)| key == name)?;
        self.taken[position] = true;
        Some(&self.tag.attributes[position].1)
    }

    fn value<T>(
        &self,
        attribute: &'static str,
        value: &str,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ParseError> {
        read(value).ok_or_else(|| {
            let fault = ParseFault::Value { element: self.element, attribute, value: shown(value), expected };
            fault.at(self.tag.position)
        })
    }

    /// The value of an attribute that must be there, as `read` understands it.
    pub(crate) fn word<T>(
        &mut self,
        attribute: &'static str,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ParseError> {
        let fault = ParseFault::Missing { element: self.element, attribute };
        let value = self.take(attribute).ok_or_else(|| fault.at(self.tag.position))?;
        self.value(attribute, value, expected, read)
    }

    /// The same for one that may be left out.
    pub(crate) fn optional<T>(
        &mut self,
        attribute: &'static str,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ParseError> {
        self.take(attribute).map(|value| self.value(attribute, value, expected, read)).transpose()
    }

    pub(crate) fn count(&mut self, attribute: &'static str) -> Result<u32, ParseError> {
        self.word(attribute, "a whole number up to 4294967295", plain)
    }

    pub(crate) fn optional_count(&mut self, attribute: &'static str) -> Result<Option<u32>, ParseError> {
        self.optional(attribute, "a whole number up to 4294967295", plain)
    }

    pub(crate) fn bytes(&mut self, attribute: &'static str) -> Result<u64, ParseError> {
        let fits = |bytes: u64| i64::try_from(bytes).is_ok().then_some(bytes);
        self.word(attribute, "a whole number up to 9223372036854775807", |value| plain(value).and_then(fits))
    }

    /// A name: of a plan, or of a statement about it.
    pub(crate) fn label(&mut self, attribute: &'static str) -> Result<String, ParseError> {
        self.word(attribute, "1 to 63 letters, digits, `_`, `-` and `.`", |value| {
            is_label(value).then(|| value.to_owned())
        })
    }

    /// The name of a thing elsewhere.
    pub(crate) fn text(&mut self, attribute: &'static str) -> Result<String, ParseError> {
        self.line(attribute, NAME_MAX, "at most 1024 characters, none of them a control character")
    }

    /// The value of a statement about a plan.
    pub(crate) fn statement(&mut self, attribute: &'static str) -> Result<String, ParseError> {
        self.line(attribute, VALUE_MAX, "at most 1048576 characters, none of them a control character")
    }

    fn line(
        &mut self,
        attribute: &'static str,
        characters_max: usize,
        expected: &'static str,
    ) -> Result<String, ParseError> {
        self.word(attribute, expected, |value| {
            let fits = value.chars().count() <= characters_max && !value.chars().any(char::is_control);
            fits.then(|| value.to_owned())
        })
    }

    /// What a plan is for, and its number of ranks: `coll`, `root` and `nranks`.
    ///
    /// * `names`: the words for collectives of these kinds, and `rooted` for those of them that have a root.
    pub(crate) fn collective(
        &mut self,
        ranks: RankLimit,
        kinds: &[CollectiveKind],
        names: &'static str,
        rooted: &'static str,
    ) -> Result<(Collective, u32), ParseError> {
        let find = |word: &str| kinds.iter().copied().find(|kind| kind.name().replace('-', "") == word);
        let kind = self.word("coll", names, find)?;
        let root = self.optional_count("root")?;
        let RankLimit { most, expected } = ranks;
        let rank_count =
            self.word("nranks", expected, |value| plain(value).filter(|ranks| (2..=most).contains(ranks)))?;
        if kind.has_root() && root.is_none() {
            return Err(ParseFault::Missing { element: self.element, attribute: "root" }.at(self.tag.position));
        }
        let collective = Collective::new(kind, root.map(Rank::new), rank_count).map_err(|_| {
            let value = shown(root.unwrap_or(0));
            ParseFault::Value { element: self.element, attribute: "root", value, expected: rooted }
                .at(self.tag.position)
        })?;
        Ok((collective, rank_count))
    }

    /// Chunks in a row: their buffer and first chunk by these names, and their number.
    pub(crate) fn span(&mut self, buffer: &'static str, first: &'static str) -> Result<Span, ParseError> {
        Ok(Span {
            buffer: self.word(buffer, "i, o or s", Buffer::read)?,
            first: self.count(first)?,
            count: self.count("cnt")?,
        })
    }

    /// Refuses what nobody asked for.
    pub(crate) fn finish(self) -> Result<(), ParseError> {
        match self.taken.iter().position(|taken| !taken) {
            None => Ok(()),
            Some(position) => {
                let attribute = shown(&self.tag.attributes[position].0);
                Err(ParseFault::UnknownAttribute { element: self.element, attribute }.at(self.tag.position))
            }
        }
    }
}

/// A plain decimal number: no sign, no leading zero, nothing around it.
pub(crate) fn plain<T: std::str::FromStr>(text: &str) -> Option<T> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Whether a text is 1 to 63 letters, digits, `_`, `-` and `.`.
pub(crate) fn is_label(text: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=63).contains(&text.len()) && text.bytes().all(is_known)
}
