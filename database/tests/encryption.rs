//! Encrypted connections: whoever answers must be who the address names.
#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;

use canopy_database::{Database, Options};
use canopy_prerequisites::Postgres;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// Who signs certificates.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Why the schema at an address cannot be looked at, if it cannot.
fn refusal(address: &str) -> Option<String> {
    let database = Database::new(&Options { address: address.parse().unwrap(), connections: 1 });
    match database {
        Ok(database) => database.schema_version().err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn a_connection_that_is_encrypted_is_to_who_the_address_names() {
    let (own, other) = (authority(), authority());
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &own).unwrap();
    // The port is free a moment later, too.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let Some(postgres) = Postgres::encrypted(port, &certificate.pem(), &key.serialize_pem()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("own.pem", &own.pem());
    write("other.pem", &other.pem());
    write("nothing.pem", "");
    postgres.query("postgres", "create database plans");
    let at =
        |host: &str, roots: &Path| format!("postgres://canopy@{host}:{port}/plans?sslrootcert={}", roots.display());
    let roots = |name: &str| folder.path().join(name);
    assert_eq!(refusal(&at("localhost", &roots("own.pem"))), None);
    for (host, name, reason) in [
        ("localhost", "other.pem", "invalid peer certificate"),
        ("127.0.0.1", "own.pem", "not valid for"),
        ("localhost", "nothing.pem", "there is no certificate in it"),
        ("localhost", "missing.pem", "missing.pem"),
    ] {
        let said = refusal(&at(host, &roots(name))).unwrap();
        assert!(said.contains(reason), "{host} {name}: {said}");
    }
    assert_eq!(refusal(&format!("postgres://canopy@127.0.0.1:{port}/plans?sslmode=disable")), None);
}

#[test]
fn a_server_that_does_not_encrypt_is_refused() {
    let (own, listener) = (authority(), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut request = [0; 8];
            // `N`: it was asked whether it does.
            if connection.read_exact(&mut request).is_ok() {
                connection.write_all(b"N").unwrap();
            }
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let roots = folder.path().join("own.pem");
    std::fs::write(&roots, own.pem()).unwrap();
    let address = format!("postgres://canopy@localhost:{port}/plans?sslrootcert={}", roots.display());
    let said = refusal(&address).unwrap();
    assert!(said.contains("server does not support TLS"), "{said}");
}
