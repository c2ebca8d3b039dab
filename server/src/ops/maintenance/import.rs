//! All that a server kept in its data directory, brought into a database that servers share.

use std::io::Write;

use canopy_database::{Change, Entry, RecordFacts, SharedSpace};
use canopy_planner::PlanKey;

use super::copy::{Target, copy_pins, copy_records};
use super::shared_place::SharedPlace;
use super::{MaintenanceError, OF_LEASES, Place};
use crate::clock;
use crate::replan::EventLog;
use crate::store::{Opened, PlanSummary, Records, SharedSpaces, Space, Store, StoreError, deciding, of_database};

/// Spaces of which each record stands by itself: those of a folder and of a database can be mixed.
pub(super) const MIXED: [Space; 6] =
    [Space::Topologies, Space::Clusters, Space::Schedules, Space::Finds, Space::Plans, Space::Requests];

/// Whether faults, leases and events are brought along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WithLeases {
    /// They are, if there are any.
    Yes,
    /// They are left where they are.
    No,
}

/// What is to be done about faults, leases and events, which hang together.
enum OfLeases {
    /// There are no leases and no faults in the folder, nor events.
    Absent,
    /// They stay where they are, as was asked for.
    LeftOut,
    /// An earlier run has brought them all.
    Brought,
    /// They are brought, but for what an interrupted run has brought; the log of the database has this head until then.
    Due(Option<Vec<u8>>),
}

/// Copies the store of a directory into a database. What is under equal keys in the database stays. The directory is
/// only read.
///
/// # Errors
/// Nothing was changed where the database has leases of its own, or servers use it that leases would surprise;
/// otherwise a store failed, and the next run goes on from there.
pub(super) fn import_store(
    place: &Place,
    shared: &SharedPlace,
    with_leases: WithLeases,
    output: &mut dyn Write,
) -> Result<(), MaintenanceError> {
    let folder = place.open_to_read(output)?;
    shared.bring_up_to_date(output)?;
    let spaces = shared.spaces()?;
    let of_leases = what_of_leases(&folder, &spaces, with_leases)?;
    if matches!(of_leases, OfLeases::Due(_)) {
        shared.require_no_servers(", or add --without-leases")?;
    }
    // A plan that is pinned is never there without its pin.
    let pins = Records::pins_of(folder.space(Space::Plans).as_ref(), folder.pins.as_ref())?;
    let plans = spaces.space(Space::Plans);
    let there: Vec<PlanKey> = pins.iter().filter(|key| plans.has(key)).copied().collect();
    copy_pins(pins, &spaces.pins())?;
    there.iter().try_for_each(|key| pin(&plans, key))?;
    for space in MIXED {
        let copied = copy_records(folder.space(space).as_ref(), &spaces.space(space), None)?;
        writeln!(output, "{}: {copied}", space.name())?;
    }
    match of_leases {
        OfLeases::Due(head) => bring_leases(&folder, &spaces, head, output)?,
        OfLeases::LeftOut => writeln!(output, "faults, leases and replans: left out")?,
        OfLeases::Brought => writeln!(output, "faults, leases and replans: imported by an earlier run")?,
        OfLeases::Absent => writeln!(output, "faults, leases and replans: the folder has none")?,
    }
    match folder.space(Space::Jobs).all_keys().count() {
        0 => {}
        jobs => writeln!(
            output,
            "{jobs} unfinished jobs stay in the folder: request their plans again, or start a server on it without a \
             database, let them end and import again with --without-leases"
        )?,
    }
    Ok(())
}

/// Notes in the summary of a plan that was there before that it is pinned, for servers that run.
fn pin(plans: &SharedSpace, key: &PlanKey) -> Result<(), StoreError> {
    deciding(|| {
        plans.catch_up();
        let summary = plans.entry(key.as_bytes()).and_then(|entry| entry.summary);
        let summary = summary.and_then(|summary| PlanSummary::decode(key, &summary).ok());
        let Some(summary) = summary.filter(|summary| !summary.pinned) else { return Ok(()) };
        let pinned = PlanSummary { pinned: true, ..summary }.encode();
        let write = canopy_database::Write::Summary(pinned);
        plans.change(vec![Change { key: *key.as_bytes(), write }]).map_err(of_database)
    })
}

/// Finds out what is to be done about faults, leases and events; refuses to mix them with those of others.
fn what_of_leases(
    folder: &Opened,
    spaces: &SharedSpaces,
    with_leases: WithLeases,
) -> Result<OfLeases, MaintenanceError> {
    let is_absent = OF_LEASES.iter().try_fold(true, |is_absent, space| {
        let first = folder.space(*space).all_keys().find(|key| !key.as_ref().is_ok_and(is_head));
        Ok::<_, StoreError>(is_absent && first.transpose()?.is_none())
    })?;
    if is_absent {
        return Ok(OfLeases::Absent);
    }
    if with_leases == WithLeases::No {
        return Ok(OfLeases::LeftOut);
    }
    let ours = folder.space(Space::Replans).get(&EventLog::HEAD)?;
    let theirs = spaces.space(Space::Replans).record(EventLog::HEAD.as_bytes()).map_err(of_database)?;
    if theirs.as_ref().is_some_and(|theirs| EventLog::is_copy_of(theirs, ours.as_deref())) {
        return Ok(OfLeases::Brought);
    }
    let (mut is_foreign, mut counts) = (false, [0; 3]);
    for (space, count) in OF_LEASES.into_iter().zip(&mut counts) {
        for (key, entry) in spaces.space(space).entries(None, usize::MAX, |_| true) {
            let key = PlanKey::from_bytes(key);
            if !is_head(&key) {
                *count += 1;
                is_foreign = is_foreign || !is_same(folder.space(space).as_ref(), &key, &entry)?;
            }
        }
    }
    let [replans, faults, leases] = counts;
    if is_foreign { Err(MaintenanceError::HasLeases { faults, leases, replans }) } else { Ok(OfLeases::Due(theirs)) }
}

fn is_head(key: &PlanKey) -> bool {
    *key == EventLog::HEAD
}

/// Whether a folder has the same under a key as a database.
fn is_same(folder: &dyn Store, key: &PlanKey, entry: &Entry) -> Result<bool, StoreError> {
    let record = folder.get(key)?.map(|record| RecordFacts::of(&record));
    Ok(record == entry.record
        && folder.summary(key)?.unwrap_or_default() == entry.summary.as_deref().unwrap_or_default())
}

/// Copies faults, leases and events. The head of the log comes last, in place of the one that was there before, and
/// says that all are there.
fn bring_leases(
    folder: &Opened,
    spaces: &SharedSpaces,
    before: Option<Vec<u8>>,
    output: &mut dyn Write,
) -> Result<(), MaintenanceError> {
    for space in OF_LEASES {
        let copied = copy_records(folder.space(space).as_ref(), &spaces.space(space), Some(&EventLog::HEAD))?;
        writeln!(output, "{}: {copied}", space.name())?;
    }
    let ours = folder.space(Space::Replans).get(&EventLog::HEAD)?;
    // A server on the folder and those on the database tell of different things from now on.
    let record = EventLog::head_of_copy(ours.as_deref(), clock::unix_ms());
    let (replans, key) = (spaces.space(Space::Replans), *EventLog::HEAD.as_bytes());
    replans.catch_up();
    if replans.record(&key).map_err(of_database)? != before {
        // A server was started meanwhile.
        return Err(StoreError::Overtaken.into());
    }
    let write = canopy_database::Write::Put { record, summary: Vec::new() };
    Ok(replans.change(vec![Change { key, write }]).map_err(of_database)?)
}
