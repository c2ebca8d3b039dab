//! What the parser of command lines objects to, in one line and a line of help.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::commands::hint_for;
use crate::exit::Failure;
use crate::table::joined;

/// Options that people expect, and what to write instead.
const EXPECTED: [(&str, &str); 9] = [
    ("--boxes", "write it in the expression: `dgx-a100:boxes=2`"),
    ("--nodes", "write it in the expression: `dgx-a100:boxes=4`"),
    ("--gpus", "write it in the expression: `dgx-a100:boxes=2,gpus=8`"),
    ("--bandwidth", "write it in the expression: `ring:8,bw=25GB/s`"),
    ("--link-down", "write it in the expression: `ring:8,down=0-1`, or report it: `canopy faults report`"),
    ("--node-down", "write it in the expression: `ring:8,nodes-down=3`, or report it: `canopy faults report`"),
    ("--degrade", "write it in the expression: `ring:8,degrade=0-1*1/2`, or report it: `canopy faults report`"),
    ("--partition", "name the topology itself, T"),
    ("--runtime", "name the runtime with `--profile`"),
];

/// The failure that stands for an error of the parser; not for help and version, which are printed as they are.
pub(crate) fn failure(error: &clap::Error) -> Failure {
    let path = command_path(error);
    let see = format!("`{path} --help` lists what it takes");
    let (message, help) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(error, ContextKind::InvalidSubcommand);
            let help = suggestion(error, ContextKind::SuggestedSubcommand)
                .or_else(|| hint_for(&word).map(str::to_owned))
                .unwrap_or_else(|| format!("`{path} --help` lists all commands"));
            (format!("unknown command `{word}`"), help)
        }
        ErrorKind::UnknownArgument => {
            let word = text(error, ContextKind::InvalidArg);
            let expected = EXPECTED.iter().find(|(option, _)| *option == word);
            let help = expected
                .map(|(_, help)| (*help).to_owned())
                .or_else(|| suggestion(error, ContextKind::SuggestedArg))
                .unwrap_or(see);
            let what = if word.starts_with('-') { "unknown option" } else { "unexpected argument" };
            (format!("{what} `{word}`"), help)
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = list(error, ContextKind::InvalidArg);
            (format!("`{path}` needs {}", quoted(&missing)), see)
        }
        ErrorKind::InvalidValue => {
            let (option, value) = (option(error), text(error, ContextKind::InvalidValue));
            let valid = list(error, ContextKind::ValidValue);
            if value.is_empty() {
                (
                    format!("`{option}` needs a value"),
                    if valid.is_empty() { see } else { format!("use {}", quoted(&valid)) },
                )
            } else {
                let close = suggestion(error, ContextKind::SuggestedValue).map(|close| format!("{close} "));
                let all = if valid.is_empty() { see } else { format!("use {}", quoted(&valid)) };
                (format!("`{option}` cannot be `{value}`"), format!("{}{all}", close.unwrap_or_default()))
            }
        }
        ErrorKind::ValueValidation => return invalid(error, &see),
        ErrorKind::ArgumentConflict => {
            let with = list(error, ContextKind::PriorArg);
            let both = format!("`{}` and {} cannot be combined", option(error), quoted(&with));
            (both, "give one of them".to_owned())
        }
        ErrorKind::MissingSubcommand => (format!("`{path}` needs a command"), format!("`{path} --help` lists them")),
        _ => {
            let rendered = error.to_string();
            let first = rendered.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            (first, see)
        }
    };
    Failure::input(message).help(help)
}

/// A value that was refused with words of canopy's own; those that say what to write need no more help.
fn invalid(error: &clap::Error, see: &str) -> Failure {
    use std::error::Error as _;
    let why = error.source().map(ToString::to_string).unwrap_or_default();
    let (option, value) = (option(error), text(error, ContextKind::InvalidValue));
    let (what, help) = match why.split_once("; ") {
        Some((what, help)) => (what.to_owned(), help.to_owned()),
        None => (why, see.to_owned()),
    };
    let is_named = !value.is_empty() && what.contains(value.as_str());
    let message = if is_named { format!("{option}: {what}") } else { format!("{option} {value}: {what}") };
    Failure::input(message).help(help)
}

/// `canopy plan`, from the line that says how the command is used.
fn command_path(error: &clap::Error) -> String {
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let words = usage.trim_start_matches("Usage:").split_whitespace();
    let path: Vec<&str> = words.take_while(|word| !word.starts_with(['<', '[', '-'])).collect();
    if path.is_empty() { "canopy".to_owned() } else { path.join(" ") }
}

fn text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    }
}

fn list(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::Strings(all)) => all.iter().map(|each| option_of(each)).collect(),
        Some(ContextValue::String(one)) => vec![option_of(one)],
        _ => Vec::new(),
    }
}

/// The option at fault, without its value.
fn option(error: &clap::Error) -> String {
    option_of(&text(error, ContextKind::InvalidArg))
}

/// `--size` of `--size <SIZE>`, `T` of `<T>`, and `--sweep or --size` of `<--sweep|--size <SIZE>>`.
fn option_of(shown: &str) -> String {
    match shown.strip_prefix('<') {
        Some(values) => {
            let without_value = |value| if str::starts_with(value, "--") { option_of(value) } else { value.to_owned() };
            let values = values.trim_end_matches(['.', ' ']).trim_end_matches('>').split('|');
            values.map(without_value).collect::<Vec<_>>().join(" or ")
        }
        None if shown.starts_with('[') => shown.trim_end_matches(['.', ' ']).to_owned(),
        None => shown.split([' ', '=', '[']).next().unwrap_or_default().to_owned(),
    }
}

fn suggestion(error: &clap::Error, kind: ContextKind) -> Option<String> {
    list(error, kind).first().map(|close| format!("did you mean `{close}`?"))
}

/// `` `a`, `b` or `c` ``.
fn quoted(words: &[String]) -> String {
    joined(&words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>(), "or")
}
