//! Amounts from those who have to those who need.

use canopy_optimize::{FlowNetwork, Stop};

use crate::error::SynthesisError;
use crate::forest::pattern::even_shares_up_to;

/// Amounts, by who gives and then who takes, that give every taker what it needs; `None` if there are none.
///
/// First come whole multiples of `unit`, as evenly as possible, then the rest on as few ways as it takes: of trees that
/// come in such multiples few are divided.
///
/// * **In.** What each can give, what each needs, and the most that may go from one to the other.
/// * **Errors.** Stopped. **Cost.** Some fifteen flows on the ways there are.
pub(super) fn transport(
    gives: &[i64],
    needs: &[i64],
    most: impl Fn(usize, usize) -> i64,
    unit: i64,
    stop: &dyn Stop,
) -> Result<Option<Vec<Vec<i64>>>, SynthesisError> {
    let sides: Vec<(i64, i64)> =
        gives.iter().map(|&gives| (gives / unit, 0)).chain(needs.iter().map(|&needs| (0, needs / unit))).collect();
    let bound = |from: usize, to: usize| to.checked_sub(gives.len()).map_or(0, |to| most(from, to) / unit);
    let mut amounts = vec![vec![0; needs.len()]; gives.len()];
    for share in even_shares_up_to(&sides, bound, stop)? {
        amounts[share.from][share.to - gives.len()] = share.amount * unit;
    }
    let missing = complete(&mut amounts, gives, needs, most, stop)?;
    Ok((missing == 0).then_some(amounts))
}

/// [`transport`] without any care for evenness: two flows.
pub(super) fn transport_anyhow(
    gives: &[i64],
    needs: &[i64],
    most: impl Fn(usize, usize) -> i64,
    unit: i64,
    stop: &dyn Stop,
) -> Result<Option<Vec<Vec<i64>>>, SynthesisError> {
    let whole = |amounts: &[i64]| amounts.iter().map(|amount| amount / unit).collect::<Vec<_>>();
    let mut amounts = vec![vec![0; needs.len()]; gives.len()];
    complete(&mut amounts, &whole(gives), &whole(needs), |from, to| most(from, to) / unit, stop)?;
    amounts.iter_mut().flatten().for_each(|amount| *amount *= unit);
    let missing = complete(&mut amounts, gives, needs, most, stop)?;
    Ok((missing == 0).then_some(amounts))
}

/// Adds what is missing, as far as that is possible, rerouting what is there where that helps. Says how much is left.
///
/// * **Cost.** A flow on the ways there are, none if nothing is missing.
fn complete(
    amounts: &mut [Vec<i64>],
    gives: &[i64],
    needs: &[i64],
    most: impl Fn(usize, usize) -> i64,
    stop: &dyn Stop,
) -> Result<i64, SynthesisError> {
    let mut missing = needs.to_vec();
    for row in &*amounts {
        missing.iter_mut().zip(row).for_each(|(missing, amount)| *missing -= amount);
    }
    let all: i64 = missing.iter().sum();
    if all == 0 {
        return Ok(0);
    }
    let node = |position: usize| u32::try_from(position).expect("boxes and members are counted in u32");
    let sink = node(gives.len() + needs.len());
    let mut network = FlowNetwork::<i64>::new(sink + 1);
    let mut ways = Vec::new();
    for (from, row) in amounts.iter().enumerate() {
        for (to, &amount) in row.iter().enumerate() {
            let most = most(from, to);
            if most > 0 {
                ways.push((from, to, network.add_pair(node(from), node(gives.len() + to), most - amount, amount)));
            }
        }
    }
    for (to, &missing) in missing.iter().enumerate() {
        network.add_arc(node(gives.len() + to), sink, missing);
    }
    for (from, (&gives, row)) in gives.iter().zip(&*amounts).enumerate() {
        network.set_supply(node(from), gives - row.iter().sum::<i64>());
    }
    let pulled = network.pull(sink, all, stop)?;
    for (from, to, way) in ways {
        amounts[from][to] += network.flow(way);
    }
    Ok(all - pulled)
}
