//! What a site states of its machines in place of what their families say: rates and other values of keys.
//!
//! An expression is completed in its text, so that what is planned, cached and told states every rate itself.

use std::collections::BTreeMap;

use serde_json::Value;

use super::compose;
use super::families::FAMILIES;
use super::grammar::{self, Expression};
use crate::limits::TopologyLimits;
use crate::shorten::shorten;
use crate::spelling::did_you_mean;
use crate::units::Capacity;

/// Longest file, in bytes.
pub const SITE_BYTES_MAX: usize = 1 << 20;

/// Values of keys by family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteRates {
    families: BTreeMap<&'static str, Vec<(String, String)>>,
}

/// Errors of reading what a site states.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum SiteRatesError {
    #[error("the file has {found} bytes, over the limit of {SITE_BYTES_MAX}")]
    TooLarge { found: usize },
    #[error("expected families with their keys, as in `dgx-h100: {{nic: 45GB/s}}`: {problem}")]
    Shape { problem: String },
    #[error("`{name}` is not a family; {hint}")]
    Family { name: String, hint: String },
    #[error("{family}.{key}: `{found}` is not a rate; write a number and its unit, such as `45GB/s`, or true or false")]
    Value { family: &'static str, key: String, found: String },
    #[error("{family}: {problem}")]
    Refused { family: &'static str, problem: String },
}

impl SiteRates {
    /// Reads YAML or JSON such as `dgx-h100: {nic: 45GB/s, nvls: true}`.
    ///
    /// # Errors
    /// Names that are no family's, values that are no rates, and keys that the family does not take.
    pub fn read(text: &str) -> Result<Self, SiteRatesError> {
        if text.len() > SITE_BYTES_MAX {
            return Err(SiteRatesError::TooLarge { found: text.len() });
        }
        let shape = |problem: String| SiteRatesError::Shape { problem: shorten(&problem) };
        let stated: BTreeMap<String, BTreeMap<String, Value>> =
            serde_saphyr::from_str(text).map_err(|error| shape(error.to_string()))?;
        let mut rates = Self::default();
        for (name, keys) in stated {
            let known = || FAMILIES.iter().map(|family| &family.takes);
            let Some(family) = known().find(|takes| takes.name.eq_ignore_ascii_case(&name)) else {
                let hint = did_you_mean(&name, known().map(|takes| takes.name), "see `canopy network families`");
                return Err(SiteRatesError::Family { name: shorten(&name), hint });
            };
            let read = |(key, value): (String, Value)| match value {
                Value::Bool(flag) => Ok((key, flag.to_string())),
                Value::String(text) if text.parse::<Capacity>().is_ok() => Ok((key, text)),
                other => Err(SiteRatesError::Value { family: family.name, key, found: shorten(&other.to_string()) }),
            };
            let keys = keys.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
            rates.families.insert(family.name, keys);
            // What the family makes of them is said here, and not at every request.
            let example = rates.apply(family.example).unwrap_or_else(|| family.example.to_owned());
            super::generate(&example, &TopologyLimits::STANDARD)
                .map_err(|error| SiteRatesError::Refused { family: family.name, problem: error.to_string() })?;
        }
        Ok(rates)
    }

    /// The expression with the keys that the site states of its family and that it does not state itself; `None` where
    /// there are none, and for what is no expression of a family.
    pub fn apply(&self, expression: &str) -> Option<String> {
        if self.families.is_empty() {
            return None;
        }
        let expression = expression.trim();
        let Expression::Family(call) = grammar::parse(expression).ok()? else { return None };
        let (family, _) = compose::family(&call, super::arguments::Place::Whole).ok()?;
        let keys = self.families.get(family.takes.name)?;
        let is_stated = |key: &str| call.arguments.iter().any(|argument| argument.key == Some(key));
        let mut completed = expression.to_owned();
        for (key, value) in keys.iter().filter(|(key, _)| !is_stated(key)) {
            completed.push(if completed.contains(':') { ',' } else { ':' });
            completed.push_str(&format!("{key}={value}"));
        }
        (completed != expression).then_some(completed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::generate;

    const FILE: &str =
        "# measured\ndgx-h100: {nic: 45GB/s, nv: 440GB/s}\nGB200-NVL72: {nvls: true}\nring: {bw: 10GB/s}\n";

    #[test]
    fn what_a_site_states_completes_expressions() {
        let rates = SiteRates::read(FILE).unwrap();
        for (expression, completed) in [
            ("dgx-h100:boxes=2", Some("dgx-h100:boxes=2,nic=45GB/s,nv=440GB/s")),
            ("dgx-h100", Some("dgx-h100:nic=45GB/s,nv=440GB/s")),
            ("dgx-h100:nic=50GB/s,boxes=4", Some("dgx-h100:nic=50GB/s,boxes=4,nv=440GB/s")),
            ("dgx-h100:nic=50GB/s,nv=1GB/s", None),
            ("ring:8", Some("ring:8,bw=10GB/s")),
            ("dgx-a100:boxes=2", None),
            ("line:2(ring:4)", None),
            ("dgx-h100:wrong=1", None),
            ("", None),
        ] {
            assert_eq!(rates.apply(expression).as_deref(), completed, "{expression}");
        }
        let network = generate(&rates.apply("dgx-h100:boxes=2").unwrap(), &TopologyLimits::STANDARD).unwrap();
        assert!(
            network.links().iter().all(|link| [45, 440].contains(&(link.capacity.bytes_per_sec() / 1_000_000_000)))
        );
        assert_eq!(SiteRates::default().apply("ring:8"), None);
    }

    #[test]
    fn what_no_family_takes_is_refused() {
        for (text, words) in [
            ("dgx-h10: {nic: 1GB/s}", "did you mean `dgx-h100`?"),
            ("dgx-h100: {nik: 1GB/s}", "dgx-h100: "),
            ("dgx-h100: {nic: fast}", "dgx-h100.nic: "),
            ("dgx-h100: {nic: 45}", "dgx-h100.nic: "),
            ("dgx-h100: [nic]", "expected families"),
            ("- a", "expected families"),
        ] {
            let error = SiteRates::read(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert!(SiteRates::read(&" ".repeat(SITE_BYTES_MAX + 1)).is_err());
        assert_eq!(SiteRates::read("{}"), Ok(SiteRates::default()));
    }
}
