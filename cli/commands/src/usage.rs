//! What the parser of command lines objects to, in one line and a line of help.

use canopy_topology::closest;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use crate::commands::{FAMILIES, command, hint_for, named};
use crate::exit::Failure;
use crate::handover;
use crate::table::joined;

/// Options by the words that people type for them, for commands that have them.
const MEANT: [(&str, &str); 25] = [
    ("--addr", "--server"),
    ("--address", "--server"),
    ("--algo", "--algorithm"),
    ("--degrade", "--fault"),
    ("--down", "--fault"),
    ("--format", "--to"),
    ("--fraction", "--remaining"),
    ("--hosts", "--boxes"),
    ("--hosts", "--nodes"),
    ("--k", "--degree"),
    ("--link-down", "--fault"),
    ("--machines", "--boxes"),
    ("--machines", "--nodes"),
    ("--message-size", "--size"),
    ("--node-down", "--fault"),
    ("--nodelist", "--nodes"),
    ("--nodes", "--boxes"),
    ("--op", "--collective"),
    ("--ports", "--degree"),
    ("--runtime", "--profile"),
    ("--runtime", "--to"),
    ("--timeout", "--deadline"),
    ("--to", "--format"),
    ("--token", "--token-file"),
    ("--url", "--server"),
];

/// Options that people expect, and what to write instead.
const EXPECTED: [(&str, &str); 14] = [
    ("--boxes", "write it in the expression: `dgx-a100:boxes=2`"),
    ("--nodes", "write it in the expression: `dgx-a100:boxes=4`"),
    ("--gpus", "write it in the expression: `dgx-a100:boxes=2,gpus=8`"),
    ("--bandwidth", "write it in the expression: `ring:8,bw=25GB/s`"),
    ("--latency", "write it in the expression: `ring:8,lat=700ns`"),
    ("--down", "write it in the expression: `ring:8,down=0-1`, or report it: `canopy faults report`"),
    ("--fault", "write it in the expression: `ring:8,down=0-1`, or report it: `canopy faults report`"),
    ("--link-down", "write it in the expression: `ring:8,down=0-1`, or report it: `canopy faults report`"),
    ("--node-down", "write it in the expression: `ring:8,nodes-down=3`, or report it: `canopy faults report`"),
    ("--degrade", "write it in the expression: `ring:8,degrade=0-1*1/2`, or report it: `canopy faults report`"),
    ("--fraction", "write it behind the fault: `nic:gpu01:3*1/2` or `ring:8,degrade=0-1*1/2`"),
    ("--job", "leases are found by their job: `canopy job leases show --job 17`"),
    ("--partition", "name the topology itself, T"),
    ("--topology", "name the topology itself, T"),
];

/// The failure that stands for an error of the parser; not for help and version, which are printed as they are.
pub(crate) fn failure(error: &clap::Error) -> Failure {
    let path = command_path(error);
    let see = format!("`{path} --help` lists what it takes");
    let (message, help) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(error, ContextKind::InvalidSubcommand);
            // Hints are for whole commands: what one of them has itself is meant rather.
            let hint = || hint_for(&word).map(str::to_owned);
            let close = || suggestion(error, ContextKind::SuggestedSubcommand);
            let elsewhere = || {
                let parser = command();
                let names = handover::COMMANDS.iter().map(|(name, _)| *name);
                let close = closest(&word, names.filter(|name| named(&parser, name).is_none()))?;
                Some(format!("did you mean `{close}`?"))
            };
            let help = if path == "canopy" { hint().or_else(close).or_else(elsewhere) } else { close().or_else(hint) };
            let help = help.unwrap_or_else(|| format!("`{path} --help` lists all commands"));
            (format!("unknown command `{word}`"), help)
        }
        ErrorKind::UnknownArgument => {
            let word = text(error, ContextKind::InvalidArg);
            let help = help_for_unknown(command_at(&command(), &path), &word).unwrap_or(see);
            let what = if word.starts_with('-') { "unknown option" } else { "unexpected argument" };
            (format!("{what} `{word}`"), help)
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = list(error, ContextKind::InvalidArg);
            let help = missing.first().and_then(|name| help_for_missing(command_at(&command(), &path)?, name));
            (format!("`{path}` needs {}", quoted(&missing)), help.unwrap_or(see))
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

/// The command that is asked for and unknown, such as `lab` or `network cost`, if that is what is wrong.
pub(crate) fn unknown_command(error: &clap::Error) -> Option<String> {
    let word = text(error, ContextKind::InvalidSubcommand);
    let path = format!("{} {word}", command_path(error));
    let name = path.strip_prefix("canopy ").filter(|_| error.kind() == ErrorKind::InvalidSubcommand)?;
    let of_family = name.split_once(' ').filter(|(family, _)| FAMILIES.contains(family)).map(|(_, command)| command);
    Some(of_family.unwrap_or(name).to_owned())
}

/// The command that these words name, `canopy server plans list`.
fn command_at<'a>(root: &'a Command, path: &str) -> Option<&'a Command> {
    path.split_once(' ').map_or(Some(root), |(_, words)| named(root, words))
}

/// What to type instead of an option that the command does not have.
fn help_for_unknown(command: Option<&Command>, word: &str) -> Option<String> {
    let args = command.into_iter().flat_map(Command::get_arguments).filter(|arg| !arg.is_hide_set());
    let options: Vec<String> = args.filter_map(Arg::get_long).map(|long| format!("--{long}")).collect();
    let has = |option: &str| options.iter().any(|one| one == option);
    let meant = MEANT.iter().find(|(typed, meant)| *typed == word && has(meant)).map(|(_, meant)| *meant);
    if let Some(meant) = meant {
        return Some(format!("did you mean `{meant}`?"));
    }
    if let Some((_, help)) = EXPECTED.iter().find(|(option, _)| *option == word) {
        return Some((*help).to_owned());
    }
    let close = closest(word, options.iter().map(String::as_str)).filter(|_| word.starts_with("--"))?;
    Some(format!("did you mean `{close}`?"))
}

/// What an argument that is missing takes: its values where they are few, else its line of help.
fn help_for_missing(command: &Command, name: &str) -> Option<String> {
    let is_named = |arg: &&Arg| match name.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_value_names().is_some_and(|names| names.iter().any(|value| value.as_str() == name)),
    };
    let arg = command.get_arguments().find(is_named)?;
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| value.get_name().to_owned())
        .collect();
    if arg.get_action().takes_values() && !values.is_empty() {
        return Some(format!("{name} is {}", quoted(&values)));
    }
    let about = arg.get_help()?.to_string();
    Some(format!("{name}: {}", about.lines().next()?))
}

/// A value that was refused with words of canopy's own; those that say what to write need no more help.
fn invalid(error: &clap::Error, see: &str) -> Failure {
    use std::error::Error as _;
    let why = error.source().map(ToString::to_string).unwrap_or_default();
    let (option, value) = (option(error), text(error, ContextKind::InvalidValue));
    if why.starts_with("use ") {
        return Failure::input(format!("`{option}` cannot be `{value}`")).help(why);
    }
    let (what, help) = match (why.split_once("; "), why.split_once(": use ")) {
        (Some((what, help)), _) => (what.to_owned(), help.to_owned()),
        (None, Some((what, values))) => (what.to_owned(), format!("use {values}")),
        (None, None) => (why, see.to_owned()),
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
