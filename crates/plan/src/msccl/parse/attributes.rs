//! Attributes of one element, taken by name, each value checked for its form.

use super::error::{ParseError, ParseFault};
use super::reader::{Attribute, Element};
use crate::msccl::profile::Profile;
use crate::msccl::program::{Buffer, Chunks};

/// Attributes of one element, each to be taken once.
pub(super) struct Attributes<'e, 'a> {
    element: &'e Element<'a>,
    taken: u32,
}

impl<'e, 'a> Attributes<'e, 'a> {
    pub(super) fn new(element: &'e Element<'a>) -> Self {
        Self { element, taken: 0 }
    }

    pub(super) fn optional(&mut self, name: &'static str) -> Option<Attribute<'a>> {
        let position = self.element.attributes.iter().position(|attribute| attribute.name == name)?;
        self.taken |= 1 << position;
        self.element.attributes.get(position).copied()
    }

    pub(super) fn required(&mut self, name: &'static str) -> Result<Attribute<'a>, ParseError> {
        self.optional(name).ok_or_else(|| self.missing(name))
    }

    pub(super) fn missing(&self, attribute: &'static str) -> ParseError {
        ParseFault::Missing { element: self.element.name.to_owned(), attribute }.at(self.element.position)
    }

    fn bad(&self, name: &'static str, found: Attribute<'_>, expected: &'static str) -> ParseError {
        let value = found.value.chars().take(80).collect();
        let element = self.element.name.to_owned();
        ParseFault::BadValue { element, attribute: name, value, expected }.at(found.position)
    }

    /// The `name` of a file; empty where it is absent.
    pub(super) fn name(&mut self, profile: Profile) -> Result<String, ParseError> {
        let Some(found) = self.optional("name") else { return Ok(String::new()) };
        if profile.accepts_name(found.value) {
            Ok(found.value.to_owned())
        } else {
            Err(self.bad("name", found, "1 to 63 letters, digits, `_`, `-` and `.`"))
        }
    }

    pub(super) fn word<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ParseError> {
        let found = self.required(name)?;
        find(found.value).ok_or_else(|| self.bad(name, found, expected))
    }

    pub(super) fn count(&mut self, name: &'static str) -> Result<u32, ParseError> {
        let found = self.required(name)?;
        self.read_count(name, found)
    }

    pub(super) fn optional_count(&mut self, name: &'static str) -> Result<Option<u32>, ParseError> {
        self.optional(name).map(|found| self.read_count(name, found)).transpose()
    }

    fn read_count(&self, name: &'static str, found: Attribute<'_>) -> Result<u32, ParseError> {
        let number = plain_decimal(found.value).filter(|&number| number <= i32::MAX as u64);
        let number = number.and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| self.bad(name, found, "a plain decimal number from 0 to 2147483647"))
    }

    pub(super) fn count_or_none(&mut self, name: &'static str) -> Result<Option<u32>, ParseError> {
        let found = self.required(name)?;
        match found.value {
            "-1" => Ok(None),
            _ => self
                .read_count(name, found)
                .map(Some)
                .map_err(|_| self.bad(name, found, "-1 or a plain decimal number from 0 to 2147483647")),
        }
    }

    pub(super) fn optional_bytes(&mut self, name: &'static str) -> Result<Option<u64>, ParseError> {
        let Some(found) = self.optional(name) else { return Ok(None) };
        let number = plain_decimal(found.value).filter(|&number| i64::try_from(number).is_ok());
        number.map(Some).ok_or_else(|| self.bad(name, found, "a plain decimal number from 0 to 9223372036854775807"))
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Result<bool, ParseError> {
        self.word(name, "0 or 1", read_flag)
    }

    pub(super) fn optional_flag(&mut self, name: &'static str) -> Result<Option<bool>, ParseError> {
        let Some(found) = self.optional(name) else { return Ok(None) };
        read_flag(found.value).map(Some).ok_or_else(|| self.bad(name, found, "0 or 1"))
    }

    pub(super) fn chunks(&mut self, buffer: &'static str, offset: &'static str) -> Result<Chunks, ParseError> {
        Ok(Chunks { buffer: self.word(buffer, "i, o or s", Buffer::read)?, offset: self.count_or_none(offset)? })
    }

    /// Attributes that nobody asked for; an error for one that stands twice.
    pub(super) fn unknown(self) -> Result<Vec<Attribute<'a>>, ParseError> {
        let mut unknown = Vec::new();
        for (position, attribute) in self.element.attributes.iter().enumerate() {
            if self.taken & (1 << position) != 0 {
                continue;
            }
            let name = attribute.name;
            if self.element.attributes.iter().take(position).any(|earlier| earlier.name == name) {
                let (element, attribute_name) = (self.element.name.to_owned(), name.to_owned());
                let fault = ParseFault::Repeated { element, attribute: attribute_name };
                return Err(fault.at(attribute.position));
            }
            unknown.push(*attribute);
        }
        Ok(unknown)
    }
}

fn read_flag(word: &str) -> Option<bool> {
    match word {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Digits without sign or leading zero: a leading zero means octal to the runtimes.
fn plain_decimal(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}
