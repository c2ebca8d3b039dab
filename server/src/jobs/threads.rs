//! How the threads of workers share the processors: searches stand back, and plans that are wanted at once do not wait for them.

use std::any::Any;
use std::num::NonZeroUsize;
use std::sync::Once;
use std::thread;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Most threads that work on one plan that is wanted at once.
const QUICK_THREADS_MAX: usize = 4;

/// Gives the calling thread a pool of its own for what it does in parallel, as long as this is kept: threads of the
/// common
/// pool may be busy with searches. Where there is none, it shares that one.
pub(in crate::jobs) fn own_pool() -> Option<ThreadPool> {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(QUICK_THREADS_MAX);
    let pool = ThreadPoolBuilder::new().num_threads(threads).use_current_thread();
    let pool = pool.thread_name(|number| format!("canopy-quick-{number}")).build();
    pool.inspect_err(|error| tracing::warn!(%error, "quick plans share the threads of searches, and may wait for them"))
        .ok()
}

/// How far planning threads stand back behind all others (nice value): they take what is left of the processors, so
/// that calls with deadlines and cached plans are answered while all of them compute.
const PLANNER_NICENESS: i32 = 10;

/// Lets the other threads of this process, and its neighbours, go first.
pub(in crate::jobs) fn step_back() {
    static SAID: Once = Once::new();
    // A thread begins where the one stands that starts it, and the first one of the process never steps back.
    // Without a process
    // named, Linux means the calling thread.
    let own = rustix::process::getpriority_process(Some(rustix::process::getpid()));
    let stepped_back =
        own.and_then(|own| rustix::process::setpriority_process(None, own.saturating_add(PLANNER_NICENESS)));
    if let Err(error) = stepped_back {
        SAID.call_once(|| {
            tracing::warn!(
                %error,
                "planning threads cannot lower their priority (setpriority), so answers may wait for searches; allow the call, for instance with SystemCallFilter=setpriority in the unit"
            );
        });
    }
}

/// What a panic said.
pub(in crate::jobs) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&'static str>().copied()).unwrap_or("no text")
}
