//! How commands run: until they end or the user interrupts them, and what only computes on a thread of its own.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::exit::{Failure, INTERRUPTED};
use crate::messages::write;

/// Time for a command to end in order once the user has interrupted it.
const FAREWELL: Duration = Duration::from_secs(1);

/// Waits for the outcome of a command unless the user interrupts it.
pub(crate) fn interruptible(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::fault(format!("cannot start: {error}")))?;
    let (interrupted, hears) = tokio::sync::oneshot::channel();
    // On another thread: a command may be stuck in a call that no signal ends, such as opening a pipe nobody writes to.
    let _listener = runtime.spawn(async {
        interrupt().await;
        let _ended_already = interrupted.send(());
        tokio::time::sleep(FAREWELL).await;
        write("interrupted");
        std::process::exit(INTERRUPTED.into())
    });
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = command => outcome,
            Ok(()) = hears => Err(Failure::Interrupted),
        }
    });
    // A computation that nobody waits for any more must not keep the process.
    runtime.shutdown_background();
    outcome
}

/// Waits until the user, or a batch system on the user's behalf, asks the process to end.
async fn interrupt() {
    let signals = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
    let [Ok(mut interrupt), Ok(mut terminate)] = signals else {
        // Without handlers, the signals end the process by themselves.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// Runs what only computes away from the runtime, so that an interrupt is noticed at once.
pub(crate) async fn on_a_thread<T, F>(work: F) -> Result<T, Failure>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Failure> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(Failure::fault(format!("canopy ended early: {error}"))),
        },
    }
}
