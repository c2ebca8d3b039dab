//! A small Python module that registers a plan with MSCCL++ 0.9 and later, which finds no plans by itself.

use super::loader::message_chunks;
use super::profile::ExecutorProfile;
use super::program::ExecutionPlan;

const TEMPLATE: &str = include_str!("python/loader.py");

/// The module for a plan, whose file has this name and lies beside it.
///
/// It states what the runtime does not read from the file: the number of ranks, those of each machine where it is known
/// and the same everywhere, the collective by canopy's name in the plan's own name, and the size of messages. O(ranks).
pub fn execution_plan_loader(plan: &ExecutionPlan, file_name: &str, ranks_per_node: Option<u32>) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let bytes_max = ExecutorProfile::NEWEST.bytes_max_inclusive(plan.bytes_max).unwrap_or(0);
    let aligned = plan.alignment_bytes.saturating_mul(message_chunks(plan).max(1).into());
    let values = [
        ("FILE", quoted(file_name)),
        ("NAME", quoted(&plan.name)),
        ("COLLECTIVE", quoted(&plan.collective)),
        ("WORLD_SIZE", plan.ranks.len().to_string()),
        ("RANKS_PER_NODE", ranks_per_node.unwrap_or(0).to_string()),
        ("BYTES_MIN", plan.bytes_min.to_string()),
        ("BYTES_MAX", bytes_max.to_string()),
        ("BYTES_MULTIPLE", aligned.to_string()),
        ("IN_PLACE", if plan.in_place { "True" } else { "False" }.to_owned()),
    ];
    // Marks stand between at signs; a value is never looked at again.
    let piece = |(position, piece): (usize, &'static str)| {
        let value = values.iter().find(|(mark, _)| position % 2 == 1 && *mark == piece);
        value.map_or(piece.to_owned(), |(_, value)| value.clone())
    };
    TEMPLATE.split('@').enumerate().map(piece).collect()
}
