//! Members are recognised under any names, in any order.

use canopy_canonical::families::{LINKS_MAX, Recognition, recognise, recognised_names};
use canopy_canonical::{Budget, Stopped};

use crate::parameters::{COUNT, expression};
use crate::support::{BUDGET, Dice, built, draft, member, shuffled, topology};

#[test]
fn fifty_shuffled_members_of_each_family_are_recognised() {
    for family in recognised_names() {
        for number in 0..COUNT {
            let expression = expression(family, number);
            let mut dice = Dice::new(number as u64);
            let other = built(shuffled(draft(&topology(&expression)), &mut dice, number.is_multiple_of(2)));
            let found = member(&other).unwrap_or_else(|| panic!("{expression} is not recognised"));
            assert_eq!(found.family, family, "{expression} is recognised as {}", found.expression);
            // What it is called does not depend on how it came in.
            assert_eq!(member(&found.member).unwrap().expression, found.expression);
            assert_eq!(recognise(&other, BUDGET), recognise(&other, BUDGET));
        }
    }
}

/// `(what it is, what it is called)`: members of several families, and parameters that say the same.
#[test]
fn of_several_names_the_first_in_the_table_is_given() {
    for (expression, name) in [
        ("torus:2x2", "ring:4,bw=25GB/s"),
        ("hypercube:2", "ring:4,bw=25GB/s"),
        ("bipartite:2x2", "ring:4,bw=25GB/s"),
        ("complete:3", "ring:3,bw=25GB/s"),
        ("ring:2,dir=uni", "ring:2,bw=25GB/s"),
        ("complete:2,lat=1us", "ring:2,bw=25GB/s,lat=1us"),
        ("torus:1x9x1", "ring:9,bw=25GB/s"),
        ("torus:4x4", "hypercube:4,bw=25GB/s"),
        ("torus:2x2x6", "torus:4x6,bw=25GB/s"),
        ("torus:6x3x5", "torus:3x5x6,bw=25GB/s"),
        ("mesh:2x2x2", "hypercube:3,bw=25GB/s"),
        ("mesh:5x2", "mesh:2x5,bw=25GB/s"),
        ("bipartite:7x3", "bipartite:3x7,bw=25GB/s"),
        ("bipartite:1x2", "mesh:3,bw=25GB/s"),
        ("rail:boxes=1,gpus=6,nv=300GB/s", "dgx-a100:boxes=1,gpus=6"),
        ("rail:boxes=4,gpus=1,nv=300GB/s,nic=25GB/s", "dgx-a100:boxes=4,gpus=1"),
        ("rail:boxes=4,gpus=8,nv=1GB/s,nic=2GB/s", "rail:boxes=8,gpus=4,nv=2GB/s,nic=1GB/s"),
        ("rail:boxes=4,gpus=8,nv=1GB/s,nic=1GB/s", "rail:boxes=8,gpus=4,nv=1GB/s,nic=1GB/s"),
        ("rail:boxes=4,gpus=1,nv=1GB/s,nic=2GB/s", "rail:boxes=4,gpus=1,nv=1GB/s,nic=2GB/s"),
        ("rail:boxes=3,gpus=1,nv=1GB/s,nic=2GB/s,spine=3GB/s", "rail:boxes=3,gpus=1,nv=1GB/s,nic=2GB/s,spine=3GB/s"),
        ("rail:boxes=1,gpus=5,nv=1GB/s,nic=2GB/s", "rail:boxes=1,gpus=5,nv=1GB/s"),
        ("dragonfly-router:p=1,a=1,h=2,local=9GB/s", "dragonfly-router:p=1,a=1,h=2,host-bw=25GB/s,global=25GB/s"),
    ] {
        assert_eq!(member(&topology(expression)).map(|found| found.expression).as_deref(), Some(name), "{expression}");
    }
}

#[test]
fn ends_of_work_are_told_apart() {
    let torus = built(shuffled(draft(&topology("torus:5x6")), &mut Dice::new(7), false));
    let budget = Budget { work_max: 10, stop: &|| false };
    let expression = "torus:5x6,bw=25GB/s".to_owned();
    assert_eq!(recognise(&torus, budget), Ok(Recognition::Undetermined { expression }));
    // Nothing is searched for where the numbers agree as they are.
    assert!(matches!(recognise(&topology("torus:5x6"), budget), Ok(Recognition::Member(_))));
    assert_eq!(recognise(&torus, Budget { stop: &|| true, ..BUDGET }), Err(Stopped));
    let complete = topology("complete:513");
    assert!(complete.links().len() > LINKS_MAX);
    assert_eq!(recognise(&complete, BUDGET), Ok(Recognition::TooLarge));
}
