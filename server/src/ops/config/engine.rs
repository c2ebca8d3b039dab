//! The setting `store_engine`, which has one value since redb is gone; files and flags that state it are still read.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The storage engine: sled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct StoreEngine;

/// Another engine was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchEngine(String);

impl fmt::Display for NoSuchEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            "redb" => f.write_str(
                "the store engine redb is gone; leave the setting out, and run `canopyd migrate --data-dir DIR` once, \
                 which keeps the plans, topologies, leases and faults of the directory",
            ),
            other => write!(f, "there is no store engine `{other}`; leave the setting out, or say `sled`"),
        }
    }
}

impl std::error::Error for NoSuchEngine {}

impl FromStr for StoreEngine {
    type Err = NoSuchEngine;

    fn from_str(text: &str) -> Result<Self, NoSuchEngine> {
        if text == "sled" { Ok(Self) } else { Err(NoSuchEngine(text.to_owned())) }
    }
}

impl TryFrom<String> for StoreEngine {
    type Error = NoSuchEngine;

    fn try_from(text: String) -> Result<Self, NoSuchEngine> {
        text.parse()
    }
}

impl From<StoreEngine> for String {
    fn from(_: StoreEngine) -> Self {
        "sled".to_owned()
    }
}
