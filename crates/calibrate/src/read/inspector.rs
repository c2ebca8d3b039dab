//! Records of NCCL's Inspector: one JSON object for each call of a rank, in lines or one after the other.

use std::collections::BTreeMap;

use canopy_schedule::CollectiveKind;
use serde::Deserialize;

use super::{LIBRARY, POINTS_MAX, Point, ReadRunsError, Run, collective, wrong};
use crate::solve::median;

#[derive(Deserialize)]
struct Record {
    header: Header,
    coll_perf: Option<Call>,
}

#[derive(Deserialize)]
struct Header {
    n_ranks: u32,
}

#[derive(Deserialize)]
struct Call {
    coll: String,
    coll_exec_time_us: f64,
    coll_busbw_gbs: f64,
}

pub(super) fn is_one(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains("\"coll_perf\"")
}

/// A run for each collective and number of ranks. All ranks record a call: of those of a size the median counts. The size
/// is that of nccl-tests, which the bus bandwidth and the time say.
pub(super) fn read(text: &str) -> Result<Vec<Run>, ReadRunsError> {
    let mut times: BTreeMap<(CollectiveKind, u32), BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    let mut count = 0;
    for record in serde_json::Deserializer::from_str(text).into_iter::<Record>() {
        let record = record.map_err(|error| wrong(error.line(), error.to_string()))?;
        let Some(Call { coll, coll_exec_time_us: micros, coll_busbw_gbs: busbw }) = record.coll_perf else { continue };
        let ranks = record.header.n_ranks;
        let Some(kind) = collective(&coll) else { continue };
        if ranks < 2 || !(micros.is_finite() && micros > 0.0 && busbw.is_finite() && busbw > 0.0) {
            continue;
        }
        count += 1;
        if count > POINTS_MAX {
            return Err(ReadRunsError::TooMany);
        }
        let bytes = crate::parameters::rounded(busbw * 1e3 * micros / bus_factor(kind, ranks));
        times.entry((kind, ranks)).or_default().entry(nearest(bytes)).or_default().push(micros);
    }
    let run = |((kind, ranks), sizes): ((CollectiveKind, u32), BTreeMap<u64, Vec<f64>>)| {
        let point = |(bytes, times): (u64, Vec<f64>)| Some(Point { bytes, micros: median(times)? });
        Run {
            collective: Some(kind),
            algorithm: Some(LIBRARY.to_owned()),
            ranks: Some(ranks),
            ..Run::of(sizes.into_iter().filter_map(point).collect())
        }
    };
    Ok(times.into_iter().map(run).collect())
}

fn bus_factor(kind: CollectiveKind, ranks: u32) -> f64 {
    let ranks = f64::from(ranks);
    match kind {
        CollectiveKind::Allreduce => 2.0 * (ranks - 1.0) / ranks,
        CollectiveKind::Broadcast | CollectiveKind::Reduce => 1.0,
        _ => (ranks - 1.0) / ranks,
    }
}

/// Rates have few digits: sizes that differ by less are one.
fn nearest(bytes: u64) -> u64 {
    let step = 1_u64 << bytes.max(1).ilog2().saturating_sub(7);
    (bytes + step / 2) / step * step
}
