//! TLS: certificates from the disk, read again when they change, and what a client's certificate says.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use canopy_access::{Certificate, NameKind};
use canopy_topology::is_invisible;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::access::{Current, Secrecy, Shown, Stamps, read_guarded};

/// Most bytes of a file of certificates.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Most names of a certificate that count, and their longest.
const NAMES_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 2048;

/// Paths of a server's certificate, and of the certificates that sign those of its callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those that lead to its root (PEM).
    pub certificate: PathBuf,
    /// Its private key (PEM); only its owner, and its group at most, may read it.
    pub key: PathBuf,
    /// Certificates that sign callers' certificates (PEM); without them callers show tokens.
    pub client_ca: Option<PathBuf>,
}

/// Why certificates cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}, the file of `{setting}`: {problem}")]
pub struct TlsError {
    setting: &'static str,
    path: String,
    problem: String,
}

/// What is spoken inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// gRPC.
    Calls,
    /// The pages for operators.
    Pages,
}

#[derive(Debug)]
struct Loaded {
    calls: Arc<ServerConfig>,
    pages: Arc<ServerConfig>,
    expires_ms: u64,
}

#[derive(Debug)]
struct Inner {
    files: TlsFiles,
    loaded: Current<Loaded>,
}

/// The certificates of a server; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Tls(Arc<Inner>);

impl Tls {
    /// Reads the certificates.
    ///
    /// # Errors
    /// They cannot be read, do not belong together, or others may read the key.
    pub(crate) fn read(files: TlsFiles) -> Result<Self, TlsError> {
        let loaded = Current::new(load(&files)?);
        Ok(Self(Arc::new(Inner { files, loaded })))
    }

    /// Reads the certificates again, as [`Current::reload`]: connections that come use them, those that are there stay.
    pub(crate) fn reload(&self, always: bool) -> Result<bool, TlsError> {
        self.0.loaded.reload(always, || load(&self.0.files))
    }

    /// When the server's certificate ends, in milliseconds since 1970.
    pub(crate) fn expires_ms(&self) -> u64 {
        self.0.loaded.get().expires_ms
    }

    /// Greets a caller, and says what it shows.
    ///
    /// # Errors
    /// It speaks something else, or shows a certificate that is not valid.
    pub(crate) async fn accept<I: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: I,
        spoken: Spoken,
    ) -> io::Result<(TlsStream<I>, Shown)> {
        let config = {
            let loaded = self.0.loaded.get();
            Arc::clone(if spoken == Spoken::Calls { &loaded.calls } else { &loaded.pages })
        };
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        let shown = match stream.get_ref().1.peer_certificates().and_then(<[_]>::first) {
            None => Shown::Nothing,
            Some(certificate) => Shown::Certificate(Arc::new(read_certificate(certificate).map_err(io::Error::other)?)),
        };
        Ok((stream, shown))
    }
}

fn load(files: &TlsFiles) -> Result<(Loaded, Stamps), TlsError> {
    let mut stamps = Stamps::default();
    let mut read = |setting, path: &PathBuf, secrecy| {
        stamps.note(path);
        let name = path.display().to_string();
        let refused = move |problem| TlsError { setting, path: name.clone(), problem };
        read_guarded(path, secrecy, FILE_BYTES_MAX).map_err(&refused).map(|text| (text, refused))
    };
    let (text, refused) = read("tls_certificate", &files.certificate, Secrecy::Public)?;
    let chain = certificates(&text).map_err(&refused)?;
    let expires_ms =
        chain.first().map_or(Ok(0), |own| read_certificate(own).map(|own| own.not_after_ms())).map_err(refused)?;
    let (text, of_key) = read("tls_key", &files.key, Secrecy::Secret)?;
    let text = zeroize::Zeroizing::new(text);
    let key = PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|_| of_key("it holds no private key in PEM form".to_owned()))?;
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| of_key(error.to_string()))?;
    let config = match &files.client_ca {
        None => config.with_no_client_auth(),
        Some(path) => {
            let (text, refused) = read("tls_client_ca", path, Secrecy::Public)?;
            let mut roots = RootCertStore::empty();
            for root in certificates(&text).map_err(&refused)? {
                roots.add(root).map_err(|error| refused(error.to_string()))?;
            }
            // A caller without a certificate may show a token.
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| refused(error.to_string()))?;
            config.with_client_cert_verifier(verifier)
        }
    };
    let mut pages = config
        .with_single_cert(chain, key)
        .map_err(|error| of_key(format!("it does not belong to `tls_certificate`: {error}")))?;
    let mut calls = pages.clone();
    calls.alpn_protocols = vec![b"h2".to_vec()];
    pages.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((Loaded { calls: Arc::new(calls), pages: Arc::new(pages), expires_ms }, stamps))
}

/// The certificates of a text.
fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
    match all.map_err(|error| error.to_string())? {
        all if all.is_empty() => Err("it holds no certificate in PEM form".to_owned()),
        all => Ok(all),
    }
}

/// The names in a certificate and its end. URIs come first, as those are identities of services.
fn read_certificate(certificate: &CertificateDer<'_>) -> Result<Certificate, String> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|error| error.to_string())?;
    let alternatives = parsed.subject_alternative_name().map_err(|error| error.to_string())?;
    let alternatives = alternatives.map_or(&[][..], |names| &names.value.general_names);
    let known = |name: &GeneralName<'_>| match *name {
        GeneralName::URI(uri) => Some((NameKind::Uri, uri.to_owned())),
        GeneralName::DNSName(name) => Some((NameKind::Dns, name.to_owned())),
        GeneralName::RFC822Name(name) => Some((NameKind::Email, name.to_owned())),
        _ => None,
    };
    let mut names: Vec<(NameKind, String)> = alternatives.iter().take(NAMES_MAX).filter_map(known).collect();
    names.sort_by_key(|(kind, _)| *kind != NameKind::Uri);
    let common = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    names.extend(common.map(|name| (NameKind::CommonName, name.to_owned())));
    // A name that fills the log, or that a terminal shows otherwise than it is, identifies no caller.
    names.retain(|(_, name)| name.len() <= NAME_BYTES_MAX && !name.contains(is_invisible));
    let not_after_s = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or(0);
    // Valid through the last second.
    let not_after_ms = not_after_s.saturating_add(1).saturating_mul(1000);
    Ok(Certificate::new(names.iter().map(|(kind, name)| (*kind, name.as_str())), not_after_ms))
}
