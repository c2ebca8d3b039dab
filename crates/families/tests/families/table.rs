//! The table has every family of the generator, or says why not.

use canopy_families::{UNRECOGNISED, recognised_names};
use canopy_topology::family_names;

#[test]
fn every_family_of_the_generator_is_in_the_table_or_has_a_reason() {
    let recognised = recognised_names();
    for family in family_names() {
        let reason = UNRECOGNISED.iter().find(|(name, _)| *name == family);
        assert!(
            recognised.contains(&family) != reason.is_some(),
            "`{family}` must be recognised, or listed with the reason why it cannot be, and not both"
        );
    }
    let listed = recognised.iter().copied().chain(UNRECOGNISED.iter().map(|(name, _)| *name));
    for name in listed {
        assert!(family_names().contains(&name), "the generator knows no family `{name}`");
    }
}
