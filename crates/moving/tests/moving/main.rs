//! Bounds against the whole linear program, what every plan and checker must do, and published schedules.
#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

mod chance;
mod optimum;
mod properties;
mod published;
