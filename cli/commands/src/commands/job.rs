//! The commands that schedulers call around a job: `prefetch`, `fetch`, `env` and `release`.
//!
//! A hook that fails may drain a node or put a job back into the queue. So these commands end with status 0 whatever
//! happens, unless `--strict` asks for more; they end within their deadline even where a disk or a server hangs; and
//! they print nothing on standard output but what `env` exports.

mod bundle;
pub(super) mod env;
pub(super) mod fetch;
mod handover;
mod lease;
pub(super) mod prefetch;
mod rank_order;
mod reach;
pub(super) mod release;
pub(super) mod variables;
mod wanted;

use std::ffi::OsString;
use std::sync::mpsc;
use std::time::Duration;

use canopy_client::ErrorClass;
use canopy_topology::is_invisible;

use crate::exit::Failure;

/// The family of these commands, which may be left out.
const FAMILY: &str = "job";
/// Names of the commands.
const NAMES: [&str; 4] = ["prefetch", "fetch", "env", "release"];
/// Longest id of a job.
const JOB_BYTES_MAX: usize = 255;

/// Whether these arguments, as the process got them, call a hook that must not fail.
pub(super) fn must_not_fail(arguments: &[OsString]) -> bool {
    let is = |argument: &OsString, text: &str| argument.to_str() == Some(text);
    let mut words = arguments.iter().skip(1).filter(|argument| !argument.to_string_lossy().starts_with('-'));
    let command = words.find(|word| !is(word, FAMILY));
    command.is_some_and(|command| NAMES.iter().any(|name| is(command, name)))
        && !arguments.iter().any(|argument| is(argument, "--strict"))
}

/// How a hook behaves when something goes wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manners {
    /// Report failures by the exit status.
    pub(super) strict: bool,
    /// Longest time in all.
    pub(super) deadline: Duration,
}

/// Runs a hook on a thread of its own and leaves it behind when the deadline comes: nothing that it waits for, not even
/// a disk, can keep the process. Without `--strict`, a failure is told and forgotten, but for one that another program may know
/// how to avoid.
pub(super) fn guarded<F>(manners: Manners, work: F) -> Result<(), Failure>
where
    F: FnOnce() -> Result<(), Failure> + Send + 'static,
{
    let (ended, end) = mpsc::sync_channel(1);
    let spawned = std::thread::Builder::new().name("hook".to_owned()).spawn(move || {
        // Whoever listened may have given up.
        let _heard = ended.send(work());
    });
    let outcome = match spawned {
        Err(error) => Err(Failure::fault(format!("cannot start a thread: {error}"))),
        Ok(_) => end.recv_timeout(manners.deadline).unwrap_or_else(|error| {
            Err(match error {
                mpsc::RecvTimeoutError::Timeout => {
                    let message = format!("deadline exceeded ({:?})", manners.deadline);
                    Failure::new(ErrorClass::Deadline, message).help("raise `--deadline`")
                }
                mpsc::RecvTimeoutError::Disconnected => {
                    Failure::fault("canopy failed unexpectedly").help("this is a bug in canopy; please report it")
                }
            })
        }),
    };
    match outcome {
        Err(failure) if !manners.strict && !matches!(failure, Failure::NoServer) => {
            let _forgiven = failure.report();
            Ok(())
        }
        outcome => outcome,
    }
}

/// Reads the id of a job: text on one line.
fn job_id(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > JOB_BYTES_MAX || text.contains(is_invisible) {
        return Err(format!("the id of a job is a text of 1 to {JOB_BYTES_MAX} bytes on one line"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use super::*;

    #[test]
    fn only_hooks_without_strict_are_forgiven() {
        let forgiven = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            must_not_fail(&arguments)
        };
        assert!(forgiven("canopy job fetch --no-such-option"));
        assert!(forgiven("canopy job env"));
        assert!(!forgiven("canopy job fetch --strict --no-such-option"));
        assert!(!forgiven("canopy plan fetch --no-such-option"));
        assert!(!forgiven("canopy"));
    }

    #[test]
    fn work_that_hangs_or_panics_is_left_behind() {
        let strict = Manners { strict: true, deadline: Duration::from_millis(1) };
        let (held, hangs) = mpsc::channel::<()>();
        let late = guarded(strict, move || {
            let _never = hangs.recv();
            Ok(())
        });
        assert_eq!(late.unwrap_err().report(), ExitCode::from(ErrorClass::Deadline.exit_status()));
        drop(held);
        let patient = Manners { strict: true, deadline: Duration::from_secs(60) };
        let broken = guarded(patient, || panic!("this panic is part of the test"));
        assert_eq!(broken.unwrap_err().report(), ExitCode::from(ErrorClass::Fault.exit_status()));
        let lenient = Manners { strict: false, ..patient };
        assert!(guarded(lenient, || Err(Failure::input("told and forgotten"))).is_ok());
    }
}
