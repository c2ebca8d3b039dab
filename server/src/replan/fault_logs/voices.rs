//! Whose reports about a machine or a network count, and the names that machines are known by.

use std::collections::BTreeMap;

use canopy_planner::PlanKey;

use super::book::Kind;
use crate::replan::scope::{Audience, Scope};

/// No place is before it.
const FIRST: Scope = Scope::Topology(PlanKey::from_bytes([0; 32]));

/// The empty name, and each tenant whose reports count and of whose reporters anything is remembered. O(tenants · log
/// scopes).
pub(super) fn voices(fault_logs: &BTreeMap<Scope, Kind>, audience: &Audience) -> Vec<String> {
    match audience {
        Audience::Tenant(name) if name.is_empty() => vec![String::new()],
        Audience::Tenant(name) => vec![String::new(), name.clone()],
        Audience::Everyone => {
            let mut all = vec![String::new()];
            // From each tenant's first scope to that of the next one, past all that lies between them.
            let mut from = FIRST.by("\0");
            while let Some(tenant) = fault_logs.range(from..).next().and_then(|(scope, _)| scope.tenant()) {
                from = FIRST.by(&format!("{tenant}\0"));
                all.push(tenant.to_owned());
            }
            all
        }
    }
}

/// Machines of which the reporters of a tenant have said anything, and that a name may mean: the one of that name, those that it is
/// short for, and those that are short for it.
pub(super) fn hosts_like<'a>(
    fault_logs: &'a BTreeMap<Scope, Kind>,
    name: &'a str,
    tenant: &'a str,
) -> impl Iterator<Item = Scope> + 'a {
    let host = move |name: &str| Scope::Host(name.to_owned()).by(tenant);
    let exact = std::iter::once(name).chain(name.match_indices('.').filter_map(|(dot, _)| name.get(..dot)));
    let exact = exact.map(host).filter(|scope| fault_logs.contains_key(scope));
    let start = format!("{name}.");
    let longer = fault_logs.range(host(&start)..).map(|(scope, _)| scope.clone());
    let is_longer = move |scope: &Scope| {
        scope.tenant().unwrap_or_default() == tenant && scope.host().is_some_and(|host| host.starts_with(&start))
    };
    exact.chain(longer.take_while(is_longer))
}

/// The scope under which a machine is known already, by its whole or short name; any other as it is.
pub(super) fn known_scope(fault_logs: &BTreeMap<Scope, Kind>, scope: Scope) -> Scope {
    let Some(name) = scope.host() else { return scope };
    let mut known = hosts_like(fault_logs, name, scope.tenant().unwrap_or_default());
    let only = known.next().filter(|_| known.next().is_none());
    drop(known);
    only.unwrap_or(scope)
}
