//! One closed loop of the load: a connection, random numbers, and a place to note how calls end.

use std::sync::Arc;
use std::time::Duration;

use canopy_benches::{Random, Stopwatch};
use canopy_client::{Client, ClientError, PlanReceiver};
use canopy_proto::v1::{Accepted, PlanResponse, PlanSpec, Progress};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::ledger::{Kind, Ledger, label};

/// A call without an end by then has no answer.
const ANSWER_MAX: Duration = Duration::from_secs(120);
/// Rest after a failure, so that a broken server does not make this program spin.
const AFTER_FAILURE: Duration = Duration::from_millis(5);

/// Makes one call after the other, chosen by its random numbers.
pub(super) struct Caller {
    pub(super) client: Client,
    pub(super) random: Random,
    pub(super) ledger: Arc<Ledger>,
    /// True once the load is over.
    pub(super) over: watch::Receiver<bool>,
}

impl Caller {
    /// Whether the load has ended.
    pub(super) fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Waits, but not beyond the end of the load.
    pub(super) async fn pause(&mut self, most: Duration) {
        // Either is the end of the pause.
        let _ended = timeout(most, self.over.wait_for(|&over| over)).await;
    }

    /// Makes a call and notes how it ended. Failures that are not expected are noted as well, and judged at the end.
    pub(super) async fn call<T>(
        &self,
        kind: Kind,
        work: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, String> {
        self.ledger.begun(kind);
        let watch = Stopwatch::start();
        match timeout(ANSWER_MAX, work).await {
            Ok(Ok(answer)) => {
                self.ledger.answered(kind, watch.elapsed());
                Ok(answer)
            }
            Ok(Err(error)) => {
                let failure = label(&error);
                self.ledger.failed(kind, failure.clone());
                sleep(AFTER_FAILURE).await;
                Err(failure)
            }
            // It stays unanswered in the ledger.
            Err(_) => Err("no answer".to_owned()),
        }
    }

    /// Makes a call and leaves it after some time, if it has not ended by then.
    pub(super) async fn call_and_leave<T>(
        &self,
        kind: Kind,
        patience: Duration,
        work: impl Future<Output = Result<T, ClientError>>,
    ) {
        self.ledger.begun(kind);
        let watch = Stopwatch::start();
        match timeout(patience, work).await {
            Ok(Ok(_)) => self.ledger.answered(kind, watch.elapsed()),
            Ok(Err(error)) => self.ledger.failed(kind, label(&error)),
            Err(_) => self.ledger.left(kind),
        }
    }

    /// Asks for a plan and reads it to the last byte of its files.
    pub(super) async fn stream(&mut self, kind: Kind, request: PlanSpec) -> Result<PlanResponse, String> {
        let mut client = self.client.clone();
        self.call(kind, async { client.plan(request.into_plan(), None, &mut Unkept).await }).await
    }

    /// A UUID for a change, from the random numbers.
    pub(super) fn request_id(&mut self) -> String {
        let mut digits = |count: usize| -> String {
            (0..count)
                .map(|_| char::from_digit(u32::try_from(self.random.below(16)).unwrap_or(0), 16).unwrap_or('0'))
                .collect()
        };
        format!("{}-{}-4{}-8{}-{}", digits(8), digits(4), digits(3), digits(3), digits(12))
    }
}

/// Takes files and keeps nothing: the client has checked them.
pub(super) struct Unkept;

impl PlanReceiver for Unkept {
    fn accepted(&mut self, _: &Accepted) {}

    fn progress(&mut self, _: &Progress) {}

    fn candidate(&mut self, _: &PlanResponse) {}

    fn plan(&mut self, _: &PlanResponse) -> std::io::Result<()> {
        Ok(())
    }

    fn content(&mut self, _: usize, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }
}
