//! Named tasks of the async runtime that end with their owner.

use std::future::Future;

use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tracing::Instrument as _;

use crate::call::{self, CallContext};

/// A running task; dropping this aborts it.
#[derive(Debug)]
pub(crate) struct Task<T>(JoinHandle<T>);

impl<T> Task<T> {
    /// Waits for the result. A task that panicked or was aborted is an error.
    pub(crate) async fn join(mut self) -> Result<T, JoinError> {
        (&mut self.0).await
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts a task under a name that its log lines carry, for the call that is being handled.
pub(crate) fn spawn<T, F>(name: &'static str, future: F) -> Task<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    spawn_on(&Handle::current(), name, future)
}

/// The same on another runtime.
pub(crate) fn spawn_on<T, F>(runtime: &Handle, name: &'static str, future: F) -> Task<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let call = CallContext::current();
    Task(runtime.spawn(call::within(call, future).instrument(tracing::info_span!("task", task = name))))
}

/// Starts a task that handles the present call on this runtime, within the spans of the call.
pub(crate) fn spawn_call<T, F>(runtime: &Handle, future: F) -> Task<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let call = CallContext::current();
    Task(runtime.spawn(call::within(call, future).in_current_span()))
}
