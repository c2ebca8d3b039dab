//! Where a command writes what it makes: a file, or standard output.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// The value of `--output`: a file, or `-` for standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Stdout,
    File(PathBuf),
}

impl From<OsString> for Destination {
    fn from(text: OsString) -> Self {
        if text == "-" { Self::Stdout } else { Self::File(text.into()) }
    }
}

impl Destination {
    /// The file; none where it is standard output.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) => Some(path),
        }
    }
}

/// The file that `--output` names; none for standard output, which is where the content goes without it.
pub(crate) fn file(output: Option<&Destination>) -> Option<&Path> {
    output.and_then(Destination::file)
}

/// The file that `--output` names, where the JSON object of `--json` leaves standard output free for the content.
///
/// # Errors
/// Both would go to standard output. `what` is the content, such as "the plan".
pub(crate) fn beside_json<'a>(
    output: Option<&'a Destination>,
    is_json: bool,
    what: &str,
) -> Result<Option<&'a Path>, Failure> {
    match file(output) {
        None if is_json => {
            Err(Failure::input(format!("--json needs a file for {what}: standard output is for the JSON object"))
                .help("add `-o FILE`"))
        }
        file => Ok(file),
    }
}

/// The same for what only programs read: a terminal is filled with it only where `-o -` asks for that.
///
/// # Errors
/// As [`beside_json`]; standard output is a terminal and no `--output` is given.
pub(crate) fn of_machines<'a>(
    output: Option<&'a Destination>,
    is_json: bool,
    what: &str,
) -> Result<Option<&'a Path>, Failure> {
    check_terminal(output, what, std::io::stdout().is_terminal())?;
    beside_json(output, is_json, what)
}

fn check_terminal(output: Option<&Destination>, what: &str, is_terminal: bool) -> Result<(), Failure> {
    if output.is_some() || !is_terminal {
        return Ok(());
    }
    Err(Failure::input(format!("{what} is a file for programs, and standard output is a terminal"))
        .help("add `-o FILE`, or `-o -` to print it here"))
}

/// Reads the name of a file for what cannot go to standard output, because the command's answer is there.
pub(crate) fn file_only(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("standard output is for what the command says; write the name of a file, such as `./-`".to_owned()),
        name => Ok(name.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hyphen_stands_for_standard_output() {
        assert_eq!(Destination::from(OsString::from("-")), Destination::Stdout);
        let named = Destination::from(OsString::from("./-"));
        assert_eq!(file(Some(&named)), Some(Path::new("./-")));
        assert_eq!(file(Some(&Destination::Stdout)), None);
        assert!(beside_json(Some(&Destination::Stdout), true, "the plan").is_err());
        assert_eq!(beside_json(Some(&Destination::Stdout), false, "the plan").unwrap(), None);
        assert!(file_only("-").is_err() && file_only("./-").is_ok());
    }

    #[test]
    fn a_terminal_is_filled_only_on_request() {
        assert!(check_terminal(None, "the plan", true).is_err());
        assert!(check_terminal(None, "the plan", false).is_ok());
        assert!(check_terminal(Some(&Destination::Stdout), "the plan", true).is_ok());
    }
}
