//! Plans with pipelines, for tests.

use canopy_plan::{ExecutionOp, ExecutionPlan, ExecutorProfile, OpName, Pipeline};
use canopy_schedule::CollectiveKind;
use canopy_synth::Algorithm;

use crate::support::execution::{graph, lowered, topology};

/// A plan whose blocks each do all they do unit by unit.
pub(crate) fn repeated(expression: &str, kind: CollectiveKind, unit_bytes: u64) -> ExecutionPlan {
    let topology = topology(expression);
    let graph = graph(&topology, kind, None, Algorithm::Direct);
    let mut plan = lowered(&topology, &graph, ExecutorProfile::V10, kind == CollectiveKind::Allreduce);
    let blocks = plan.ranks.iter().flat_map(|rank| &rank.blocks);
    let sizes = blocks.flat_map(|block| &block.operations).flat_map(|operation| &operation.targets).map(|at| at.size);
    let chunk_count = sizes.max().unwrap();
    for block in plan.ranks.iter_mut().flat_map(|rank| &mut rank.blocks) {
        let mut operations = std::mem::take(&mut block.operations);
        operations.push(ExecutionOp::new(OpName::Nop));
        let pipeline = Some(Pipeline { unit_bytes, chunk_count, operations });
        block.operations.push(ExecutionOp { pipeline, ..ExecutionOp::new(OpName::Pipeline) });
    }
    plan
}
