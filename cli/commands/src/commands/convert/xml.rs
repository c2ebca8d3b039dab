//! An MSCCL file for one runtime of a file for another.

use canopy_plan::{Profile, convert as converted, parse_msccl_xml, read_foreign_msccl_xml, write_msccl_xml};

use super::Made;
use crate::commands::verify;
use crate::exit::{Failure, words};

/// Repairs what differs between the two.
///
/// # Errors
/// The file cannot be read, or says what cannot be said for the other.
pub(super) fn convert(name: &str, bytes: &[u8], from: Profile, to: Profile) -> Result<Made, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| Failure::input(format!("{name} is not UTF-8")))?;
    let file = read_foreign_msccl_xml(text, from, &|| false)
        .map_err(|error| Failure::input(format!("{name}: {}", words(&error))))?;
    let conversion = converted(&file, from, to)
        .map_err(|error| Failure::input(format!("cannot convert {name}: {}", words(&error))))?;
    let text = write_msccl_xml(&conversion.program, to);
    let read = parse_msccl_xml(&text, to)
        .map_err(|error| Failure::fault(format!("the converted file cannot be read: {}", words(&error))))?;
    if read != conversion.program {
        return Err(Failure::fault("the converted file, read back, is another program"));
    }
    let verdict = verify::judge_file(text.as_bytes(), Some(to.into()), None)?;
    let changes = conversion.changes.iter().map(ToString::to_string).collect();
    Ok(Made { from: from.name(), text, changes, verdict, ranks_per_node: None })
}
