//! The tree as MPICH searches it.

use canopy_topology::{TopologyLimits, generate};

use super::*;

/// A tree with some of the conditions that MPICH's own has.
const INSTALLED: &str = r#"{
    "collective=bcast": {"comm_type=intra": {"comm_size < 8": {"algorithm=old_small": {}}, "comm_size=any": {"algorithm=old": {}}},
                         "comm_type=inter": {"algorithm=inter": {}}},
    "collective=allreduce": {"comm_type=intra": {"algorithm=old": {}}, "comm_type=inter": {"algorithm=inter": {}}},
    "collective=allgather": {"comm_type=intra": {"algorithm=old": {}}, "comm_type=inter": {"algorithm=inter": {}}},
    "collective=reduce": {"comm_type=intra": {"algorithm=old": {}}, "comm_type=inter": {"algorithm=inter": {}}},
    "collective=reduce_scatter": {"comm_type=intra": {"algorithm=old": {}}, "comm_type=inter": {"algorithm=inter": {}}},
    "collective=reduce_scatter_block": {"comm_type=intra": {"algorithm=old": {}}, "comm_type=inter": {"algorithm=inter": {}}},
    "collective=alltoall": {"comm_type=intra": {"algorithm=old": {}}, "comm_type=inter": {"algorithm=inter": {}}},
    "collective=ibarrier": {"algorithm=barrier": {}}
}"#;

/// A call: its key, whether it is within one communicator, ranks, bytes of the whole, and whether it is an ordinary one.
#[derive(Clone, Copy)]
struct Call<'a> {
    collective: &'a str,
    is_intra: bool,
    ranks: u64,
    bytes: u64,
    is_plain: bool,
}

impl Call<'_> {
    fn holds(self, key: &str) -> bool {
        let key: String = key.split_whitespace().collect();
        let size = |name: &str| {
            if name == "avg_msg_size" && self.collective == "alltoall" { self.bytes / self.ranks } else { self.bytes }
        };
        let number = |text: &str| u64::try_from(text.parse::<i32>().unwrap()).unwrap();
        match key.split_once(['=', '<']).unwrap() {
            ("collective", name) => name == self.collective,
            ("comm_type", kind) => (kind == "intra") == self.is_intra,
            (_, "any") => true,
            ("comm_size", bound) if bound.starts_with('=') => self.ranks <= number(&bound[1..]),
            ("comm_size", bound) => self.ranks < number(bound),
            ("count", _) => !self.is_plain,
            ("is_op_built_in" | "is_commutative", word) => (word == "yes") == self.is_plain,
            ("is_sendbuf_inplace", word) => (word == "no") == self.is_plain,
            (name @ ("avg_msg_size" | "total_msg_size"), bound) => size(name) < number(bound),
            other => panic!("{other:?}"),
        }
    }

    fn algorithm(self, tree: &Tree) -> Option<&str> {
        let (key, below) = tree.0.iter().find(|(key, _)| key.starts_with("algorithm=") || self.holds(key))?;
        key.strip_prefix("algorithm=").or_else(|| self.algorithm(below))
    }
}

#[test]
fn communicators_of_these_sizes_get_their_choices_and_others_what_was_there() {
    let topology = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
    let choices: Vec<MpiChoice> = [7, 8, 16]
        .map(|ranks| Paths::new(&topology, ranks, 1_000))
        .iter()
        .flat_map(|paths| MPICH_COLLECTIVES.map(|kind| mpich_choices(paths, kind)))
        .flatten()
        .collect();
    let text = mpich_tree(INSTALLED, &choices).unwrap();
    assert!(!text.len().is_multiple_of(PAGE_BYTES));
    let tree: Tree = serde_json::from_str(&text).unwrap();
    for choice in &choices {
        for &(collective, name) in names(choice.collective) {
            let call = |bytes, is_plain| Call { collective, is_intra: true, ranks: choice.ranks, bytes, is_plain };
            let expected = format!("MPIR_{name}_intra_{}", choice.candidate.name);
            // All-to-alls have whole blocks.
            let divisor = if collective == "alltoall" { choice.ranks } else { 1 };
            for bytes in [choice.first.next_multiple_of(divisor), choice.last / divisor * divisor] {
                let bytes = bytes.min(u64::from(u32::MAX >> 1) - 16);
                if (choice.first..=choice.last).contains(&bytes) {
                    assert_eq!(call(bytes, true).algorithm(&tree), Some(&*expected), "{collective} {bytes}\n{text}");
                }
            }
            let is_guarded = !matches!(collective, "bcast" | "allgather");
            assert!(!is_guarded || call(1 << 20, false).algorithm(&tree) == Some("old"), "{collective}");
            let inter = Call { is_intra: false, ..call(1 << 20, true) };
            assert_eq!(inter.algorithm(&tree), Some("inter"));
            for ranks in [6, 9, 15, 17] {
                let old = if ranks < 8 && collective == "bcast" { "old_small" } else { "old" };
                assert_eq!(Call { ranks, ..call(1 << 20, true) }.algorithm(&tree), Some(old));
            }
        }
    }
    let barrier = Call { collective: "ibarrier", is_intra: true, ranks: 8, bytes: 0, is_plain: true };
    assert_eq!(barrier.algorithm(&tree), Some("barrier"));
}

#[test]
fn a_tree_that_lacks_a_collective_is_refused() {
    let topology = generate("dims:switch4,bw=50GB/s", &TopologyLimits::STANDARD).unwrap();
    let choices = mpich_choices(&Paths::new(&topology, 4, 1_000), CollectiveKind::Allgather);
    let refused = |text: &str| mpich_tree(text, &choices).unwrap_err().to_string();
    assert_eq!(refused("{}"), "the tree has no branch `collective=allgather`");
    assert_eq!(refused(r#"{"collective=allgather": {}}"#), "the tree has no branch `comm_type=intra`");
    assert!(refused("[1]").contains("expected an object"));
    assert!(mpich_tree("{}", &[]).is_ok());
}
