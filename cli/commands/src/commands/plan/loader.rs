//! The Python module beside an execution plan that registers it with MSCCL++ 0.9 and later.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use canopy_plan::{EXECUTION_PLAN_BYTES_MAX, execution_plan_loader, parse_execution_plan_head};
use canopy_proto::v1::Placement;

use crate::exit::Failure;
use crate::input;
use crate::whole_file::write_file;

/// The Python module beside several plans, which goes by the manifest beside it.
pub(in crate::commands) const LOADER: &str = include_str!("bundle/loader.py");

/// How such a module begins: only what begins so is replaced.
const FIRST_WORDS: &str = "\"\"\"Registers the execution plan ";

/// Where the module of a plan goes: beside it, with the ending `py`.
///
/// # Errors
/// Something else is there.
pub(in crate::commands) fn path(plan: &Path) -> Result<PathBuf, Failure> {
    let path = plan.with_extension("py");
    let is_ours = |text: String| text.starts_with(FIRST_WORDS);
    let is_free = !path.exists() || fs::read_to_string(&path).is_ok_and(is_ours);
    if path != plan && is_free {
        return Ok(path);
    }
    Err(Failure::input(format!("{} is in the way of the module that registers the plan", path.display()))
        .help("give the plan another name with -o"))
}

/// Writes the module of a plan that has been written, for machines with so many ranks; none: any number.
pub(in crate::commands) fn write(plan: &Path, module: &Path, ranks_per_node: Option<u32>) -> Result<(), Failure> {
    let bytes = input::bytes(plan, EXECUTION_PLAN_BYTES_MAX)?;
    let unreadable = |error: &dyn std::error::Error| Failure::fault(format!("cannot read the plan back: {error}"));
    let text = std::str::from_utf8(&bytes).map_err(|error| unreadable(&error))?;
    let parsed = parse_execution_plan_head(text).map_err(|error| unreadable(&error))?;
    let name = plan.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    write_file(module, execution_plan_loader(&parsed, &name, ranks_per_node).as_bytes())
}

/// More ranks than this share a domain of NVLink, whose hosts a rank map does not tell apart.
const HOST_RANKS_MAX: u32 = 8;

/// Ranks of each machine where boxes have so many, unless such a box may have several hosts.
pub(in crate::commands) fn of_box(box_size: u32) -> Option<u32> {
    (box_size <= HOST_RANKS_MAX).then_some(box_size)
}

/// Ranks of each machine that a rank map names, if all have as many, and no more than a host has.
/// What is not stated, the module finds out where it runs.
pub(in crate::commands) fn ranks_per_node(map: &Placement) -> Option<u32> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for slot in &map.slots {
        let count = counts.entry(&slot.node).or_default();
        *count = count.checked_add(slot.count.unwrap_or(1))?;
    }
    let first = counts.values().next().copied()?;
    (first <= HOST_RANKS_MAX && counts.values().all(|&count| count == first)).then_some(first)
}
