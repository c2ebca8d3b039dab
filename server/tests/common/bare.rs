//! A caller whose side keeps no deadline: what it states is the business of the server alone.
//!
//! The transport of tonic gives up a call when the time it states has passed, whether the server has answered or not.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use canopy_proto::v1::planner_client::PlannerClient;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response, Uri};

/// So long a call may take before a test ends that would wait for ever. It is no limit of the server's.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection over which calls go as they are.
#[derive(Clone)]
pub(crate) struct Bare(SendRequest<Body>);

impl Bare {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        drop(crate::support::spawn(async move { drop(connection.await) }));
        Self(sender)
    }

    /// A client of the planner at this address.
    pub(crate) async fn planner(address: SocketAddr) -> PlannerClient<Self> {
        PlannerClient::with_origin(Self::connect(address).await, origin(address)).max_decoding_message_size(64 << 20)
    }
}

pub(crate) fn origin(address: SocketAddr) -> Uri {
    format!("http://{address}").parse().unwrap()
}

impl tower::Service<Request<Body>> for Bare {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// What a call comes to.
///
/// # Panics
/// If the server never answers.
pub(crate) async fn answered<T>(call: impl Future<Output = T>) -> T {
    timeout(PATIENCE, call).await.expect("the server answers")
}
