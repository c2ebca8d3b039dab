//! The audit log: every call that changes something, and every call that is refused because of who makes it.
//!
//! A change is answered only when its line is on the disk. A thread of its own writes the lines that wait together, so
//! many changes at once cost one write.

mod folder;
mod refused;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread;
use std::time::Duration;

use canopy_access::audit::Entry;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use self::folder::Folder;
use self::refused::RefusedLines;
use crate::clock;
use crate::metrics::Metrics;

/// Lines that may wait: as many calls as may be inside.
const WAITING_MAX: usize = 8192;
/// Lines that are written at once.
const TOGETHER_MAX: usize = 1024;
/// How long a call waits for its line: a disk may hang.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a log that cannot be written is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// The gauge that says whether the log can be written.
const WRITABLE: &str = "canopy_audit_writable";

/// Files of the log that were taken away while the server ran.
const LOST: &str = "canopy_audit_files_lost_total";

/// What becomes of changes while the log cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum WhenUnwritable {
    /// They are refused.
    Refuse,
    /// They are made, and not written down.
    Continue,
}

/// Where the log is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditOptions {
    /// Its folder.
    pub folder: PathBuf,
    /// Most bytes of all files; beyond it the oldest are removed.
    pub bytes_max: u64,
    /// What becomes of changes while it cannot be written.
    pub when_unwritable: WhenUnwritable,
}

/// A line to write, and its caller, if that waits for it.
struct Waiting {
    entry: Entry,
    written: Option<oneshot::Sender<bool>>,
}

struct Inner {
    lines: SyncSender<Waiting>,
    /// Whether the last attempt to write failed.
    is_unwritable: Arc<AtomicBool>,
    policy: WhenUnwritable,
    refused: Mutex<RefusedLines>,
}

/// The log; clones share it.
#[derive(Clone)]
pub(crate) struct AuditLog(Arc<Inner>);

impl AuditLog {
    /// Opens the log and starts its thread, which ends with the last clone.
    ///
    /// # Errors
    /// The folder cannot be written, or its last file is damaged.
    pub(crate) fn open(options: &AuditOptions, metrics: Metrics) -> std::io::Result<Self> {
        let folder = Folder::open(&options.folder, options.bytes_max)?;
        let (lines, waiting) = mpsc::sync_channel(WAITING_MAX);
        let is_unwritable = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_unwritable);
        let policy = options.when_unwritable;
        metrics.set(WRITABLE, &[], 1.0);
        metrics.none_yet("canopy_audit_write_failures_total", &[]);
        metrics.none_yet(LOST, &[]);
        thread::Builder::new()
            .name("canopy-audit".to_owned())
            .spawn(move || Writer { folder, flag, policy, metrics }.run(&waiting))?;
        Ok(Self(Arc::new(Inner { lines, is_unwritable, policy, refused: Mutex::default() })))
    }

    /// Whether a change may be made: the last line could be written, or that does not matter.
    pub(crate) fn takes_changes(&self) -> bool {
        self.0.policy == WhenUnwritable::Continue || !self.0.is_unwritable.load(Ordering::Acquire)
    }

    /// Writes a line down. False: it could not be written, and the change must not be acknowledged.
    pub(crate) async fn write(&self, entry: Entry) -> bool {
        let (written, answer) = oneshot::channel();
        let is_kept = match self.0.lines.try_send(Waiting { entry, written: Some(written) }) {
            Ok(()) => matches!(timeout(PATIENCE, answer).await, Ok(Ok(true))),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        };
        is_kept || self.0.policy == WhenUnwritable::Continue
    }

    /// Has a line written without waiting for it: of a call whose caller has left.
    pub(crate) fn leave(&self, entry: Entry) {
        // No place: it was the writer that failed, which the next change notices.
        let _no_place = self.0.lines.try_send(Waiting { entry, written: None });
    }

    /// Writes a line of a refused call down, unless there are too many of them. That it cannot be written changes nothing:
    /// the call is refused anyway.
    pub(crate) async fn refused(&self, mut entry: Entry) {
        let caller = if entry.identity.is_empty() { &entry.peer } else { &entry.identity };
        let admitted = self.0.refused.lock().admit(caller, clock::unix_ms());
        if let Some(skipped) = admitted {
            entry.skipped = skipped;
            self.write(entry).await;
        }
    }
}

/// The thread that writes.
struct Writer {
    folder: Folder,
    flag: Arc<AtomicBool>,
    policy: WhenUnwritable,
    metrics: Metrics,
}

impl Writer {
    fn run(mut self, waiting: &Receiver<Waiting>) {
        loop {
            let first = match waiting.recv_timeout(RETRY) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let kept_whole = self.keep_whole();
            let Some(first) = first else {
                if kept_whole.is_err() || self.flag.load(Ordering::Acquire) {
                    let outcome = kept_whole.and_then(|()| self.folder.reserve());
                    self.note(outcome);
                }
                continue;
            };
            let mut together = vec![first];
            together.extend(waiting.try_iter().take(TOGETHER_MAX - 1));
            let mut chain = self.folder.chain.clone();
            let mut lines = String::new();
            let mut callers = Vec::with_capacity(together.len());
            for Waiting { entry, written } in together {
                lines.push_str(&chain.next_line(entry));
                callers.extend(written);
            }
            let kept = kept_whole.and_then(|()| self.folder.append(&lines, chain));
            let is_kept = kept.is_ok();
            for caller in callers {
                // One that has left does not hear of it.
                let _left = caller.send(is_kept);
            }
            let outcome = kept.and_then(|()| self.folder.reserve());
            self.note(outcome);
        }
    }

    /// Goes on in a new file if the last was removed, replaced or cut, and raises the alarm.
    fn keep_whole(&mut self) -> std::io::Result<()> {
        if self.folder.is_whole()? {
            return Ok(());
        }
        tracing::error!(
            "the last file of the audit log was removed, replaced or cut; a new file goes on, and \
             `canopy server audit verify` shows which lines are missing"
        );
        self.metrics.count(LOST, &[]);
        self.folder.replace_lost()
    }

    /// Remembers whether the log can be written.
    fn note(&self, outcome: std::io::Result<()>) {
        let was_unwritable = self.flag.swap(outcome.is_err(), Ordering::AcqRel);
        self.metrics.set(WRITABLE, &[], f64::from(u8::from(outcome.is_ok())));
        match outcome {
            Ok(()) if was_unwritable => tracing::info!("the audit log can be written again"),
            Ok(()) => {}
            Err(error) => {
                self.metrics.count("canopy_audit_write_failures_total", &[]);
                if !was_unwritable {
                    let message = match self.policy {
                        WhenUnwritable::Refuse => {
                            "the audit log cannot be written; changes are refused until it can be"
                        }
                        WhenUnwritable::Continue => "the audit log cannot be written; changes go on without lines",
                    };
                    tracing::error!(%error, message);
                }
            }
        }
    }
}
