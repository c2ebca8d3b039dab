//! Certificates: of the server, replaced while calls go on, and of its callers.

use std::path::Path;
use std::time::Duration;

use canopy_proto::v1::WatchLeasesRequest;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::{DrainRequest, GetStatusRequest};
use tokio::time::timeout;
use tonic::Code;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::issued::Issued;
use super::{reason, write};
use crate::authority::{Authority, Pair};
use crate::support::{Process, request, spawn};

/// Gives a server this certificate.
fn install(folder: &Path, pair: &Pair) {
    // As a site does: each file appears whole. Between the two the certificate does not fit the key, and the server keeps
    // what it has.
    for (name, text, mode) in [("server.pem", &pair.certificate, 0o644), ("server.key", &pair.key, 0o600)] {
        write(&folder.join("new"), text, mode);
        std::fs::rename(folder.join("new"), folder.join(name)).unwrap();
    }
}

/// A server with TLS, which takes clients' certificates of this authority.
fn serving(issued: &Issued, clients: &Authority, pair: &Pair) -> Process {
    Process::start_without_development(|command, folder| {
        issued.serve(command, &folder);
        install(&folder, pair);
        write(&folder.join("clients.pem"), &clients.text(), 0o644);
        for (flag, name) in
            [("--tls-certificate", "server.pem"), ("--tls-key", "server.key"), ("--tls-client-ca", "clients.pem")]
        {
            command.arg(flag).arg(folder.join(name));
        }
    })
}

async fn connect(process: &Process, trusted: &str, shown: Option<&Pair>) -> Result<Channel, tonic::transport::Error> {
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(trusted)).domain_name("canopy.test");
    let tls = match shown {
        Some(pair) => tls.identity(Identity::from_pem(&pair.certificate, &pair.key)),
        None => tls,
    };
    let endpoint = Endpoint::from_shared(format!("https://{}", process.address("tcp"))).unwrap();
    endpoint.tls_config(tls).unwrap().connect_timeout(Duration::from_secs(5)).connect().await
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_say_who_calls_and_wrong_ones_are_refused() {
    let (issued, servers, clients) = (Issued::new(), Authority::new(), Authority::new());
    let process = serving(&issued, &clients, &servers.signs("canopyd", &["canopy.test"], 2099));
    let status = async |shown: Option<&Pair>| {
        let channel = connect(&process, &servers.text(), shown).await.map_err(|_| "no connection".to_owned())?;
        let answer = ServerClient::new(channel).get_status(GetStatusRequest::default()).await;
        answer
            .map(drop)
            .map_err(|status| if status.code() == Code::Unknown { "cut".to_owned() } else { reason(&status) })
    };
    assert_eq!(status(Some(&clients.signs("viewer", &[], 2099))).await, Ok(()));
    assert_eq!(status(Some(&clients.signs("somebody", &[], 2099))).await, Err("IDENTITY_UNKNOWN".to_owned()));
    assert_eq!(status(None).await, Err("IDENTITY_MISSING".to_owned()));
    for wrong in [clients.signs("admin", &[], 2021), Authority::new().signs("admin", &[], 2099)] {
        let refused = status(Some(&wrong)).await.unwrap_err();
        assert!(!refused.starts_with("IDENTITY"), "the connection itself is refused: {refused}");
    }
    // Whoever trusts somebody else does not speak to this server, nor does plain text.
    assert!(connect(&process, &clients.text(), None).await.is_err());
    let plain = Channel::from_shared(format!("http://{}", process.address("tcp"))).unwrap().connect().await;
    if let Ok(channel) = plain {
        assert!(PlannerClient::new(channel).plan(request("ring:4").into_plan()).await.is_err());
    }
    let viewer = connect(&process, &servers.text(), Some(&clients.signs("viewer", &[], 2099))).await.unwrap();
    let refused = ServerClient::new(viewer).drain(DrainRequest::default()).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused).as_str()), (Code::PermissionDenied, "METHOD_NOT_ALLOWED"));
}

/// A hundred streams stay open and calls go on while the certificate is replaced, again and again.
#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_replaced_without_a_failed_call() {
    let (issued, clients) = (Issued::new(), Authority::new());
    let (old, new) = (Authority::new(), Authority::new());
    let pairs = [&old, &new].map(|authority| authority.signs("canopyd", &["canopy.test"], 2099));
    let mut process = serving(&issued, &clients, &pairs[0]);
    let viewer = clients.signs("planner", &[], 2099);
    let mut streams = Vec::new();
    let mut channels = Vec::new();
    for _ in 0..10 {
        let channel = connect(&process, &old.text(), Some(&viewer)).await.unwrap();
        for _ in 0..10 {
            let stream = LeasesClient::new(channel.clone()).watch_leases(WatchLeasesRequest::default()).await;
            streams.push(stream.unwrap().into_inner());
        }
        channels.push(channel);
    }
    let folder = process.folder.path().to_owned();
    let calling = spawn(async move {
        let mut count = 0;
        loop {
            for channel in &channels {
                PlannerClient::new(channel.clone()).plan(request("ring:4").into_plan()).await.unwrap();
                count += 1;
            }
            if count >= 2000 {
                return count;
            }
        }
    });
    for round in 1..=6 {
        install(&folder, &pairs[round % 2]);
        process.wait_for("the certificates were read again");
        let trusted = [&old, &new][round % 2].text();
        let channel = connect(&process, &trusted, Some(&viewer)).await.unwrap();
        assert!(PlannerClient::new(channel).plan(request("ring:5").into_plan()).await.is_ok());
        let other = [&old, &new][(round + 1) % 2].text();
        assert!(connect(&process, &other, Some(&viewer)).await.is_err(), "the one before is gone");
    }
    assert_eq!(calling.await.unwrap(), 2000);
    for stream in &mut streams {
        let word = timeout(Duration::from_millis(1), stream.message()).await;
        assert!(!matches!(word, Ok(Err(_) | Ok(None))), "a stream has ended: {word:?}");
    }
    // One that does not fit changes nothing.
    write(&folder.join("server.key"), &clients.signs("x", &[], 2099).key, 0o600);
    process.wait_for("the certificates cannot be used; those before stay in effect");
    assert!(connect(&process, &old.text(), Some(&viewer)).await.is_ok());
}
