//! Tenants: the owners of requests, and of plans that are not shared.
//!
//! A call names its tenant in its metadata. Where callers are told apart, `rpc/layers/guard.rs` has set that header to a tenant
//! that the caller may act for, or has taken it out.

use std::fmt;
use std::str::FromStr;

use canopy_planner::{NotATenant, TenantName};
use canopy_wire::{RequestError, TENANT_HEADER as HEADER};
use serde::{Deserialize, Serialize};
use tonic::metadata::MetadataMap;

use crate::failure::PlanFailure;

/// Marks a call that its caller may make, where callers are told apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted;

/// Tenants whose plans are not shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum IsolatedTenant {
    /// Every named tenant, written `*`.
    Every,
    /// The one of this name.
    Named(TenantName),
}

impl FromStr for IsolatedTenant {
    type Err = NotATenant;

    fn from_str(text: &str) -> Result<Self, NotATenant> {
        if text == "*" { Ok(Self::Every) } else { text.parse().map(Self::Named) }
    }
}

impl TryFrom<String> for IsolatedTenant {
    type Error = NotATenant;

    fn try_from(text: String) -> Result<Self, NotATenant> {
        text.parse()
    }
}

impl fmt::Display for IsolatedTenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every => f.write_str("*"),
            Self::Named(name) => f.write_str(name.as_str()),
        }
    }
}

impl From<IsolatedTenant> for String {
    fn from(tenant: IsolatedTenant) -> Self {
        tenant.to_string()
    }
}

/// The viewer of plans and jobs: a tenant, or a caller without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Viewer(Option<TenantName>);

impl Viewer {
    /// The caller of a call with these headers.
    pub(crate) fn of(headers: &MetadataMap) -> Result<Self, PlanFailure> {
        let Some(value) = headers.get(HEADER) else { return Ok(Self(None)) };
        let text = String::from_utf8_lossy(value.as_bytes());
        text.parse().map(|name| Self(Some(name))).map_err(|error| PlanFailure::Request(RequestError::Tenant(error)))
    }

    /// Whether this caller sees what belongs to `owner`; everything without an owner (an empty name) is visible to all.
    pub(crate) fn sees(&self, owner: &str) -> bool {
        owner.is_empty() || self.0.as_ref().is_some_and(|name| name.as_str() == owner)
    }

    /// Whether this caller may change what `owner` has made. Without an owner, as in old records, every caller may.
    pub(crate) fn owns(&self, owner: Option<&str>) -> bool {
        owner.is_none_or(|owner| owner == self.name())
    }

    /// The tenant; empty for none.
    pub(crate) fn name(&self) -> &str {
        self.0.as_ref().map_or("", TenantName::as_str)
    }

    /// The owner of this caller's plans; `None` if they are shared.
    pub(crate) fn owner(&self, isolated: &[IsolatedTenant]) -> Option<TenantName> {
        let name = self.0.as_ref()?;
        let is_meant = |tenant: &IsolatedTenant| match tenant {
            IsolatedTenant::Every => true,
            IsolatedTenant::Named(other) => other == name,
        };
        isolated.iter().any(is_meant).then(|| name.clone())
    }

    /// The name of a method as the receipts of its calls know it: those of one tenant answer no other.
    pub(crate) fn method(&self, method: &str) -> String {
        self.0.as_ref().map_or_else(|| method.to_owned(), |name| format!("{method} of {}", name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn viewer(name: Option<&str>) -> Viewer {
        let mut headers = MetadataMap::new();
        if let Some(name) = name {
            headers.insert(HEADER, name.parse().unwrap());
        }
        Viewer::of(&headers).unwrap()
    }

    #[test]
    fn names_are_plain_and_short() {
        for good in ["a", "Team-7_x.y", &"n".repeat(63)] {
            assert_eq!(good.parse::<TenantName>().unwrap().as_str(), good);
        }
        for bad in ["", "*", "a b", "a/b", "é", &"n".repeat(64)] {
            assert!(bad.parse::<TenantName>().is_err(), "{bad}");
            let mut headers = MetadataMap::new();
            if let Ok(value) = bad.parse() {
                headers.insert(HEADER, value);
                assert!(Viewer::of(&headers).is_err(), "{bad}");
            }
        }
    }

    #[test]
    fn what_has_an_owner_is_seen_by_the_owner_alone() {
        let (red, blue, nobody) = (viewer(Some("red")), viewer(Some("blue")), viewer(None));
        assert!(red.sees("red") && red.sees("") && blue.sees("") && nobody.sees(""));
        assert!(!blue.sees("red") && !nobody.sees("red") && !red.sees("re"));
        let named = ["red".parse().unwrap()];
        assert_eq!([&red, &blue, &nobody].map(|viewer| viewer.owner(&named).is_some()), [true, false, false]);
        assert_eq!(
            [&red, &blue, &nobody].map(|viewer| viewer.owner(&[IsolatedTenant::Every]).is_some()),
            [true, true, false]
        );
        assert_eq!(red.owner(&[]), None);
    }
}
