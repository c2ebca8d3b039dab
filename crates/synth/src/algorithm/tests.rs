//! What options apply to.

use std::num::{NonZeroU32, NonZeroU64};

use super::*;

#[test]
fn options_are_for_trees_of_an_allreduce() {
    use AllreduceForm::{Trees, TwoPhases};
    let flat = TreeLimits { max_depth: NonZeroU32::new(3), ..TreeLimits::NONE };
    let asked = |form, roots| SumOptions { form, roots, ..SumOptions::AUTO };
    let check = |options: SumOptions, algorithm, kind, limits| {
        options.require_applicable(algorithm, kind, limits).map_err(|error| error.option())
    };
    let allreduce = CollectiveKind::Allreduce;
    for kind in CollectiveKind::ALL {
        for &algorithm in Algorithm::ALL {
            assert_eq!(check(SumOptions::AUTO, algorithm, kind, TreeLimits::NONE), Ok(()));
        }
    }
    for form in [Trees, TwoPhases] {
        let options = asked(Some(form), RootPolicy::Centre);
        assert_eq!(check(options, Algorithm::Auto, allreduce, TreeLimits::NONE), Ok(()));
        assert_eq!(check(options, Algorithm::Ring, allreduce, TreeLimits::NONE), Err("form"));
        assert_eq!(check(options, Algorithm::Forest, CollectiveKind::Allgather, TreeLimits::NONE), Err("form"));
    }
    let spread = asked(None, RootPolicy::Spread);
    assert_eq!(check(spread, Algorithm::Auto, allreduce, TreeLimits::NONE), Ok(()));
    assert_eq!(check(spread, Algorithm::Auto, CollectiveKind::Reduce, TreeLimits::NONE), Err("root_policy"));
    // Two phases have their roots everywhere, so limits and spread roots agree.
    assert_eq!(check(spread, Algorithm::Auto, allreduce, flat), Ok(()));
    let both = |form| asked(Some(form), RootPolicy::Spread);
    assert_eq!(check(both(TwoPhases), Algorithm::Auto, allreduce, TreeLimits::NONE), Err("root_policy"));
    assert_eq!(check(both(Trees), Algorithm::Auto, allreduce, TreeLimits::NONE), Ok(()));
    assert_eq!(check(asked(Some(Trees), RootPolicy::Centre), Algorithm::Auto, allreduce, flat), Err("form"));
    let few = TreeLimits { max_chunks: NonZeroU64::new(3), ..TreeLimits::NONE };
    assert_eq!(check(asked(Some(Trees), RootPolicy::Centre), Algorithm::Auto, allreduce, few), Ok(()));
    assert_eq!(check(asked(Some(TwoPhases), RootPolicy::Centre), Algorithm::Auto, allreduce, flat), Ok(()));
}
