//! An execution plan for one version of MSCCL++ of a plan for another.

use canopy_plan::{ExecutionPlan, ExecutorProfile, parse_execution_plan, write_execution_plan};

use super::Made;
use crate::commands::verify;
use crate::exit::{Failure, words};

/// States the same greatest message in the other's words. What else differs are limits, which the verdict is by.
///
/// # Errors
/// The file cannot be read, or is for no message.
pub(super) fn convert(name: &str, bytes: &[u8], from: ExecutorProfile, to: ExecutorProfile) -> Result<Made, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| Failure::input(format!("{name} is not UTF-8")))?;
    let plan = parse_execution_plan(text).map_err(|error| Failure::input(format!("{name}: {}", words(&error))))?;
    let Some(last) = from.bytes_max_inclusive(plan.bytes_max) else {
        return Err(Failure::input(format!("{name} is for no message: max_message_size is {}", plan.bytes_max))
            .help("state a larger max_message_size"));
    };
    // What is not stated stays so.
    let is_stated = plan.bytes_max != u64::MAX;
    let bytes_max = if is_stated { to.bytes_max_attribute(last) } else { plan.bytes_max };
    let changed = (bytes_max != plan.bytes_max).then(|| {
        format!("changed max_message_size from {} to {bytes_max}: messages of at most {last} bytes", plan.bytes_max)
    });
    let text = write_execution_plan(&ExecutionPlan { bytes_max, ..plan });
    let verdict = verify::judge_file(text.as_bytes(), Some(to.into()), None)?;
    Ok(Made { from: from.name(), text, changes: changed.into_iter().collect(), verdict, ranks_per_node: None })
}
