//! YAML text to values, within budgets.

use std::fmt;
use std::marker::PhantomData;

use canopy_topology::{shorten_to, yaml_in_words};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};

use crate::error::FileError;
use crate::kind::FileKind;
use crate::source::Source;

/// Deepest nesting of a document.
const DEPTH_MAX: usize = 24;
/// Most characters of what the parser says; it may repeat the document.
const PROBLEM_MAX: usize = 400;
/// Values for each node and each link of the limits: real files have fewer than ten.
const VALUES_PER_ITEM: usize = 16;

/// Reads all documents of a text. O(bytes); aliases that repeat much are refused.
pub(crate) fn documents<T: DeserializeOwned>(kind: FileKind, source: Source<'_>) -> Result<Vec<T>, FileError> {
    let limits = source.limits;
    let values_max = limits.nodes_max.saturating_add(limits.links_max).saturating_mul(VALUES_PER_ITEM);
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: values_max,
            max_events: values_max.saturating_mul(2),
            max_depth: DEPTH_MAX,
            flow_nesting_limit: DEPTH_MAX,
            max_total_scalar_bytes: limits.bytes_max,
        },
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options(source.text, options).map_err(|error| {
        let error = error.without_snippet();
        let line = error.location().and_then(|location| usize::try_from(location.line()).ok());
        let problem = shorten_to(&yaml_in_words(error), PROBLEM_MAX);
        let is_over_limit = matches!(error, serde_saphyr::Error::Budget { .. });
        FileError { line, is_over_limit, ..FileError::whole(kind, problem) }
    })
}

/// A mapping in the order of the text.
pub(crate) struct Pairs<V>(pub(crate) Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for InOrder<V> {
            type Value = Pairs<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping by name")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<V>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(InOrder(PhantomData))
    }
}
