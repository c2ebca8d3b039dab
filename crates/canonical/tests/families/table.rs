//! The table has every family of the generator, or says why not.

use canopy_canonical::families::recognised_names;
use canopy_topology::families;

/// Why the graphs of the direct-connect catalogue are not in the table.
const NOT_LOOKED_FOR: &str =
    "many of its members are those of other families too; canopy network same compares with any";

/// Families of the generator that no network is recognised as a member of, and why.
const UNRECOGNISED: &[(&str, &str)] = &[
    ("hamming", NOT_LOOKED_FOR),
    ("twisted-torus", NOT_LOOKED_FOR),
    ("twisted-cube", NOT_LOOKED_FOR),
    ("kautz", NOT_LOOKED_FOR),
    ("genkautz", NOT_LOOKED_FOR),
    ("debruijn", NOT_LOOKED_FOR),
    ("circulant", NOT_LOOKED_FOR),
    ("dcirculant", NOT_LOOKED_FOR),
    ("biring", NOT_LOOKED_FOR),
    ("uniring", NOT_LOOKED_FOR),
    ("distreg", NOT_LOOKED_FOR),
    ("diamond", NOT_LOOKED_FOR),
    ("dbjmod", NOT_LOOKED_FOR),
    ("dfc2", NOT_LOOKED_FOR),
    ("shifted-ring", NOT_LOOKED_FOR),
    ("slim-fly", NOT_LOOKED_FOR),
    ("double-tree", NOT_LOOKED_FOR),
    ("xpander", "a seed cannot be told from the network that was drawn with it"),
    ("jellyfish", "a seed cannot be told from the network that was drawn with it"),
    ("dragonfly", NOT_LOOKED_FOR),
    ("hamming-mesh", NOT_LOOKED_FOR),
    ("dims", NOT_LOOKED_FOR),
    ("dgx-h200", "its members are those of `dgx-h100`"),
    (
        "hgx",
        "its members with as many NICs as GPUs are those of `dgx-h100` or `rail`, and NICs that GPUs share say little",
    ),
    ("gb200-nvl72", "its members are those of `dgx-b200`"),
    ("gb300-nvl72", "its members are those of `dgx-b300`"),
    ("tpu-v4", "its members are those of `torus`, `mesh` or `twisted-torus`"),
    ("tpu-v5p", "its members are those of `torus`, `mesh` or `twisted-torus`"),
    ("trn2", NOT_LOOKED_FOR),
    ("pod", "nothing tells its leaves from those of other fabrics"),
    ("random-regular", "a seed cannot be told from the network that was drawn with it"),
    ("random-euler", "a seed cannot be told from the network that was drawn with it"),
];

#[test]
fn every_family_of_the_generator_is_in_the_table_or_has_a_reason() {
    let recognised = recognised_names();
    for family in families().map(|family| family.name) {
        let reason = UNRECOGNISED.iter().find(|(name, _)| *name == family);
        assert!(
            recognised.contains(&family) != reason.is_some(),
            "`{family}` must be recognised, or listed with the reason why it cannot be, and not both"
        );
    }
    let listed = recognised.iter().copied().chain(UNRECOGNISED.iter().map(|(name, _)| *name));
    for name in listed {
        assert!(families().any(|family| family.name == name), "the generator knows no family `{name}`");
    }
}
