//! What a command says beside its result: lines on standard error, in colour on terminals.
//!
//! `--quiet` leaves only errors, `--verbose` adds details. Colours follow `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE`.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::Write as _;
use std::sync::atomic::{AtomicI8, Ordering};
use std::sync::{Mutex, PoisonError};

use anstyle::{AnsiColor, Style};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const POOR: Style = AnsiColor::Yellow.on_default().bold();

/// Set once, when the arguments are known.
static VERBOSITY: AtomicI8 = AtomicI8::new(0);

/// How much a command says; options of every command.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct VerbosityArgs {
    /// Print errors only, and the result
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Print what is being done: which server answers, the stages of a plan and their times
    #[arg(long, short, global = true)]
    verbose: bool,
}

impl VerbosityArgs {
    /// Puts it into effect, for all of the process.
    pub(crate) fn apply(self) {
        VERBOSITY.store(i8::from(self.verbose) - i8::from(self.quiet), Ordering::Relaxed);
    }
}

/// Whether nothing but errors is said.
pub(crate) fn is_quiet() -> bool {
    VERBOSITY.load(Ordering::Relaxed) < 0
}

/// Whether details are said.
pub(crate) fn is_verbose() -> bool {
    VERBOSITY.load(Ordering::Relaxed) > 0
}

/// Says one line, unless the command is to be quiet.
pub(crate) fn say(line: &str) {
    if !is_quiet() {
        write(line);
    }
}

/// Warnings that were said: a command that reads a file several times says once what is odd about it.
static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Says once what may surprise the user, unless the command is to be quiet.
pub(crate) fn warn(what: impl Display) {
    let line = what.to_string();
    if !is_quiet() && WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(line.clone()) {
        labelled(WARNING, "warning", line);
    }
}

/// Says what the user can do, unless the command is to be quiet.
pub(crate) fn advise(what: impl Display) {
    if !is_quiet() {
        help(what);
    }
}

/// Says one line where `--verbose` asks for it.
pub(crate) fn detail(what: impl FnOnce() -> String) {
    if is_verbose() {
        write(&what());
    }
}

/// Says why a command fails.
pub(crate) fn error(what: impl Display) {
    labelled(ERROR, "error", what);
}

/// Says what the user can do about a failure.
pub(crate) fn help(what: impl Display) {
    labelled(HELP, "help", what);
}

/// One line on standard error, whatever the user wants to hear. A closed standard error is no reason to fail.
pub(crate) fn write(line: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}

fn labelled(style: Style, label: &str, what: impl Display) {
    write(&format!("{style}{label}:{style:#} {what}"));
}

/// Words of a verdict in green or yellow, for [`say`] and [`print`](crate::stdout::print), which take the colours off
/// where there is no terminal.
pub(crate) fn verdict(is_good: bool, words: impl Display) -> String {
    let style = if is_good { GOOD } else { POOR };
    format!("{style}{words}{style:#}")
}
