//! A small Python module that registers a plan with MSCCL++ 0.9 and later, which finds no plans by itself.

use super::loader::message_chunks;
use super::profile::ExecutorProfile;
use super::program::{ExecutionPlan, RankChannels};

const TEMPLATE: &str = include_str!("python/loader.py");

/// The module for a plan, whose file has this name and lies beside it.
///
/// It states what the runtime does not read from the file: the number of ranks, ranks of a box, the collective by canopy's
/// name in the plan's own name, and the size of messages. O(ranks + channels).
pub fn execution_plan_loader(plan: &ExecutionPlan, file_name: &str) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let bytes_max = ExecutorProfile::V09.bytes_max_inclusive(plan.bytes_max).unwrap_or(0);
    let aligned = plan.alignment_bytes.saturating_mul(message_chunks(plan).max(1).into());
    let values = [
        ("@FILE@", quoted(file_name)),
        ("@NAME@", quoted(&plan.name)),
        ("@COLLECTIVE@", quoted(&plan.collective)),
        ("@WORLD_SIZE@", plan.ranks.len().to_string()),
        ("@RANKS_PER_NODE@", ranks_per_box(plan).to_string()),
        ("@BYTES_MIN@", plan.bytes_min.to_string()),
        ("@BYTES_MAX@", bytes_max.to_string()),
        ("@BYTES_MULTIPLE@", aligned.to_string()),
        ("@IN_PLACE@", if plan.in_place { "True" } else { "False" }.to_owned()),
    ];
    values.iter().fold(TEMPLATE.to_owned(), |text, (mark, value)| text.replace(mark, value))
}

/// Ranks of each box, as far as channels tell: those that memory channels join. 0, which is any number to the runtime,
/// where boxes differ in size.
fn ranks_per_box(plan: &ExecutionPlan) -> usize {
    let mut boxes: Vec<usize> = (0..plan.ranks.len()).collect();
    let has_ports = |entry: &RankChannels| matches!(entry, RankChannels::Peers { is_port: true, .. });
    if !plan.ranks.iter().flat_map(|rank| &rank.channels).any(has_ports) {
        return boxes.len();
    }
    for (rank, program) in plan.ranks.iter().enumerate() {
        for entry in &program.channels {
            let RankChannels::Peers { is_port: false, peers } = entry else { continue };
            for &peer in peers {
                let (Some(&own), Some(&other)) = (boxes.get(rank), boxes.get(peer as usize)) else { continue };
                boxes.iter_mut().filter(|member| **member == other).for_each(|member| *member = own);
            }
        }
    }
    let size = |name: &usize| boxes.iter().filter(|other| *other == name).count();
    let sizes: Vec<usize> = boxes.iter().map(size).collect();
    match sizes.first() {
        Some(&first) if sizes.iter().all(|&size| size == first) => first,
        _ => 0,
    }
}
