//! The links of a strand, without memory of their own where there are few.

use std::ops::Deref;

use canopy_topology::LinkIndex;

/// Links that need no memory of their own: a route through a switch on either side and one between has four.
const FEW: usize = 6;

/// Links in the direction of travel. Networks have millions of short lists of them, and memory of their own for each would
/// take a fifth of a second to let go of.
#[derive(Clone, Debug)]
pub(super) enum Links {
    /// So many, the rest of the places unused.
    Few(u8, [LinkIndex; FEW]),
    Many(Box<[LinkIndex]>),
}

impl From<&[LinkIndex]> for Links {
    fn from(links: &[LinkIndex]) -> Self {
        let mut few = [LinkIndex::new(0); FEW];
        match (few.get_mut(..links.len()), u8::try_from(links.len())) {
            (Some(places), Ok(count)) => {
                places.copy_from_slice(links);
                Self::Few(count, few)
            }
            _ => Self::Many(links.into()),
        }
    }
}

impl Deref for Links {
    type Target = [LinkIndex];

    fn deref(&self) -> &[LinkIndex] {
        match self {
            Self::Few(count, links) => &links[..usize::from(*count)],
            Self::Many(links) => links,
        }
    }
}

impl PartialEq for Links {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Links {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_what_they_were_made_from_however_many() {
        for count in [0, 1, 5, 6, 7, 300] {
            let list: Vec<LinkIndex> = (0..count).map(LinkIndex::new).collect();
            let links = Links::from(list.as_slice());
            assert_eq!(&*links, list.as_slice());
            assert_eq!(links, links.clone());
            assert_eq!(matches!(links, Links::Few(..)), count <= 6);
        }
        assert_ne!(Links::from([LinkIndex::new(0)].as_slice()), Links::from([].as_slice()));
    }
}
