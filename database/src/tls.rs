//! Encryption of connections: TLS by rustls, with certificates that are verified.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::DatabaseError;

/// What encrypts connections to hosts whose certificates are signed by one of the roots in a file, or of the system.
pub(crate) fn connector(roots: Option<&PathBuf>) -> Result<MakeRustlsConnect, DatabaseError> {
    let store = match roots {
        Some(path) => stated_roots(path)?,
        None => roots_of_system()?,
    };
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| DatabaseError::Refused { reason: error.to_string() })?;
    Ok(MakeRustlsConnect::new(config.with_root_certificates(store).with_no_client_auth()))
}

fn stated_roots(path: &Path) -> Result<RootCertStore, DatabaseError> {
    let refused = |problem: String| DatabaseError::Refused { reason: format!("{}: {problem}", path.display()) };
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| refused(error.to_string()))? {
        let added =
            certificate.map_err(|error| refused(error.to_string())).map(|certificate| store.add(certificate))?;
        added.map_err(|error| refused(error.to_string()))?;
    }
    if store.is_empty() { Err(refused("there is no certificate in it".to_owned())) } else { Ok(store) }
}

fn roots_of_system() -> Result<RootCertStore, DatabaseError> {
    let mut store = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let reason = "this machine has no root certificates; say sslrootcert=FILE in the address of the database";
        return Err(DatabaseError::Refused { reason: reason.to_owned() });
    }
    Ok(store)
}
