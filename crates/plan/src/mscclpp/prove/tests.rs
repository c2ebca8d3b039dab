//! What is found wrong with a plan by hand once one thing is changed.

use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::Rank;

use super::*;
use crate::mscclpp::parse::tests::PAIR;
use crate::mscclpp::{emulate_execution_plan, parse_execution_plan};

fn problems(text: &str, asked: Option<Collective>) -> Vec<String> {
    let plan = parse_execution_plan(text).unwrap();
    let proof = prove_execution_plan(&plan, asked, ExecutorProfile::V10, &|| false).unwrap();
    proof.problems.iter().map(|problem| format!("{}: {problem}", problem.check)).collect()
}

/// Every change, as many as there are of its text at most, and what is said of it first.
#[track_caller]
fn check(from: &str, to: &str, times: usize, first: &str) {
    assert!(PAIR.contains(from), "{from}");
    let found = problems(&PAIR.replacen(from, to, times), None);
    assert!(found.first().is_some_and(|found| found.contains(first)), "{found:#?}\ninstead of\n{first}");
}

#[test]
fn the_plan_itself_is_right() {
    assert_eq!(problems(PAIR, None), [""; 0]);
    let plan = parse_execution_plan(PAIR).unwrap();
    emulate_execution_plan(&plan, None, ExecutorProfile::V08, 0..50, &|| false).unwrap();
}

#[test]
fn numbers_out_of_place_are_found() {
    check("\"id\": 1, \"input", "\"id\": 0, \"input", 1, "structure: gpu 1: gpus[1] has id 0; list the ranks in order");
    check("\"input_chunks\": 1", "\"input_chunks\": 0", 2, "input_chunks is 0, but the loader divides by it");
    check("\"output_chunks\": 2", "\"output_chunks\": 3", 2, "output_chunks must be input_chunks times the ranks");
    check("\"connected_to\": [1]", "\"connected_to\": [0]", 1, "a channel connects to 0, which is not another rank");
    check(
        "\"channel_ids\": [0]}\n",
        "\"channel_ids\": [1]}\n",
        1,
        "structure: gpu 0 tb 0 step 7: wait uses channel 1, but the block has 1 of this type",
    );
    check("\"remote_buffer_ids\": [0]", "\"remote_buffer_ids\": [4]", 1, "has 4, which the rank does not list");
    check("[\"memory\"]} ]", "[\"port\"]} ]", 1, "remote buffer 0 is not accessible by memory; add that to its access");
    check("\"inplace\": false,", "\"inplace\": false, \"num_threads_per_block\": 2048,", 1, "use 1 to 1024");
    check(
        "\"inplace\": false,",
        "\"inplace\": false, \"max_message_size\": 17179869184,",
        1,
        "limits: file: messages up to",
    );
    check(
        "\"buffer_id\": 0, \"index\": 0",
        "\"buffer_id\": 0, \"index\": 2",
        1,
        "operations: gpu 0 tb 0 step 4: put: chunk 2 of o of rank 1",
    );
    check("\"name\": \"copy\"", "\"name\": \"flush\"", 1, "flush does nothing in this runtime; use pwsf from 0.10 on");
    check(
        "\"name\": \"copy\"",
        "\"reduce_op\": \"max\", \"name\": \"copy\"",
        1,
        "reduce_op is `max`, but the runtime ignores it",
    );
}

#[test]
fn what_is_not_ordered_is_found() {
    let nop = "          {\"name\": \"nop\"},\n";
    check(nop, "", 1, "races: gpu 0 tb 0 step 3: rank 1 may not have started");
    check("\"rlxwait\"", "\"nop\"", 2, "waits; make the numbers equal");
    let no_second_nop = PAIR
        .replace("          {\"name\": \"nop\"},\n          {\"name\": \"signal\"", "          {\"name\": \"signal\"");
    let found = problems(&no_second_nop, None);
    assert!(found[0].contains("may still be in flight when rank"), "{found:#?}");
    // Both wait first.
    let last = "          {\"name\": \"signal\", \"channel_type\": \"memory\", \"channel_ids\": [0]},\n          {\"name\": \"wait\", \"channel_type\": \"memory\", \"channel_ids\": [0]}";
    let swapped = "          {\"name\": \"wait\", \"channel_type\": \"memory\", \"channel_ids\": [0]},\n          {\"name\": \"nop\"},\n          {\"name\": \"signal\", \"channel_type\": \"memory\", \"channel_ids\": [0]}";
    check(last, swapped, 2, "waits for a signal that is never sent");
}

/// The launch is over in time, but nothing promises that what was written is seen then.
#[test]
fn a_relaxed_signal_at_the_end_is_warned_about() {
    let relaxed = PAIR.replace("\"signal\"", "\"rlxsignal\"");
    let plan = parse_execution_plan(&relaxed).unwrap();
    let proof = prove_execution_plan(&plan, None, ExecutorProfile::V10, &|| false).unwrap();
    assert!(proof.is_ok(), "{:#?}", proof.problems);
    let words = "is followed only by a relaxed signal, which does not guarantee that rank 1 sees it";
    assert!(proof.warnings.iter().any(|warning| warning.message == words), "{:#?}", proof.warnings);
}

#[test]
fn wrong_values_are_found() {
    check("\"type\": \"o\", \"index\": 0", "\"type\": \"o\", \"index\": 1", 1, "unordered with");
    check("\"buffer_id\": 0, \"index\": 0", "\"buffer_id\": 0, \"index\": 1", 1, "unordered with");
    check(
        "\"name\": \"copy\"",
        "\"name\": \"nop\"",
        1,
        "meaning: gpu 0: output chunk 0 holds nothing instead of chunk 0 of rank 0",
    );
}

#[test]
fn custom_plans_are_held_to_what_is_asked() {
    let custom = PAIR.replace("\"allgather\"", "\"custom\"");
    let gather = Collective::new(CollectiveKind::Gather, Some(Rank::new(1)), 2).unwrap();
    let plan = parse_execution_plan(&custom).unwrap();
    let proof = prove_execution_plan(&plan, None, ExecutorProfile::V10, &|| false).unwrap();
    assert!(
        proof.is_ok() && proof.warnings.iter().any(|warning| warning.message.contains("`custom` promises no result"))
    );
    // Rank 0 has no output of its own in a gather to rank 1.
    assert!(problems(&custom, Some(gather))[0].contains("rank 0 has no o in this collective"));
    let allreduce = Collective::new(CollectiveKind::Allreduce, None, 2).unwrap();
    assert!(problems(PAIR, Some(allreduce))[0].contains("the plan is for allgather, not for allreduce"));
}

/// The pair with multicast groups: what each rank lists after its memory channels.
fn with_groups(lists: [&str; 2]) -> String {
    let mut text = PAIR.to_owned();
    for (peer, list) in [1, 0].into_iter().zip(lists) {
        let channels = format!("{{\"channel_type\": \"memory\", \"connected_to\": [{peer}]}}");
        assert!(text.contains(&channels));
        text = text.replacen(&channels, &format!("{channels}{list}"), 1);
    }
    text
}

#[test]
fn groups_must_be_listed_alike_at_all_members() {
    let group = |buffer: &str, size: u32| {
        let group = format!("{{\"size\": {size}, \"ranks\": [0, 1]}}");
        format!(", {{\"channel_type\": \"switch\", \"buffer_type\": \"{buffer}\", \"rank_groups\": [{group}]}}")
    };
    let (output, input) = (group("o", 2), group("i", 1));
    let both = format!("{output}{input}");
    let plan = parse_execution_plan(&with_groups([&both, &both])).unwrap();
    let proof = prove_execution_plan(&plan, None, ExecutorProfile::V10, &|| false).unwrap();
    assert!(proof.is_ok(), "{:#?}", proof.problems);
    let words = "switch channels need GPUs of compute capability 9.0";
    assert!(proof.warnings.iter().any(|warning| warning.message.starts_with(words)), "{:#?}", proof.warnings);
    let twice = format!("{output}{output}");
    assert_eq!(problems(&with_groups([&twice, &twice]), None), [""; 0]);
    for lists in [[&*output, ""], [&output, &input], [&output, &group("o", 1)], [&twice, &output]] {
        let found = problems(&with_groups(lists), None);
        assert!(found[0].contains("a rank group of 2 is listed by 1; list it at each member"), "{found:#?}");
    }
    let found = problems(&with_groups([&both, &format!("{input}{output}")]), None);
    assert_eq!(found, ["structure: file: members list rank groups in different orders; use one order at all members"]);
}

#[test]
fn a_store_at_a_group_is_refused_for_loaders_that_do_not_know_it() {
    let plan = parse_execution_plan(&PAIR.replace("\"copy\"", "\"gstore\"")).unwrap();
    for profile in [ExecutorProfile::V08, ExecutorProfile::V09] {
        let proof = prove_execution_plan(&plan, None, profile, &|| false).unwrap();
        let words = format!("{profile} has no operation gstore; use mscclpp-0.10");
        assert!(proof.problems.iter().any(|problem| problem.message == words), "{:#?}", proof.problems);
    }
}

/// The kernel reads some things of the first source alone.
#[test]
fn sources_that_the_kernel_would_confuse_are_found() {
    let one = "\"src_buff\": [{\"type\": \"i\", \"index\": 0, \"size\": 1}], \"dst_buff\": [{\"buffer_id\": 0, \"index\": 0, \"size\": 1}]";
    let two = |second: &str| {
        one.replace("}], \"dst", &format!("}}, {{\"type\": \"{second}\", \"index\": 0, \"size\": 1}}], \"dst"))
            .replace("\"size\": 1}]", "\"size\": 1}, {\"buffer_id\": 0, \"index\": 1, \"size\": 1}]")
            .replacen(", {\"buffer_id\": 0, \"index\": 1, \"size\": 1}], \"dst", "], \"dst", 1)
    };
    check(one, &two("o"), 1, "put: the kernel reads all sources from the buffer of the first");
    let forward = PAIR
        .replacen(one, &two("s"), 1)
        .replacen("\"put\"", "\"rppkt\"", 1)
        .replace("\"scratch_chunks\": 0", "\"scratch_chunks\": 2");
    let found = problems(&forward, None);
    assert!(found.iter().any(|found| found.contains("newer kernels forward the first source to all")), "{found:#?}");
}
