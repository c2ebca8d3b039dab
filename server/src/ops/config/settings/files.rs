//! Settings that name files.

use std::fs;
use std::path::{Path, PathBuf};

use canopy_database::Address;
use canopy_topology::SiteRates;

use crate::access::{Secrecy, read_guarded};
use crate::net::listener::TlsFiles;
use crate::ops::config::{ConfigError, Settings};
use crate::ops::telemetry::{Collector, Identity};
use crate::store::ArchiveTrust;

/// Bytes of a password at most.
const PASSWORD_BYTES_MAX: u64 = 4096;

/// The database that servers share.
pub(super) fn database(address: Option<&str>, password_file: Option<&Path>) -> Result<Option<Address>, ConfigError> {
    address.map(|address| one_database(address, password_file)).transpose()
}

fn one_database(address: &str, password_file: Option<&Path>) -> Result<Address, ConfigError> {
    let refused = |problem: String| ConfigError::Database { problem };
    let address: Address =
        address.parse().map_err(|error: canopy_database::AddressError| refused(error.to_string()))?;
    if address.has_password() {
        // Whoever lists processes or prints the settings would see it.
        let words =
            "the address of the database has a password, which others would see; state `database_password_file`";
        return Err(refused(words.to_owned()));
    }
    let Some(path) = password_file else { return Ok(address) };
    let password = read_guarded(path, Secrecy::Secret, PASSWORD_BYTES_MAX);
    let password =
        password.map_err(|problem| refused(format!("`database_password_file`, {}: {problem}", path.display())))?;
    Ok(address.with_password(password.trim_end_matches(['\r', '\n'])))
}

/// The files of certificates.
pub(super) fn tls(
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    client_ca: Option<PathBuf>,
) -> Result<Option<TlsFiles>, ConfigError> {
    let [certificate_name, key_name, ca_name] = ["tls_certificate", "tls_key", "tls_client_ca"];
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key, client_ca })),
        (Some(_), None) => Err(half(certificate_name, key_name)),
        (None, Some(_)) => Err(half(key_name, certificate_name)),
        (None, None) if client_ca.is_some() => Err(half(ca_name, certificate_name)),
        (None, None) => Ok(None),
    }
}

/// Where traces go, and the files of the connection to it.
pub(super) fn collector(settings: &Settings) -> Result<Option<Collector>, ConfigError> {
    let named = [("otlp_ca", &settings.otlp_ca), ("otlp_certificate", &settings.otlp_certificate)];
    let named = named.into_iter().chain([("otlp_key", &settings.otlp_key)]);
    let Some(endpoint) = &settings.otlp_endpoint else {
        let lone = named.into_iter().find(|(_, path)| path.is_some());
        return lone.map_or(Ok(None), |(present, _)| Err(half(present, "otlp_endpoint")));
    };
    let identity = match (settings.otlp_certificate.clone(), settings.otlp_key.clone()) {
        (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
        (None, None) => None,
        (Some(_), None) => return Err(half("otlp_certificate", "otlp_key")),
        (None, Some(_)) => return Err(half("otlp_key", "otlp_certificate")),
    };
    Ok(Some(Collector::new(endpoint, settings.otlp_ca.clone(), identity)?))
}

const fn half(present: &'static str, absent: &'static str) -> ConfigError {
    ConfigError::Half { present, absent }
}

/// The servers whose archives are imported. Who may change the list could have anything imported.
pub(super) fn archive_trust(path: &Path) -> Result<ArchiveTrust, ConfigError> {
    let read = read_guarded(path, Secrecy::Public, 1 << 20).and_then(|text| ArchiveTrust::read(&text));
    read.map_err(|problem| ConfigError::ArchiveSigners { path: path.display().to_string(), problem })
}

/// What a site states of families.
pub(super) fn family_rates(path: &Path) -> Result<SiteRates, ConfigError> {
    let refused = |problem: String| ConfigError::FamilyRates { path: path.display().to_string(), problem };
    let text = fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    SiteRates::read(&text).map_err(|error| refused(error.to_string()))
}
