//! Version 1, the first schema.
//!
//! A database of this version has three trees: `meta` (with `schema_version`, a big-endian `u32`), `records` and
//! `quarantine`. A record is stored in pieces of at most 64 KiB under its 32-byte key followed by the number of the
//! piece (big-endian `u32`, from 0); the pieces joined are:
//!
//! | bytes | meaning |
//! |---|---|
//! | 0–3 | magic `CNPY` |
//! | 4–5 | schema version, little-endian, 1 |
//! | 6 | codec of the payload: 0 as it is |
//! | 7 | 0 |
//! | 8–15 | length of the payload, little-endian |
//! | 16–47 | BLAKE3 of bytes 0–15 and the payload |
//! | 48… | payload: an encoded `canopy.v1.PlanResponse` with plan and warnings, and the content of all artifacts |

use crate::Version;

/// The first schema: no older one exists, so there is nothing to upgrade from.
pub(crate) const VERSION: Version = Version { number: 1, name: "first", upgrade: None };
