//! Kinds of elements that break: one table for all code that reads, draws or documents them.

use crate::spelling::same_word;

/// A kind of elements that break as a whole. What one is on a network is for
/// [`Topology::elements`](crate::Topology::elements) to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// Machines with all their nodes.
    Boxes,
    /// Switches, inside and outside boxes.
    Switches,
    /// Ranks.
    Gpus,
    /// Links between a rank and a switch outside its box.
    Nics,
    /// Links between two nodes of one box.
    LinksInside,
    /// All other links.
    LinksOutside,
    /// All links.
    Links,
}

/// What the table says of a kind.
struct Row {
    kind: FaultKind,
    word: &'static str,
    /// Other words for it that are understood where no count follows.
    others: &'static [&'static str],
    meaning: &'static str,
    can_be_slow: bool,
}

/// Wholes come before their parts.
const TABLE: [Row; 7] = [
    Row {
        kind: FaultKind::Boxes,
        word: "boxes",
        others: &["box", "hosts", "host"],
        meaning: "boxes, with their ranks and switches",
        can_be_slow: false,
    },
    Row {
        kind: FaultKind::Switches,
        word: "switches",
        others: &["switch"],
        meaning: "switches inside and outside boxes, a slow one with slow links",
        can_be_slow: true,
    },
    Row { kind: FaultKind::Gpus, word: "gpus", others: &["gpu"], meaning: "ranks", can_be_slow: false },
    Row {
        kind: FaultKind::Nics,
        word: "nics",
        others: &["nic"],
        meaning: "links between a rank and a switch outside its box",
        can_be_slow: true,
    },
    Row {
        kind: FaultKind::LinksInside,
        word: "links-inside",
        others: &["link-inside"],
        meaning: "links between two nodes of one box",
        can_be_slow: true,
    },
    Row {
        kind: FaultKind::LinksOutside,
        word: "links-outside",
        others: &["link-outside"],
        meaning: "all other links: between boxes, switches outside boxes, and nodes without a box",
        can_be_slow: true,
    },
    Row {
        kind: FaultKind::Links,
        word: "links",
        others: &["link"],
        meaning: "links between any two nodes",
        can_be_slow: true,
    },
];

impl FaultKind {
    /// All kinds. Wholes come before their parts.
    pub const ALL: [Self; 7] = {
        let mut all = [Self::Boxes; 7];
        let mut position = 0;
        while position < all.len() {
            all[position] = TABLE[position].kind;
            position += 1;
        }
        all
    };

    const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The word for several of them, such as `links-inside`.
    pub const fn word(self) -> &'static str {
        self.row().word
    }

    /// What they are.
    pub const fn meaning(self) -> &'static str {
        self.row().meaning
    }

    /// Whether one of them can be slow instead of gone.
    pub const fn can_be_slow(self) -> bool {
        self.row().can_be_slow
    }

    /// The kind that a word stands for, in any case, for one or several of them.
    pub fn named(word: &str) -> Option<Self> {
        let is_meant = |row: &&Row| std::iter::once(&row.word).chain(row.others).any(|known| same_word(word, known));
        TABLE.iter().find(is_meant).map(|row| row.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_row() {
        for kind in FaultKind::ALL {
            assert_eq!(kind.row().kind, kind);
            for word in std::iter::once(&kind.word()).chain(kind.row().others) {
                assert_eq!(FaultKind::named(word), Some(kind), "{word}");
            }
        }
        assert_eq!(FaultKind::named("Links_Inside"), Some(FaultKind::LinksInside));
        assert_eq!(FaultKind::named("fans"), None);
        assert_eq!(FaultKind::named(""), None);
    }
}
