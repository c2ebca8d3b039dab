//! `canopy simulate --workload`: iterations of training and of applications, through the real program.

use canopy_proto::chakra::attribute::Value as Content;
use canopy_proto::chakra::{Attribute, GlobalMetadata, Node, NodeType};
use prost::Message as _;
use serde_json::Value;

use crate::support::{Workspace, check_members};

const MEMBERS: [&str; 8] =
    ["canopy", "command", "workload", "topology", "model", "operations", "iterations", "refused"];

const STEPS: &str = "version: 1\nname: two steps\nsteps:\n- {name: first, compute: 5ms}\n\
    - {name: sum, collective: allreduce, size: 8MiB}\n- {name: beside, compute: 1ms, after: [first]}\n\
    - {name: tokens, collective: all-to-all, size: 1MiB, after: [beside, sum]}\n- {name: last, compute: 2ms}\n";

fn number(value: &Value, member: &str) -> u64 {
    value[member].as_u64().unwrap_or_else(|| panic!("{member} of {value}"))
}

/// The iteration of this name.
fn iteration<'a>(report: &'a Value, name: &str) -> &'a Value {
    let all = report["iterations"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name} in {report}"))
}

/// The time of one collective by the command for one plan.
fn time(workspace: &Workspace, what: &str, algorithm: &str, size: &str) -> u64 {
    let run = workspace.json(&format!("simulate {what} --algorithm {algorithm} --size {size} --json"));
    number(&run["sizes"][0], "time_ps")
}

/// The sum is hidden for a millisecond; the all-to-all, which trees cannot do, has the plan of `auto`.
#[test]
fn collectives_take_what_their_plans_take_and_overlap_with_what_does_not_wait() {
    let workspace = Workspace::new();
    workspace.write("work.yaml", STEPS);
    let report = workspace.json("simulate torus:3x3 --workload work.yaml --algorithms forest,ring,direct,kautz --json");
    check_members(&report, &MEMBERS);
    assert_eq!((&report["workload"], number(&report, "operations")), (&Value::from("two steps"), 5));
    assert_eq!(report["refused"][0]["name"], "kautz");
    for (name, exchange) in [("forest", "auto"), ("ring", "ring"), ("direct", "direct")] {
        let sum = time(&workspace, "torus:3x3 -c allreduce", name, "8MiB");
        let tokens = time(&workspace, "torus:3x3 -c all-to-all", exchange, "1MiB");
        let found = iteration(&report, name);
        let (first, beside, last) = (5_000_000_000, 1_000_000_000, 2_000_000_000);
        let exposed = sum.saturating_sub(beside) + tokens;
        assert_eq!(number(found, "time_ps"), first + sum.max(beside) + tokens + last, "{name}");
        assert_eq!((number(found, "compute_ps"), number(found, "exposed_ps")), (first + beside + last, exposed));
        assert_eq!(number(found, "network_ps"), sum + tokens, "{name}");
        let by_auto = found["by_auto"].as_array().map_or(0, Vec::len);
        assert_eq!(by_auto, usize::from(name == "forest"), "{name}");
        let line = found["timeline"].as_array().unwrap().iter().find(|line| line["name"] == "tokens").unwrap();
        assert_eq!((&line["on"], number(line, "end_ps") - number(line, "start_ps")), (&Value::from("network"), tokens));
    }
    let times = |name| number(iteration(&report, name), "time_ps");
    let best = ["forest", "ring", "direct"].map(times).into_iter().min().unwrap();
    assert!(times("bound") <= times("fastest of each") && times("fastest of each") <= best);
    let text = workspace.text("simulate torus:3x3 --workload work.yaml --algorithms forest,ring");
    for part in ["ALGORITHM", "fastest of each", "time line with", "tokens: all-to-all of 1 MiB", "by auto"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Without overlap an iteration takes everything one after the other, and with the bound alone no plan is made.
#[test]
fn an_iteration_without_overlap_is_the_sum_of_its_parts() {
    let workspace = Workspace::new();
    workspace.write("work.yaml", format!("overlap: false\n{STEPS}"));
    let report = workspace.json("simulate ring:4 --workload work.yaml --algorithms direct --json");
    let found = iteration(&report, "direct");
    assert_eq!(number(found, "time_ps"), number(found, "compute_ps") + number(found, "network_ps"));
    let alone = workspace.json("simulate ring:4 --workload work.yaml --bound --json");
    assert_eq!(alone["iterations"].as_array().unwrap().len(), 1);
    assert_eq!(number(iteration(&alone, "bound"), "time_ps"), number(iteration(&report, "bound"), "time_ps"));
}

/// Of several buckets the fastest is taken; sums and launches cost what the options say.
#[test]
fn the_best_bucket_is_taken_for_each_algorithm() {
    let workspace = Workspace::new();
    let layers = "layers: [{forward: 1ms, backward: 2ms, parameters: 4MB, repeat: 8}]\n";
    let of = |bucket: &str, options: &str| {
        workspace.write("work.yaml", format!("version: 1\nbucket: {bucket}\n{layers}"));
        let command = format!("simulate torus:3x3,bw=1GB/s --workload work.yaml --algorithms ring --json {options}");
        let report = workspace.json(&command);
        let found = iteration(&report, "ring");
        (number(found, "time_ps"), number(found, "bucket_bytes"), report["model"].clone())
    };
    let sizes = [4_000_000, 16_000_000, 32_000_000];
    let each = sizes.map(|size| of(&size.to_string(), "").0);
    let (least, bucket, _) = of("[4MB, 16MB, 32MB]", "");
    assert_eq!(each.iter().min(), Some(&least));
    assert_eq!(sizes[each.iter().position(|&time| time == least).unwrap()], bucket);
    // Of one bucket the call comes once, behind the backward pass.
    assert_eq!(of("32MB", "--launch 1ms").0, each[2] + 1_000_000_000);
    let (other, _, model) = of("32MB", "--launch 1ms --reduce-rate 10GB/s");
    assert_ne!(other, each[2] + 1_000_000_000);
    assert_eq!((number(&model, "launch_ns"), number(&model, "reduce_rate")), (1_000_000, 10_000_000_000));
}

/// A trace in Chakra's format is the same workload as its description; it counts allgathers by shares.
#[test]
fn a_trace_runs_as_its_description_does() {
    let workspace = Workspace::new();
    let attribute = |name: &str, value| Attribute { name: name.to_owned(), value: Some(value) };
    let compute = |id, duration_micros, data_deps| Node {
        id,
        name: format!("compute {id}"),
        r#type: NodeType::CompNode.into(),
        data_deps,
        duration_micros,
        ..Node::default()
    };
    let collective = |id, kind, size, ctrl_deps| Node {
        id,
        name: format!("collective {id}"),
        r#type: NodeType::CommCollNode.into(),
        ctrl_deps,
        attr: vec![attribute("comm_type", Content::Int64Val(kind)), attribute("comm_size", Content::Int64Val(size))],
        ..Node::default()
    };
    let nodes = [
        compute(40, 500, vec![20]),
        collective(20, 2, 1 << 17, vec![10]),
        compute(10, 300, Vec::new()),
        compute(30, 100, vec![10]),
        collective(50, 0, 1 << 22, vec![40, 30]),
    ];
    let mut bytes = GlobalMetadata::default().encode_length_delimited_to_vec();
    nodes.iter().for_each(|node| bytes.extend(node.encode_length_delimited_to_vec()));
    workspace.write("rank.0.et", bytes);
    workspace.write(
        "work.yaml",
        "version: 1\norder: ready\nsteps:\n- {name: a, compute: 300us}\n\
         - {name: b, collective: allgather, size: 1MiB}\n- {name: c, compute: 100us, after: [a]}\n\
         - {name: d, compute: 500us, after: [b]}\n- {collective: allreduce, size: 4MiB, after: [c, d]}\n",
    );
    let times = ["rank.0.et", "work.yaml"].map(|file| {
        let report = workspace.json(&format!("simulate ring:8 --workload {file} --algorithms ring,forest --json"));
        ["ring", "forest", "bound"].map(|name| number(iteration(&report, name), "time_ps"))
    });
    assert_eq!(times[0], times[1]);
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let workspace = Workspace::new();
    workspace.write("work.yaml", STEPS);
    workspace.write("wrong.yaml", "version: 1\nsteps: [{compute: 5}]\n");
    workspace.write("quiet.yaml", "version: 1\nsteps: [{compute: 5ms}]\n");
    workspace.write("wrong.et", "no trace");
    workspace.refused("simulate ring:4 --workload none.yaml", 2, &["none.yaml: no such file"]);
    workspace.refused("simulate ring:4 --workload wrong.yaml", 2, &["steps[0].compute", "`5ms`"]);
    workspace.refused("simulate ring:4 --workload quiet.yaml", 2, &["no collective"]);
    workspace.refused("simulate ring:4 --workload wrong.et", 2, &["no Chakra trace"]);
    workspace.refused("simulate ring:4 --workload work.yaml --algorithms ring,ring", 2, &["ring twice"]);
    workspace.refused("simulate ring:4 --workload work.yaml --algorithms kautz", 2, &["Kautz"]);
    for more in ["-c allgather", "--size 1MiB", "--sweep", "--plot x.svg", "--bound --algorithm ring"] {
        workspace.refused(&format!("simulate ring:4 --workload work.yaml {more}"), 2, &["cannot be combined"]);
    }
    workspace.refused("simulate ring:4 --bound", 2, &["--workload"]);
    workspace.refused("simulate ring:4 --algorithms ring", 2, &["needs `--sweep or --workload`"]);
}
