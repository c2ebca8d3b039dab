//! The paths of at most three links between two nodes of K(d, 2), by a rule instead of a search.

/// How two nodes of K(d, 2) lie, of which the first is xy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KautzPair {
    /// Type 1, to zt with z ≠ y: two links away.
    Far,
    /// Type 2, to yx: a link away, and a link back.
    Back,
    /// Type 3, to yz with z ≠ x: a link away.
    Near,
}

/// Paths of at most three links that share neither a link nor a node between their ends, shortest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KautzPaths {
    /// How the two nodes lie.
    pub(crate) pair: KautzPair,
    /// Nodes of each path, both ends included.
    pub(crate) paths: Vec<Vec<u32>>,
}

/// Why there are no such paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KautzPairError {
    #[error("degree: K({degree}, 2) is not supported; use a degree from 2 to 65535")]
    Degree { degree: u32 },
    #[error("node {node} is not one of the {order} nodes of K({degree}, 2)")]
    Node { node: u32, degree: u32, order: u32 },
    #[error("source and destination are both node {node}; name two nodes")]
    Same { node: u32 },
}

/// The paths of a pair of nodes of K(d, 2), d of them or, of type 3, d − 1.
///
/// A message on each of them in equal parts takes `3(α + (M/count)β)` if all wait for the longest; with d = 2 and type 3 the one path
/// there is has a single link.
///
/// Node xy is number `x·d + (y < x ? y : y − 1)`: the words in alphabetical order, as generators name them.
///
/// * **Source.** Pham 2026, section 3.3. **Errors.** [`KautzPairError`]. **Cost.** O(d).
pub(crate) fn kautz_paths(degree: u32, from: u32, to: u32) -> Result<KautzPaths, KautzPairError> {
    if !(2..=65_535).contains(&degree) {
        return Err(KautzPairError::Degree { degree });
    }
    let order = degree * (degree + 1);
    if let Some(node) = [from, to].into_iter().find(|&node| node >= order) {
        return Err(KautzPairError::Node { node, degree, order });
    }
    if from == to {
        return Err(KautzPairError::Same { node: from });
    }
    let letters = |node: u32| {
        let (first, rest) = (node / degree, node % degree);
        (first, if rest < first { rest } else { rest + 1 })
    };
    let node = |first: u32, second: u32| first * degree + if second < first { second } else { second - 1 };
    let ((x, y), (z, t)) = (letters(from), letters(to));
    let (pair, shortest) = match (z == y, t == x) {
        (false, _) => (KautzPair::Far, vec![from, node(y, z), to]),
        (true, true) => (KautzPair::Back, vec![from, to]),
        (true, false) => (KautzPair::Near, vec![from, to]),
    };
    // The word x y k z t, with k none of its neighbours; where z = y, k = x or k = t would come through one of the ends.
    let middle = (0..=degree).filter(|&k| k != y && k != z && (pair == KautzPair::Far || (k != x && k != t)));
    let detours = middle.map(|k| vec![from, node(y, k), node(k, z), to]);
    Ok(KautzPaths { pair, paths: std::iter::once(shortest).chain(detours).collect() })
}
