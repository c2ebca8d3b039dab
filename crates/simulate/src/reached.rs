//! The figures of one size: what a run comes to beside its limits.

use canopy_schedule::{CollectiveKind, TransferGraph};
use canopy_topology::{Rate, Ratio, Topology};

use crate::limit::{algbw, bandwidth_limit_ps, busbw, least_time_ps};
use crate::options::{SimulateError, SimulateOptions};
use crate::outcome::Outcome;

/// What a collective of one size reached in a run. Times are in picoseconds, rates exact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// *Size* of the collective, as in [`SimulateOptions`].
    pub size_bytes: u64,
    /// When the last message arrived.
    pub time_ps: u64,
    /// Time that no plan beats: the size divided by the bound. `None` for a bound of zero and for 2⁶⁴ ps and more.
    pub least_ps: Option<u64>,
    /// Time that the bytes alone take, as of [`bandwidth_limit_ps`].
    pub limit_ps: u64,
    /// Size divided by time.
    pub algbw: Rate,
    /// Rate on a link of a perfect ring.
    pub busbw: Rate,
    /// algbw divided by the bound; `None` for a bound of zero.
    pub of_bound: Option<Ratio>,
    /// Messages that were sent.
    pub message_count: u64,
    /// Events of the run.
    pub event_count: u64,
}

impl Reached {
    /// The figures of a run of this graph with these options.
    ///
    /// `bound`: proven upper bound on the algbw of every plan. `None` if the run took no time, as without α and latencies a
    /// size of fewer bytes than chunks may.
    ///
    /// # Errors
    /// As of [`bandwidth_limit_ps`], whose cost this has, too.
    pub fn of(
        (topology, graph): (&Topology, &TransferGraph),
        kind: CollectiveKind,
        bound: &Rate,
        options: &SimulateOptions<'_>,
        outcome: &Outcome,
    ) -> Result<Option<Self>, SimulateError> {
        let limit_ps = bandwidth_limit_ps(topology, graph, options)?;
        let (size_bytes, time_ps) = (options.size_bytes, outcome.time_ps);
        let rates = algbw(size_bytes, time_ps).and_then(|algbw| {
            let busbw = busbw(kind, topology.rank_count(), &algbw)?;
            Some((algbw, busbw))
        });
        Ok(rates.map(|(algbw, busbw)| Self {
            size_bytes,
            time_ps,
            least_ps: least_time_ps(size_bytes, bound),
            limit_ps,
            of_bound: algbw.ratio_to(bound),
            algbw,
            busbw,
            message_count: outcome.message_count,
            event_count: outcome.event_count,
        }))
    }
}
