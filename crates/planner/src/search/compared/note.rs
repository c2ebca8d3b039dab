//! What is said of plans that were not compared.

use super::rivals::{Field, Rival};
use crate::planned::Warning;
use crate::search::Case;

/// A plan that is not compared is named if it could be faster by one part in so many.
const PART: u64 = 10_000;

/// That no plan of a field was compared, as this one is too large to simulate; nothing where the size of messages is not stated.
pub(super) fn of_all(case: &Case<'_>, field: &Field) -> Option<Warning> {
    let names: Vec<&str> = field.rivals.iter().map(|rival| rival.algorithm.name()).collect();
    let listed = listed(&names)?;
    let text = |ranks, size| {
        format!(
            "the plan is too large to simulate at {ranks} ranks and {size} bytes, so {listed} may be faster there; set \
             `algorithm` to try one"
        )
    };
    said(case, text)
}

/// That these were not compared, of which each takes at least so long, where the plan takes this long.
pub(super) fn of(case: &Case<'_>, left: &[(Rival, u64)], time_ps: u64) -> Option<Warning> {
    let worth = left.iter().filter(|(_, least_ps)| time_ps.saturating_sub(*least_ps) >= time_ps / PART);
    let names: Vec<&str> = worth.map(|(rival, _)| rival.algorithm.name()).collect();
    let listed = listed(&names)?;
    let were = if names.len() == 1 { "was" } else { "were" };
    let text = |ranks, size| {
        format!(
            "{listed} {were} not compared at {ranks} ranks and {size} bytes: that takes too long; \
             set `algorithm` to try one"
        )
    };
    said(case, text)
}

/// Names as words of a sentence; `None` for none.
fn listed(names: &[&str]) -> Option<String> {
    let (last, others) = names.split_last()?;
    Some(if others.is_empty() { (*last).to_owned() } else { format!("{} and {last}", others.join(", ")) })
}

fn said(case: &Case<'_>, text: impl Fn(u32, u64) -> String) -> Option<Warning> {
    let (ranks, size) = (case.prepared.topology.rank_count(), case.request.size_bytes_max);
    case.request.is_size_stated().then(|| Warning::new("NOT_COMPARED", text(ranks, size)))
}
