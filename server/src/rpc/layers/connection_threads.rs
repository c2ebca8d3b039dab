//! Threads that only move bytes, apart from those that handle calls.
//!
//! Two thousand heavy answers keep every thread of one runtime busy for seconds, and whoever asks for the health of the
//! process waits behind them. So connections, and the health service, have threads of their own, and so do the pages of
//! operators: the system gives each of them its turn, however much there is to do elsewhere.

use std::future::Future;
use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::tasks::{self, Task};

/// Threads that read requests and write answers.
const CONNECTION_THREADS: usize = 2;

/// Runtimes beside the one that handles calls; dropping this ends their tasks.
#[derive(Debug)]
pub(crate) struct ConnectionThreads {
    connections: Option<Runtime>,
    pages: Option<Runtime>,
}

impl ConnectionThreads {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = |name: &str, threads| {
            Builder::new_multi_thread()
                .worker_threads(threads)
                .thread_name(name.to_owned())
                .enable_all()
                .build()
                .map(Some)
        };
        Ok(Self { connections: runtime("canopy-front", CONNECTION_THREADS)?, pages: runtime("canopy-pages", 1)? })
    }

    /// No threads: everything happens on the present runtime.
    pub(crate) const fn none() -> Self {
        Self { connections: None, pages: None }
    }

    /// Starts a task that serves connections.
    pub(crate) fn connections<T, F>(&self, name: &'static str, future: F) -> Task<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        spawn(self.connections.as_ref(), name, future)
    }

    /// Starts a task that serves the pages of operators.
    pub(crate) fn pages<T, F>(&self, name: &'static str, future: F) -> Task<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        spawn(self.pages.as_ref(), name, future)
    }
}

fn spawn<T, F>(runtime: Option<&Runtime>, name: &'static str, future: F) -> Task<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    tasks::spawn_on(&runtime.map_or_else(Handle::current, |runtime| runtime.handle().clone()), name, future)
}

impl Drop for ConnectionThreads {
    fn drop(&mut self) {
        // Within a runtime nobody may wait for another one's threads.
        for runtime in [self.connections.take(), self.pages.take()].into_iter().flatten() {
            runtime.shutdown_background();
        }
    }
}
