//! Folders that are right for each runtime, and every way to spoil them.

use canopy_plan::PlacementRule;

use super::*;
use crate::file::Divisor;
use crate::runtime::{Maximum, Rules};

const CUTS: [u64; 4] = [1 << 10, 1 << 15, 1 << 22, (1 << 30) + 1];

fn running() -> impl Iterator<Item = (Runtime, Rules)> {
    Runtime::ALL.into_iter().filter_map(|runtime| Some((runtime, runtime.rules()?)))
}

/// The attribute with which a runtime uses a file up to the end of a range.
fn attribute(rules: &Rules, range: ByteRange) -> u64 {
    match rules.maximum {
        Maximum::Exclusive => range.end(),
        Maximum::Inclusive | Maximum::InclusiveOrNone => range.last(),
    }
}

/// Three ranges of an allreduce in place, with 12, 7 and 96 chunks.
fn sound(rules: &Rules) -> (Folder, Vec<Intended<'static>>) {
    let mut folder = Folder::default();
    let mut intended = Vec::new();
    for (file, (pair, chunks)) in CUTS.windows(2).zip([12, 7, 96]).enumerate() {
        let range = ByteRange::new(pair[0], pair[1]).unwrap();
        folder.files.push(PlanFileFacts {
            path: format!("plans/{file:02}.xml"),
            collective: Some(CollectiveKind::Allreduce),
            ranks: 8,
            ranks_per_node: None,
            rank_map: None,
            in_place: true,
            out_of_place: Some(false),
            bytes_min: Some(range.first()),
            bytes_max: Some(attribute(rules, range)),
            divisor: Divisor::Elements(chunks),
        });
        let collective = CollectiveKind::Allreduce;
        intended.push(Intended {
            file,
            collective,
            ranks: 8,
            ranks_per_node: 8,
            rank_map: None,
            in_place: true,
            range,
        });
    }
    (folder, intended)
}

#[test]
fn a_sound_folder_is_handed_over_to_every_runtime() {
    for (runtime, rules) in running() {
        let (mut folder, intended) = sound(&rules);
        if rules.indivisible == Indivisible::Fails {
            // Nothing to divide, nothing to fail.
            folder.files.iter_mut().for_each(|file| file.divisor = Divisor::Bytes(1));
        }
        assert_eq!(audit(runtime, &folder, &intended), Ok(()), "{runtime}");
    }
    assert_eq!(audit(Runtime::Nccl, &Folder::default(), &[]), Ok(()));
}

#[test]
fn every_size_of_every_range_gets_the_file_that_is_meant() {
    for (runtime, rules) in running().filter(|(_, rules)| rules.indivisible != Indivisible::Fails) {
        let (folder, intended) = sound(&rules);
        for meant in &intended {
            let unit = folder.files[meant.file].divisor.count();
            let (lowest, highest) = ends(&folder.files[meant.file], unit, meant.range).unwrap();
            let steps = (highest - lowest) / unit;
            for part in 0..=64 {
                let bytes = lowest + steps * part / 64 * unit;
                let found = select(runtime, &folder, &call(meant, bytes));
                assert_eq!(found, Selection::File(meant.file), "{runtime} {bytes}");
            }
        }
    }
}

#[test]
fn spoiled_folders_are_kept() {
    type Spoil = fn(&mut Folder, &mut Vec<Intended<'static>>);
    let spoils: [(&str, Spoil); 12] = [
        ("one byte too early", |folder, _| folder.files[1].bytes_min = Some((1 << 15) - 7)),
        ("late", |folder, _| folder.files[1].bytes_min = Some((1 << 15) + 7)),
        ("too far", |folder, _| folder.files[1].bytes_max = Some((1 << 22) + 96)),
        ("short", |folder, _| folder.files[1].bytes_max = Some((1 << 22) - 14)),
        ("wrong number of ranks", |folder, _| folder.files[1].ranks = 16),
        ("wrong in-place state", |folder, _| {
            folder.files[1].in_place = false;
            folder.files[1].out_of_place = Some(true);
        }),
        ("another collective", |folder, _| folder.files[1].collective = Some(CollectiveKind::Reduce)),
        ("no collective", |folder, _| folder.files[1].collective = None),
        ("meant twice", |_, intended| {
            intended[1].range = ByteRange::new(1 << 14, 1 << 22).unwrap();
        }),
        ("not there", |_, intended| intended[2].file = 3),
        ("no message divides", |folder, _| folder.files[1].divisor = Divisor::Elements(1 << 40)),
        ("a copy before it", |folder, intended| {
            let copy = PlanFileFacts { path: "plans/".to_owned(), ..folder.files[1].clone() };
            folder.files.insert(0, copy);
            intended.iter_mut().for_each(|meant| meant.file += 1);
        }),
    ];
    for (runtime, rules) in running() {
        for (what, spoil) in &spoils {
            let (mut folder, mut intended) = sound(&rules);
            folder.files.iter_mut().for_each(|file| {
                if rules.indivisible == Indivisible::Fails {
                    file.divisor = Divisor::Bytes(1);
                }
            });
            spoil(&mut folder, &mut intended);
            let found = audit(runtime, &folder, &intended);
            let is_harmless = match *what {
                "wrong number of ranks" => !rules.tells_ranks,
                "no message divides" => rules.indivisible == Indivisible::Allowed,
                _ => false,
            };
            if is_harmless {
                continue;
            }
            assert!(found.is_err(), "{runtime}: {what}");
        }
    }
}

#[test]
fn a_file_for_both_kinds_of_calls_must_be_meant_for_both() {
    for (runtime, _) in running().filter(|(_, rules)| rules.placement == PlacementRule::BothFlags) {
        let (mut folder, mut intended) = sound(&runtime.rules().unwrap());
        folder.files[0].out_of_place = Some(true);
        assert!(matches!(audit(runtime, &folder, &intended), Err(AuditError::Picked { is_in_place: false, .. })));
        intended.push(Intended { in_place: false, ..intended[0] });
        assert_eq!(audit(runtime, &folder, &intended), Ok(()), "{runtime}");
    }
}

#[test]
fn too_many_files_and_files_that_break_a_runtime_are_found() {
    let (mut folder, mut intended) = sound(&Runtime::Msccl.rules().unwrap());
    for file in 3..5_u32 {
        let path = format!("plans/{file:02}.xml");
        folder.files.push(PlanFileFacts { path, ranks: file, ..folder.files[0].clone() });
        intended.push(Intended { file: file as usize, ranks: file, ..intended[0] });
    }
    let found = audit(Runtime::Msccl, &folder, &intended).unwrap_err();
    assert!(found.to_string().contains("plans/04.xml is meant for this call, but msccl skips it"), "{found}");
    let (mut folder, intended) = sound(&Runtime::RcclMsccl.rules().unwrap());
    folder.others.push("plans/README".to_owned());
    let found = audit(Runtime::RcclMsccl, &folder, &intended).unwrap_err();
    assert!(found.to_string().ends_with("rccl-msccl fails: plans/README is not a plan"), "{found}");
}

#[test]
fn files_for_other_devices_are_for_other_calls() {
    let (mut folder, mut intended) = sound(&Runtime::OneCcl.rules().unwrap());
    let (here, there) = (Some("a:0,b:0"), Some("c:0,d:0"));
    let count = folder.files.len();
    folder.files.iter_mut().for_each(|file| file.rank_map = here.map(str::to_owned));
    intended.iter_mut().for_each(|meant| meant.rank_map = here);
    for file in 0..count {
        let path = format!("plans/{:02}.xml", count + file);
        folder.files.push(PlanFileFacts { path, rank_map: there.map(str::to_owned), ..folder.files[file].clone() });
        intended.push(Intended { file: count + file, rank_map: there, ..intended[file] });
    }
    assert_eq!(audit(Runtime::OneCcl, &folder, &intended), Ok(()));
    let found = audit(Runtime::RcclMsccl, &folder, &intended).unwrap_err();
    assert!(matches!(found, AuditError::Overlap { .. }), "{found}");
    // A file that states nothing takes calls that are not meant for it.
    folder.files[0].rank_map = None;
    let found = audit(Runtime::OneCcl, &folder, &intended).unwrap_err();
    assert!(matches!(found, AuditError::Picked { .. }), "{found}");
    folder.files[0].rank_map = Some("a:0,b:1".to_owned());
    let found = audit(Runtime::OneCcl, &folder, &intended).unwrap_err();
    assert!(found.to_string().ends_with("oneccl skips it: it is for other devices"), "{found}");
}
