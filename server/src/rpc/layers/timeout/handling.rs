//! Where a call is handled: what is known is answered on the thread that the request arrives on, anything else apart from it.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinError, block_in_place};

use crate::rpc::layers::record::Arrived;
use crate::tasks;

/// Requests up to this length are begun where they arrive: to read one takes some microseconds.
const SHORT_BYTES: u64 = 64 << 10;
/// Requests longer than this are not handled on threads that other calls need: reading one takes some milliseconds.
pub(super) const LONG_BYTES: u64 = 1 << 20;

/// A call that is being handled. Dropping it ends it. Its error says what went wrong with the handler itself.
///
/// It begins on the threads of connections. Once it waits for anything but the rest of a short request it goes on as a task among
/// those that handle calls, so that no connection waits for its work; an answer that is ready by then costs no change of threads.
pub(super) enum Handling<F: Future> {
    Begun {
        handled: Pin<Box<F>>,
        arrived: Arrived,
        calls: Handle,
    },
    Apart(Pin<Box<dyn Future<Output = Result<F::Output, JoinError>> + Send>>),
    /// Its answer was taken.
    Over,
}

impl<F> Handling<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    /// `calls`: the runtime of those that handle calls.
    pub(super) const fn new(handled: Pin<Box<F>>, arrived: Arrived, calls: Handle) -> Self {
        Self::Begun { handled, arrived, calls }
    }

    /// Works on a call that has just begun; `None`: somebody else is to go on with it.
    fn begin(
        handled: Pin<&mut F>,
        arrived: &Arrived,
        calls: &Handle,
        context: &mut Context<'_>,
    ) -> Option<Poll<Result<F::Output, String>>> {
        if arrived.bytes() > SHORT_BYTES {
            return None;
        }
        // What it starts belongs there.
        let _among_calls = calls.enter();
        match catch_unwind(AssertUnwindSafe(|| handled.poll(context))) {
            Ok(Poll::Ready(answer)) => Some(Poll::Ready(Ok(answer))),
            Ok(Poll::Pending) if arrived.is_whole() || arrived.bytes() > SHORT_BYTES => None,
            Ok(Poll::Pending) => Some(Poll::Pending),
            // The process has reported it already.
            Err(panic) => Some(Poll::Ready(Err(words(panic.as_ref())))),
        }
    }
}

impl<F> Future for Handling<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    type Output = Result<F::Output, String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Self::Begun { handled, arrived, calls } = this
            && let Some(begun) = Self::begin(handled.as_mut(), arrived, calls, context)
        {
            return begun;
        }
        match std::mem::replace(this, Self::Over) {
            Self::Begun { handled, arrived, calls } => {
                // A task of its own: one that is busy with a long message cannot look at the clock.
                let task = tasks::spawn_call(&calls, Aside { arrived, handled });
                *this = Self::Apart(Box::pin(task.join()));
            }
            other => *this = other,
        }
        match this {
            Self::Apart(task) => {
                let answer = ready!(task.as_mut().poll(context));
                *this = Self::Over;
                Poll::Ready(answer.map_err(|error| error.to_string()))
            }
            Self::Begun { .. } | Self::Over => Poll::Pending,
        }
    }
}

/// What a panic says.
fn words(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("its handler panicked: {}", said.unwrap_or("no message"))
}

/// A call that is handled where it holds up no other one, once its request has turned out to be long.
struct Aside<F> {
    arrived: Arrived,
    handled: Pin<Box<F>>,
}

impl<F: Future> Future for Aside<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // The runtime of a single thread has nobody to take over its other tasks.
        let is_long = self.arrived.bytes() > LONG_BYTES;
        if is_long && Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
            block_in_place(|| self.handled.as_mut().poll(context))
        } else {
            self.handled.as_mut().poll(context)
        }
    }
}
