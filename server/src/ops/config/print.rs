//! Settings as the text of a configuration file.

use clap::{Args as _, Command};
use toml::{Table, Value};

use super::{ConfigError, Settings};

/// Values shown for keys that are off or whose default depends on the machine; their lines are comments.
const EXAMPLES: [(&str, &str); 22] = [
    ("archive_signers", "\"/etc/canopy/archive-signers\""),
    ("audit", "\"/var/lib/canopy/audit\""),
    ("listen", "\"127.0.0.1:7423\""),
    ("users_socket", "\"/run/canopy/users.sock\""),
    ("tls_certificate", "\"/etc/canopy/server.pem\""),
    ("tls_key", "\"/etc/canopy/server.key\""),
    ("tls_client_ca", "\"/etc/canopy/clients.pem\""),
    ("access", "\"/etc/canopy/access.toml\""),
    ("tokens", "\"/etc/canopy/tokens.json\""),
    ("admin_listen", "\"127.0.0.1:7424\""),
    ("data_dir", "\"/var/lib/canopy\""),
    ("database", "\"postgres://canopy@db.example:5432/canopy\""),
    ("database_password_file", "\"/etc/canopy/database-password\""),
    ("workers", "8"),
    ("queue_bytes", "536870912"),
    ("job_memory_bytes", "8589934592"),
    ("log", "\"info\""),
    ("otlp_endpoint", "\"https://collector.example:4317\""),
    ("otlp_ca", "\"/etc/canopy/collector-ca.pem\""),
    ("otlp_certificate", "\"/etc/canopy/collector-client.pem\""),
    ("otlp_key", "\"/etc/canopy/collector-client.key\""),
    ("family_rates", "\"/etc/canopy/family-rates.yaml\""),
];

const HEAD: &str = "\
# Configuration of canopyd: every key with its default.
# Environment variables override this file, and flags override both. Unknown keys are refused.
# Check a file with `canopyd --config FILE check-config`.
";

/// A configuration file with every key, its default and what it means.
pub fn print_sample() -> String {
    let defaults = table(&Settings::defaults()).expect("defaults are text");
    let mut text = HEAD.to_owned();
    for (key, help) in keys() {
        text += &format!("\n# {help}.\n# Flag --{}, environment CANOPY_{}.\n", dashed(&key), key.to_uppercase());
        text += &match defaults.get(&key) {
            Some(value) => format!("{key} = {value}\n"),
            None => {
                let example = EXAMPLES.iter().find(|(name, _)| *name == key);
                format!("# {key} = {}\n", example.expect("a test sees that every key has a value").1)
            }
        };
    }
    text
}

/// The effective settings as a configuration file.
///
/// # Errors
/// As [`Settings::filled`].
pub fn print_effective(settings: Settings) -> Result<String, ConfigError> {
    let values = table(&settings.filled()?)?;
    let line = |(key, _)| Some(format!("{key} = {}\n", values.get(&key)?));
    Ok(keys().into_iter().filter_map(line).collect())
}

/// Every key in the order of declaration, with its help.
fn keys() -> Vec<(String, String)> {
    let command = Settings::augment_args(Command::new("canopyd").disable_help_flag(true));
    let help = |argument: &clap::Arg| argument.get_help().map(ToString::to_string).unwrap_or_default();
    command.get_arguments().map(|argument| (argument.get_id().to_string(), help(argument))).collect()
}

/// The settings that have a value.
fn table(settings: &Settings) -> Result<Table, ConfigError> {
    match Value::try_from(settings).map_err(|error| ConfigError::PathNotText { problem: error.to_string() })? {
        Value::Table(table) => Ok(table),
        _ => unreachable!("a struct is a table"),
    }
}

fn dashed(key: &str) -> String {
    key.replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::config::Time;

    #[test]
    fn the_sample_is_the_defaults() {
        assert_eq!(Settings::parse(&print_sample(), "sample").unwrap(), Settings::defaults());
    }

    #[test]
    fn every_key_is_in_the_sample_and_every_example_can_be_read() {
        let active: String = print_sample()
            .lines()
            .filter(|line| line.contains(" = "))
            .map(|line| format!("{}\n", line.trim_start_matches("# ")))
            .collect();
        let all = table(&Settings::parse(&active, "sample").unwrap()).unwrap();
        for (key, help) in keys() {
            assert!(all.contains_key(&key), "{key}");
            assert!(help.contains("[default: ") && help.ends_with(']'), "{key}: {help}");
        }
        assert_eq!(all.len(), keys().len());
    }

    /// The help repeats the defaults as text.
    #[test]
    fn the_help_states_the_true_defaults() {
        let defaults = table(&Settings::defaults()).expect("defaults are text");
        for (key, help) in keys() {
            if let Some(value) = defaults.get(&key) {
                let text = value.to_string();
                let stated = format!("[default: {}]", text.trim_matches('"'));
                assert!(help.ends_with(&stated), "{key}: {help}, but it is {value}");
            }
        }
    }

    #[test]
    fn the_effective_settings_read_back() {
        let settings = Settings { drain_timeout: Some(Time(std::time::Duration::from_secs(5))), ..Settings::default() };
        let text = print_effective(settings.clone()).unwrap();
        assert!(text.contains("drain_timeout = \"5s\""), "{text}");
        let read = Settings::parse(&text, "effective").unwrap();
        assert_eq!(read.into_options().unwrap(), settings.into_options().unwrap());
    }
}
