//! Where a server listens.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Address of a server: TCP without TLS, or a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerAddress(Kind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// `host:port`; an IPv6 host is in brackets.
    Tcp(String),
    Unix(PathBuf),
}

/// A text that is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum AddressError {
    #[error("`{text}` asks for TLS, which is not available yet; use http://host:port or unix:/path")]
    Tls { text: String },
    #[error("`{text}` is not a server address; use host:port, http://host:port or unix:/path")]
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
            Kind::Tcp(_) => None,
            Kind::Unix(path) => Some(path),
        }
    }

    /// The address as the transport spells it; `None` for a socket path that is not UTF-8.
    pub(crate) fn uri(&self) -> Option<String> {
        match &self.0 {
            Kind::Tcp(authority) => Some(format!("http://{authority}")),
            Kind::Unix(path) => path.to_str().map(|path| format!("unix:{path}")),
        }
    }
}

/// Prints `host:port` or `unix:/path`, which [`FromStr`] reads.
impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Tcp(authority) => f.write_str(authority),
            Kind::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Reads `host:port`, `http://host:port`, `unix:/path` and `unix:///path`.
impl FromStr for ServerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let malformed = || AddressError::Malformed { text: text.chars().take(200).collect() };
        if text.starts_with("https:") {
            return Err(AddressError::Tls { text: text.chars().take(200).collect() });
        }
        if let Some(path) = text.strip_prefix("unix://").or_else(|| text.strip_prefix("unix:")) {
            return if path.is_empty() { Err(malformed()) } else { Ok(Self::unix(path)) };
        }
        let authority = text.strip_prefix("http://").unwrap_or(text);
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        let (host, port) = authority.rsplit_once(':').ok_or_else(malformed)?;
        let port: u16 = port.parse().map_err(|_| malformed())?;
        let bracketed = host.starts_with('[') && host.ends_with(']') && host.len() > 2;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if port == 0 || host.is_empty() || !(bracketed || host.chars().all(plain)) {
            return Err(malformed());
        }
        Ok(Self(Kind::Tcp(format!("{host}:{port}"))))
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
        for text in
            ["", "host", "host:", ":80", "host:0", "host:99999", "http://host", "http://host:1/path", "unix:", "a b:1"]
        {
            assert!(matches!(text.parse::<ServerAddress>(), Err(AddressError::Malformed { .. })), "{text}");
        }
        assert!(matches!("https://host:1".parse::<ServerAddress>(), Err(AddressError::Tls { .. })));
    }
}
