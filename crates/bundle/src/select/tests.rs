//! Every rule of every runtime at its boundaries.

use super::*;
use crate::file::Divisor;

/// An allgather on 8 ranks out of place, from 1 KiB up to an attribute of 1 MiB, in 16 chunks.
fn file(path: &str) -> PlanFileFacts {
    PlanFileFacts {
        path: path.to_owned(),
        collective: Some(CollectiveKind::Allgather),
        ranks: 8,
        ranks_per_node: None,
        rank_map: None,
        in_place: false,
        out_of_place: Some(true),
        bytes_min: Some(1 << 10),
        bytes_max: Some(1 << 20),
        divisor: Divisor::Elements(16),
    }
}

fn call(bytes: u64) -> Call<'static> {
    Call {
        collective: CollectiveKind::Allgather,
        ranks: 8,
        ranks_per_node: 8,
        rank_map: None,
        bytes,
        in_place: false,
        element_bytes: 1,
        operator: Operator::Sum,
    }
}

fn folder(files: &[PlanFileFacts]) -> Folder {
    Folder { files: files.to_vec(), others: Vec::new() }
}

/// Runtimes that run plans.
fn running() -> impl Iterator<Item = (Runtime, Rules)> {
    Runtime::ALL.into_iter().filter_map(|runtime| Some((runtime, runtime.rules()?)))
}

#[track_caller]
fn stock(runtime: Runtime, folder: &Folder, call: &Call<'_>) -> Vec<Mismatch> {
    match select(runtime, folder, call) {
        Selection::Stock { reasons } => reasons,
        other => panic!("{runtime}: {other:?}"),
    }
}

#[test]
fn sizes_match_from_the_least_to_the_greatest_as_each_runtime_counts_it() {
    for (runtime, _) in running() {
        let mut one = file("a");
        one.divisor = Divisor::Elements(1);
        let folder = folder(&[one]);
        let takes = |bytes| select(runtime, &folder, &call(bytes)) == Selection::File(0);
        let at_max =
            runtime.is_registered() || matches!(runtime, Runtime::MscclExecutor | Runtime::RcclMsccl | Runtime::OneCcl);
        let sizes = [(1 << 10) - 1, 1 << 10, (1 << 20) - 1, 1 << 20, (1 << 20) + 1];
        assert_eq!(sizes.map(takes), [false, true, true, at_max, false], "{runtime}");
        assert_eq!(stock(runtime, &folder, &call(1023)), [Mismatch::TooSmall { min: 1 << 10 }], "{runtime}");
        let last = (1 << 20) - u64::from(!at_max);
        assert_eq!(stock(runtime, &folder, &call((1 << 20) + 1)), [Mismatch::TooLarge { last }], "{runtime}");
    }
}

#[test]
fn a_greatest_size_of_0_is_no_bound_for_some_and_no_size_at_all_for_others() {
    for (runtime, _) in running() {
        let zero = PlanFileFacts { bytes_min: Some(0), bytes_max: Some(0), ..file("a") };
        let chosen = select(runtime, &folder(&[zero]), &call(1 << 40)) == Selection::File(0);
        let unbounded = matches!(runtime, Runtime::MscclExecutor | Runtime::RcclMsccl | Runtime::OneCcl);
        assert_eq!(chosen, unbounded, "{runtime}");
    }
}

#[test]
fn msccl_reads_a_missing_greatest_size_as_128_mib() {
    let silent = folder(&[PlanFileFacts { bytes_min: None, bytes_max: None, out_of_place: None, ..file("a") }]);
    assert_eq!(select(Runtime::Msccl, &silent, &call((1 << 27) - 16)), Selection::File(0));
    let past = stock(Runtime::Msccl, &silent, &call(1 << 27));
    assert_eq!(past, [Mismatch::TooLarge { last: (1 << 27) - 1 }]);
}

#[test]
fn who_reads_a_whole_folder_fails_with_what_a_file_lacks() {
    type Spoil = fn(&mut PlanFileFacts);
    let spoils: [(&str, Spoil); 3] = [
        ("outofplace", |file| file.out_of_place = None),
        ("minBytes", |file| file.bytes_min = None),
        ("maxBytes", |file| file.bytes_max = None),
    ];
    for (attribute, spoil) in spoils {
        let mut bad = file("b");
        bad.collective = Some(CollectiveKind::Reduce);
        spoil(&mut bad);
        let folder = folder(&[file("a"), bad]);
        for (runtime, _) in running() {
            let fails = matches!(runtime, Runtime::MscclExecutor | Runtime::RcclMsccl);
            let expected = match fails {
                true => Selection::Broken { path: "b".to_owned(), attribute: Some(attribute) },
                false => Selection::File(0),
            };
            assert_eq!(select(runtime, &folder, &call(1 << 12)), expected, "{runtime} {attribute}");
        }
    }
}

#[test]
fn other_files_in_the_folder_break_those_who_parse_them() {
    let folder = Folder { others: vec!["README".to_owned()], ..folder(&[file("a")]) };
    for (runtime, rules) in running() {
        let broken = matches!(select(runtime, &folder, &call(1 << 12)), Selection::Broken { attribute: None, .. });
        assert_eq!(broken, rules.others == OtherFiles::Fatal, "{runtime}");
        let parses = matches!(runtime, Runtime::MscclExecutor | Runtime::RcclMsccl | Runtime::Mscclpp08);
        assert_eq!(broken, parses, "{runtime}");
    }
}

#[test]
fn messages_that_do_not_divide_are_passed_over_fail_or_run() {
    for (runtime, _) in running() {
        let folder = folder(&[file("a")]);
        let odd = select(runtime, &folder, &call((1 << 12) + 1));
        let expected = match runtime {
            Runtime::Mscclpp08 => Selection::Fails(0),
            Runtime::OneCcl => Selection::File(0),
            _ => Selection::Stock { reasons: vec![Mismatch::Indivisible { count: 16 }] },
        };
        assert_eq!(odd, expected, "{runtime}");
        // 4096 bytes are 1024 elements of 4, and 1056 of 4 are no multiple of 64 elements of 4.
        assert_eq!(select(runtime, &folder, &Call { element_bytes: 4, ..call(4096) }), Selection::File(0), "{runtime}");
        let four = select(runtime, &folder, &Call { element_bytes: 4, ..call(4096 + 32) });
        assert_eq!(four == Selection::File(0), runtime == Runtime::OneCcl, "{runtime}");
    }
}

#[test]
fn in_place_is_an_equal_state_or_two_flags() {
    for (runtime, rules) in running() {
        for (in_place, out_of_place) in [(false, true), (true, false), (true, true), (false, false)] {
            let folder = folder(&[PlanFileFacts { in_place, out_of_place: Some(out_of_place), ..file("a") }]);
            let takes = |in_place| select(runtime, &folder, &Call { in_place, ..call(4096) }) == Selection::File(0);
            let expected = match rules.placement {
                PlacementRule::InPlaceEquals => [!in_place, in_place],
                PlacementRule::BothFlags => [out_of_place, in_place],
            };
            assert_eq!([false, true].map(takes), expected, "{runtime} {in_place} {out_of_place}");
        }
    }
}

#[test]
fn the_number_of_ranks_is_compared_by_all_but_one() {
    for (runtime, _) in running() {
        let wrong = select(runtime, &folder(&[file("a")]), &Call { ranks: 16, ..call(4096) });
        let expected = match runtime {
            Runtime::Mscclpp08 => Selection::File(0),
            _ => Selection::Stock { reasons: vec![Mismatch::Ranks { found: 8 }] },
        };
        assert_eq!(wrong, expected, "{runtime}");
        let four = PlanFileFacts { ranks_per_node: Some(4), ..file("a") };
        let shape = select(runtime, &folder(&[four]), &call(4096));
        assert_eq!(shape == Selection::File(0), !runtime.is_registered(), "{runtime}");
    }
}

#[test]
fn averages_and_reductions_of_ones_own_never_match() {
    for (runtime, _) in running() {
        for kind in [CollectiveKind::Allreduce, CollectiveKind::ReduceScatter, CollectiveKind::Reduce] {
            let folder = folder(&[PlanFileFacts { collective: Some(kind), ..file("a") }]);
            let of = |operator| select(runtime, &folder, &Call { collective: kind, operator, ..call(4096) });
            assert_eq!(of(Operator::Sum), Selection::File(0), "{runtime} {kind}");
            for operator in [Operator::Average, Operator::Custom] {
                assert_eq!(of(operator), Selection::Stock { reasons: vec![Mismatch::Operator] }, "{runtime} {kind}");
            }
        }
        let moved = select(runtime, &folder(&[file("a")]), &Call { operator: Operator::Average, ..call(4096) });
        assert_eq!(moved, Selection::File(0), "{runtime}");
    }
}

#[test]
fn the_first_that_matches_is_used_in_each_runtimes_order() {
    for (runtime, rules) in running() {
        let both = folder(&[file("b"), file("a")]);
        let expected = match rules.order {
            SelectionOrder::Listed => Selection::File(0),
            SelectionOrder::Sorted => Selection::File(1),
            SelectionOrder::Directory => Selection::Undetermined { files: vec![0, 1] },
        };
        assert_eq!(select(runtime, &both, &call(4096)), expected, "{runtime}");
        // Only one of them matches here.
        let split = folder(&[PlanFileFacts { bytes_max: Some(2048), ..file("b") }, file("a")]);
        assert_eq!(select(runtime, &split, &call(4096)), Selection::File(1), "{runtime}");
    }
}

#[test]
fn a_fifth_file_is_not_there_for_msccl() {
    let others = ["a", "b", "c", "d"].map(|path| PlanFileFacts { ranks: 4, ..file(path) });
    let mut files = others.to_vec();
    files.push(file("e"));
    for (runtime, _) in running() {
        match runtime {
            Runtime::Msccl => {
                let reasons = stock(runtime, &folder(&files), &call(4096));
                assert_eq!(reasons.last(), Some(&Mismatch::NotLoaded { limit: 4 }));
            }
            Runtime::Mscclpp08 => {}
            _ => assert_eq!(select(runtime, &folder(&files), &call(4096)), Selection::File(4), "{runtime}"),
        }
    }
}

#[test]
fn stock_nccl_runs_no_plan() {
    assert_eq!(select(Runtime::Nccl, &folder(&[file("a")]), &call(4096)), Selection::AdviceOnly);
}
