//! The tenant of a plan that is not shared.

use std::str::FromStr;

/// Longest name in bytes.
const NAME_BYTES_MAX: usize = 63;

/// Name of a tenant: 1 to 63 ASCII letters, digits, `.`, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantName(String);

/// A text that is not a tenant name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a tenant name; use 1 to {NAME_BYTES_MAX} letters, digits, `.`, `-` and `_`")]
pub struct NotATenant {
    found: String,
}

impl TenantName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TenantName {
    type Err = NotATenant;

    fn from_str(text: &str) -> Result<Self, NotATenant> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
        if is_plain && (1..=NAME_BYTES_MAX).contains(&text.len()) {
            return Ok(Self(text.to_owned()));
        }
        Err(NotATenant { found: text.chars().take(80).collect() })
    }
}
