//! What a server writes to its log: bytes, lines by their message, and the lines that ask for a person.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// Most unexpected lines that are kept as text.
const KEPT_MAX: usize = 20;
/// Most different kinds of lines.
const KINDS_MAX: usize = 200;
/// Messages at level WARN or ERROR that the load provokes. Empty: it provokes none.
const EXPECTED: &[&str] = &[];

/// A log; shared by the threads that read it.
#[derive(Default)]
pub(super) struct Log(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    bytes: u64,
    lines: u64,
    kinds: BTreeMap<String, (u64, u64)>,
    unexpected: u64,
    kept: Vec<String>,
    ports: Option<(SocketAddr, SocketAddr)>,
}

impl Log {
    /// Takes a line with its end.
    pub(super) fn add(&self, line: &[u8]) {
        let read: Option<Value> = serde_json::from_slice(line).ok();
        let text = |name: &str| read.as_ref().and_then(|value| value.get(name)?.as_str()).unwrap_or_default();
        let is_expected = EXPECTED.iter().any(|message| text("message").starts_with(message));
        let is_fine = matches!(text("level"), "INFO" | "DEBUG" | "TRACE") || is_expected;
        let bytes = line.len() as u64;
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.bytes += bytes;
        inner.lines += 1;
        let kind = match text("method") {
            "" => text("message").to_owned(),
            method => format!("call {method}"),
        };
        if inner.kinds.len() < KINDS_MAX || inner.kinds.contains_key(&kind) {
            let (count, sum) = inner.kinds.entry(kind).or_default();
            *count += 1;
            *sum += bytes;
        }
        if !is_fine {
            inner.unexpected += 1;
            if inner.kept.len() < KEPT_MAX {
                inner.kept.push(String::from_utf8_lossy(line).trim_end().to_owned());
            }
        }
        if text("message") == "serving canopy.v1" {
            inner.ports = text("tcp").parse().ok().zip(text("admin").parse().ok());
        }
    }

    /// Bytes and lines so far.
    pub(super) fn written(&self) -> (u64, u64) {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (inner.bytes, inner.lines)
    }

    /// Kinds of lines with their number and bytes, the most bytes first.
    pub(super) fn kinds(&self) -> Vec<(String, u64, u64)> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kinds: Vec<_> = inner.kinds.iter().map(|(kind, &(count, sum))| (kind.clone(), count, sum)).collect();
        kinds.sort_by_key(|&(_, _, sum)| std::cmp::Reverse(sum));
        kinds
    }

    /// Number of unexpected lines, and the text of the first ones.
    pub(super) fn unexpected(&self) -> (u64, Vec<String>) {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (inner.unexpected, inner.kept.clone())
    }

    /// The ports of calls and of operators, once it serves.
    pub(super) fn ports(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).ports
    }
}

#[cfg(test)]
mod tests {
    use super::Log;

    #[test]
    fn warnings_are_kept_and_ports_are_read() {
        let log = Log::default();
        log.add(br#"{"level":"INFO","message":"serving canopy.v1","tcp":"127.0.0.1:1","admin":"127.0.0.1:2"}"#);
        log.add(br#"{"level":"INFO","method":"Plan"}"#);
        assert_eq!(log.unexpected().0, 0);
        assert!(log.ports().is_some_and(|(tcp, admin)| (tcp.port(), admin.port()) == (1, 2)));
        log.add(br#"{"level":"WARN","message":"something"}"#);
        log.add(b"not JSON\n");
        assert_eq!((log.unexpected().0, log.written().1), (2, 4));
    }
}
