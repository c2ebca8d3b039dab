//! Nodes of a job in the words of its scheduler: Slurm, Flux, PBS, LSF, Kubernetes and host files of MPI.

use std::collections::HashSet;

use serde_json::Value;

use crate::hostlist::{HostsError, expand_hosts, read_host_lines};

/// Reads the nodes of a job as a variable or an option states them, each once, in their order:
///
/// | form | from |
/// |---|---|
/// | `gpu[001-016,020],login1`, `pod-[0-3]` | Slurm and Flux hostlists, ordinals of Kubernetes |
/// | `gpu1 8 gpu2 8`, `gpu1 gpu1 gpu2` | LSF: `LSB_MCPU_HOSTS`, `LSB_HOSTS` |
/// | `gpu1/0*8+gpu2/0*8`, `(gpu1:ncpus=8)+(gpu2:ncpus=8)` | PBS: `exec_host`, `exec_vnode` |
///
/// # Errors
/// As [`expand_hosts`], but that a machine may stand for each of its slots in the forms of LSF and PBS.
pub fn read_nodes(text: &str) -> Result<Vec<String>, HostsError> {
    let text = text.trim();
    if text.contains('+') || text.contains('/') || text.starts_with('(') {
        let name = |item: &str| item.trim_matches(['(', ')', ' ']).split(['/', ':', '*']).next().map(str::to_owned);
        return once(text.split('+').filter_map(name));
    }
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words.len() < 2 || text.contains(',') {
        return expand_hosts(text);
    }
    let is_count = |word: &&&str| word.bytes().all(|byte| byte.is_ascii_digit());
    let has_counts = words.len().is_multiple_of(2)
        && words.iter().skip(1).step_by(2).all(|word| is_count(&word))
        && !words.iter().step_by(2).any(|word| is_count(&word));
    once(words.iter().step_by(if has_counts { 2 } else { 1 }).map(|word| (*word).to_owned()))
}

/// Reads a file of nodes: one machine on each line, as `PBS_NODEFILE`, `LSB_DJOB_HOSTFILE` and host files of MPI have them
/// (`gpu1 slots=8`, `gpu1:8`), or the resource set of Flux (`R`, JSON).
///
/// # Errors
/// As [`read_host_lines`]; JSON without a list of nodes.
pub fn read_nodes_file(text: &str) -> Result<Vec<String>, HostsError> {
    if !text.trim_start().starts_with('{') {
        return read_host_lines(text);
    }
    let resources: Value = serde_json::from_str(text).map_err(|_| HostsError::NoNodeList)?;
    let lists = resources.pointer("/execution/nodelist").and_then(Value::as_array).ok_or(HostsError::NoNodeList)?;
    let lists: Option<Vec<&str>> = lists.iter().map(Value::as_str).collect();
    expand_hosts(&lists.ok_or(HostsError::NoNodeList)?.join(","))
}

/// Each name once, where it stands first, by the rules of hostlists.
fn once(names: impl Iterator<Item = String>) -> Result<Vec<String>, HostsError> {
    let mut seen = HashSet::new();
    let names: Vec<String> = names.filter(|name| seen.insert(name.clone())).collect();
    if names.iter().any(|name| name.contains([',', '['])) {
        return Err(HostsError::Mixed);
    }
    expand_hosts(&names.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(read_nodes(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn every_scheduler_is_understood() {
        check("gpu[001-002],login1", &["gpu001", "gpu002", "login1"]);
        check("a, b", &["a", "b"]);
        check("train-0,train-1", &["train-0", "train-1"]);
        check("gpu1 8 gpu2 8", &["gpu1", "gpu2"]);
        check("gpu2 gpu2 gpu1 gpu1", &["gpu2", "gpu1"]);
        check("gpu1/0*8+gpu2/0*8+gpu1/1", &["gpu1", "gpu2"]);
        check("(gpu1:ncpus=8:ngpus=4)+(gpu2:ncpus=8)", &["gpu1", "gpu2"]);
        check("gpu7", &["gpu7"]);
    }

    #[test]
    fn files_of_nodes_are_lines_or_resource_sets() {
        assert_eq!(read_nodes_file("gpu1 slots=8\ngpu2:8\ngpu1:8\n# no\n").unwrap(), ["gpu1", "gpu2"]);
        assert_eq!(read_nodes_file("gpu1 8\ngpu2 8\n").unwrap(), ["gpu1", "gpu2"]);
        let flux = "{\"version\": 1, \"execution\": {\"R_lite\": [], \"nodelist\": [\"gpu[1-2]\", \"x\"]}}";
        assert_eq!(read_nodes_file(flux).unwrap(), ["gpu1", "gpu2", "x"]);
        for text in ["{", "{}", "{\"execution\": {\"nodelist\": [7]}}"] {
            assert_eq!(read_nodes_file(text), Err(HostsError::NoNodeList), "{text}");
        }
    }

    #[test]
    fn what_no_scheduler_writes_is_refused() {
        for text in ["gpu1 gpu[2-3]", "gpu1+gpu[2-3]", "(a,b)+c"] {
            assert_eq!(read_nodes(text), Err(HostsError::Mixed), "{text}");
        }
        assert_eq!(read_nodes(""), Err(HostsError::Empty));
        for text in ["+", "gpu$1 gpu2", "/", "a b -c"] {
            assert!(read_nodes(text).is_err(), "{text}: {:?}", read_nodes(text));
        }
        assert!(read_nodes(&"a+".repeat(100_000)).is_err());
    }
}
