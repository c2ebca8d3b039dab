//! How a command ends: its words on standard error and its exit status.

use std::process::ExitCode;

use canopy_client::{ClientError, ErrorClass};
pub(crate) use canopy_plan::chain as words;

use crate::messages;

/// How to get the program that has all commands and a server in it.
pub(crate) const GET_TOOLS: &str =
    "install the package canopy-tools, or build it: cargo build --release -p canopy-tools";

/// Exit status of an interrupted process, as shells report SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command did not succeed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Something to tell the user.
    Told(Box<Told>),
    /// No server is named, and this program has none in it: another one may take over once the command has ended.
    NoServer,
    /// The user stopped it, and knows.
    Interrupted,
    /// Whoever read standard output has had enough: nothing failed, nothing more is to be said.
    OutputClosed,
}

/// A failure and what to print about it.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    class: ErrorClass,
    message: String,
    notes: Vec<String>,
    help: Option<String>,
}

impl Failure {
    /// A failure of this class, in one sentence.
    pub(crate) fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self::Told(Box::new(Told { class, message: message.into(), notes: Vec::new(), help: None }))
    }

    /// The request is wrong.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Input, message)
    }

    /// canopy or the machine is at fault.
    pub(crate) fn fault(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Fault, message)
    }

    /// Adds a line below the message, such as a field and what is wrong with it.
    #[must_use]
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        if let Self::Told(told) = &mut self {
            told.notes.push(note.into());
        }
        self
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        if let Self::Told(told) = &mut self {
            told.help = Some(help.into());
        }
        self
    }

    /// Whose move it is, where there is something to tell.
    pub(crate) fn class(&self) -> Option<ErrorClass> {
        match self {
            Self::Told(told) => Some(told.class),
            Self::NoServer => Some(ErrorClass::Input),
            Self::Interrupted | Self::OutputClosed => None,
        }
    }

    /// The failure in one sentence.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Self::Told(told) => told.message.clone(),
            Self::NoServer => "no server is named, and this build of canopy has none in it".to_owned(),
            Self::Interrupted => "interrupted".to_owned(),
            Self::OutputClosed => "the reader of standard output has gone".to_owned(),
        }
    }

    /// Prints the failure on standard error and gives the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Told(told) => {
                told.print();
                ExitCode::from(told.class.exit_status())
            }
            Self::NoServer => Self::input(self.sentence())
                .help(format!("add `--server ADDR` or set CANOPY_SERVER; or {GET_TOOLS}"))
                .report(),
            Self::Interrupted => {
                messages::write("interrupted");
                ExitCode::from(INTERRUPTED)
            }
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }
}

impl Told {
    /// What is wrong, and what to do about it: where no help is given, what the message says after its first semicolon.
    fn in_two_lines(&self) -> (String, Option<String>) {
        match (&self.help, self.message.split_once("; ")) {
            (None, Some((what, help))) => (what.to_owned(), Some(help.to_owned())),
            (help, _) => (self.message.clone(), help.clone()),
        }
    }

    fn print(&self) {
        let (mut message, help) = self.in_two_lines();
        let is_place = |note: &&String| note.starts_with("at ") && !note.contains(": ");
        let places: Vec<&String> = self.notes.iter().filter(is_place).collect();
        let is_one_place = places.len() == 1;
        if let (true, Some(place)) = (is_one_place, places.first().and_then(|note| note.strip_prefix("at "))) {
            message = format!("{place}: {message}");
        }
        messages::error(message);
        for note in self.notes.iter().filter(|note| !(is_one_place && is_place(note))) {
            messages::write(&format!("  {note}"));
        }
        if let Some(help) = help {
            messages::help(help);
        }
    }
}

/// A call that brought no plan: the server's words, then what it objects to.
impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let failure = Self::new(error.class(), words(&error));
        let ClientError::Refused(refusal) = error else { return failure };
        let note = |failure: Self, (place, what): &(String, String)| {
            // What the message says already is not repeated. Where it is, is: but for a request without an answer, the
            // message itself names nodes and ranks.
            let is_said = refusal.message.contains(what.as_str());
            let is_placed = place.is_empty() || refusal.message.contains(place.as_str());
            match (is_said, is_placed) {
                (true, true) => failure,
                (true, false) if refusal.class == ErrorClass::Infeasible => failure,
                (true, false) => failure.note(format!("at {place}")),
                (false, true) => failure.note(what),
                (false, false) => failure.note(format!("at {place}: {what}")),
            }
        };
        let failure = refusal.violations.iter().fold(failure, note);
        let failure = match refusal.known_for {
            Some(age) => failure
                .note(format!("known for {age:?} and not tried again, see `canopy server plans forget-refusals`")),
            None => failure,
        };
        match refusal.retry_after {
            Some(delay) => failure.help(format!("try again in {delay:?}")),
            None => failure,
        }
    }
}
