//! Writing and reading is the identity, and what is written is what one would write by hand.

use std::ops::Range;

use canopy_plan::{PlanFile, Provenance, read_plan};
use canopy_schedule::{
    Action, AllreduceForm, Bound, Carrier, Certificate, Collective, CollectiveKind, CutDirection, Flow, Forest,
    FormChoice, FormReason, Hop, InNetwork, Pace, Path, Phase, RouteIndex, RouteTable, Schedule, Send, Shape, Shares,
    Steps, Tree, certified_bound, check, compile,
};
use canopy_topology::{LinkIndex, NodeIndex, Rank, Rate, Ratio, TopologyLimits, generate};
use proptest::prelude::*;

use crate::plan_file::samples::{
    blocks_by_hand, by_hand, flow_by_hand, hops_by_hand, steps_by_hand, synthesized, text, trees_by_hand,
};

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

#[test]
fn text_of_a_small_plan() {
    let expected = concat!(
        r#"{"canopy":1,"kind":"plan","version":"0.1.0","topology":{"canopy":1,"name":"pair","#,
        r#""nodes":[{"id":"a","rank":0},{"id":"b","rank":1}],"links":["#,
        r#"{"from":"a","to":"b","bandwidth":"2kB/s"},"#,
        r#"{"from":"a","to":"b","bandwidth":"3.001kB/s","latency":"700ns"},"#,
        r#"{"from":"b","to":"a","bandwidth":"1kB/s"}]},"#,
        r#""collective":"broadcast","root":0,"shares":"uniform","chunks_per_share":6,"#,
        r#""schedule":{"shape":"forest","algorithm":"by-hand","routes":[[0],[1]],"phases":[{"action":"copy","trees":["#,
        r#"{"root":0,"multiplicity":5,"hops":[[0,1,[[0,2],[1,3]]]]},{"root":0,"multiplicity":1,"hops":[[0,1,1]]}]}]},"#,
        r#""bound":{"algbw":"5001","tight":false,"lower":"9003/2","upper":"5001"},"#,
        r#""certificate":{"kind":"cut","direction":"out","nodes":[0]},"#,
        r#""achieved":{"algbw":"9003/2"},"provenance":{"algorithm":"auto"}}"#,
        "\n",
    );
    assert_eq!(text(&by_hand()), expected);
    assert_eq!(read_plan(expected.as_bytes(), &LIMITS).unwrap(), by_hand());
}

/// A plan is written with these words, and read back as it is.
#[track_caller]
fn says(plan: &PlanFile, words: &[&str]) {
    let written = text(plan);
    for expected in words {
        assert!(written.contains(expected), "{written}");
    }
    assert_eq!(&read_plan(written.as_bytes(), &LIMITS).unwrap(), plan);
}

/// What older programs cannot read says so by its version.
#[test]
fn text_of_steps_and_flows() {
    says(
        &steps_by_hand(),
        &[
            r#"{"canopy":2,"kind":"plan","#,
            r#""collective":"allgather","shares":[3,1],"chunks_per_share":1,"schedule":{"shape":"steps","#,
            r#""routes":[[0],[1],[2]],"sends":[[0,"copy",0,1,0,2,[[0,1],[1,1]]],[0,"copy",1,0,3,1,2],[1,"copy",0,1,2,1,1]]}"#,
        ],
    );
    says(
        &flow_by_hand(),
        &[
            r#"{"canopy":2,"kind":"plan","#,
            r#""collective":"all-to-all","shares":"uniform","chunks_per_share":5,"schedule":{"shape":"flow","#,
            r#""routes":[[0],[1],[2]],"paths":[[0,1,3,[0]],[0,1,2,[1]],[1,0,5,[2]]]}"#,
            r#""certificate":{"kind":"lp-dual","lengths":[0,0,7]}"#,
        ],
    );
}

/// Several cuts at once, with potentials of switches.
#[test]
fn text_of_sums() {
    let cut = |direction, node| Certificate::Cut { direction, nodes: vec![NodeIndex::new(node)] };
    let terms = vec![(3, cut(CutDirection::Out, 0)), (1, cut(CutDirection::In, 1))];
    let certificate = Certificate::Sum { terms, potentials: vec![(NodeIndex::new(2), -4), (NodeIndex::new(7), 9)] };
    let plan = by_hand();
    says(
        &PlanFile { bound: Bound { certificate, ..plan.bound.clone() }, ..plan },
        &[
            r#"{"canopy":8,"kind":"plan","#,
            r#""certificate":{"kind":"sum","terms":["#,
            r#"{"weight":3,"certificate":{"kind":"cut","direction":"out","nodes":[0]}},"#,
            r#"{"weight":1,"certificate":{"kind":"cut","direction":"in","nodes":[1]}}],"potentials":[[2,-4],[7,9]]}"#,
        ],
    );
}

/// Paths that take the same places everywhere are written once for all ranks, and read back as each rank's own.
#[test]
fn paths_alike_are_written_once() {
    let plan = synthesized("ring:5,bw=1GB/s", CollectiveKind::AllToAll);
    let written = text(&plan);
    let Shape::Flow(flow) = &plan.schedule.shape else { panic!("no flow: {written}") };
    assert!(written.starts_with(r#"{"canopy":4,"kind":"plan","#), "{written}");
    let schedule = r#""routes":[[0],[1],[3],[2],[5],[4],[7],[6],[8],[9]],"ports":2,"patterns":[[1,[0]],[1,[0,0]],[1,[1,1]],[1,[1]]]}"#;
    assert!(written.contains(schedule), "{written}");
    assert_eq!(flow.paths.len(), 20);
    assert_eq!(read_plan(written.as_bytes(), &LIMITS).unwrap(), plan);
    // A file that lists the paths says the same.
    let path = |path: &Path| {
        let hops: Vec<u32> = flow.hops_of(path).iter().map(|route| route.number()).collect();
        format!("[{},{},{},{hops:?}]", path.source.number(), path.destination.number(), path.chunk_count)
    };
    let paths: Vec<String> = flow.paths.iter().map(path).collect();
    let start = written.find(r#""ports""#).unwrap();
    let end = written[start..].find("]]]}").unwrap() + start;
    let listed = format!(r#"{}"paths":[{}]{}"#, &written[..start], paths.join(","), &written[end + 3..]);
    assert_eq!(read_plan(listed.as_bytes(), &LIMITS).unwrap(), plan);
}

/// Many paths that form trees are written by the links of these, and routes follow from them. A file that lists the paths says
/// the same.
#[test]
fn many_paths_are_written_by_trees() {
    let plan = trees_by_hand();
    let written = text(&plan);
    let Shape::Flow(flow) = &plan.schedule.shape else { panic!("no flow") };
    assert!(written.starts_with(r#"{"canopy":6,"kind":"plan","#), "{}", &written[..80]);
    // From rank 0, links lead up the line; from rank 1 one leads back to rank 0.
    assert!(written.contains(r#""routes":[],"trees":[[0,2,4,6,"#) && written.contains("],[1,2,4,6,"));
    assert_eq!((flow.paths.len(), flow.routes.len()), (257 * 256, 512));
    assert!(read_plan(written.as_bytes(), &LIMITS).unwrap() == plan);
    let path = |path: &Path| {
        let hops: Vec<u32> = flow.hops_of(path).iter().map(|route| route.number()).collect();
        format!("[{},{},{},{hops:?}]", path.source.number(), path.destination.number(), path.chunk_count)
    };
    let paths: Vec<String> = flow.paths.iter().map(path).collect();
    let routes: Vec<String> = flow.routes.iter().map(|links| format!("[{}]", links[0].number())).collect();
    let start = written.find(r#""routes":[],"#).unwrap();
    let end = written[start..].find("]]}").unwrap() + start;
    let listed = format!(
        r#"{}"routes":[{}],"paths":[{}]{}"#,
        &written[..start],
        routes.join(","),
        paths.join(","),
        &written[end + 2..]
    );
    assert!(read_plan(listed.as_bytes(), &LIMITS).unwrap() == plan);
}

/// Many hops are written by their routes. A file that lists the ranks says the same, and so does one whose routes come last.
#[test]
fn many_hops_are_written_by_routes() {
    let plan = hops_by_hand();
    let written = text(&plan);
    assert!(written.starts_with(r#"{"canopy":6,"kind":"plan","#), "{}", &written[..80]);
    assert!(written.contains(r#""multiplicity":2,"routes":[[[0,1],[0,1]],1,2,3,"#));
    assert!(written.contains(r#""multiplicity":1,"routes":[0,1,2,3,"#));
    assert!(read_plan(written.as_bytes(), &LIMITS).unwrap() == plan);
    let hops = |first: &str| {
        let others: Vec<String> = (1..256).map(|from| format!(",[{from},{},{from}]", from + 1)).collect();
        format!(r#""hops":[[0,1,{first}]{}]"#, others.concat())
    };
    let routes: Vec<String> = (1..256).map(|route| format!(",{route}")).collect();
    let routes = routes.concat();
    let listed = written.replace(&format!(r#""routes":[[[0,1],[0,1]]{routes}]"#), &hops("[[0,1],[0,1]]")).replacen(
        &format!(r#""routes":[0{routes}]"#),
        &hops("0"),
        100,
    );
    assert_eq!(listed.matches("hops").count(), 101);
    assert!(read_plan(listed.as_bytes(), &LIMITS).unwrap() == plan);
    let start = written.find(r#""routes":["#).unwrap();
    let end = written.find(r#""phases":["#).unwrap();
    let shape = written[end..].find("}]}]}").unwrap() + end + 4;
    let table = written[start..end].trim_end_matches(',');
    let late = format!("{}{},{table}{}", &written[..start], &written[end..shape], &written[shape..]);
    assert!(read_plan(late.as_bytes(), &LIMITS).unwrap() == plan);
}

/// A hop that is not where its route leads, which no checked plan has, is written with its ranks.
#[test]
fn hops_that_leave_their_routes_are_listed() {
    let mut plan = hops_by_hand();
    let Shape::Forest(forest) = &mut plan.schedule.shape else { panic!("no forest") };
    forest.hops[65_000].to = Rank::new(0);
    let written = text(&plan);
    assert!(written.starts_with(r#"{"canopy":1,"#) && !written.contains(r#""multiplicity":1,"routes""#));
    assert!(read_plan(written.as_bytes(), &LIMITS).unwrap() == plan);
}

/// One path that goes another way than its likes, and none is written by patterns.
#[test]
fn paths_that_differ_are_listed() {
    let mut plan = synthesized("ring:5,bw=1GB/s", CollectiveKind::AllToAll);
    let Shape::Flow(flow) = &mut plan.schedule.shape else { panic!("no flow") };
    flow.paths[7].chunk_count += 1;
    let written = text(&plan);
    assert!(written.starts_with(r#"{"canopy":2,"#) && written.contains(r#""paths":[[0,1,1,[0]],"#), "{written}");
    assert_eq!(read_plan(written.as_bytes(), &LIMITS).unwrap(), plan);
}

#[test]
fn text_of_blocks_of_different_sizes() {
    says(
        &blocks_by_hand(),
        &[
            r#"{"canopy":4,"kind":"plan","#,
            r#""collective":"all-to-all","shares":[[1,2],[1,0]],"chunks_per_share":5,"schedule":{"shape":"flow","#,
            r#""paths":[[0,1,6,[0]],[0,1,4,[1]],[1,0,5,[2]]]}"#,
            // A mean of 10 chunks in the time that 5 of them take over the one link back, of 1 kB/s.
            r#""achieved":{"algbw":"2000"}"#,
        ],
    );
}

/// Sends that differ in their first chunks alone are one entry, whatever comes between others; a file that lists them one
/// by one says the same.
#[test]
fn runs_of_sends_are_written_once() {
    let mut plan = steps_by_hand();
    let Shape::Steps(steps) = &mut plan.schedule.shape else { panic!("not in steps") };
    let mut add = |step, chunks: Range<u64>, route| {
        let start = u32::try_from(steps.carriers.len()).unwrap();
        let chunk_count = chunks.end - chunks.start;
        steps.carriers.push(Carrier { route: RouteIndex::new(route), chunk_count });
        let (action, from, to) = (Action::Copy, Rank::new(0), Rank::new(1));
        steps.sends.push(Send { step, action, from, to, chunks, carriers: start..start + 1 });
    };
    add(1, 7..8, 1);
    add(1, 5..6, 1);
    add(1, 6..7, 0);
    add(1, 4..5, 0);
    add(2, 3..4, 0);
    add(2, 1..3, 0);
    let written = text(&plan);
    let runs = r#"[1,"copy",0,1,[2,7,5],1,1],[1,"copy",0,1,[6,4],1,0],[2,"copy",0,1,3,1,0],[2,"copy",0,1,1,2,0]]"#;
    assert!(written.starts_with(r#"{"canopy":3,"#) && written.contains(runs), "{written}");
    assert_eq!(read_plan(written.as_bytes(), &LIMITS).unwrap(), plan);
    let singly = written
        .replace("[2,7,5],1,1]", r#"2,1,1],[1,"copy",0,1,[7],1,1],[1,"copy",0,1,5,1,1]"#)
        .replace("[6,4],1,0]", r#"6,1,0],[1,"copy",0,1,4,1,0]"#)
        .replace(r#""canopy":3"#, r#""canopy":2"#);
    assert_eq!(read_plan(singly.as_bytes(), &LIMITS).unwrap(), plan);
}

/// A file alone is enough to judge the plan: what it says of itself can be derived again from what it holds.
#[test]
fn synthesized_plans_survive_and_can_be_judged() {
    for expression in ["ring:5", "mesh:2x3", "dgx-a100:boxes=2,gpus=4", "leaf-spine:leaves=2,hosts=3,spines=2"] {
        for kind in CollectiveKind::ALL {
            if matches!(kind, CollectiveKind::Gather | CollectiveKind::Scatter | CollectiveKind::AllToAll) {
                continue;
            }
            let plan = synthesized(expression, kind);
            let written = text(&plan);
            let read = read_plan(written.as_bytes(), &LIMITS).unwrap();
            assert_eq!(text(&read), written, "{expression} {kind}");
            assert_eq!((&read.topology, &read.bound), (&plan.topology, &plan.bound), "{expression} {kind}");
            let graph = compile(&read.topology, &read.schedule).unwrap();
            assert_eq!(graph, compile(&plan.topology, &plan.schedule).unwrap(), "{expression} {kind}");
            assert_eq!(check(&read.topology, &graph).unwrap().algbw, read.achieved, "{expression} {kind}");
            let bound = certified_bound(
                &read.topology,
                read.schedule.collective,
                &read.schedule.shares,
                &read.bound.certificate,
            )
            .unwrap();
            assert_eq!(bound, read.bound.upper, "{expression} {kind}");
        }
    }
}

/// Fields may come in any order, and those of later versions are skipped.
#[test]
fn order_and_additions_do_not_matter() {
    let written = text(&by_hand());
    let changes = [
        (
            r#""multiplicity":5,"hops":[[0,1,[[0,2],[1,3]]]]"#,
            r#""hops":[[0,1,[[0,2],[1,3]]]],"label":{"a":[1]},"multiplicity":5"#,
        ),
        (r#""multiplicity":1,"hops":[[0,1,1]]"#, r#""hops":[[0,1,1]],"multiplicity":1"#),
        (r#""kind":"plan","#, r#""kind":"plan","later":[[[{"x":null}]]],"#),
        (r#""action":"copy","#, r#""note":1.5,"action":"copy","#),
    ];
    let changed = changes.iter().fold(written.clone(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    assert_eq!(read_plan(changed.as_bytes(), &LIMITS).unwrap(), by_hand());
}

/// A tree by chance: multiplicity, and hops with ends and carriers, none of it sound.
type LooseTree = (u32, u64, Vec<(u32, u32, Vec<(u32, u64)>)>);

fn loose_trees() -> impl Strategy<Value = Vec<LooseTree>> {
    let carriers = prop::collection::vec((any::<u32>(), 1..=u64::MAX), 0..3);
    let hops = prop::collection::vec((any::<u32>(), any::<u32>(), carriers), 0..5);
    prop::collection::vec((any::<u32>(), prop_oneof![1..4_u64, Just(u64::MAX)], hops), 0..4)
}

/// Lays trees out in flat tables; a hop of a single carrier carries the whole tree half of the time.
fn forest(chunks_per_share: u64, routes: &[Vec<u32>], phases: Vec<(bool, Vec<LooseTree>)>) -> Forest {
    let mut table = RouteTable::default();
    for route in routes {
        table.push(&route.iter().copied().map(LinkIndex::new).collect::<Vec<_>>());
    }
    let position = |length: usize| u32::try_from(length).unwrap();
    let (mut carriers, mut hops) = (Vec::new(), Vec::new());
    let mut tree = |(root, multiplicity, loose): LooseTree| {
        let start = position(hops.len());
        for (from, to, parts) in loose {
            let first = position(carriers.len());
            for &(route, count) in &parts {
                let whole = parts.len() == 1 && route % 2 == 0;
                let chunk_count = if whole { multiplicity } else { count };
                carriers.push(Carrier { route: RouteIndex::new(route), chunk_count });
            }
            let carriers = first..position(carriers.len());
            hops.push(Hop { from: Rank::new(from), to: Rank::new(to), carriers });
        }
        Tree { root: Rank::new(root), multiplicity, hops: start..position(hops.len()) }
    };
    let phases = phases.into_iter().map(|(copies, trees)| Phase {
        action: if copies { Action::Copy } else { Action::Reduce },
        trees: trees.into_iter().map(&mut tree).collect(),
    });
    let phases = phases.collect();
    Forest { chunks_per_share, routes: table, carriers, hops, phases }
}

fn certificates() -> impl Strategy<Value = Certificate> {
    let nodes = || prop::collection::vec(any::<u32>().prop_map(NodeIndex::new), 0..4);
    let cut = |direction| nodes().prop_map(move |nodes| Certificate::Cut { direction, nodes });
    let partition = prop::collection::vec(nodes(), 0..4).prop_map(|sets| Certificate::Partition { sets });
    prop_oneof![cut(CutDirection::Out), cut(CutDirection::In), partition]
}

/// Sends alike by chance: step, whether they copy, ends, first chunks and count, carriers.
type LooseSend = (u32, bool, (u32, u32), (Vec<u32>, u64), Vec<(u32, u64)>);

/// Sends and paths by chance, laid out in flat tables.
fn steps(chunks_per_share: u64, routes: &[Vec<u32>], loose: &[LooseSend]) -> Steps {
    let (mut carriers, mut sends) = (Vec::new(), Vec::new());
    let each = loose.iter().flat_map(|send| send.3.0.iter().map(move |&first| (send, first)));
    for (&(step, copies, (from, to), (_, chunk_count), ref parts), first) in each {
        let start = u32::try_from(carriers.len()).unwrap();
        let carrier = |&(route, count): &(u32, u64)| Carrier { route: RouteIndex::new(route), chunk_count: count };
        carriers.extend(parts.iter().map(carrier));
        let action = if copies { Action::Copy } else { Action::Reduce };
        let chunks = u64::from(first)..u64::from(first) + chunk_count;
        let carriers = start..u32::try_from(carriers.len()).unwrap();
        sends.push(Send { step, action, from: Rank::new(from), to: Rank::new(to), chunks, carriers });
    }
    let pace = if loose.len().is_multiple_of(2) { Pace::InTurn } else { Pace::Barriers };
    Steps { chunks_per_share, pace, routes: forest(1, routes, Vec::new()).routes, carriers, sends }
}

fn flow(chunks_per_share: u64, routes: &[Vec<u32>], loose: &[(u32, u32, u64, Vec<u32>)]) -> Flow {
    let (mut hops, mut paths) = (Vec::new(), Vec::new());
    for &(source, destination, chunk_count, ref taken) in loose {
        let start = u32::try_from(hops.len()).unwrap();
        hops.extend(taken.iter().copied().map(RouteIndex::new));
        let hops = start..u32::try_from(hops.len()).unwrap();
        paths.push(Path { source: Rank::new(source), destination: Rank::new(destination), chunk_count, hops });
    }
    Flow { chunks_per_share, routes: forest(1, routes, Vec::new()).routes, hops, paths }
}

proptest! {
    /// The same for the other shapes, and for weights.
    #[test]
    fn reading_undoes_writing_of_every_shape(
        (chunks, weights) in (any::<u64>(), prop::collection::vec(any::<u64>(), 0..5)),
        routes in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..4), 0..4),
        sends in prop::collection::vec((
            any::<u32>(), any::<bool>(), any::<(u32, u32)>(), (prop::collection::vec(any::<u32>(), 1..4), 1..1_u64 << 63),
            prop::collection::vec((any::<u32>(), 1..=u64::MAX), 0..3),
        ), 0..5),
        paths in prop::collection::vec((any::<u32>(), any::<u32>(), any::<u64>(), prop::collection::vec(any::<u32>(), 0..3)), 0..5),
        lengths in prop::collection::vec(any::<u64>(), 0..4),
    ) {
        for shape in [Shape::Steps(steps(chunks, &routes, &sends)), Shape::Flow(flow(chunks, &routes, &paths))] {
            let plan = steps_by_hand();
            let schedule = Schedule { shares: Shares::Weighted(weights.clone()), shape, ..plan.schedule };
            let bound = Bound { certificate: Certificate::LpDual { lengths: lengths.clone() }, ..plan.bound };
            let plan = PlanFile { schedule, bound, ..plan };
            prop_assert_eq!(read_plan(text(&plan).as_bytes(), &LIMITS).unwrap(), plan);
        }
    }

    /// What is written is read back as it was, sound or not.
    #[test]
    fn reading_undoes_writing(
        expression in prop::sample::select(vec!["ring:4", "rail:boxes=2,gpus=2", "leaf-spine:leaves=2,hosts=2,spines=1"]),
        (kind, root) in (prop::sample::select(CollectiveKind::ALL.to_vec()), 0..4_u32),
        chunks in any::<u64>(),
        routes in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..4), 0..4),
        phases in prop::collection::vec((any::<bool>(), loose_trees()), 0..3),
        certificate in certificates(),
        (lower, more, tight) in (any::<u64>(), 1..=u64::MAX, any::<bool>()),
        (version, algorithm) in ("\\PC{0,8}", "[a-z\"\\\\]{0,8}"),
        weighed in prop::option::of((any::<u64>(), any::<u64>(), 1..=u64::MAX)),
        form in prop::option::of((0..2_usize, 0..6_usize, prop::option::of(any::<u64>()))),
    ) {
        let topology = generate(expression, &LIMITS).unwrap();
        let root = kind.has_root().then(|| Rank::new(root));
        let rate = |numerator: u128| Rate::new(numerator, 7_u32).unwrap();
        let upper = u128::from(lower) + if tight { 0 } else { u128::from(more) };
        let plan = PlanFile {
            schedule: Schedule {
                collective: Collective::new(kind, root, topology.rank_count()).unwrap(),
                algorithm: algorithm.clone(),
                shares: Shares::Equal,
                shape: Shape::Forest(forest(chunks, &routes, phases)),
            },
            topology,
            form: form.map(|(form, reason, phases)| FormChoice {
                form: AllreduceForm::ALL[form],
                reason: FormReason::ALL[reason],
                two_phases: phases.map(|rate_in_phases| rate(rate_in_phases.into())),
            }),
            bound: Bound { upper: rate(upper), lower: rate(lower.into()), certificate },
            achieved: rate(lower.into()),
            in_network: weighed.map(|(without, with, divisor)| InNetwork {
                traffic_without: Ratio::new(without, divisor).unwrap(),
                traffic: Ratio::new(with, divisor).unwrap(),
                algbw: rate(with.into()),
            }),
            provenance: Provenance { version, algorithm },
        };
        prop_assert_eq!(read_plan(text(&plan).as_bytes(), &LIMITS).unwrap(), plan);
    }
}
