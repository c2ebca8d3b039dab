//! The devices of the ranks in a plan: `<meta key="rank_map" value="gpu07:0,gpu07:1"/>`.
//!
//! The format itself does not ask for them. Executors compare them with the devices of their own ranks.

use canopy_topology::Slot;

use super::lower::LowerError;
use super::parse::VALUE_MAX;
use super::program::{Meta, Program};

/// The key of the statement.
const KEY: &str = "rank_map";

/// Longest name of a machine in bytes, as in DNS.
const NAME_BYTES_MAX: usize = 255;

impl Program {
    /// The devices of the ranks as the plan states them: `host:index` for each, with commas between them.
    pub fn rank_map(&self) -> Option<&str> {
        self.meta.iter().find(|meta| meta.key == KEY).map(|meta| meta.value.as_str())
    }
}

/// The devices of ranks as plans state them. O(slots).
pub fn device_list(slots: &[Slot]) -> String {
    slots.iter().map(Slot::to_string).collect::<Vec<_>>().join(",")
}

/// Has a plan state these devices of its ranks. O(slots).
///
/// # Errors
/// A name that would break the list or that XML cannot hold; more characters than a value may have.
pub fn state_rank_map(program: &mut Program, slots: &[Slot]) -> Result<(), LowerError> {
    if let Some((rank, slot)) = slots.iter().enumerate().find(|(_, slot)| !is_name(&slot.node)) {
        let node = slot.node.escape_debug().take(80).collect();
        return Err(LowerError::Machine { rank, node });
    }
    let value = device_list(slots);
    let found = value.chars().count();
    if found > VALUE_MAX {
        return Err(LowerError::RankMap { found, limit: VALUE_MAX });
    }
    program.meta.push(Meta { key: KEY.to_owned(), value });
    Ok(())
}

/// Whether a text names a device for each of these ranks.
pub(super) fn is_for(text: &str, rank_count: u32) -> bool {
    let mut count = 0_u32;
    let are_devices = text.split(',').all(|device| {
        count = count.saturating_add(1);
        device.rsplit_once(':').is_some_and(|(node, index)| is_name(node) && is_index(index))
    });
    are_devices && count == rank_count
}

/// Whether a machine can have this name in the list. XML has no word for the last two characters.
fn is_name(name: &str) -> bool {
    let breaks = |letter: char| {
        letter == ',' || letter.is_whitespace() || letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}')
    };
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains(breaks)
}

fn is_index(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u32>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oneccl::examples::programs;
    use crate::oneccl::{parse, prove, write};

    fn slots(nodes: &[&str]) -> Vec<Slot> {
        nodes.iter().zip(0..).map(|(&node, device)| Slot { node: node.to_owned(), device }).collect()
    }

    #[test]
    fn devices_read_back_as_written() {
        for nodes in [["gpu07", "gpu08"], ["[fe80::1]:9", "a.b.example"], ["a&b<c>\"d'", "ä→"]] {
            let [_, mut program] = programs();
            state_rank_map(&mut program, &slots(&nodes)).unwrap();
            let read = parse(&write(&program)).unwrap();
            assert_eq!(read.rank_map(), Some(format!("{}:0,{}:1", nodes[0], nodes[1]).as_str()));
            assert_eq!(read, program);
            assert!(prove(&read).is_ok());
        }
        let [program, _] = programs();
        assert_eq!(program.rank_map(), None);
    }

    #[test]
    fn a_name_that_breaks_the_list_is_refused() {
        let statement = |slots: &[Slot]| state_rank_map(&mut programs()[1], slots);
        for node in ["a,b", ",", "", "a b", "a\u{a0}b", "a\u{1}", "a\u{ffff}", &"n".repeat(256)] {
            let error = statement(&slots(&["a", node])).unwrap_err();
            assert!(matches!(error, LowerError::Machine { rank: 1, .. }), "{error}");
        }
        let node = "n".repeat(255);
        let many: Vec<Slot> = (0..4090).map(|device| Slot { node: node.clone(), device }).collect();
        let limit = 1 << 20;
        assert!(
            matches!(statement(&many), Err(LowerError::RankMap { found, limit: own }) if found > limit && own == limit)
        );
    }

    #[test]
    fn a_list_has_a_device_for_each_rank() {
        for (text, ranks) in [("a:0", 1), ("a:0,b:4294967295", 2), ("a:b:0,c:1", 2)] {
            assert!(is_for(text, ranks), "{text}");
            assert!(!is_for(text, ranks + 1), "{text}");
        }
        for text in ["", "a", "a:", ":0", "a:x", "a:-1", "a:+1", "a:4294967296", "a:0,", "a b:0"] {
            assert!(!is_for(text, 1), "{text}");
        }
    }
}
