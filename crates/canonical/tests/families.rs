//! Families recognised from outside: members under other names, networks that are nearly members, and what the table lists.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

#[path = "families/boxed.rs"]
mod boxed;
#[path = "families/made.rs"]
mod made;
#[path = "families/members.rs"]
mod members;
#[path = "families/misses.rs"]
mod misses;
#[path = "families/parameters.rs"]
mod parameters;
#[path = "families/support.rs"]
mod support;
#[path = "families/table.rs"]
mod table;
