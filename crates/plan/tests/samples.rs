//! Real files of others, read in place where they are at hand.
//!
//! A simulation found all of them right, so the proof must too: no deadlock, no race, no wrong value.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use canopy_plan::{EmulateOptions, EmulationError, Profile, Program, emulate, parse_msccl_xml, prove, write_msccl_xml};

/// Written in a dialect of its own: an attribute and elements that runtimes pass over.
const OWN_DIALECT: &str = "teccl-amd_32.xml";

/// Those that need more than one slot when every chunk is a transfer of its own.
const NEED_SLOTS: [&str; 3] = ["ndv4-ag-32m-1g.xml", "ndv4-ap2ll.xml", "rccl-allreduce-allpairs-8n-ll-32tb.xml"];

#[test]
fn right_files_are_found_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/formats/samples/msccl-xml");
    let Ok(entries) = fs::read_dir(&folder) else {
        return println!("skipped: no sample files at {}", folder.display());
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "xml"));
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        check(name, &read(name, &text));
    }
}

fn read(name: &str, text: &str) -> Program {
    if name != OWN_DIALECT {
        return parse_msccl_xml(text, Profile::Msccl).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let error = parse_msccl_xml(text, Profile::Msccl).unwrap_err().to_string();
    assert!(error.contains("unknown attribute `redop`"), "{error}");
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("<copy")).collect();
    parse_msccl_xml(&lines.join("\n").replace(" redop=\"nop\"", ""), Profile::Msccl).unwrap()
}

fn check(name: &str, program: &Program) {
    assert_eq!(parse_msccl_xml(&write_msccl_xml(program), Profile::Msccl).as_ref(), Ok(program), "{name}");
    let proof = prove(program, Profile::Msccl);
    assert!(proof.is_ok(), "{name}: {:#?}", proof.problems);
    let standard = EmulateOptions::standard(Profile::Msccl, 1);
    emulate(program, &standard).unwrap_or_else(|error| panic!("{name}: {error}"));
    let single = EmulateOptions { slots: Some(1), chunks_per_transfer: Some(1), ..standard };
    let deadlocks = matches!(emulate(program, &single), Err(EmulationError::Deadlock { .. }));
    assert_eq!(deadlocks, NEED_SLOTS.contains(&name), "{name}");
}
