//! Files from strangers: refused with a reason or read, and then judged; never a panic.

use std::error::Error as _;

use canopy_plan::{PlanFileError, read_plan};
use canopy_schedule::{CollectiveKind, certified_bound, check, compile};
use canopy_topology::TopologyLimits;

use crate::plan_file::samples::{
    blocks_by_hand, by_hand, flow_by_hand, hops_by_hand, steps_by_hand, synthesized, text, trees_by_hand,
};

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

/// The error and its causes, as a person gets to read them.
fn refusal(bytes: &[u8]) -> String {
    let error = read_plan(bytes, &LIMITS).unwrap_err();
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    message
}

/// Damages a plan by replacing the first of each `from` by its `to`: each is refused for the reason that is expected.
#[track_caller]
fn check_damage(plan: &str, cases: &[(&str, &str, &str)]) {
    for (from, to, expected) in cases {
        assert!(plan.contains(from), "{from}");
        let message = refusal(plan.replacen(from, to, 1).as_bytes());
        assert!(message.contains(expected), "{from}, {to}: {message}");
    }
}

#[test]
fn refusals_of_versions_kinds_and_networks() {
    let damage = [
        (r#""canopy":1,"kind""#, r#""canopy":9,"kind""#, "unknown format version 9"),
        (r#""canopy":1,"kind""#, r#""canopy":0,"kind""#, "unknown format version 0"),
        (r#""kind":"plan""#, r#""kind":"graph""#, "unknown variant `graph`, expected `plan`"),
        (r#""id":"b","#, r#""id":"a","#, "topology: node id `a` is given twice"),
        (r#""bandwidth":"3.001kB/s""#, r#""bandwidth":"fast""#, "topology: links[1].bandwidth: "),
    ];
    check_damage(&text(&by_hand()), &damage);
}

/// Shares are uniform, a list of weights, or equally long lists of them.
#[test]
fn refusals_of_shares() {
    let damage = [
        (
            r#""shares":"uniform""#,
            r#""shares":"weighted""#,
            "invalid value: string \"weighted\", expected `uniform`, a list of weights",
        ),
        (r#""shares":"uniform""#, r#""shares":[1,-1]"#, "integer `-1`, expected a weight"),
        (r#""shares":"uniform""#, r#""shares":[[0,1],[-1,0]]"#, "integer `-1`, expected u64"),
        (r#""shares":"uniform""#, r#""shares":[[0,1],[1]]"#, "row 1 of shares has 1 weights, but the first has 2"),
        (r#""shares":"uniform""#, r#""shares":[[0,1],2]"#, "all weights, or all rows of weights"),
        (r#""shares":"uniform""#, r#""shares":[2,[0,1]]"#, "all weights, or all rows of weights"),
        (r#""shares":"uniform""#, r#""shares":[[0,1]]"#, "found 2 weights of blocks for 1 ranks"),
        (r#""shares":"uniform""#, r#""shares":[[]]"#, "found 0 weights of blocks for 1 ranks"),
        (r#""shares":"uniform""#, r#""shares":[[3,0],[0,3]]"#, "all blocks between different ranks have weight 0"),
        (r#""shares":"uniform""#, r#""shares":[[0,18446744073709551615],[1,0]]"#, "in row 1, column 0"),
    ];
    check_damage(&text(&by_hand()), &damage);
}

/// The shape of a schedule and the form of an allreduce say which fields it has.
#[test]
fn refusals_of_shapes_and_forms() {
    let damage = [
        (
            r#""shape":"forest""#,
            r#""shape":"stars""#,
            "unknown variant `stars`, expected one of `forest`, `steps`, `flow`",
        ),
        (
            r#""bound":{"#,
            r#""form":{"name":"star","reason":"asked"},"bound":{"#,
            "form.name is `star`; use two-phase, trees",
        ),
        (
            r#""bound":{"#,
            r#""form":{"name":"trees","reason":"so"},"bound":{"#,
            "form.reason is `so`; use asked, faster",
        ),
        (r#""bound":{"#, r#""form":{"name":"trees","reason":"faster","two_phases":"x"},"bound":{"#, "form.two_phases"),
        (r#""shape":"forest""#, r#""shape":"steps""#, "schedule.phases does not belong to a schedule of shape `steps`"),
        (r#""phases":["#, r#""wood":["#, "schedule.phases is missing, but a schedule of shape `forest` needs it"),
        (r#""phases":["#, r#""paths":[],"phases":["#, "schedule.paths does not belong to a schedule of shape `forest`"),
    ];
    check_damage(&text(&by_hand()), &damage);
}

/// Trees, their hops, and the routes that carry them.
#[test]
fn refusals_of_trees() {
    let damage = [
        (r#""action":"copy""#, r#""action":"move""#, "unknown variant `move`"),
        (r#""action":"copy","#, "", "missing field `action`"),
        (r#""multiplicity":5,"#, "", "missing field `multiplicity`"),
        (r#""multiplicity":5,"#, r#""multiplicity":5,"multiplicity":5,"#, "duplicate field `multiplicity`"),
        (r#""multiplicity":5"#, r#""multiplicity":-5"#, "invalid value: integer `-5`, expected u64"),
        (r#""multiplicity":5"#, r#""multiplicity":18446744073709551616"#, "expected u64"),
        (r#""multiplicity":5"#, r#""multiplicity":5.0"#, "invalid type: floating point `5.0`, expected u64"),
        ("[0,1,1]", "[0,1]", "invalid length 2, expected a hop"),
        ("[0,1,1]", "[0,1,1,1]", "invalid length 4, expected a hop"),
        ("[0,1,1]", "[0,4294967296,1]", "invalid value: integer `4294967296`, expected u32"),
        ("[0,1,1]", "[0,1,4294967296]", "invalid value: integer `4294967296`, expected a route"),
        ("[0,1,1]", r#"[0,1,"1"]"#, "invalid type: string \"1\", expected a route"),
        ("[1,3]", "[1,0]", "a carrier has 0 chunks"),
        (r#""routes":[[0],[1]]"#, r#""routes":[0,1]"#, "invalid type: integer `0`, expected a sequence"),
    ];
    check_damage(&text(&by_hand()), &damage);
}

#[test]
fn refusals_of_collectives() {
    let damage = [
        (r#""collective":"broadcast""#, r#""collective":"broadcasts""#, "collective: unknown collective `broadcasts`"),
        (r#""root":0,"shares""#, r#""shares""#, "root is missing, but broadcast needs one"),
        (r#""root":0,"shares""#, r#""root":2,"shares""#, "root: root 2 is not a rank; ranks are 0 to 1"),
        (r#""collective":"broadcast""#, r#""collective":"allgather""#, "root: allgather has no root"),
    ];
    check_damage(&text(&by_hand()), &damage);
}

/// A bound, its certificate, and the rate that is compared with it.
#[test]
fn refusals_of_bounds() {
    let damage = [
        (r#""direction":"out""#, r#""direction":"up""#, "unknown variant `up`, expected `out` or `in`"),
        (r#""kind":"cut""#, r#""kind":"partition""#, "certificate.sets is missing, but the kind `partition` needs it"),
        (r#""direction":"out","#, "", "certificate.direction is missing, but the kind `cut` needs it"),
        (r#","nodes":[0]}"#, "}", "certificate.nodes is missing, but the kind `cut` needs it"),
        (r#""kind":"cut""#, r#""kind":"sum""#, "certificate.terms is missing, but the kind `sum` needs it"),
        (r#""kind":"cut""#, r#""kind":"lp-dual""#, "certificate.lengths is missing, but the kind `lp-dual` needs it"),
        (
            r#""kind":"cut""#,
            r#""kind":"guess""#,
            "unknown variant `guess`, expected one of `cut`, `partition`, `sum`, `lp-dual`",
        ),
        (
            r#""achieved":{"algbw":"9003/2"}"#,
            r#""achieved":{"algbw":"9003/0"}"#,
            "achieved.algbw: `9003/0` is not a fraction",
        ),
        (r#""lower":"9003/2""#, r#""lower":"5002""#, "make bound.lower less"),
        (r#""tight":false"#, r#""tight":true"#, "make them equal, since the bound is tight"),
        (r#""upper":"5001""#, r#""upper":"5002""#, "bound.upper is 5002 and bound.algbw is"),
    ];
    check_damage(&text(&by_hand()), &damage);
}

/// Sends and paths, of the shapes of later versions.
#[test]
fn refusals_of_sends_and_paths() {
    let plan = text(&steps_by_hand());
    let send = r#"[0,"copy",0,1,0,2,[[0,1],[1,1]]]"#;
    for (to, expected) in [
        (r#"[0,"copy",0,1,0,2]"#, "invalid length 6, expected a send"),
        (r#"[0,"copy",0,1,0,2,0,0]"#, "invalid length 8, expected a send"),
        (r#"[0,"move",0,1,0,2,0]"#, "unknown variant `move`"),
        (r#"[-1,"copy",0,1,0,2,0]"#, "invalid value: integer `-1`, expected u32"),
        (r#"[0,"copy",0,1,18446744073709551615,2,0]"#, "2 chunks from 18446744073709551615 on"),
        (r#"[0,"copy",0,1,0,2,[[0,0]]]"#, "a carrier has 0 chunks"),
        (r#"[0,"copy",0,1,[],2,0]"#, "invalid length 0, expected a first chunk, or a list of them"),
        (r#"[0,"copy",0,1,[0,-1],2,0]"#, "invalid value: integer `-1`, expected u64"),
        (r#"[0,"copy",0,1,[0,18446744073709551615],2,0]"#, "2 chunks from 18446744073709551615 on"),
        (r#"[0,"copy",0,1,[0,2],2,[[0,1],[1,1]]]"#, "several first chunks need one route"),
        (r#"[0,"copy",0,1,"0",2,0]"#, "expected a first chunk, or a list of them"),
        ("7", "invalid type: integer `7`, expected a send"),
    ] {
        check_damage(&plan, &[(send, to, expected)]);
    }
    let plan = text(&flow_by_hand());
    let path = "[0,1,3,[0]]";
    for (to, expected) in [
        ("[0,1,3]", "invalid length 3, expected a path"),
        ("[0,1,-3,[0]]", "invalid value: integer `-3`, expected u64"),
        ("[0,1,3,[4294967296]]", "invalid value: integer `4294967296`, expected u32"),
        ("[0,1,3,0]", "invalid type: integer `0`, expected a list of routes"),
        ("[0,1,3,[0],0]", "trailing characters"),
        ("7", "invalid type: integer `7`, expected a path"),
    ] {
        check_damage(&plan, &[(path, to, expected)]);
    }
}

/// Paths that stand for those of every rank.
#[test]
fn refusals_of_patterns() {
    let plan = text(&synthesized("ring:5,bw=1GB/s", CollectiveKind::AllToAll));
    let routes = r#""routes":[[0],[1],"#;
    let many = format!(r#""patterns":[[1,[{}0]]]"#, "0,".repeat((1 << 27) / 5));
    let damage = [
        (r#""ports":2,"#, "", "schedule.ports is missing"),
        (r#""ports":2,"#, r#""ports":2,"paths":[],"#, "schedule.paths does not belong"),
        (r#""shape":"flow","#, r#""shape":"steps","#, "schedule.ports does not belong to a schedule of shape `steps`"),
        (r#""ports":2,"#, r#""ports":0,"#, "schedule.ports is 0, but routes has 10"),
        (r#""ports":2,"#, r#""ports":3,"#, "a group of 3 routes for each of the 5 ranks"),
        (r#""ports":2,"#, r#""ports":4294967295,"#, "a group of 4294967295 routes"),
        (r#""ports":2,"#, r#""ports":-1,"#, "invalid value: integer `-1`, expected u32"),
        (routes, r#""routes":[[0],[99],"#, "schedule.routes[1] must lead from rank to rank"),
        (routes, r#""routes":[[0],[],"#, "schedule.routes[1] must lead from rank to rank"),
        (routes, r#""routes":[[0],[2],"#, "schedule.routes[1] must lead from rank to rank, and start at"),
        (routes, r#""routes":[[3],[2],"#, "schedule.routes has two groups that start at rank 1"),
        ("[1,[0,0]]", "[1,[]]", "schedule.patterns[1] has no hop"),
        ("[1,[0,0]]", "[1,[0,2]]", "schedule.patterns[1] has hop 2, but groups have 2 routes"),
        ("[1,[0,0]]", "[1]", "invalid length 1, expected a tuple of size 2"),
        ("[1,[0,0]]", "[-1,[0,0]]", "invalid value: integer `-1`, expected u64"),
        (r#""patterns":[[1,[0]]"#, &many[..many.len() - 1], "schedule.patterns expand to 20 paths of 134217"),
    ];
    check_damage(&plan, &damage);
}

/// Trees that stand for paths.
#[test]
fn refusals_of_trees_of_paths() {
    let plan = text(&trees_by_hand());
    let first = r#""routes":[],"trees":[[0,2,4,"#;
    let damage = [
        (first, r#""routes":[[0]],"trees":[[0,2,4,"#, "schedule.routes has 1 entries, but follows from trees"),
        (first, r#""routes":[],"trees":[[0,2,"#, "schedule.trees[0] does not lead from rank 0 to rank 3"),
        (first, r#""routes":[],"trees":[[0,2,512,"#, "schedule.trees[0] has link 512, but there are 512"),
        (first, r#""routes":[],"trees":[[0,2,2,"#, "schedule.trees[0] has a second way to node 2"),
        (first, r#""routes":[],"trees":[[0,1,4,"#, "schedule.trees[0] has a second way to node 0"),
        (first, r#""routes":[],"trees":[[0,2,7,"#, "schedule.trees[0] does not lead from rank 0 to rank 3"),
        (first, r#""routes":[],"trees":[[0,-2,4,"#, "invalid value: integer `-2`, expected u32"),
        (first, r#""routes":[],"trees":[[],[0,2,4,"#, "schedule.trees has 258 lists of links"),
        (first, r#""routes":[],"paths":[],"trees":[[0,2,4,"#, "schedule.paths does not belong"),
        (r#""shape":"flow","#, r#""shape":"steps","#, "schedule.trees does not belong to a schedule of shape `steps`"),
    ];
    check_damage(&plan, &damage);
}

/// Hops without ranks.
#[test]
fn refusals_of_hops_by_routes() {
    let first = r#""multiplicity":2,"routes":[[[0,1],[0,1]],1,2,"#;
    let other = |hops: &'static str| r#""multiplicity":2,"routes":["#.to_owned() + hops;
    let nowhere = "schedule.phases[0].trees[0].routes[1] does not name routes that all lead from one rank to another";
    let damage = [
        (first, other("[[0,1],[0,1]],256,2,"), nowhere),
        (first, other("[[0,1],[0,1]],[],2,"), nowhere),
        (first, other("[[0,1],[0,1]],[[1,1],[2,1]],2,"), nowhere),
        (first, other("[[0,1],[0,0]],1,2,"), "a carrier has 0 chunks; remove it"),
        (first, other("[[0,1],[0,1]],-1,2,"), "invalid type: integer `-1`, expected a route"),
        (first, r#""hops":[],"#.to_owned() + first, "a tree has `hops` and `routes`; remove one of them"),
        (r#""routes":[[0],[2],"#, r#""routes":[[],[2],"#.to_owned(), &nowhere.replace("routes[1]", "routes[0]")),
        (r#""routes":[[0],[2],"#, r#""routes":[[0],[900],"#.to_owned(), nowhere),
    ];
    let damage: Vec<_> = damage.iter().map(|(from, to, found)| (*from, to.as_str(), *found)).collect();
    check_damage(&text(&hops_by_hand()), &damage);
    let no_hops = [(r#""multiplicity":5,"hops":"#, r#""multiplicity":5,"wood":"#, "missing field `hops`, or `routes`")];
    check_damage(&text(&by_hand()), &no_hops);
}

#[test]
fn what_is_no_json_is_refused() {
    for bytes in [&b""[..], b"\0", b"{", b"[]", b"null", b"\xff\xfe{}", b"<algo/>", b"{\"canopy\":1}", &[b'9'; 100_000]]
    {
        assert!(refusal(bytes).starts_with("the text is not a plan file: "), "{bytes:?}");
    }
}

/// Nesting is bounded where values are kept, and costs no stack where they are skipped.
#[test]
fn deep_nesting_is_no_danger() {
    let plan = text(&by_hand());
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(200_000), close.repeat(200_000));
    for (from, to, accepted) in [
        (r#""kind":"plan","#, format!(r#""kind":"plan","x":{},"#, deep("[", "]")), true),
        (
            r#""kind":"plan","#,
            format!(r#""kind":"plan","x":{}1{},"#, r#"{"a":"#.repeat(200_000), "}".repeat(200_000)),
            true,
        ),
        ("[0,1,1]", format!("[0,1,{}]", deep("[", "]")), false),
        (r#""routes":[[0],[1]]"#, format!(r#""routes":{}"#, deep("[", "]")), false),
        (r#""nodes":[{"#, format!(r#""nodes":{},"x":[{{"#, deep("[", "]")), false),
        (r#""nodes":[0]}"#, format!(r#""nodes":{}}}"#, deep("[", "]")), false),
    ] {
        assert!(plan.contains(from), "{from}");
        let changed = plan.replacen(from, &to, 1);
        assert_eq!(read_plan(changed.as_bytes(), &LIMITS).is_ok(), accepted, "{from}");
    }
}

/// The topology inside has the limits that topologies have.
#[test]
fn limits_hold_for_the_topology_inside() {
    let plan = text(&synthesized("ring:5", CollectiveKind::Allgather));
    for limits in [
        TopologyLimits { nodes_max: 4, ..LIMITS },
        TopologyLimits { links_max: 9, ..LIMITS },
        TopologyLimits { bytes_max: 100, ..LIMITS },
    ] {
        let error = read_plan(plan.as_bytes(), &limits).unwrap_err();
        assert!(matches!(error, PlanFileError::Topology(_)) && error.is_over_limit(), "{error:?}");
    }
}

/// SplitMix64, so that every run is the same.
fn random(state: &mut u64, bound: usize) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
}

/// Numbers that sit on some edge, and a few that do not.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "-1",
    "1e9",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
];

/// One number of the text, any, replaced by another.
fn change_number(text: &str, state: &mut u64) -> String {
    let bytes = text.as_bytes();
    let is_start = |&at: &usize| bytes[at].is_ascii_digit() && !bytes[at - 1].is_ascii_digit();
    let starts: Vec<usize> = (1..bytes.len()).filter(is_start).collect();
    let start = starts[random(state, starts.len())];
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    format!("{}{}{}", &text[..start], NUMBERS[random(state, NUMBERS.len())], &text[start + length..])
}

/// Bytes flipped, dropped, doubled or cut off.
fn change_bytes(text: &str, state: &mut u64) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    let at = random(state, bytes.len());
    match random(state, 4) {
        0 => bytes[at] ^= 1 << random(state, 8),
        1 => drop(bytes.remove(at)),
        2 => bytes.insert(at, bytes[at]),
        _ => bytes.truncate(at),
    }
    bytes
}

/// What is read, however damaged, can be judged without a panic; and a plan that still passes is a plan.
#[test]
fn damaged_files_are_refused_or_judged() {
    let mut state = 5;
    let (mut read, mut judged) = (0, 0);
    let kinds = [CollectiveKind::Allgather, CollectiveKind::Allreduce, CollectiveKind::Reduce];
    let synthesized = kinds.map(|kind| text(&synthesized("dgx-a100:boxes=2,gpus=2", kind)));
    let by_hand = [steps_by_hand(), flow_by_hand(), blocks_by_hand()].map(|plan| text(&plan));
    for plan in synthesized.into_iter().chain(by_hand) {
        for round in 0..1_500 {
            let bytes = match round % 2 {
                0 => change_number(&plan, &mut state).into_bytes(),
                _ => change_bytes(&plan, &mut state),
            };
            let Ok(file) = read_plan(&bytes, &LIMITS) else { continue };
            read += 1;
            let _ = certified_bound(
                &file.topology,
                file.schedule.collective,
                &file.schedule.shares,
                &file.bound.certificate,
            );
            let graph = compile(&file.topology, &file.schedule);
            judged += u32::from(graph.is_ok_and(|graph| check(&file.topology, &graph).is_ok()));
        }
    }
    assert!(read > 500 && judged > 50 && judged < read, "{read} read, {judged} passed");
}
