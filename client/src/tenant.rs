//! The tenant of a client's calls.

use std::str::FromStr;

use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};

/// The header that names the tenant of a call.
const HEADER: &str = "x-canopy-tenant";
/// Longest name in bytes.
const NAME_BYTES_MAX: usize = 63;

/// Name of a tenant: 1 to 63 ASCII letters, digits, `.`, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant(MetadataValue<Ascii>);

/// A text that is not a tenant name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a tenant name; use 1 to {NAME_BYTES_MAX} letters, digits, `.`, `-` and `_`")]
pub struct NotATenant {
    found: String,
}

impl FromStr for Tenant {
    type Err = NotATenant;

    fn from_str(text: &str) -> Result<Self, NotATenant> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
        let refused = || NotATenant { found: text.chars().take(80).collect() };
        if !is_plain || !(1..=NAME_BYTES_MAX).contains(&text.len()) {
            return Err(refused());
        }
        text.parse().map(Self).map_err(|_| refused())
    }
}

impl Tenant {
    /// Adds the name to the headers of a call.
    pub(crate) fn sign<T>(&self, request: &mut Request<T>) {
        request.metadata_mut().insert(HEADER, self.0.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_short() {
        assert!(["a", "Team-7_x.y", &"n".repeat(63)].iter().all(|name| name.parse::<Tenant>().is_ok()));
        assert!(["", "*", "a b", "é", "a\n", &"n".repeat(64)].iter().all(|name| name.parse::<Tenant>().is_err()));
    }
}
