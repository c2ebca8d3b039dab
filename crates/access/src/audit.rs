//! The audit log: one line for each call that changes something or is refused, each bound to the one before.
//!
//! A line is a JSON object that ends with the hash of all before it in the line. The line names the hash of the line
//! before it and counts on, so that a line cannot be changed, taken out or put in without all after it being written
//! anew. A copy of the last hash that is kept elsewhere shows even that.
//!
//! A log is a folder of files. The name of each states the number of its first line.

use serde::{Deserialize, Serialize};

use crate::short::short;

/// What is written of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Entry {
    /// When it was answered, in milliseconds since 1970.
    pub time_ms: u64,
    /// Name of the caller; empty for strangers.
    pub identity: String,
    /// What the caller showed: `token`, `jwt`, `certificate`, `user` or nothing.
    pub source: String,
    /// Where it came from: an address, or `unix`.
    pub peer: String,
    /// For which tenant; empty for none.
    pub tenant: String,
    /// Service and method.
    pub method: String,
    /// What it was about, such as the name of a plan or a job.
    pub object: String,
    /// The code of the answer, such as `OK`.
    pub outcome: String,
    /// Why, where it was refused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The id that the caller gave to the request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// The id by which logs and traces know the call.
    pub trace_id: String,
    /// Refused calls before it that have no line of their own, because there were too many at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A line but for its hash.
#[derive(Deserialize, Serialize)]
struct Line {
    number: u64,
    before: String,
    #[serde(flatten)]
    entry: Entry,
}

/// Where a log goes on: the number and the hash of its last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    number: u64,
    hash: String,
}

/// Why a line is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum Broken {
    #[error("the line has no `hash` at its end: it was cut off or changed")]
    NoHash,
    #[error("the line is not what its `hash` says: it was changed")]
    Hash,
    #[error("the line cannot be read: {}", short(problem))]
    Malformed { problem: String },
    #[error("line {found} follows line {last}: lines between them are missing, or it was put in")]
    Number { last: u64, found: u64 },
    #[error("`before` of line {number} is not the hash of the line before: one of them was replaced")]
    Before { number: u64 },
}

/// Most bytes of a line, its line break included.
pub const LINE_BYTES_MAX: u64 = 64 << 10;
/// What the names of files have before and after the number of the first line.
const FILE_NAME: (&str, &str) = ("audit-", ".jsonl");
/// What stands between a line and its hash.
const HASH_KEY: &str = ",\"hash\":\"";
/// Hexadecimal digits of a hash.
const HASH_DIGITS: usize = 64;

/// The name of the file whose first line has this number. Sorted by name, files are in the order of their lines.
pub fn file_name(number: u64) -> String {
    let (before, after) = FILE_NAME;
    format!("{before}{number:015}{after}")
}

/// Whether a file of this name belongs to a log.
pub fn is_file_name(name: &str) -> bool {
    let (before, after) = FILE_NAME;
    name.strip_prefix(before)
        .and_then(|name| name.strip_suffix(after))
        .is_some_and(|number| number.len() >= 15 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Default for Chain {
    fn default() -> Self {
        Self { number: 0, hash: "0".repeat(HASH_DIGITS) }
    }
}

impl Chain {
    /// The number of the last line; zero before the first.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The hash of the last line.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The next line, with its line break.
    pub fn next_line(&mut self, entry: Entry) -> String {
        self.number += 1;
        let line = Line { number: self.number, before: self.hash.clone(), entry };
        let mut text = serde_json::to_string(&line).expect("texts and numbers can be written");
        // The closing brace comes after the hash.
        text.pop();
        self.hash = blake3::hash(text.as_bytes()).to_hex().to_string();
        text.push_str(HASH_KEY);
        text.push_str(&self.hash);
        text.push_str("\"}\n");
        text
    }

    /// The chain at the end of this line, whatever was before it.
    ///
    /// # Errors
    /// The line is not what was written.
    pub fn after(line: &str) -> Result<(Self, Entry), Broken> {
        read(line).map(|(chain, line)| (chain, line.entry))
    }

    /// Goes on over this line, which must be the next one.
    ///
    /// # Errors
    /// It is another one, or not what was written.
    pub fn follow(&mut self, line: &str) -> Result<Entry, Broken> {
        let (next, Line { number, before, entry }) = read(line)?;
        if Some(number) != self.number.checked_add(1) {
            return Err(Broken::Number { last: self.number, found: number });
        }
        if before != self.hash {
            return Err(Broken::Before { number });
        }
        *self = next;
        Ok(entry)
    }
}

/// A line that is what its hash says, and the chain at its end.
fn read(line: &str) -> Result<(Chain, Line), Broken> {
    let (text, end) = line.trim_end_matches('\n').rsplit_once(HASH_KEY).ok_or(Broken::NoHash)?;
    let stated = end.strip_suffix("\"}").filter(|hash| hash.len() == HASH_DIGITS).ok_or(Broken::NoHash)?;
    let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
    if hash != stated {
        return Err(Broken::Hash);
    }
    let line: Line =
        serde_json::from_str(&format!("{text}}}")).map_err(|error| Broken::Malformed { problem: error.to_string() })?;
    Ok((Chain { number: line.number, hash }, line))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(identity: &str, object: &str) -> Entry {
        Entry { identity: identity.to_owned(), object: object.to_owned(), time_ms: 7, ..Entry::default() }
    }

    fn written(count: usize) -> Vec<String> {
        let mut chain = Chain::default();
        (0..count).map(|at| chain.next_line(entry("ann", &format!("plans/{at}")))).collect()
    }

    fn verify(lines: &[String]) -> Result<Chain, Broken> {
        let mut chain = Chain::default();
        lines.iter().try_for_each(|line| chain.follow(line).map(drop)).map(|()| chain)
    }

    #[test]
    fn a_log_is_read_as_it_was_written_and_goes_on() {
        let lines = written(5);
        let chain = verify(&lines).unwrap();
        assert_eq!((chain.number(), Chain::after(&lines[4]).unwrap().0), (5, chain.clone()));
        let mut goes_on = chain;
        assert!(verify(&[lines, vec![goes_on.next_line(entry("bob", "x"))]].concat()).is_ok());
    }

    #[test]
    fn what_stands_in_a_line_is_not_repeated_in_full() {
        let text = format!("\"{}\"", "x".repeat(10_000));
        let line = format!("{text}{HASH_KEY}{}\"}}", blake3::hash(text.as_bytes()));
        let problem = Chain::after(&line).unwrap_err().to_string();
        assert!(problem.starts_with("the line cannot be read: ") && problem.len() < 300, "{problem}");
    }

    #[test]
    fn files_are_known_by_their_names_and_sorted_by_them() {
        let names: Vec<String> = [1, 9, 10, 999_999, 1_000_000].map(file_name).to_vec();
        assert!(names.is_sorted() && names.iter().all(|name| is_file_name(name)), "{names:?}");
        for other in ["audit-1.jsonl", "audit-00000000000000x.jsonl", "audit-000000000000001.json", "ballast", ""] {
            assert!(!is_file_name(other), "{other}");
        }
    }

    #[test]
    fn lines_that_were_taken_out_put_in_or_exchanged_are_noticed() {
        let lines = written(4);
        let without = [&lines[..1], &lines[2..]].concat();
        assert_eq!(verify(&without), Err(Broken::Number { last: 1, found: 3 }));
        let mut twice = lines.clone();
        twice.insert(2, lines[1].clone());
        assert_eq!(verify(&twice), Err(Broken::Number { last: 2, found: 2 }));
        let mut other = Chain::default();
        let others: Vec<String> = (0..4).map(|_| other.next_line(entry("mallory", "y"))).collect();
        let mut mixed = lines.clone();
        mixed[1].clone_from(&others[1]);
        assert_eq!(verify(&mixed), Err(Broken::Before { number: 2 }));
        assert_eq!(verify(&["{}\n".to_owned()]), Err(Broken::NoHash));
    }

    proptest! {
        /// No byte of a log can be another one.
        #[test]
        fn a_changed_byte_is_noticed(identity in "\\PC{0,12}", at in 0_usize..2000, with in any::<u8>()) {
            let mut chain = Chain::default();
            let lines = [entry(&identity, "a"), entry("b", &identity)].map(|entry| chain.next_line(entry));
            prop_assert!(verify(&lines).is_ok());
            let mut bytes = lines.concat().into_bytes();
            let at = at % bytes.len();
            prop_assume!(bytes[at] != with);
            bytes[at] = with;
            // What is no text, or breaks lines elsewhere, is no log either.
            if let Ok(text) = String::from_utf8(bytes) {
                let changed: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
                let is_whole = verify(&changed).is_ok_and(|end| end == chain);
                prop_assert!(!is_whole || text.trim_end() == lines.concat().trim_end(), "{text}");
            }
        }
    }
}
