//! Schedules of `direct` and `ring`, and of the library builders, from outside: the checker accepts them, and their
//! rates are those that hand calculations give.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

mod judge;
mod networks;
mod rates;
mod refusals;
mod shares;
mod stepped;
