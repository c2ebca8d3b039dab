//! What conversion changes, and that what it makes is right.

use canopy_schedule::CollectiveKind;

use super::{ConvertError, convert};
use crate::elements::Operator;
use crate::msccl::emulate::{EmulateOptions, emulate};
use crate::msccl::examples::{
    after, awaited, block, program, rank, ring_allgather, ring_allreduce, split_allgather, step,
};
use crate::msccl::{
    ForeignFile, Profile, Program, Purpose, parse_msccl_xml, prove, read_foreign_msccl_xml, write_msccl_xml,
};

/// Converts, proves, runs, writes and reads back; returns the result and what was said of it.
#[track_caller]
fn converted(program: &Program, from: Profile, to: Profile) -> (Program, Vec<String>) {
    let file = ForeignFile { program: program.clone(), deviations: Vec::new() };
    let conversion = convert(&file, from, to).unwrap();
    let result = conversion.program;
    let proof = prove(&result, to);
    assert!(proof.is_ok(), "{:#?}\n{}", proof.problems, write_msccl_xml(&result, to));
    assert_eq!(parse_msccl_xml(&write_msccl_xml(&result, to), to).as_ref(), Ok(&result));
    for operator in [Operator::Sum, Operator::Product] {
        emulate(&result, &EmulateOptions { operator, ..EmulateOptions::standard(to, 7) }).unwrap();
    }
    (result, conversion.changes.iter().map(ToString::to_string).collect())
}

#[test]
fn nothing_changes_where_nothing_must() {
    for program in [ring_allgather(3), ring_allreduce(), split_allgather()] {
        for profile in [Profile::Msccl, Profile::MscclExecutor] {
            assert_eq!(converted(&program, profile, profile), (program.clone(), Vec::new()));
        }
    }
}

#[test]
fn missing_attributes_get_stated_defaults() {
    let bare = Program { out_of_place: None, bytes_min: None, bytes_max: None, ..ring_allreduce() };
    let (result, changes) = converted(&bare, Profile::Msccl, Profile::MscclExecutor);
    assert_eq!((result.out_of_place, result.bytes_min, result.bytes_max), (Some(false), Some(0), Some((1 << 27) - 1)));
    let expected = [
        "added outofplace=\"0\": the opposite of inplace",
        "added minBytes=\"0\": no minimum size",
        "added maxBytes=\"134217727\": the default of the old runtime",
    ];
    assert_eq!(changes, expected);
    let nameless = Program { name: String::new(), bytes_max: Some(0), ..ring_allgather(1) };
    let (result, changes) = converted(&nameless, Profile::MscclExecutor, Profile::Msccl);
    assert_eq!((result.name.as_str(), result.bytes_max), ("converted", Some((1 << 30) + 1)));
    let expected = [
        "added name=\"converted\": the runtime requires it",
        "changed maxBytes from \"0\" to \"1073741825\": 1 GiB, as the file has no bound",
    ];
    assert_eq!(changes, expected);
}

#[test]
fn sizes_and_calls_stay_the_same() {
    let (there, changes) = converted(&ring_allgather(1), Profile::Msccl, Profile::MscclExecutor);
    assert_eq!(there.bytes_max, Some((1 << 20) - 1));
    assert_eq!(changes, ["changed maxBytes from \"1048576\" to \"1048575\": the same sizes as before"]);
    let (back, _) = converted(&there, Profile::MscclExecutor, Profile::Msccl);
    assert_eq!(back, ring_allgather(1));
    let both = Program { out_of_place: Some(true), ..ring_allreduce() };
    let (result, changes) = converted(&both, Profile::Msccl, Profile::MscclExecutor);
    assert_eq!(result.out_of_place, Some(false));
    assert!(changes[0].contains("the old runtime used the file for one kind of call"), "{changes:?}");
}

/// A ring whose steps are two chunks: two transfers each as soon as a chunk is larger than half of what one takes, and
/// then every queue is full before anyone receives.
#[test]
fn a_bound_is_lowered_to_where_queues_suffice() {
    let large = Program { bytes_max: Some(1 << 30), ..ring_allgather(2) };
    // 8 chunks of 1 MiB.
    let (result, changes) = converted(&large, Profile::MscclExecutor, Profile::MscclExecutor);
    assert_eq!(result, Program { bytes_max: Some(8 << 20), ..large.clone() });
    let why = "larger messages need more slots than the queues have, and deadlock";
    assert_eq!(changes, [format!("changed maxBytes from \"1073741824\" to \"8388608\": {why}")]);
    let next = Program { bytes_max: Some((8 << 20) + 1), ..large.clone() };
    assert!(prove(&next, Profile::MscclExecutor).problems.iter().all(|problem| problem.check == "deadlock"));
    assert!(!prove(&next, Profile::MscclExecutor).is_ok());
    let unbounded = Program { bytes_max: Some(0), ..large.clone() };
    let (result, _) = converted(&unbounded, Profile::MscclExecutor, Profile::MscclExecutor);
    assert_eq!(result.bytes_max, Some(8 << 20));
    // Apart, receives make room before the sends that fill it.
    let (result, _) = converted(&large, Profile::MscclExecutor, Profile::RcclMsccl);
    assert_eq!(result.bytes_max, large.bytes_max);
    // The default of a file that states no bound is too large, too.
    let silent = Program { bytes_max: None, ..large.clone() };
    let (result, changes) = converted(&silent, Profile::Msccl, Profile::Msccl);
    assert_eq!((result.bytes_max, &*changes[0]), (Some((8 << 20) + 1), &*format!("added maxBytes=\"8388609\": {why}")));
    // Nothing that small is for this file; and what never ends has no bound.
    let convert = |program: Program| {
        let file = ForeignFile { program, deviations: Vec::new() };
        convert(&file, Profile::MscclExecutor, Profile::MscclExecutor).unwrap()
    };
    let huge = Program { bytes_min: Some(1 << 24), ..large };
    assert_eq!(convert(huge.clone()).program, huge);
    let mut stuck = ring_allgather(1);
    for rank in &mut stuck.ranks {
        rank.thread_blocks[0].steps.swap(0, 3);
    }
    assert_eq!(convert(stuck).program.bytes_max, ring_allgather(1).bytes_max);
}

#[test]
fn a_bound_is_lowered_to_what_rounds_can_be_counted() {
    let endless = Program { bytes_max: Some(1 << 60), ..split_allgather() };
    let (result, changes) = converted(&endless, Profile::MscclExecutor, Profile::MscclExecutor);
    let transfer = Profile::MscclExecutor.limits().queue(endless.protocol).transfer_bytes;
    assert_eq!(result.bytes_max, Some(4 * 65535 * transfer));
    assert!(changes[0].ends_with("the runtime cannot count more rounds over a chunk"), "{changes:?}");
}

#[test]
fn collectives_are_spelled_anew() {
    let mut reduce_scatter = ring_allreduce();
    reduce_scatter.purpose = Purpose::Collective(CollectiveKind::ReduceScatter);
    for rank in &mut reduce_scatter.ranks {
        let steps = &mut rank.thread_blocks[0].steps;
        steps.truncate(4);
        steps[3].operation = crate::msccl::Operation::ReceiveReduceCopy;
    }
    // Shares shifted by one: rank r ends with chunk r + 1, so let it begin one earlier.
    for rank in &mut reduce_scatter.ranks {
        for step in &mut rank.thread_blocks[0].steps {
            let shift = |offset: Option<u32>| offset.map(|offset| (offset + 3) % 4);
            step.source.offset = shift(step.source.offset);
            step.destination.offset = shift(step.destination.offset);
        }
    }
    let text = write_msccl_xml(&reduce_scatter, Profile::Msccl);
    assert!(text.contains("coll=\"reduce_scatter\""));
    let (result, changes) = converted(&reduce_scatter, Profile::Msccl, Profile::MscclExecutor);
    assert!(write_msccl_xml(&result, Profile::MscclExecutor).contains("coll=\"reducescatter\""));
    assert_eq!(changes[0], "changed coll from \"reduce_scatter\" to \"reducescatter\": the runtime's spelling");
}

#[test]
fn fused_operations_are_split_for_stock_rccl() {
    let (ring, changes) = converted(&ring_allreduce(), Profile::Msccl, Profile::RcclMsccl);
    let steps = &ring.ranks[0].thread_blocks[0].steps;
    let names: Vec<&str> = steps.iter().map(|step| step.operation.name()).collect();
    assert_eq!(names.join(" "), "s r re s r re s r re s r s r s r");
    assert_eq!(ring.ranks[0].scratch_chunks, 1);
    let said = [
        "split 8 `rcs` into `r` and `s`, since the runtime has no such operation",
        "split 4 `rrcs` into `r`, `re` and `s`, since the runtime has no such operation",
        "split 8 `rrs` into `r`, `re` and `s`, since the runtime has no such operation",
        "added up to 1 scratch chunks per rank for received data",
    ];
    assert_eq!(changes[1..], said);
    let (gather, _) = converted(&ring_allgather(2), Profile::MscclExecutor, Profile::RcclMsccl);
    assert_eq!(gather.ranks[0].scratch_chunks, 0);
}

/// Two ranks exchange and add; a second block copies the sum and so waits for the fused step.
fn waited_for() -> Program {
    let of_rank = |own: u32| {
        let exchange = vec![step("s", "i0", "i0", 2), awaited(step("rrc", "i0", "s0", 2))];
        let copy = vec![after(0, 1, step("cpy", "s0", "o0", 2))];
        let blocks = vec![block(Some(1 - own), Some(1 - own), exchange), block(None, None, copy)];
        rank(own, [2, 2, 2], blocks)
    };
    program(CollectiveKind::Allreduce, false, 2, (0..2).map(of_rank).collect())
}

#[test]
fn waits_move_to_the_last_part() {
    let (result, _) = converted(&waited_for(), Profile::Msccl, Profile::RcclMsccl);
    let blocks = &result.ranks[0].thread_blocks;
    let awaited: Vec<bool> = blocks[0].steps.iter().map(|step| step.is_awaited).collect();
    assert_eq!(awaited, [false, false, true]);
    assert_eq!(blocks[1].steps[0].wait_step, Some(2));
}

/// A dialect with its own copies: they are left out, and the file is right in place without them.
#[test]
fn a_foreign_dialect_is_read_with_patience() {
    let text = write_msccl_xml(&ring_allreduce(), Profile::Msccl)
        .replace("inplace=", "redop=\"sum\" inplace=")
        .replace("    <tb id=\"0\"", "    <copy i_off=\"0\" o_off=\"0\"><why/></copy>\n    <tb id=\"0\"")
        .replacen("s=\"3\" type", "s=\"9\" type", 1);
    assert!(parse_msccl_xml(&text, Profile::Msccl).is_err());
    let file = read_foreign_msccl_xml(&text, Profile::Msccl, &|| false).unwrap();
    let conversion = convert(&file, Profile::Msccl, Profile::Msccl).unwrap();
    assert_eq!(conversion.program, ring_allreduce());
    let changes: Vec<String> = conversion.changes.iter().map(ToString::to_string).collect();
    let expected = [
        "removed 1 attribute `redop` of <algo>, the first in line 1: runtimes ignore it",
        "removed 4 <copy> in <gpu>, the first in line 3: runtimes ignore it",
        "set s of 1 steps to their position, which is what runtimes use",
    ];
    assert_eq!(changes, expected);
    for broken in [text.replace("<why/>", "<why>"), text.replace("</copy>", "</cop>"), text.replace("</algo>", "")] {
        assert!(read_foreign_msccl_xml(&broken, Profile::Msccl, &|| false).is_err());
    }
    assert!(read_foreign_msccl_xml(&text, Profile::Msccl, &|| true).is_err());
}

#[test]
fn what_cannot_be_said_is_refused() {
    let refused =
        |program: Program, from, to| convert(&ForeignFile { program, deviations: Vec::new() }, from, to).unwrap_err();
    let gather = Program { purpose: Purpose::Collective(CollectiveKind::Gather), ..ring_allgather(1) };
    let purpose = gather.purpose;
    assert_eq!(
        refused(gather, Profile::MscclExecutor, Profile::Msccl),
        ConvertError::Purpose { purpose, to: Profile::Msccl }
    );
    let custom = Program { purpose: Purpose::Unjudged("custom"), ..ring_allgather(1) };
    assert!(matches!(refused(custom, Profile::Msccl, Profile::RcclMsccl), ConvertError::Purpose { .. }));
    let unused = Program { out_of_place: Some(false), ..ring_allgather(1) };
    assert!(matches!(refused(unused, Profile::MscclExecutor, Profile::Msccl), ConvertError::NoCall { .. }));
    let empty = Program { bytes_max: Some(0), ..ring_allgather(1) };
    assert!(matches!(refused(empty, Profile::Msccl, Profile::RcclMsccl), ConvertError::NoMessage { .. }));
    let widest = Program { bytes_max: Some(i64::MAX as u64), ..ring_allgather(1) };
    assert!(matches!(refused(widest, Profile::MscclExecutor, Profile::Msccl), ConvertError::Bound { .. }));
    let mut full = waited_for();
    full.ranks[1].scratch_chunks = 32767;
    full.ranks[1].thread_blocks[0].steps[1].destination = full.ranks[1].thread_blocks[0].steps[1].source;
    assert!(matches!(refused(full, Profile::Msccl, Profile::RcclMsccl), ConvertError::Scratch { rank: 1, .. }));
}
