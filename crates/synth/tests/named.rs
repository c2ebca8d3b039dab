//! Schedules of `direct` and `ring`, and of the library builders, from outside: the checker accepts them, and their
//! rates are those that hand calculations give.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

#[path = "named/judge.rs"]
mod judge;
#[path = "named/networks.rs"]
mod networks;
#[path = "named/rates.rs"]
mod rates;
#[path = "named/refusals.rs"]
mod refusals;
#[path = "named/shares.rs"]
mod shares;
#[path = "named/stepped.rs"]
mod stepped;
