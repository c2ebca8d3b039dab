//! What a program must stand before a test is content with it.

use canopy_plan::{EmulateOptions, Profile, Program, emulate, parse_msccl_xml, prove, write_msccl_xml};

/// Reads back, proves, and runs with the runtime's queues and with a single slot.
#[track_caller]
pub(crate) fn judge(program: &Program, profile: Profile) {
    let parsed = parse_msccl_xml(&write_msccl_xml(program, profile), profile).unwrap();
    assert_eq!(&parsed, program);
    let proof = prove(&parsed, profile);
    assert!(proof.is_ok(), "{profile} {}: {:#?}", program.purpose, proof.problems);
    for (slots, chunks_per_transfer) in [(None, None), (Some(1), Some(1))] {
        let standard = EmulateOptions::standard(profile, 1);
        emulate(&parsed, &EmulateOptions { slots, chunks_per_transfer, ..standard }).unwrap();
    }
}
