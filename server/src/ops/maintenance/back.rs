//! All that servers keep in a database, brought into the data directory of one of them.

use std::io::Write;

use super::copy::{NewSpace, copy_pins, copy_records};
use super::import::MIXED;
use super::shared_place::SharedPlace;
use super::{MaintenanceError, OF_LEASES, Place};
use crate::clock;
use crate::replan::EventLog;
use crate::store::{Opened, Records, Space, StoreError};

/// Copies a database into a new store in a directory. The database is only read.
///
/// # Errors
/// Nothing was changed where servers use the database or the directory has records; otherwise a store failed.
pub(super) fn bring_back(place: &Place, shared: &SharedPlace, output: &mut dyn Write) -> Result<(), MaintenanceError> {
    shared.require_schema()?;
    shared.require_no_servers("")?;
    let jobs = shared.unfinished_jobs()?;
    let from = shared.open()?;
    let to = place.open_new(output)?;
    if !is_empty(&to)? {
        return Err(MaintenanceError::NotEmpty { directory: place.directory.clone() });
    }
    let pins = Records::pins_of(from.space(Space::Plans).as_ref(), from.pins.as_ref())?;
    copy_pins(pins, &NewSpace::of_pins(&to.pins))?;
    for space in MIXED.into_iter().chain(OF_LEASES) {
        let target = NewSpace::new(to.space(space), space);
        let copied = copy_records(from.space(space).as_ref(), &target, Some(&EventLog::HEAD))?;
        writeln!(output, "{}: {copied}", space.name())?;
    }
    if let Some(head) = from.space(Space::Replans).get(&EventLog::HEAD)? {
        // A server on the directory and those on the database tell of different things from now on.
        let head = EventLog::head_of_copy(Some(&head), clock::unix_ms());
        to.space(Space::Replans).put_all(&[(EventLog::HEAD, head)])?;
    }
    if jobs > 0 {
        writeln!(
            output,
            "{jobs} unfinished jobs stay in the database: request their plans again, or start a server on it, let them \
             end and bring all back into another directory"
        )?;
    }
    Ok(())
}

/// Whether a store has no records but what every start writes.
fn is_empty(opened: &Opened) -> Result<bool, StoreError> {
    for space in Space::ALL {
        for key in opened.space(space).keys(None, 2)? {
            let record = opened.space(space).get(&key)?.unwrap_or_default();
            if key != EventLog::HEAD || !EventLog::is_unused(&record) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
