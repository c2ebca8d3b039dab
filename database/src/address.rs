//! Where a database is, as an operator states it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// The schema that everything of canopy is in.
pub(crate) const SCHEMA: &str = "canopy";

/// Where a database is, and who asks: `postgres://user@host:port/name`, or `host=… user=… dbname=…`. Shown without the
/// password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    config: Config,
    encryption: Encryption,
}

/// Whether connections are encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// They do not leave the machine, or it was stated that they are not to be.
    Off,
    /// They are, and the certificate must be for the host, signed by one of these roots or of the system's.
    Verified { roots: Option<PathBuf> },
}

/// Why a text is not the address of a database.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum AddressError {
    #[error("the address of the database cannot be read: {reason}; write postgres://user@host:port/name")]
    Unreadable { reason: String },
    #[error("the address of the database names no {part}; write postgres://user@host:port/name")]
    Incomplete { part: &'static str },
    #[error(
        "the address of the database asks for sslmode={found}, which does not verify who answers; leave it out for verify-full, or say disable"
    )]
    Unverified { found: String },
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (text, stated) = without_encryption(text);
        let mut config =
            Config::from_str(&text).map_err(|error| AddressError::Unreadable { reason: reason_of(&error) })?;
        if config.get_dbname().is_none_or(str::is_empty) {
            return Err(AddressError::Incomplete { part: "database" });
        }
        if config.get_user().is_none_or(str::is_empty) {
            return Err(AddressError::Incomplete { part: "user" });
        }
        if config.get_hosts().is_empty() {
            return Err(AddressError::Incomplete { part: "host" });
        }
        let encryption = match stated.mode.as_deref() {
            Some("disable") => Encryption::Off,
            Some("verify-full") => Encryption::Verified { roots: stated.roots },
            None if config.get_hosts().iter().all(is_on_this_machine) && stated.roots.is_none() => Encryption::Off,
            None => Encryption::Verified { roots: stated.roots },
            Some(found) => return Err(AddressError::Unverified { found: found.to_owned() }),
        };
        config.ssl_mode(if encryption == Encryption::Off { SslMode::Disable } else { SslMode::Require });
        Ok(Self { config, encryption })
    }
}

impl Address {
    /// The same with a password, in place of one in the address.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.config.password(password);
        self
    }

    /// Whether it has a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    pub(crate) fn config(&self) -> Config {
        self.config.clone()
    }

    pub(crate) const fn encryption(&self) -> &Encryption {
        &self.encryption
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<String> = self.config.get_hosts().iter().map(shown_host).collect();
        let (name, user) = (self.config.get_dbname().unwrap_or(""), self.config.get_user().unwrap_or(""));
        write!(f, "database {name} on {} as {user}", hosts.join(", "))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

fn shown_host(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    }
}

fn is_on_this_machine(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

/// What an address says of encryption.
#[derive(Default)]
struct Stated {
    mode: Option<String>,
    roots: Option<PathBuf>,
}

/// An address without what it says of encryption, which the library reads differently.
fn without_encryption(text: &str) -> (String, Stated) {
    let mut stated = Stated::default();
    let mut is_other = |setting: &str| {
        match setting.split_once('=') {
            Some(("sslmode", mode)) => stated.mode = Some(mode.to_owned()),
            Some(("sslrootcert", path)) => stated.roots = Some(PathBuf::from(path)),
            Some(_) | None => return true,
        }
        false
    };
    let text = if text.contains("://") {
        match text.split_once('?') {
            None => text.to_owned(),
            Some((address, settings)) => {
                let others: Vec<&str> = settings.split('&').filter(|setting| is_other(setting)).collect();
                if others.is_empty() { address.to_owned() } else { format!("{address}?{}", others.join("&")) }
            }
        }
    } else {
        let others: Vec<&str> = text.split_whitespace().filter(|setting| is_other(setting)).collect();
        others.join(" ")
    };
    (text, stated)
}

/// An error with its causes, as those of the library say little by themselves.
pub(crate) fn reason_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        let shown = format!("{0} {0:?}", address("postgres://canopy:secret@db.example:5433/plans"));
        assert!(!shown.contains("secret"), "{shown}");
        assert!(shown.contains("database plans on db.example as canopy"), "{shown}");
        let replaced = address("host=/run/postgresql user=canopy password=one dbname=plans").with_password("two");
        assert_eq!(replaced.config().get_password(), Some(b"two".as_slice()));
    }

    #[test]
    fn connections_that_leave_the_machine_are_encrypted_unless_it_says_otherwise() {
        let verified = |roots: Option<&str>| Encryption::Verified { roots: roots.map(PathBuf::from) };
        for (text, encryption) in [
            ("postgres://canopy@/plans?host=/run/postgresql", Encryption::Off),
            ("postgres://canopy@127.0.0.1/plans", Encryption::Off),
            ("postgres://canopy@[::1]/plans", Encryption::Off),
            ("postgres://canopy@localhost/plans", Encryption::Off),
            ("postgres://canopy@localhost/plans?sslmode=verify-full", verified(None)),
            ("postgres://canopy@localhost/plans?sslrootcert=/etc/ca.pem", verified(Some("/etc/ca.pem"))),
            ("postgres://canopy@db.example/plans", verified(None)),
            ("postgres://canopy@db.example/plans?connect_timeout=3&sslmode=disable", Encryption::Off),
            ("host=db.example user=canopy dbname=plans sslrootcert=ca.pem", verified(Some("ca.pem"))),
            ("postgres://canopy@localhost,db.example/plans", verified(None)),
        ] {
            assert_eq!(*address(text).encryption(), encryption, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_to_write() {
        for (text, said) in [
            ("", "names no database"),
            ("plans", "cannot be read"),
            ("postgres://db.example/plans", "names no user"),
            ("postgres://canopy@db.example", "names no database"),
            ("user=canopy dbname=plans", "names no host"),
            ("postgres://canopy@db.example/plans?sslmode=prefer", "asks for sslmode=prefer"),
            ("postgres://canopy@db.example:port/plans", "cannot be read"),
            ("postgres://canopy@db.example/plans?nonsense=1", "cannot be read"),
        ] {
            let refusal = text.parse::<Address>().unwrap_err().to_string();
            assert!(refusal.contains(said), "{text}: {refusal}");
        }
    }
}
