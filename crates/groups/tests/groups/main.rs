//! Joint rates of groups against values known from elsewhere.
#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

mod certificate;
mod costs;
mod larger;
mod networks;
mod oracle;
mod parts;
mod properties;
mod published;
mod random;
mod shared;
mod whole_program;
