//! How long a hook tries to reach a server that is not there.

use std::time::Duration;

use canopy_client::{Retries, RetryPolicy};

use crate::args;
use crate::clock::{self, Deadline};

/// Tries within a time: as many as fit, and none of them late, because a server that starts is there all at once.
const WITHIN_A_TIME: RetryPolicy =
    RetryPolicy { tries_max: u32::MAX, pause_max: Duration::from_millis(250), ..RetryPolicy::STANDARD };

/// When to give up a server that cannot be reached.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct ReachArgs {
    /// If no server listens, try again for this long only, such as 500ms; 0 tries once [default: 5 tries, in about 1s]
    #[arg(long, value_name = "TIME", value_parser = args::duration_or_zero)]
    retry_connect: Option<Duration>,
}

impl ReachArgs {
    /// The tries to connect.
    pub(super) fn retries(self) -> Retries {
        let policy = self.retry_connect.map_or(RetryPolicy::STANDARD, |_| WITHIN_A_TIME);
        Retries::new(policy, clock::jitter())
    }

    /// When the last of them may begin: a try that a server neither takes nor refuses may last until `end`.
    pub(super) fn end(self, end: Deadline) -> Deadline {
        self.retry_connect.map_or(end, |limit| end.at_most(limit))
    }
}
