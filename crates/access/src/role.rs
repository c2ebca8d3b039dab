//! Named sets of methods: the standard roles, and those of a site.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::method::{MethodSet, Standard};
use crate::short::short;

/// A role as a file states it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RoleText {
    /// Roles whose methods it has.
    #[serde(default)]
    includes: Vec<String>,
    /// Methods, such as `canopy.v1.Planner/Plan` or `canopy.v1.Leases/*`.
    #[serde(default)]
    calls: Vec<String>,
}

/// The roles that there are, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles(BTreeMap<String, MethodSet>);

/// Why a role cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RoleError {
    #[error("`{}` is not a role; there are {}", short(name), short(known))]
    Unknown { name: String, known: String },
    #[error("role `{}` has the name of a standard role; choose another name", short(name))]
    Standard { name: String },
    #[error(
        "`calls` of role `{}`: `{}` names no method; write one such as canopy.v1.Planner/Plan, or SERVICE/*",
        short(role),
        short(pattern)
    )]
    NoMethod { role: String, pattern: String },
    #[error("role `{}` includes itself; take one of its `includes` out", short(name))]
    Cycle { name: String },
}

impl Default for Roles {
    fn default() -> Self {
        Self(Standard::ALL.into_iter().map(|role| (role.name().to_owned(), role.methods())).collect())
    }
}

impl Roles {
    /// The standard roles and these.
    pub(crate) fn with(texts: &BTreeMap<String, RoleText>) -> Result<Self, RoleError> {
        let mut roles = Self::default();
        if let Some(name) = texts.keys().find(|name| roles.0.contains_key(*name)) {
            return Err(RoleError::Standard { name: name.clone() });
        }
        // Each round settles the roles whose includes are settled: at most as many rounds as roles.
        let mut open: Vec<_> = texts.iter().collect();
        while !open.is_empty() {
            let before = open.len();
            let mut left = Vec::new();
            for (name, text) in open {
                if let Some(unknown) =
                    text.includes.iter().find(|other| !roles.0.contains_key(*other) && !texts.contains_key(*other))
                {
                    return Err(roles.unknown(unknown));
                }
                match roles.methods_of(name, text)? {
                    Some(methods) => _ = roles.0.insert(name.clone(), methods),
                    None => left.push((name, text)),
                }
            }
            if left.len() == before {
                return Err(RoleError::Cycle { name: left[0].0.clone() });
            }
            open = left;
        }
        Ok(roles)
    }

    /// The methods of a role; none while one that it includes is not known yet.
    fn methods_of(&self, role: &str, text: &RoleText) -> Result<Option<MethodSet>, RoleError> {
        let mut all = MethodSet::default();
        for pattern in &text.calls {
            let methods = MethodSet::named(pattern);
            if methods.is_empty() {
                return Err(RoleError::NoMethod { role: role.to_owned(), pattern: pattern.clone() });
            }
            all = all.and(methods);
        }
        for other in &text.includes {
            let Some(methods) = self.0.get(other) else { return Ok(None) };
            all = all.and(*methods);
        }
        Ok(Some(all))
    }

    /// The methods of all these roles.
    ///
    /// # Errors
    /// The first of them that is unknown.
    pub fn methods<'a>(&self, names: impl IntoIterator<Item = &'a String>) -> Result<MethodSet, RoleError> {
        names.into_iter().try_fold(MethodSet::default(), |all, name| {
            self.0.get(name).map(|methods| all.and(*methods)).ok_or_else(|| self.unknown(name))
        })
    }

    fn unknown(&self, name: &str) -> RoleError {
        let known = self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        RoleError::Unknown { name: name.chars().take(80).collect(), known }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(includes: &[&str], calls: &[&str]) -> RoleText {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        RoleText { includes: owned(includes), calls: owned(calls) }
    }

    fn roles(texts: &[(&str, RoleText)]) -> Result<Roles, RoleError> {
        Roles::with(&texts.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect())
    }

    #[test]
    fn roles_include_others_in_any_order() {
        let roles = roles(&[
            ("a", text(&["z"], &["canopy.v1.Leases/*"])),
            ("z", text(&["viewer"], &["canopy.v1.Planner/PrefetchPlan"])),
        ])
        .unwrap();
        let methods = roles.methods([&"a".to_owned()]).unwrap();
        for path in ["canopy.v1.Leases/AcquireLease", "canopy.v1.Planner/PrefetchPlan", "canopy.v1.Plans/ListPlans"] {
            assert!(methods.has(path), "{path}");
        }
        assert!(!methods.has("canopy.v1.Planner/Plan"));
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (texts, words) in [
            (vec![("admin", text(&[], &[]))], "standard role"),
            (vec![("a", text(&["b"], &[])), ("b", text(&["a"], &[]))], "includes itself"),
            (vec![("a", text(&["a"], &[]))], "includes itself"),
            (vec![("a", text(&["viewr"], &[]))], "`viewr` is not a role; there are admin,"),
            (vec![("a", text(&[], &["canopy.v1.Planner/Pla"]))], "names no method"),
        ] {
            let error = roles(&texts).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
