//! A caller, and the judgement of its calls.

use std::fmt;

use canopy_planner::TenantName;

use crate::grant::{Grant, Tenants};
use crate::method::Standard;

/// What a caller showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Nothing: the server takes every caller.
    Development,
    /// The user of a process on this machine.
    User,
    /// A client certificate.
    Certificate,
    /// A signed token of an issuer.
    Jwt,
    /// A token of ours.
    Token,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Development => "development",
            Self::User => "user",
            Self::Certificate => "certificate",
            Self::Jwt => "jwt",
            Self::Token => "token",
        })
    }
}

/// A caller: its name, and what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name, for logs: a subject, the name of a token, a user's number.
    pub name: String,
    /// What it showed.
    pub source: Source,
    /// What it may do.
    pub grants: Vec<Grant>,
    /// When what it showed ends, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}

/// Why a call of a known caller is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum Denied {
    #[error("what {identity} showed has expired; show what is valid now")]
    Expired { identity: String },
    #[error("{identity} may not call {method}; ask an administrator for a role that may{}", among(roles))]
    Method { identity: String, method: String, roles: Vec<&'static str> },
    #[error("{identity} may not call {method} for tenant `{tenant}`; name one of its own tenants, or none")]
    Tenant { identity: String, method: String, tenant: String },
    #[error(
        "{method} changes what all tenants share, and {identity} acts for `{tenant}`; call it with a grant that is not for a tenant"
    )]
    Shared { identity: String, method: String, tenant: String },
}

/// `: operator or admin`.
fn among(roles: &[&str]) -> String {
    if roles.is_empty() { String::new() } else { format!(": {}", roles.join(" or ")) }
}

impl Identity {
    /// A caller that may call everything for every tenant.
    pub fn all_powerful(name: String, source: Source) -> Self {
        let grants = vec![Grant { methods: Standard::Admin.methods(), tenants: Tenants::Every }];
        Self { name, source, grants, expires_ms: None }
    }

    /// Judges a call: the tenant that it is for.
    ///
    /// Cost: linear in the grants and their tenants.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn admit(&self, method: &str, wanted: Option<&TenantName>, now_ms: u64) -> Result<Option<TenantName>, Denied> {
        let identity = self.name.clone();
        if self.expires_ms.is_some_and(|end| end <= now_ms) {
            return Err(Denied::Expired { identity });
        }
        let mut granted = self.grants.iter().filter(|grant| grant.methods.has(method)).peekable();
        if granted.peek().is_none() {
            let may = |role: &Standard| role.methods().has(method);
            let roles = Standard::ALL.into_iter().filter(may).map(Standard::name).collect();
            return Err(Denied::Method { identity, method: method.to_owned(), roles });
        }
        let is_shared = crate::method::method(method).is_some_and(|method| method.shared);
        let mut tenants = granted.filter_map(|grant| grant.tenants.choose(wanted));
        let first = tenants.next();
        let method = method.to_owned();
        match first {
            Some(Some(tenant)) if is_shared && !tenants.any(|tenant| tenant.is_none()) => {
                Err(Denied::Shared { identity, method, tenant: tenant.as_str().to_owned() })
            }
            Some(_) if is_shared => Ok(None),
            Some(tenant) => Ok(tenant),
            None => {
                let tenant = wanted.map_or_else(String::new, |name| name.as_str().to_owned());
                Err(Denied::Tenant { identity, method, tenant })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "canopy.v1.Planner/Plan";
    const LIST: &str = "canopy.v1.Plans/ListPlans";

    fn tenants(names: &[&str]) -> Tenants {
        Tenants::read(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()).unwrap()
    }

    fn identity(grants: &[(Standard, &[&str])]) -> Identity {
        let grant = |&(role, names): &(Standard, &[&str])| Grant { methods: role.methods(), tenants: tenants(names) };
        Identity {
            name: "x".into(),
            source: Source::Token,
            grants: grants.iter().map(grant).collect(),
            expires_ms: Some(100),
        }
    }

    #[test]
    fn roles_hold_for_their_tenants_alone() {
        let caller = identity(&[(Standard::Planner, &["red"]), (Standard::Viewer, &["blue"])]);
        let (red, blue, green): (TenantName, TenantName, TenantName) =
            ("red".parse().unwrap(), "blue".parse().unwrap(), "green".parse().unwrap());
        assert_eq!(caller.admit(PLAN, None, 0), Ok(Some(red.clone())));
        assert_eq!(caller.admit(PLAN, Some(&red), 0), Ok(Some(red)));
        assert_eq!(caller.admit(LIST, Some(&blue), 0), Ok(Some(blue.clone())));
        assert!(matches!(caller.admit(PLAN, Some(&blue), 0), Err(Denied::Tenant { .. })));
        assert!(matches!(caller.admit(LIST, Some(&green), 0), Err(Denied::Tenant { .. })));
        let refused = caller.admit("canopy.v1.Server/Drain", None, 0).unwrap_err();
        assert!(refused.to_string().ends_with("ask an administrator for a role that may: admin"), "{refused}");
        assert!(matches!(caller.admit("nothing/at.all", None, 0), Err(Denied::Method { .. })));
        assert!(matches!(caller.admit(PLAN, None, 100), Err(Denied::Expired { .. })));
    }

    /// What all tenants share is not changed by callers that act for one of them.
    #[test]
    fn what_is_shared_needs_a_grant_for_no_tenant() {
        let delete = "canopy.v1.Networks/DeleteTopology";
        let red = "red".parse::<TenantName>().unwrap();
        let of_red = identity(&[(Standard::Operator, &["red"])]);
        assert!(matches!(of_red.admit(delete, None, 0), Err(Denied::Shared { tenant, .. }) if tenant == "red"));
        let both = identity(&[(Standard::Operator, &["red"]), (Standard::Operator, &[])]);
        assert_eq!(both.admit(delete, None, 0), Ok(None));
        assert!(matches!(both.admit(delete, Some(&red), 0), Err(Denied::Shared { .. })));
        assert_eq!(both.admit(PLAN, None, 0), Ok(Some(red.clone())));
        let every = identity(&[(Standard::Admin, &["*"])]);
        assert_eq!(every.admit(delete, None, 0), Ok(None));
        assert!(matches!(every.admit(delete, Some(&red), 0), Err(Denied::Shared { .. })));
    }

    #[test]
    fn without_tenants_a_caller_has_what_is_shared() {
        let shared = identity(&[(Standard::Viewer, &[])]);
        assert_eq!(shared.admit(LIST, None, 0), Ok(None));
        assert!(matches!(shared.admit(LIST, Some(&"red".parse().unwrap()), 0), Err(Denied::Tenant { .. })));
        let every = identity(&[(Standard::Viewer, &["*"])]);
        assert_eq!(every.admit(LIST, None, 0), Ok(None));
        assert_eq!(every.admit(LIST, Some(&"red".parse().unwrap()), 0), Ok(Some("red".parse().unwrap())));
    }
}
