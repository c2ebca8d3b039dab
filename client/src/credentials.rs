//! What a client shows of itself, and whom it believes.

use std::fmt;

use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// Longest token.
const TOKEN_BYTES_MAX: usize = 8 << 10;

/// A bearer token. Its text is in no message.
#[derive(Clone)]
pub struct Token(MetadataValue<Ascii>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// A text that is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it holds no token; write the token on one line, at most {TOKEN_BYTES_MAX} characters without blanks")]
pub struct NotAToken;

impl Token {
    /// The token in a text, which may end with a line break.
    ///
    /// # Errors
    /// It holds none, or more than one.
    pub fn read(text: &str) -> Result<Self, NotAToken> {
        let text = text.trim();
        if text.is_empty() || text.len() > TOKEN_BYTES_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(NotAToken);
        }
        let mut value: MetadataValue<Ascii> = format!("Bearer {text}").parse().map_err(|_| NotAToken)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// Adds the token to the headers of a call.
    pub(crate) fn sign<T>(&self, request: &mut Request<T>) {
        request.metadata_mut().insert("authorization", self.0.clone());
    }
}

/// What a client shows of itself, and whom it believes. Texts in PEM form.
#[derive(Clone, Default)]
pub struct Credentials {
    /// Certificates that sign those of servers; without them, those of the system.
    pub authorities: Option<String>,
    /// A client certificate and its private key.
    pub certificate: Option<(String, String)>,
    /// A token.
    pub token: Option<Token>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("has_authorities", &self.authorities.is_some())
            .field("has_certificate", &self.certificate.is_some())
            .field("token", &self.token)
            .finish()
    }
}

impl Credentials {
    /// How connections with TLS begin.
    pub(crate) fn tls(&self) -> ClientTlsConfig {
        let config = match &self.authorities {
            Some(text) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(text)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        match &self.certificate {
            Some((certificate, key)) => config.identity(Identity::from_pem(certificate, key)),
            None => config,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_one_word_and_never_printed() {
        let token = Token::read(" secret.word \n").unwrap();
        let mut request = Request::new(());
        token.sign(&mut request);
        assert_eq!(request.metadata().get("authorization").unwrap(), "Bearer secret.word");
        assert!(!format!("{token:?} {:?}", request.metadata()).contains("secret"));
        for wrong in ["", " \n", "a b", "a\nb", "é", &"a".repeat(9000)] {
            assert!(Token::read(wrong).is_err(), "{wrong}");
        }
    }
}
