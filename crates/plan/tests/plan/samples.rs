//! Real files of others, read in place where they are at hand.
//!
//! A simulation found all of them right, so the proof must too: no deadlock, no race, no wrong value. What each
//! runtime makes of them stands in the approved table.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use approved::check_approved;
use canopy_plan::{
    ElementType, EmulateOptions, EmulationError, MSCCL_BYTES_MAX, Operator, Profile, Program, Protocol, convert,
    emulate, parse_msccl_xml, prove, read_foreign_msccl_xml, read_msccl_xml_as_runtime, write_msccl_xml,
};

use crate::support::approved;

/// Those that need more than one slot when every chunk is a transfer of its own.
const NEED_SLOTS: [&str; 3] = ["ndv4-ag-32m-1g.xml", "ndv4-ap2ll.xml", "rccl-allreduce-allpairs-8n-ll-32tb.xml"];

/// Name and text of every sample; none, after saying so, where they are absent.
fn samples() -> Vec<(String, String)> {
    let Some(folder) = canopy_prerequisites::samples("msccl-xml") else { return Vec::new() };
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "xml"));
    paths.sort();
    let read =
        |path: PathBuf| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap());
    paths.into_iter().map(read).collect()
}

/// What a file does, whatever its dialect.
fn meaning_of(name: &str, text: &str) -> Program {
    let file = read_foreign_msccl_xml(text, Profile::Msccl, &|| false);
    file.unwrap_or_else(|error| panic!("{name}: {error}")).program
}

#[test]
fn right_files_are_found_right() {
    for (name, text) in samples() {
        let program = meaning_of(&name, &text);
        let again = parse_msccl_xml(&write_msccl_xml(&program, Profile::Msccl), Profile::Msccl);
        assert_eq!(again.as_ref(), Ok(&program), "{name}");
        let proof = prove(&program, Profile::Msccl);
        assert!(proof.is_ok(), "{name}: {:#?}", proof.problems);
        let standard = EmulateOptions::standard(Profile::Msccl, 1);
        emulate(&program, &standard).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (seed, element, operator) in [
            (2, ElementType::U8, Operator::Product),
            (3, ElementType::I32, Operator::Min),
            (4, ElementType::I64, Operator::Max),
            (5, ElementType::U32, Operator::Sum),
        ] {
            let options = EmulateOptions { seed, element, operator, slots: Some(2), ..standard };
            emulate(&program, &options).unwrap_or_else(|error| panic!("{name} with two slots: {error}"));
        }
        let single = EmulateOptions { slots: Some(1), chunks_per_transfer: Some(1), ..standard };
        let deadlocks = matches!(emulate(&program, &single), Err(EmulationError::Deadlock { .. }));
        assert_eq!(deadlocks, NEED_SLOTS.contains(&name.as_str()), "{name}");
    }
}

/// Every file in every profile: `ok`, or the first reason against it.
#[test]
fn each_runtime_has_its_own_verdict() {
    let samples = samples();
    if samples.is_empty() {
        return;
    }
    let mut table = String::new();
    for (name, text) in &samples {
        writeln!(table, "{name}").unwrap();
        for profile in Profile::ALL {
            writeln!(table, "  {profile:<14} {}", verdict(text, profile)).unwrap();
        }
    }
    check_approved("samples.txt", &table);
}

fn verdict(text: &str, profile: Profile) -> String {
    let file = match read_msccl_xml_as_runtime(text, profile, MSCCL_BYTES_MAX, &|| false) {
        Ok(file) => file,
        Err(error) => return format!("refused: {error}"),
    };
    let proof = prove(&file.program, profile);
    match proof.problems.first() {
        Some(problem) => format!("refused: {}, {problem}", problem.check),
        None if !file.deviations.is_empty() => {
            let deviations: Vec<String> = file.deviations.iter().map(ToString::to_string).collect();
            format!("ok, passes over {}", deviations.join("; "))
        }
        None if proof.warnings.is_empty() => "ok".to_owned(),
        None => format!("ok, {} warnings, first: {}", proof.warnings.len(), proof.warnings[0]),
    }
}

/// Every file becomes one for every runtime that can say it, and is right there.
#[test]
fn each_file_can_be_converted_or_says_why_not() {
    let samples = samples();
    if samples.is_empty() {
        return;
    }
    let mut table = String::new();
    for (name, text) in &samples {
        writeln!(table, "{name}").unwrap();
        let file = read_foreign_msccl_xml(text, Profile::MscclExecutor, &|| false).unwrap();
        for to in Profile::ALL {
            let conversion = convert(&file, Profile::MscclExecutor, to);
            let conversion = conversion.unwrap_or_else(|error| panic!("{name}: {error}"));
            for change in &conversion.changes {
                writeln!(table, "  {to:<14} {change}").unwrap();
            }
            let written = write_msccl_xml(&conversion.program, to);
            let verdict = verdict(&written, to);
            writeln!(table, "  {to:<14} {verdict}").unwrap();
            if verdict.starts_with("ok") {
                emulate(&conversion.program, &EmulateOptions::standard(to, 3))
                    .unwrap_or_else(|error| panic!("{name} for {to}: {error}"));
            }
        }
    }
    check_approved("conversions.txt", &table);
}

/// All pairs send several chunks before they receive any: with the two slots of Simple that works while a transfer holds
/// enough chunks, and beyond that message size it cannot end.
#[test]
fn a_raised_bound_is_judged_anew() {
    for (name, text) in samples() {
        if name != "rccl-allreduce-allpairs-8n-ll-32tb.xml" {
            continue;
        }
        let program = Program { protocol: Protocol::Simple, ..meaning_of(&name, &text) };
        let verdict = |bytes: u64| {
            let program = Program { bytes_max: Some(bytes), ..program.clone() };
            prove(&program, Profile::MscclExecutor).problems.first().map(ToString::to_string)
        };
        // Steps of 8 of the 256 chunks: four to a transfer of 2 MiB up to 128 MiB, then three.
        assert_eq!(verdict(128 << 20), None);
        let beyond = verdict((128 << 20) + 1).unwrap();
        let cycle = "deadlock: 256 of 256 blocks never end: gpu 0 tb 8 step 0 waits for one of 2 slots to gpu 2 tb 4, \
                     gpu 2 tb 4 step 0 waits for one of 2 slots to gpu 0 tb 8";
        assert!(beyond.contains(cycle), "{beyond}");
    }
}
