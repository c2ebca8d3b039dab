//! The collector of traces: its address, what is trusted and shown there, and the thread that sends spans to it.

use std::path::{Path, PathBuf};

use opentelemetry_otlp::WithTonicConfig as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use super::TelemetryError;
use crate::access::{Secrecy, read_guarded};

/// Longest file of certificates, or of a key, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Where traces go. Its files are read once, at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Collector {
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    endpoint: String,
    encrypts: bool,
    roots: Option<PathBuf>,
    identity: Option<Identity>,
}

/// What the server shows to a collector that wants to know who it is: two files of PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Collector {
    /// One at this address, whose certificate is signed by one of the roots in a file, or of the system.
    ///
    /// # Errors
    /// The address cannot be read; there are files of certificates and it is without TLS.
    pub(crate) fn new(
        endpoint: &str,
        roots: Option<PathBuf>,
        identity: Option<Identity>,
    ) -> Result<Self, TelemetryError> {
        let bad = || TelemetryError::TraceEndpoint { endpoint: endpoint.chars().take(200).collect() };
        let uri: tonic::transport::Uri = endpoint.parse().map_err(|_not_an_address| bad())?;
        let encrypts = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad()),
        };
        if uri.authority().is_none() {
            return Err(bad());
        }
        let setting = if roots.is_some() { "otlp_ca" } else { "otlp_certificate" };
        if !encrypts && (roots.is_some() || identity.is_some()) {
            return Err(TelemetryError::TraceWithoutTls { setting });
        }
        Ok(Self { endpoint: endpoint.to_owned(), encrypts, roots, identity })
    }

    /// How it is reached, after the files were read.
    ///
    /// # Errors
    /// One of them cannot be read or used.
    pub(super) fn connection(&self) -> Result<Endpoint, TelemetryError> {
        let refused = |error: &dyn std::error::Error| {
            let problem = error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
            TelemetryError::TraceTls { endpoint: self.endpoint.clone(), problem }
        };
        let endpoint = Endpoint::from_shared(self.endpoint.clone()).map_err(|error| refused(&error))?;
        let endpoint = endpoint.timeout(opentelemetry_otlp::OTEL_EXPORTER_OTLP_TIMEOUT_DEFAULT);
        if !self.encrypts {
            return Ok(endpoint);
        }
        let mut tls = match &self.roots {
            Some(path) => {
                let text = read("otlp_ca", path, Secrecy::Public)?;
                ClientTlsConfig::new().ca_certificate(Certificate::from_pem(text))
            }
            None => ClientTlsConfig::new().with_native_roots(),
        };
        if let Some(Identity { certificate, key }) = &self.identity {
            let certificate = read("otlp_certificate", certificate, Secrecy::Public)?;
            let key = read("otlp_key", key, Secrecy::Secret)?;
            tls = tls.identity(tonic::transport::Identity::from_pem(certificate, key));
        }
        endpoint.tls_config(tls).map_err(|error| refused(&error))
    }

    /// Sends spans in batches, from a thread of its own. The collector need not be there yet. From within a runtime.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub(super) fn provider(&self) -> Result<SdkTracerProvider, TelemetryError> {
        let channel = self.connection()?.connect_lazy();
        let exporter = opentelemetry_otlp::SpanExporter::builder().with_tonic().with_channel(channel).build();
        let exporter = exporter.map_err(|error| TelemetryError::TraceTls {
            endpoint: self.endpoint.clone(),
            problem: error.to_string(),
        })?;
        let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name("canopyd").with_attribute(version).build();
        Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
    }
}

fn read(setting: &'static str, path: &Path, secrecy: Secrecy) -> Result<String, TelemetryError> {
    read_guarded(path, secrecy, FILE_BYTES_MAX).map_err(|problem| TelemetryError::TraceFile {
        setting,
        path: path.display().to_string(),
        problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_scheme_and_its_host() {
        for endpoint in ["http://127.0.0.1:4317", "https://collector.example:4317", "https://x"] {
            assert!(Collector::new(endpoint, None, None).is_ok(), "{endpoint}");
        }
        for endpoint in ["", "127.0.0.1:4317", "http://", "https://", "grpc://x:1", "https:x", "unix:/x"] {
            let refused = Collector::new(endpoint, None, None);
            assert!(matches!(refused, Err(TelemetryError::TraceEndpoint { .. })), "{endpoint}");
        }
    }

    #[test]
    fn files_of_certificates_go_with_encryption_only() {
        let roots = || Some(PathBuf::from("/nowhere/ca.pem"));
        let refused = Collector::new("http://x:1", roots(), None);
        assert_eq!(refused, Err(TelemetryError::TraceWithoutTls { setting: "otlp_ca" }));
        let collector = Collector::new("https://x:1", roots(), None).unwrap();
        assert!(matches!(collector.connection(), Err(TelemetryError::TraceFile { setting: "otlp_ca", .. })));
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").unwrap();
        let collector = Collector::new("https://x:1", Some(file.path().to_owned()), None).unwrap();
        assert!(matches!(collector.connection(), Err(TelemetryError::TraceTls { .. })));
    }
}
