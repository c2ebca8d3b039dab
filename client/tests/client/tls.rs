//! Servers that speak TLS, called without.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use canopy_client::{Client, ClientError, ErrorClass};
use canopy_proto::v1::GetStatusRequest;

/// Alert of a TLS server to a caller without TLS: unexpected message.
const ALERT: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x0a];

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_speaks_tls_is_called_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
    // It ends with the process: callers may come back.
    std::thread::spawn(move || {
        // What a caller still says must not cut the connection before it has read the alert.
        let mut callers = Vec::new();
        for caller in listener.incoming() {
            let (mut caller, mut preface) = (caller.unwrap(), [0; 24]);
            if caller.read_exact(&mut preface).is_ok() {
                caller.write_all(&ALERT).unwrap();
            }
            callers.push(caller);
        }
    });
    let client = Client::connect(&address.parse().unwrap()).await.unwrap();
    let ask = async || client.get_status(GetStatusRequest::default(), None).await.unwrap_err();
    let mut error = ask().await;
    // A connection that the alert has ended before the call is lost; the next one brings the alert again.
    for _ in 0..100 {
        if !matches!(error, ClientError::Lost { .. }) {
            break;
        }
        error = ask().await;
    }
    assert!(matches!(error, ClientError::SpeaksTls), "{error:?}");
    assert_eq!((error.class(), error.may_be_retried()), (ErrorClass::Input, false));
}
