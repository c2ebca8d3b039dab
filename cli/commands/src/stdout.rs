//! Standard output.

use std::io::{ErrorKind, Write as _};

use crate::exit::Failure;

/// Writes bytes to standard output and flushes.
///
/// # Errors
/// [`Failure::OutputClosed`] when the reader has gone.
pub(crate) fn write_stdout(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    written(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// What came of writing to standard output.
fn written(outcome: std::io::Result<()>) -> Result<(), Failure> {
    outcome.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::input(format!("cannot write to standard output: {error}")),
    })
}

/// Writes text and a line end to standard output.
///
/// Colours of [`verdict`](crate::messages::verdict) reach terminals only.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::stdout().lock();
    written(writeln!(stdout, "{text}").and_then(|()| stdout.flush()))
}
