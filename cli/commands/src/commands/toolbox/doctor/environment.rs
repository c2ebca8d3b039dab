//! The environment of the job: of this process, of a file, and as the log states it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::exit::Failure;
use crate::input;

/// Largest file of variables that is read.
const ENVIRONMENT_BYTES_MAX: usize = 4 << 20;
/// What the names of variables begin with that decide about plans.
const PREFIXES: [&str; 5] = ["NCCL_", "MSCCL_", "RCCL_", "MSCCLPP_", "CANOPY_JOB_DIR"];

/// Variables by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Environment {
    values: BTreeMap<String, String>,
}

impl Environment {
    /// That of this process.
    pub(super) fn of_process() -> Self {
        let text = |word: std::ffi::OsString| word.to_string_lossy().into_owned();
        Self::of(std::env::vars_os().map(|(name, value)| (text(name), text(value))))
    }

    /// That of a file with `NAME=VALUE` lines, as `env` prints them, or as /proc/PID/environ has them.
    pub(super) fn of_file(path: &Path) -> Result<Self, Failure> {
        let bytes = input::bytes(path, ENVIRONMENT_BYTES_MAX)?;
        Ok(Self::of_text(&String::from_utf8_lossy(&bytes)))
    }

    fn of_text(text: &str) -> Self {
        let separator = if text.contains('\0') { '\0' } else { '\n' };
        let pair = |line: &str| {
            let line = line.trim();
            let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
            Some((name.trim().to_owned(), unquoted(value)))
        };
        Self::of(text.split(separator).filter_map(pair))
    }

    fn of(pairs: impl Iterator<Item = (String, String)>) -> Self {
        let decides = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        Self { values: pairs.filter(|(name, _)| decides(name)).collect() }
    }

    /// Adds what the log of the job states, which is what the job had.
    pub(super) fn with(mut self, stated: &BTreeMap<String, String>) -> Self {
        self.values.extend(stated.iter().map(|(name, value)| (name.clone(), value.clone())));
        self
    }

    /// The value of a variable; none where it is not set or empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A variable that runtimes read as a number, where it is one.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(|value| value.trim().parse().ok())
    }
}

/// A value without the quotes of a shell around it.
fn unquoted(value: &str) -> String {
    let value = value.trim();
    let inner = ['\'', '"'].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    inner.unwrap_or(value).replace(r"'\''", "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_as_shells_and_the_kernel_write_them() {
        let text = "# comment\nexport MSCCL_ALGO_DIR='/run/it'\\''s'\nNCCL_ALGO=Ring\nPATH=/bin\nNCCL_PROTO=\nbroken\n";
        let found = Environment::of_text(text);
        assert_eq!(found.get("MSCCL_ALGO_DIR"), Some("/run/it's"));
        assert_eq!((found.get("NCCL_ALGO"), found.get("PATH"), found.get("NCCL_PROTO")), (Some("Ring"), None, None));
        let found = Environment::of_text("A=1\0NCCL_MAX_NCHANNELS=8\0MSCCL_XML_FILES=a\nb\0");
        assert_eq!((found.number("NCCL_MAX_NCHANNELS"), found.get("MSCCL_XML_FILES")), (Some(8), Some("a\nb")));
    }

    #[test]
    fn the_log_of_the_job_is_believed_first() {
        let stated = BTreeMap::from([("NCCL_ALGO".to_owned(), "MSCCL".to_owned())]);
        assert_eq!(Environment::of_text("NCCL_ALGO=Ring").with(&stated).get("NCCL_ALGO"), Some("MSCCL"));
    }
}
