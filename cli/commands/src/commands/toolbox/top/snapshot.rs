//! What a server says of itself at one moment.

use std::time::Duration;

use canopy_client::{Client, ClientError};
use canopy_proto::v1::{
    GetMetricsRequest, GetQueueRequest, GetStatusRequest, ListFaultsRequest, ListFaultsResponse, QueueStatus,
    ServerStatus,
};

use super::metrics::Metrics;

/// What metrics are asked for.
const PREFIXES: [&str; 11] = [
    "canopy_cache_",
    "canopy_connections",
    "canopy_database_reachable",
    "canopy_disk_",
    "canopy_leases_active",
    "canopy_plan_latency_seconds",
    "canopy_plan_requests_total",
    "canopy_replans_",
    "canopy_rpc_",
    "canopy_store_writable",
    "canopy_watchers",
];
/// Most faults that are shown.
const FAULTS_MAX: u32 = 200;

/// One moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) status: ServerStatus,
    pub(super) queue: QueueStatus,
    pub(super) faults: ListFaultsResponse,
    pub(super) metrics: Metrics,
}

impl Snapshot {
    /// Asks a server.
    pub(super) async fn of(client: &Client, left: Option<Duration>) -> Result<Self, ClientError> {
        let faults = ListFaultsRequest {
            page_size: FAULTS_MAX,
            order_by: "since desc".to_owned(),
            ..ListFaultsRequest::default()
        };
        let prefixes = PREFIXES.map(str::to_owned).into();
        Ok(Self {
            status: client.get_status(GetStatusRequest {}, left).await?,
            queue: client.get_queue(GetQueueRequest {}, left).await?,
            faults: client.list_faults(faults, left).await?,
            metrics: Metrics::read(&client.get_metrics(GetMetricsRequest { prefixes }, left).await?.text),
        })
    }

    /// Seconds that the server has run, by its own clock.
    pub(super) fn uptime(&self) -> f64 {
        self.status.uptime.as_ref().map_or(0.0, |uptime| uptime.seconds as f64 + f64::from(uptime.nanos) / 1e9)
    }
}

/// Two moments of one server.
#[derive(Clone, Debug, Default)]
pub(super) struct Moments {
    pub(super) before: Snapshot,
    pub(super) now: Snapshot,
}

impl Moments {
    /// The latest moment comes after another one; after a restart, everything is new.
    pub(super) fn next(self, now: Snapshot) -> Self {
        let before = if now.uptime() < self.now.uptime() { Snapshot::default() } else { self.now };
        Self { before, now }
    }

    /// How much a counter grew in a second.
    pub(super) fn rate(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let grown = self.now.metrics.sum(name, labels) - self.before.metrics.sum(name, labels);
        let seconds = self.now.uptime() - self.before.uptime();
        if seconds > 0.0 { grown.max(0.0) / seconds } else { 0.0 }
    }

    /// A quantile of what a histogram took up, in milliseconds.
    pub(super) fn millis(&self, name: &str, labels: &[(&str, &str)], quantile: f64) -> Option<f64> {
        self.now.metrics.quantile(&self.before.metrics, name, labels, quantile).map(|seconds| seconds * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, page: &str) -> Snapshot {
        let uptime = Some(prost_types::Duration { seconds, nanos: 0 });
        let status = ServerStatus { uptime, ..ServerStatus::default() };
        Snapshot { status, metrics: Metrics::read(page), ..Snapshot::default() }
    }

    #[test]
    fn rates_are_of_the_time_between_two_moments() {
        let moments = Moments::default().next(at(100, "a 50")).next(at(104, "a 70"));
        assert_eq!(moments.rate("a", &[]).to_string(), "5");
        let restarted = moments.next(at(10, "a 20"));
        assert_eq!(restarted.rate("a", &[]).to_string(), "2", "since the start");
        assert_eq!(Moments::default().rate("a", &[]).to_string(), "0");
    }
}
