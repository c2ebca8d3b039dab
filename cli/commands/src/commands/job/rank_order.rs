//! The nodes of ranks, as a file with a line for each of them says it.

use canopy_topology::{HostsError, read_host_lines, read_nodes_file};

/// Why a file is not the order that a plan can be for: ranks that fill one node after another, as many on each.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OrderError {
    #[error(transparent)]
    Hosts(#[from] HostsError),
    #[error("ranks of {node} are in several places; plans are for ranks that fill one node after another")]
    Scattered { node: String },
    #[error("{first} has {first_ranks} ranks, and {node} has {ranks}; plans are for as many ranks on each node")]
    Uneven { first: String, first_ranks: usize, node: String, ranks: usize },
}

/// Reads the nodes in the order of their ranks.
///
/// The file has a line for each rank, as `SLURM_HOSTFILE` does, or for each node. Other forms that `canopy job fetch
/// --nodes-file` reads are read here, too.
pub(super) fn nodes_of_ranks(text: &str) -> Result<Vec<String>, OrderError> {
    // Refuses what is wrong with a name, and names each node once.
    let nodes = read_nodes_file(text)?;
    if text.trim_start().starts_with('{') {
        return Ok(nodes);
    }
    let mut blocks: Vec<(String, usize)> = Vec::new();
    for line in text.lines() {
        // An empty line, or a comment.
        let Some(node) = read_host_lines(line).ok().and_then(|names| names.into_iter().next()) else { continue };
        match blocks.last_mut() {
            Some((last, ranks)) if *last == node => *ranks += 1,
            _ => blocks.push((node, 1)),
        }
    }
    if let Some(((node, _), _)) = blocks.iter().zip(&nodes).find(|((found, _), expected)| found != *expected) {
        return Err(OrderError::Scattered { node: node.clone() });
    }
    if let Some((node, _)) = blocks.get(nodes.len()) {
        return Err(OrderError::Scattered { node: node.clone() });
    }
    let Some((first, first_ranks)) = blocks.first().cloned() else { return Ok(nodes) };
    match blocks.into_iter().find(|(_, ranks)| *ranks != first_ranks) {
        Some((node, ranks)) => Err(OrderError::Uneven { first, first_ranks, node, ranks }),
        None => Ok(nodes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_those_of_ranks_that_fill_them() {
        for text in ["b\nb\na\na\n", "b\na\n", "# by rank\nb slots=8\n\na slots=8", "b:8\na:8\n"] {
            assert_eq!(nodes_of_ranks(text).unwrap(), ["b", "a"], "{text:?}");
        }
        let flux = "{\"execution\": {\"nodelist\": [\"b\", \"a\"]}}";
        assert_eq!(nodes_of_ranks(flux).unwrap(), ["b", "a"]);
    }

    #[test]
    fn ranks_in_turns_and_uneven_ones_are_refused() {
        for (text, node) in [("a\nb\na\nb\n", "a"), ("a\na\nb\nc\nb\n", "b"), ("a\nb\na\nc\n", "a")] {
            assert_eq!(nodes_of_ranks(text), Err(OrderError::Scattered { node: node.to_owned() }), "{text:?}");
        }
        let uneven = nodes_of_ranks("a\na\na\nb\n");
        let (first, node) = ("a".to_owned(), "b".to_owned());
        assert_eq!(uneven, Err(OrderError::Uneven { first, first_ranks: 3, node, ranks: 1 }));
        assert_eq!(nodes_of_ranks("\n# nothing\n"), Err(OrderError::Hosts(HostsError::Empty)));
        assert!(matches!(nodes_of_ranks("n[1-2]\n"), Err(OrderError::Hosts(HostsError::Malformed { .. }))));
    }
}
