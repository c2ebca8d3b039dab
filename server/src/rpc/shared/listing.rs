//! Filters, orders and pages of lists.
//!
//! A filter is a condition on fields. An order is fields joined by commas; ties are broken by the id, so that
//! every list has one order, and a page goes on exactly behind the last thing of the one before, whatever came or
//! went meanwhile.

mod filter;

use std::cmp::Ordering;

use prost::Message as _;

use self::filter::Filter;
use crate::failure::CallFailure;
use crate::rpc::shared::fields::{Field, Value};

/// Things on a page that asks for no number.
const PAGE_SIZE_DEFAULT: u32 = 50;
/// Most things on a page.
const PAGE_SIZE_MAX: u32 = 1000;
/// Most characters of a filter, an order or a token.
const TEXT_BYTES_MAX: usize = 8192;

/// What a caller asks of a list.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::rpc) struct ListRequest<'a> {
    pub(in crate::rpc) page_size: u32,
    pub(in crate::rpc) page_token: &'a str,
    pub(in crate::rpc) filter: &'a str,
    pub(in crate::rpc) order_by: &'a str,
}

/// A list on its way: takes all things in any order, keeps those of one page.
#[derive(Debug)]
pub(in crate::rpc) struct Listing<T: 'static> {
    filter: Filter<T>,
    order: Vec<(&'static Field<T>, Direction)>,
    after: Option<Place>,
    page_size: usize,
    /// Of filter and order: a token belongs to one pair of them.
    digest: [u8; 16],
    found: Vec<(Place, T)>,
    total: u64,
}

/// A page.
#[derive(Debug, PartialEq)]
pub(in crate::rpc) struct Page<T> {
    pub(in crate::rpc) items: Vec<T>,
    /// Empty after the last one.
    pub(in crate::rpc) next_page_token: String,
    /// Things on all pages.
    pub(in crate::rpc) total: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Rising,
    Falling,
}

/// Where a thing stands in the order.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    values: Vec<Value>,
    id: Vec<u8>,
}

/// A page token before it is written as hexadecimal digits.
#[derive(Clone, PartialEq, prost::Message)]
struct Token {
    #[prost(bytes = "vec", tag = "1")]
    digest: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    id: Vec<u8>,
    #[prost(string, repeated, tag = "3")]
    values: Vec<String>,
}

impl<T> Listing<T> {
    /// Reads a request about things with these fields.
    pub(in crate::rpc) fn new(fields: &'static [Field<T>], request: &ListRequest<'_>) -> Result<Self, CallFailure> {
        let page_size = match request.page_size {
            0 => PAGE_SIZE_DEFAULT,
            found if found > PAGE_SIZE_MAX => return Err(CallFailure::PageSize { found, limit: PAGE_SIZE_MAX }),
            size => size,
        };
        let filter = Filter::parse(fields, request.filter)?;
        let order = parse_order(fields, request.order_by)?;
        let mut hasher = blake3::Hasher::new_derive_key("canopy page token 1");
        for text in [request.filter, request.order_by] {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        let mut digest = [0; 16];
        hasher.finalize_xof().fill(&mut digest);
        let after = match request.page_token {
            "" => None,
            token => Some(read_token(token, &digest, &order).ok_or(CallFailure::PageToken)?),
        };
        let page_size = page_size as usize;
        Ok(Self { filter, order, after, page_size, digest, found: Vec::new(), total: 0 })
    }

    /// Whether the filter wants this thing.
    pub(in crate::rpc) fn accepts(&self, item: &T) -> bool {
        self.filter.accepts(item)
    }

    /// Whether everything is listed in the order of ids.
    pub(in crate::rpc) fn is_plain(&self) -> bool {
        self.filter.is_empty() && self.order.is_empty()
    }

    /// The id behind which the page begins, in a plain list.
    pub(in crate::rpc) fn after_id(&self) -> Option<&[u8]> {
        self.after.as_ref().map(|place| place.id.as_slice())
    }

    /// Things that must be shown to a plain list to fill its page and know whether there is another.
    pub(in crate::rpc) const fn needed(&self) -> usize {
        self.page_size + 1
    }

    /// Shows one thing to the list. `id` is unique, and its bytes sort as the things do.
    pub(in crate::rpc) fn show(&mut self, item: T, id: Vec<u8>) {
        if !self.accepts(&item) {
            return;
        }
        self.total += 1;
        let place = Place { values: self.order.iter().map(|(field, _)| field.kind.of(&item)).collect(), id };
        if self.after.as_ref().is_some_and(|after| compare(&self.order, &place, after) != Ordering::Greater) {
            return;
        }
        self.found.push((place, item));
        // Bounded memory for long lists, at a cost that stays a few comparisons for each thing.
        if self.found.len() >= 4 * self.needed() {
            self.cut();
        }
    }

    /// The page.
    pub(in crate::rpc) fn finish(mut self) -> Page<T> {
        self.cut();
        let more = self.found.len() > self.page_size;
        self.found.truncate(self.page_size);
        let next_page_token = match self.found.last() {
            Some((place, _)) if more => write_token(place, &self.digest),
            _ => String::new(),
        };
        Page { items: self.found.into_iter().map(|(_, item)| item).collect(), next_page_token, total: self.total }
    }

    fn cut(&mut self) {
        let order = &self.order;
        self.found.sort_by(|(left, _), (right, _)| compare(order, left, right));
        self.found.truncate(self.page_size + 1);
    }
}

fn compare<T>(order: &[(&'static Field<T>, Direction)], left: &Place, right: &Place) -> Ordering {
    let by_values =
        order.iter().zip(left.values.iter().zip(&right.values)).map(
            |((_, direction), (left, right))| match direction {
                Direction::Rising => left.compare(right),
                Direction::Falling => right.compare(left),
            },
        );
    by_values.chain([left.id.cmp(&right.id)]).find(|&found| found != Ordering::Equal).unwrap_or(Ordering::Equal)
}

fn parse_order<T>(fields: &'static [Field<T>], text: &str) -> Result<Vec<(&'static Field<T>, Direction)>, CallFailure> {
    let refused = |problem: String| CallFailure::OrderBy { problem };
    if text.len() > TEXT_BYTES_MAX {
        return Err(refused(format!("it is longer than {TEXT_BYTES_MAX} bytes")));
    }
    let mut order: Vec<(&'static Field<T>, Direction)> = Vec::new();
    if text.trim().is_empty() {
        return Ok(order);
    }
    for part in text.split(',') {
        let mut words = part.split_whitespace();
        let name = words.next().unwrap_or_default();
        let field = filter::field(fields, name).map_err(refused)?;
        let direction = match (words.next(), words.next()) {
            (None | Some("asc"), None) => Direction::Rising,
            (Some("desc"), None) => Direction::Falling,
            _ => return Err(refused(format!("expected asc, desc, a comma or the end after `{name}`"))),
        };
        if order.iter().any(|(earlier, _)| earlier.name == name) {
            return Err(refused(format!("`{name}` occurs twice")));
        }
        order.push((field, direction));
    }
    Ok(order)
}

fn write_token(place: &Place, digest: &[u8]) -> String {
    let values = place.values.iter().map(Value::encode).collect();
    let token = Token { digest: digest.to_vec(), id: place.id.clone(), values };
    token.encode_to_vec().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_token<T>(text: &str, digest: &[u8], order: &[(&'static Field<T>, Direction)]) -> Option<Place> {
    if text.len() > TEXT_BYTES_MAX || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    let bytes: Option<Vec<u8>> = digits.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect();
    let token = Token::decode(bytes?.as_slice()).ok()?;
    if token.digest != digest || token.values.len() != order.len() {
        return None;
    }
    let values = order.iter().zip(&token.values).map(|((field, _), text)| field.kind.decode(text));
    Some(Place { values: values.collect::<Option<_>>()?, id: token.id })
}

#[cfg(test)]
mod tests;
