//! Plans that one of canopy's own checks refused, or whose search broke: what a maintainer needs to see it happen again.
//!
//! Workers only note them. A thread of its own reads the topology again and writes the files, so that no answer waits for
//! a disk; one that refuses costs the reproducer and a line in the log.
//!
//! | module | what it knows |
//! |---|---|
//! | `report` | what stands in a report |
//! | `command` | the command lines that ask for the plan again |

mod command;
mod report;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use canopy_planner::{PlanError, PlanKey, Request as Order, RequestKey, chain, read_topology};
use canopy_synth::Never;
use canopy_topology::{TopologyLimits, to_json};
use parking_lot::{Condvar, Mutex};

use crate::clock;
use crate::store::reproducers::{Files, Kept, NotKept, ReproducerFolder, ReproducerLimits};

/// Most plans that wait to be written. Each may hold a topology of many megabytes.
const WAITING_MAX: usize = 16;
/// Time after which the folder is looked at again: a person may have removed files.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);

/// Keeps reproducers in the data directory.
pub(crate) struct Reproducers {
    folder: ReproducerFolder,
    /// Within which topologies are read.
    limits: TopologyLimits,
    line: Mutex<Line>,
    changed: Condvar,
    kept: AtomicUsize,
    dropped: AtomicU64,
}

/// What is yet to be written.
struct Line {
    is_open: bool,
    waiting: VecDeque<Refused>,
}

/// A plan that was refused, or whose search broke.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    /// Its request.
    pub(crate) order: Order,
    pub(crate) request: RequestKey,
    /// Where the plan is, or would be, stored.
    pub(crate) plan: PlanKey,
    /// Whose plan it was: of a candidate, its own algorithm.
    pub(crate) algorithm: &'static str,
    /// The check that refused it; `broken` or `panic` where there was nothing to check.
    pub(crate) reason: &'static str,
    /// What was wrong.
    pub(crate) problem: String,
}

impl Refused {
    /// Equal for what need not be kept twice. Names of algorithms and reasons are plain words.
    fn name(&self) -> String {
        let Self { plan, algorithm, reason, .. } = self;
        format!("{:.32}-{algorithm}-{reason}", plan.to_string())
    }
}

impl Reproducers {
    /// Those of a data directory. Reads the names in its folder.
    pub(crate) fn of(data_dir: &Path, limits: TopologyLimits) -> Self {
        Self::within(ReproducerFolder::of(data_dir, ReproducerLimits::STANDARD), limits)
    }

    fn within(folder: ReproducerFolder, limits: TopologyLimits) -> Self {
        let line = Mutex::new(Line { is_open: true, waiting: VecDeque::new() });
        let reproducers = Self {
            folder,
            limits,
            line,
            changed: Condvar::new(),
            kept: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
        };
        reproducers.look();
        reproducers
    }

    /// Has a plan written down soon. Returns the file, for the log; `None` if too many wait, which is counted and logged.
    pub(crate) fn note(&self, refused: Refused) -> Option<PathBuf> {
        let name = refused.name();
        let mut line = self.line.lock();
        if !line.is_open || line.waiting.len() >= WAITING_MAX {
            drop(line);
            self.dropped.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(reproducer = name, "a reproducer was not kept: too many wait to be written");
            return None;
        }
        line.waiting.push_back(refused);
        self.changed.notify_one();
        Some(self.folder.report_path(&name))
    }

    /// Number of reproducers in the folder.
    pub(crate) fn kept_count(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// Plans that were refused and of which nothing is kept, since the start.
    pub(crate) fn dropped_count(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Writes what is noted until [`Reproducers::close`], and then what is left. Runs on a thread of its own.
    pub(crate) fn run(&self) {
        loop {
            let mut line = self.line.lock();
            if line.waiting.is_empty() && line.is_open {
                self.changed.wait_for(&mut line, LOOK_INTERVAL);
            }
            let (next, is_open) = (line.waiting.pop_front(), line.is_open);
            drop(line);
            match next {
                Some(refused) => self.write(&refused),
                None if !is_open => return,
                None => {}
            }
            self.look();
        }
    }

    /// Ends [`Reproducers::run`] once all is written.
    pub(crate) fn close(&self) {
        self.line.lock().is_open = false;
        self.changed.notify_all();
    }

    /// Counts what is there. One that cannot be counted stays at its last figure.
    fn look(&self) {
        if let Ok(held) = self.folder.held() {
            self.kept.store(held.count, Ordering::Relaxed);
        }
    }

    fn write(&self, refused: &Refused) {
        // Reading the topology or writing the report may meet the very bug.
        let kept = catch_unwind(AssertUnwindSafe(|| self.keep(refused)));
        let failure = match kept {
            Ok(Ok(_)) => return,
            Ok(Err(failure)) => chain(&failure),
            Err(_) => "writing it panicked".to_owned(),
        };
        self.dropped.fetch_add(1, Ordering::Relaxed);
        let file = self.folder.report_path(&refused.name());
        tracing::warn!(reproducer = %file.display(), failure, "a reproducer was not kept");
    }

    fn keep(&self, refused: &Refused) -> Result<Kept, Failure> {
        let name = refused.name();
        self.folder.keep(&name, || {
            // Once more, as it was asked for: what the planner has is the part that takes part, without what is broken.
            let (topology, _) =
                read_topology(&refused.order.topology, &self.limits, &Never).map_err(Failure::Topology)?;
            let file = ReproducerFolder::topology_name(&name);
            Ok(Files {
                report: report::written(refused, &file, clock::unix_ms()),
                topology: to_json(&topology).into_bytes(),
            })
        })
    }
}

/// Why a reproducer is not kept.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Folder(#[from] NotKept),
    #[error("the topology cannot be read again")]
    Topology(#[source] PlanError),
}

#[cfg(test)]
mod tests;
