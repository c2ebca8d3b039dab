//! Values of settings, in one spelling for files, environment and flags.

use std::fmt;
use std::net::{AddrParseError, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{DurationError, parse_duration};

/// A duration with its unit, such as `30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(pub Duration);

impl FromStr for Time {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        parse_duration(text).map(Self)
    }
}

impl TryFrom<String> for Time {
    type Error = DurationError;

    fn try_from(text: String) -> Result<Self, DurationError> {
        text.parse()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
        let whole = |&(size, _): &(u128, &str)| millis != 0 && millis.is_multiple_of(size);
        let (size, unit) = units.into_iter().find(whole).unwrap_or((1_000, "s"));
        write!(f, "{}{unit}", millis / size)
    }
}

impl From<Time> for String {
    fn from(time: Time) -> Self {
        time.to_string()
    }
}

/// Address of health, readiness and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum AdminListen {
    /// Nowhere.
    Off,
    /// On this TCP address.
    At(SocketAddr),
}

impl FromStr for AdminListen {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        if text == "off" { Ok(Self::Off) } else { text.parse().map(Self::At) }
    }
}

impl TryFrom<String> for AdminListen {
    type Error = AddrParseError;

    fn try_from(text: String) -> Result<Self, AddrParseError> {
        text.parse()
    }
}

impl From<AdminListen> for String {
    fn from(listen: AdminListen) -> Self {
        match listen {
            AdminListen::Off => "off".to_owned(),
            AdminListen::At(address) => address.to_string(),
        }
    }
}

/// Folder of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "PathBuf", into = "PathBuf")]
pub enum AuditFolder {
    /// No such log.
    Off,
    /// This folder.
    At(PathBuf),
}

impl From<PathBuf> for AuditFolder {
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "off" { Self::Off } else { Self::At(path) }
    }
}

impl FromStr for AuditFolder {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(PathBuf::from(text).into())
    }
}

impl From<AuditFolder> for PathBuf {
    fn from(folder: AuditFolder) -> Self {
        match folder {
            AuditFolder::Off => Self::from("off"),
            AuditFolder::At(path) => path,
        }
    }
}

/// What a server does for those that share its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerRole {
    /// Answers calls; plans that take a search are made by others.
    Api,
    /// Makes plans; serves no port but that of operators.
    Worker,
    /// Both.
    All,
}

impl ServerRole {
    /// As settings write it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Worker => "worker",
            Self::All => "all",
        }
    }
}

/// What to do with requests for plans that are not cached while the database cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenAway {
    /// Refuse them as UNAVAILABLE, to be tried again.
    Refuse,
    /// Make the plans here, and perhaps elsewhere as well; they are not kept.
    Compute,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_named_as_settings_write_them() {
        use clap::ValueEnum;
        for role in ServerRole::value_variants() {
            assert_eq!(role.to_possible_value().unwrap().get_name(), role.name());
        }
    }

    #[test]
    fn a_time_is_written_in_its_greatest_whole_unit() {
        for text in ["1h", "90s", "25s", "250ms", "2m", "0s"] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        assert_eq!("60m".parse::<Time>().unwrap().to_string(), "1h");
    }

    #[test]
    fn the_port_for_operators_is_an_address_or_off() {
        for text in ["off", "127.0.0.1:7424", "[::1]:0"] {
            assert_eq!(String::from(text.parse::<AdminListen>().unwrap()), text);
        }
        assert!("on".parse::<AdminListen>().is_err());
    }
}
