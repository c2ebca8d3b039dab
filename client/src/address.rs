//! Where a server listens.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Address of a server: TCP with or without TLS, or a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerAddress(Kind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// `host:port`; an IPv6 host is in brackets.
    Tcp(String),
    /// The same, inside TLS.
    Tls(String),
    Unix(PathBuf),
}

/// A text that is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum AddressError {
    #[error("`{text}` is not a server address; use https://host:port, unix:/path, or host:port for plain text")]
    Malformed { text: String },
}

impl ServerAddress {
    /// The Unix socket at this path.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self(Kind::Unix(path.into()))
    }

    /// The path of the socket, if this is a Unix address.
    pub fn unix_path(&self) -> Option<&Path> {
        match &self.0 {
            Kind::Tcp(_) | Kind::Tls(_) => None,
            Kind::Unix(path) => Some(path),
        }
    }

    /// Whether connections are inside TLS.
    pub(crate) const fn has_tls(&self) -> bool {
        matches!(self.0, Kind::Tls(_))
    }

    /// Whether what is sent there stays secret: inside TLS, or on this machine.
    pub(crate) fn keeps_secrets(&self) -> bool {
        match &self.0 {
            Kind::Tls(_) | Kind::Unix(_) => true,
            Kind::Tcp(authority) => {
                let host = authority.rsplit_once(':').map_or(authority.as_str(), |(host, _)| host);
                let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
                host == "localhost" || address.is_ok_and(|address| address.is_loopback())
            }
        }
    }

    /// The address as the transport spells it; `None` for a socket path that is not UTF-8.
    pub(crate) fn uri(&self) -> Option<String> {
        match &self.0 {
            Kind::Tcp(authority) => Some(format!("http://{authority}")),
            Kind::Tls(authority) => Some(format!("https://{authority}")),
            Kind::Unix(path) => path.to_str().map(|path| format!("unix:{path}")),
        }
    }
}

/// Prints `host:port`, `https://host:port` or `unix:/path`, which [`FromStr`] reads.
impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Tcp(authority) => f.write_str(authority),
            Kind::Tls(authority) => write!(f, "https://{authority}"),
            Kind::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Reads `host:port`, `http://host:port`, `https://host:port`, `unix:/path` and `unix:///path`.
impl FromStr for ServerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let malformed = || AddressError::Malformed { text: text.chars().take(200).collect() };
        if let Some(path) = text.strip_prefix("unix://").or_else(|| text.strip_prefix("unix:")) {
            return if path.is_empty() { Err(malformed()) } else { Ok(Self::unix(path)) };
        }
        let (kind, authority): (fn(String) -> Kind, _) = match text.strip_prefix("https://") {
            Some(authority) => (Kind::Tls, authority),
            None => (Kind::Tcp, text.strip_prefix("http://").unwrap_or(text)),
        };
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        let (host, port) = authority.rsplit_once(':').ok_or_else(malformed)?;
        let port: u16 = port.parse().map_err(|_| malformed())?;
        let bracketed = host.starts_with('[') && host.ends_with(']') && host.len() > 2;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if port == 0 || host.is_empty() || !(bracketed || host.chars().all(plain)) {
            return Err(malformed());
        }
        Ok(Self(kind(format!("{host}:{port}"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_read_and_printed() {
        for (text, printed) in [
            ("http://127.0.0.1:7423", "127.0.0.1:7423"),
            ("http://planner.example:80/", "planner.example:80"),
            ("[::1]:7423", "[::1]:7423"),
            ("https://planner.example:7423/", "https://planner.example:7423"),
            ("unix:/run/canopy.sock", "unix:/run/canopy.sock"),
            ("unix:///run/canopy.sock", "unix:/run/canopy.sock"),
            ("unix:relative.sock", "unix:relative.sock"),
        ] {
            let address: ServerAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), printed);
            assert_eq!(printed.parse(), Ok(address));
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "host",
            "host:",
            ":80",
            "host:0",
            "host:99999",
            "http://host",
            "http://host:1/path",
            "https://host",
            "unix:",
            "a b:1",
        ] {
            assert!(matches!(text.parse::<ServerAddress>(), Err(AddressError::Malformed { .. })), "{text}");
        }
    }

    #[test]
    fn secrets_are_kept_inside_tls_and_on_this_machine() {
        for (text, expected) in [
            ("https://planner.example:1", true),
            ("unix:/run/x", true),
            ("localhost:1", true),
            ("127.0.0.7:1", true),
            ("[::1]:1", true),
            ("planner.example:1", false),
            ("127.evil.example:1", false),
            ("10.0.0.1:1", false),
        ] {
            assert_eq!(text.parse::<ServerAddress>().unwrap().keeps_secrets(), expected, "{text}");
        }
    }
}
