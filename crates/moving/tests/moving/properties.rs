//! What holds for all networks and matrices.

use canopy_moving::{
    Fabric, Hop, Matrix, Part, Prices, PricesError, Rates, Route, Tiers, bound, check, plan, plan_at_ends, ratio,
    staged,
};
use canopy_optimize::Fraction;
use proptest::prelude::*;

use crate::chance::Chance;

fn fabrics() -> impl Strategy<Value = Fabric> {
    prop_oneof![Just(Fabric::Rails), Just(Fabric::Full)]
}

/// A network whose traffic has ways, with it.
fn case(seed: u64, fabric: Fabric, wildness: u64) -> Option<(Tiers, Matrix)> {
    let mut chance = Chance(seed | 1);
    let tiers = chance.network(fabric, wildness);
    let matrix = chance.matrix(tiers.ranks());
    plan(&tiers, &matrix, None).ok().map(|_| (tiers, matrix))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The checker finds every byte, and no plan beats the bound.
    #[test]
    fn all_bytes_arrive_and_no_bound_is_beaten(seed: u64, fabric in fabrics(), wildness in 0_u64..3) {
        let Some((tiers, matrix)) = case(seed, fabric, wildness) else { return Ok(()) };
        let planned = plan(&tiers, &matrix, None).unwrap();
        let checked = check(&tiers, &matrix, &planned.parts).unwrap();
        let least = bound(&tiers, &matrix).unwrap();
        prop_assert_eq!(least.prices.least_time(&tiers, &matrix), Ok(least.time));
        let reached = ratio(least.time, checked.time).unwrap();
        prop_assert!(reached <= Fraction::new(1, 1).unwrap());
        if let Ok(stages) = staged(&tiers, &matrix) {
            prop_assert!(stages.time >= least.time);
        }
        // Each byte that leaves a NIC enters one.
        prop_assert_eq!(checked.loads.outer_out.iter().sum::<u64>(), checked.loads.outer_in.iter().sum::<u64>());
        prop_assert_eq!(checked.loads.inner_out.iter().sum::<u64>(), checked.loads.inner_in.iter().sum::<u64>());
        // Routes that relay at their ends alone are no better than all.
        let Ok(ends) = plan_at_ends(&tiers, &matrix, None) else { return Ok(()) };
        prop_assert!(ends.parts.iter().all(|part| !matches!(part.route, Route::Relayed(_))));
        let at_ends = check(&tiers, &matrix, &ends.parts).unwrap();
        prop_assert!(least.time <= at_ends.time);
        prop_assert!(checked.time.to_float() <= at_ends.time.to_float() * (1.0 + 1e-9));
    }

    /// A plan without a part, with one twice, or with a byte less is none.
    #[test]
    fn changed_plans_are_refused(seed: u64, fabric in fabrics(), at: prop::sample::Index) {
        let Some((tiers, matrix)) = case(seed, fabric, 1) else { return Ok(()) };
        let parts = plan(&tiers, &matrix, None).unwrap().parts;
        prop_assume!(!parts.is_empty());
        let at = at.index(parts.len());
        let parts_at = parts[at].clone();
        let changed = |change: &dyn Fn(&mut Vec<Part>)| {
            let mut parts = parts.clone();
            change(&mut parts);
            check(&tiers, &matrix, &parts)
        };
        let removed = changed(&|parts| parts.retain(|part| *part != parts_at));
        prop_assert!(removed.is_err());
        prop_assert!(changed(&|parts| parts.push(parts_at.clone())).is_err());
        prop_assert!(changed(&|parts| parts[at].bytes -= 1).is_err());
        prop_assert!(changed(&|parts| parts[at].to = parts[at].from).is_err());
    }

    /// A plan depends on its arguments alone, and what came before changes how long it takes to find, not what it is
    /// good for.
    #[test]
    fn warm_plans_are_plans(seed: u64, wildness in 0_u64..3) {
        let Some((tiers, matrix)) = case(seed, Fabric::Rails, wildness) else { return Ok(()) };
        let first = plan(&tiers, &matrix, None).unwrap();
        prop_assert_eq!(&first, &plan(&tiers, &matrix, None).unwrap());
        let other = Chance(seed.rotate_left(7) | 1).matrix(tiers.ranks());
        let Ok(second) = plan(&tiers, &other, Some(&first.state)) else { return Ok(()) };
        let cold = plan(&tiers, &other, None).unwrap();
        let time = |parts: &[Part]| check(&tiers, &other, parts).unwrap().time.to_float();
        prop_assert!(time(&second.parts) <= time(&cold.parts) * 1.01);
    }

    /// Faster links and fewer bytes never raise the bound of a fabric; twice the bytes take twice the time.
    #[test]
    fn bounds_follow_rates_and_bytes(seed: u64, rank: prop::sample::Index) {
        let Some((tiers, matrix)) = case(seed, Fabric::Full, 2) else { return Ok(()) };
        let least = bound(&tiers, &matrix).unwrap().time;
        let mut rates: Rates = tiers.rates().clone();
        let rank = rank.index(tiers.ranks());
        rates.outer_out[rank] += 7;
        rates.inner_in[rank] += 7;
        let size = u32::try_from(tiers.box_size()).unwrap();
        let faster = Tiers::new(tiers.fabric(), size, rates).unwrap();
        prop_assert!(bound(&faster, &matrix).unwrap().time <= least);
        let double = (0..tiers.ranks()).flat_map(|rank| matrix.row(rank).iter().map(|bytes| 2 * bytes)).collect();
        let double = Matrix::new(u32::try_from(tiers.ranks()).unwrap(), double).unwrap();
        prop_assert_eq!(bound(&tiers, &double).unwrap().time, least.checked_mul(Fraction::new(2, 1).unwrap()).unwrap());
    }

    /// Whatever is given, there is an answer or an error.
    #[test]
    fn garbage_is_answered(
        box_size in 0_u32..5,
        rates in prop::collection::vec(prop::sample::select(vec![0, 1, 3, 1 << 48, u64::MAX]), 0..40),
        bytes in prop::collection::vec(prop::sample::select(vec![0, 1, 2, 1 << 53, u64::MAX]), 0..40),
        parts in prop::collection::vec((0_u32..9, 0_u32..9, 0_u32..9, 0_u32..9, any::<u64>()), 0..9),
        fabric in fabrics(),
    ) {
        let quarter = rates.len() / 4;
        let part = |at: usize| rates[at * quarter..(at + 1) * quarter].to_vec();
        let rates = Rates { inner_out: part(0), inner_in: part(1), outer_out: part(2), outer_in: part(3) };
        let Ok(tiers) = Tiers::new(fabric, box_size, rates) else { return Ok(()) };
        let side = bytes.len().isqrt();
        let matrix = Matrix::new(u32::try_from(side).unwrap(), bytes[..side * side].to_vec());
        let Ok(matrix) = matrix else { return Ok(()) };
        if let Ok(planned) = plan(&tiers, &matrix, None) {
            let checked = check(&tiers, &matrix, &planned.parts).unwrap();
            prop_assert!(bound(&tiers, &matrix).unwrap().time <= checked.time);
        }
        let _ = (bound(&tiers, &matrix).is_ok(), staged(&tiers, &matrix).is_ok());
        let parts: Vec<Part> = parts
            .into_iter()
            .map(|(from, to, leaves, enters, bytes)| {
                let route = match bytes % 3 {
                    0 => Route::Inside,
                    1 => Route::Across { leaves, enters },
                    _ => Route::Relayed(vec![Hop::Inside(leaves), Hop::Across(enters), Hop::Inside(to)]),
                };
                Part { from, to, route, bytes }
            })
            .collect();
        let _ = check(&tiers, &matrix, &parts).is_ok();
    }

    /// Any prices prove a time that no plan beats.
    #[test]
    fn any_prices_are_a_bound(seed: u64, fabric in fabrics(), lengths in prop::collection::vec(0_u32..5, 64)) {
        let Some((tiers, matrix)) = case(seed, fabric, 2) else { return Ok(()) };
        let part = |at: usize| lengths[at * 16..].iter().copied().cycle().take(tiers.ranks()).collect::<Vec<u32>>();
        let [inner_out, inner_in, outer_out, outer_in] = [0, 1, 2, 3].map(part);
        let prices = Prices { inner_out, inner_in, outer_out, outer_in, pairs: Vec::new() };
        let parts = plan(&tiers, &matrix, None).unwrap().parts;
        let time = check(&tiers, &matrix, &parts).unwrap().time;
        match prices.least_time(&tiers, &matrix) {
            Ok(least) => prop_assert!(least <= time),
            Err(error) => prop_assert_eq!(error, PricesError::Free),
        }
    }
}
