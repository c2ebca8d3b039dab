//! What one rule gives: methods, for tenants.

use canopy_planner::{NotATenant, TenantName};

use crate::method::MethodSet;

/// Tenants that a rule speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tenants {
    /// All, and calls without one.
    Every,
    /// Calls without one.
    Shared,
    /// These; a call that names none is for the first.
    Named(Vec<TenantName>),
}

impl Tenants {
    /// Reads names; `*` alone is all, and an empty list is calls without a tenant.
    ///
    /// # Errors
    /// The first text that is not a name.
    pub fn read<'a>(names: impl IntoIterator<Item = &'a String>) -> Result<Self, NotATenant> {
        let names: Vec<_> = names.into_iter().collect();
        match names.as_slice() {
            [] => Ok(Self::Shared),
            [star] if *star == "*" => Ok(Self::Every),
            names => names.iter().map(|name| name.parse()).collect::<Result<_, _>>().map(Self::Named),
        }
    }

    /// The tenant of a call that asks for `wanted`; `None`: it may not have it.
    pub(crate) fn choose(&self, wanted: Option<&TenantName>) -> Option<Option<TenantName>> {
        match (self, wanted) {
            (Self::Every, wanted) => Some(wanted.cloned()),
            (Self::Shared, None) => Some(None),
            (Self::Shared, Some(_)) => None,
            (Self::Named(names), None) => names.first().cloned().map(Some),
            (Self::Named(names), Some(wanted)) => names.contains(wanted).then(|| Some(wanted.clone())),
        }
    }
}

/// Methods, for tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// What may be called.
    pub methods: MethodSet,
    /// For whom.
    pub tenants: Tenants,
}
