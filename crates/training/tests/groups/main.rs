//! Joint rates of groups against values known from elsewhere.
#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

mod certificate;
mod costs;
mod frozen;
mod larger;
mod level_properties;
mod levels;
mod levels_in_time;
mod networks;
mod oracle;
mod parts;
mod patience;
mod properties;
mod published;
mod published_levels;
mod random;
mod shared;
mod whole_program;
