use super::*;

fn one(text: &str) -> Run {
    match read_runs(text) {
        Ok(Measured::Runs(runs)) if runs.len() == 1 => runs.into_iter().next().unwrap(),
        other => panic!("{other:?}"),
    }
}

const NCCL: &str = "\
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20
# Using devices
#  Rank  0 Group  0 Pid   1 on   n1 device  0 [0x07] NVIDIA
#  Rank  1 Group  0 Pid   2 on   n2 device  0 [0x07] NVIDIA
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    61.25   17.12   17.12      0    60.83   17.24   17.24      0
     2097152        524288     float     sum      -1    98.10   21.38   21.38      0    97.77   21.45   21.45    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 19.3
";

#[test]
fn nccl_tests_are_read_out_of_place() {
    let run = one(NCCL);
    assert_eq!((run.collective, run.ranks, run.is_per_rank), (None, Some(2), false));
    assert_eq!(run.points[1], Point { bytes: 2_097_152, micros: 98.10 });
    // An older heading without operator and root.
    let older = NCCL.replace("redop    root     ", "").replace("     sum      -1", "");
    assert_eq!(one(&older).points, run.points);
    let named = NCCL.replace("# Using devices", "# Collective test starting: all_reduce_perf\n# Using devices");
    assert_eq!(one(&named).collective, Some(CollectiveKind::Allreduce));
    let cut = NCCL.replace("     sum      -1    98.10   21.38   21.38      0    97.77   21.45   21.45    N/A", "");
    assert!(matches!(read_runs(&cut), Err(ReadRunsError::Line { line: 10, .. })), "{:?}", read_runs(&cut));
    assert!(read_runs(&NCCL.replace("61.25", "nan")).is_err());
}

/// What logs and web pages do to it changes nothing.
#[test]
fn nccl_tests_are_read_between_other_lines() {
    let run = one(NCCL);
    assert_eq!(run.algorithm.as_deref(), Some(LIBRARY));
    let log = "5f3c1d2e9a70:812:901 [0] NCCL INFO Connected all rings\n12:3:4 [0] NCCL INFO x\n[0] size\n   1048576";
    let texts = [NCCL.replace('#', ""), NCCL.replace("# Out of bounds", "Out of bounds").replace("   1048576", log)];
    for text in texts {
        let found = one(&text);
        assert_eq!((found.points, found.ranks, found.is_rccl), (run.points.clone(), run.ranks, false), "{text}");
    }
    assert!(one(&NCCL.replace("NVIDIA", "AMD Instinct MI300X")).is_rccl);
}

#[test]
fn osu_sizes_are_those_of_one_rank_where_its_programs_count_so() {
    let text = |name: &str| {
        format!("\n# OSU MPI {name} Latency Test v7.4\n# Size       Avg Latency(us)\n1   1.5\n1024   3.25  1 9 100\n")
    };
    let reduced = one(&text("Allreduce"));
    assert_eq!((reduced.collective, reduced.is_per_rank), (Some(CollectiveKind::Allreduce), false));
    assert_eq!(reduced.points, [Point { bytes: 1, micros: 1.5 }, Point { bytes: 1024, micros: 3.25 }]);
    let gathered = one(&text("Allgather"));
    assert_eq!((gathered.collective, gathered.is_per_rank), (Some(CollectiveKind::Allgather), true));
    assert_eq!(one(&text("All-to-All Personalized")).collective, Some(CollectiveKind::AllToAll));
    assert_eq!(one(&text("Reduce_scatter")).collective, Some(CollectiveKind::ReduceScatter));
    let of_library = one(&text("Allreduce").replace("OSU MPI", "OSU NCCL"));
    assert_eq!((reduced.algorithm, of_library.algorithm.as_deref()), (None, Some(LIBRARY)));
}

#[test]
fn all_ranks_of_the_inspector_are_one_call() {
    let record = |rank: u32, micros: f64| {
        format!(
            "{{\"header\": {{\"id\": \"0x7\", \"rank\": {rank}, \"n_ranks\": 8, \"nnodes\": 1}}, \"metadata\": {{}},\n\
             \"coll_perf\": {{\"coll\": \"AllReduce\", \"coll_sn\": 14, \"coll_msg_size_bytes\": 17179869184, \
             \"coll_exec_time_us\": {micros}, \"coll_algobw_gbs\": 277.2, \"coll_busbw_gbs\": {}}}}}\n",
            17_179_869_184.0 / micros / 1e3 * 1.75
        )
    };
    let run = one(&[record(0, 61_974.0), record(1, 61_990.0), record(2, 70_000.0)].concat());
    assert_eq!((run.collective, run.ranks), (Some(CollectiveKind::Allreduce), Some(8)));
    assert_eq!(run.points, [Point { bytes: 17_179_869_184, micros: 61_990.0 }]);
    assert!(read_runs("{\"coll_perf\": 3}").is_err());
}

#[test]
fn tables_name_their_columns() {
    let run = one("# mine\nmicroseconds, bytes\n12.5, 1024\n\n");
    assert_eq!(run.points, [Point { bytes: 1024, micros: 12.5 }]);
    let Ok(Measured::Runs(runs)) = read_runs(
        "collective,algorithm,bytes,microseconds\nallgather,ring,8,1\nallreduce,ring,8,2\nall_gather,ring,9,1\n",
    ) else {
        panic!()
    };
    assert_eq!(runs.len(), 3, "names as they are written");
    let Ok(Measured::Pairs(pairs)) = read_runs("from,to,bytes,microseconds\ng0,g1,4096,3\n") else { panic!() };
    assert_eq!((pairs[0].from.as_str(), pairs[0].to.as_str()), ("g0", "g1"));
    for (text, line) in [
        ("bytes,microseconds\n1,2,3\n", 2),
        ("bytes,microseconds\n1,2\n-1,2\n", 3),
        ("bytes,microseconds\n1,0\n", 2),
        ("collective,bytes,microseconds\nfoo,1,2\n", 2),
    ] {
        assert!(matches!(read_runs(text), Err(ReadRunsError::Line { line: found, .. }) if found == line), "{text}");
    }
}

#[test]
fn what_is_nothing_is_refused() {
    for text in ["", "hello", "bytes\n1\n", "from,bytes,microseconds\na,1,2\n", "{}", "\u{0}"] {
        assert_eq!(read_runs(text), Err(ReadRunsError::Unknown), "{text}");
    }
    assert_eq!(read_runs("bytes,microseconds\n"), Err(ReadRunsError::Empty));
}
