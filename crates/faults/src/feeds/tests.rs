//! What each form says becomes events, or is named with the reason why not.

use proptest::prelude::*;

use super::*;
use crate::event::Severity;

const NOW: u64 = 1_766_149_700_000;

fn options(aliases: &str) -> FeedOptions {
    let aliases = Aliases::read(aliases).unwrap();
    FeedOptions { aliases, degraded: None, expires_after_ms: None, utc_offset_minutes: 0 }
}

/// Items as text: `gpu:n:1 0/1 @-73s`, `gpu:n:1 clear @0s`, `? device`, `- what`.
fn words(items: &[Item]) -> Vec<String> {
    let word = |item: &Item| match item {
        Item::Event(event) => {
            event.clone().checked().unwrap();
            let what = if event.cleared { "clear".to_owned() } else { event.remaining.to_string() };
            format!("{} {what} @{}s", event.target, (i128::from(event.observed_ms) - i128::from(NOW)) / 1_000)
        }
        Item::AllClear(event) => {
            format!("{} all clear @{}s", event.target, (i128::from(event.observed_ms) - i128::from(NOW)) / 1_000)
        }
        Item::Unmapped { device, .. } => format!("? {device}"),
        Item::Passed { what } => format!("- {what}"),
    };
    items.iter().map(word).collect()
}

#[test]
fn our_own_lines_say_all_of_an_event() {
    let read = |line: &str| read_json_line(line, &options(""), NOW);
    let full = r#"{"source":"ufm","event_id":"1","fault":"link:b0g3>ib*1/2","severity":"FATAL","observed_time":"2025-12-19T13:08:20Z","expires_after_s":60,"cleared":true}"#;
    let [Item::Event(event)] = &read(full).unwrap()[..] else { panic!() };
    assert_eq!((event.source.as_str(), event.event_id.as_str(), event.severity), ("ufm", "1", Severity::Fatal));
    assert_eq!((event.observed_ms, event.expires_ms, event.cleared), (NOW, Some(NOW + 60_000), true));
    let short = r#"{"source":"x","event_id":"2","fault":{"target":{"kind":"gpu","device":{"host":"n","index":3}},"remaining":"0/1"}}"#;
    assert_eq!(words(&read(short).unwrap()), ["gpu:n:3 0/1 @0s"]);
    let brief = FeedOptions { expires_after_ms: Some(5), ..options("") };
    let [Item::Event(event)] = &read_json_line(short, &brief, NOW).unwrap()[..] else { panic!() };
    assert_eq!((event.expires_ms, event.severity), (Some(NOW + 5), Severity::Fatal));
    for (line, expected) in [
        ("{", "the JSON does not match: EOF"),
        (r#"{"source":"x","event_id":"2"}"#, "missing field `fault`"),
        (r#"{"source":"x","event_id":"2","fault":"gpu:a","colour":1}"#, "unknown field `colour`"),
        (r#"{"source":"x","event_id":"2","fault":"fan:a"}"#, "fault: unknown target `fan:a`"),
        (r#"{"source":"","event_id":"2","fault":"gpu:a"}"#, "source cannot be ``"),
        (
            r#"{"source":"x","event_id":"2","fault":"gpu:a","observed_time":"noon"}"#,
            "observed_time `noon`: write it like",
        ),
        (r#"{"source":"x","event_id":"2","fault":"gpu:a","severity":"bad"}"#, "unknown variant `bad`"),
        (r#"{"source":"x","event_id":"2","fault":"gpu:a","expires_after_s":0}"#, "expires_after_s is 0"),
        (r#"{"source":"x","event_id":"2","fault":7}"#, "expected a fault as text, such as"),
        (
            r#"{"source":"x","event_id":"2","fault":{"target":{"kind":"gpu"},"remaining":"0/1"}}"#,
            "missing field `device`",
        ),
        (
            r#"{"source":"x","event_id":"2","fault":{"target":{"kind":"fan","id":"a"},"remaining":"0/1"}}"#,
            "unknown variant `fan`",
        ),
        (
            r#"{"source":"x","event_id":"2","fault":{"target":{"kind":"gpu","device":{"id":"a","index":3}},"remaining":"0/1"}}"#,
            "a device is {\"id\": ID} of its node, {\"host\": NAME",
        ),
        (
            r#"{"source":"x","event_id":"2","fault":{"target":{"kind":"node","id":"a"},"remaining":"3/2"}}"#,
            "`3/2` is not a remaining fraction",
        ),
        (
            r#"{"source":"x","event_id":"2","fault":{"target":{"kind":"node","id":"a"},"remaining":"0/1","more":1}}"#,
            "unknown field `more`",
        ),
    ] {
        let error = read(line).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// The samples of the user guide, and what they leave out.
#[test]
fn ras_tells_dead_processes_from_those_that_answer() {
    let read = |document: &str| read_ras(document, &options("172.16.64.245 host:node7"), NOW);
    let dead = r#"{"timestamp":"2025-12-19 13:07:07","group":"LIFECYCLE","event":"PEER_DEAD",
        "peer":{"host":"172.16.64.245","pid":1524345,"cuda_devs":[0],"nvml_devs":[1,4]},"details":""}"#;
    assert_eq!(words(&read(dead).unwrap()), ["gpu:node7:1 0/1 @-73s", "gpu:node7:4 0/1 @-73s"]);
    assert_eq!(words(&read(&dead.replace("[1,4]", "[]")).unwrap()), ["gpu:node7:0 0/1 @-73s"]);
    assert_eq!(
        words(&read(&dead.replace("[1,4]", "[]").replace("[0]", "[]")).unwrap()),
        ["? pid 1524345 on 172.16.64.245"]
    );
    assert_eq!(words(&read(&dead.replace("PEER_DEAD", "PEER_UNRESPONSIVE")).unwrap()), ["- PEER_UNRESPONSIVE"]);
    let state = r#"{"nccl_version":"2.29.1","timestamp":"2025-12-19 13:08:20","communicators_count":2,"communicators":[
        {"size":4,"ranks":[{"rank":0,"host":"a","pid":1,"cuda_dev":0,"nvml_dev":3,"status":{"init_state":0}},
                           {"rank":1,"host":"b","pid":1,"cuda_dev":1,"nvml_dev":1}],
         "missing_ranks":[{"rank":2,"host":"b","pid":2,"cuda_dev":0,"nvml_dev":0,"status":{"unresponsive":true,"considered_dead":false}},
                          {"rank":3,"host":"b","pid":3,"cuda_dev":2,"status":{"considered_dead":true}}]},
        {"size":1,"ranks":[{"rank":0,"host":"b","pid":3,"cuda_dev":2}],"missing_ranks":[]}],
        "ras":{"collection_time_sec":0.000,"timeouts_count":0}}"#;
    assert_eq!(words(&read(state).unwrap()), ["gpu:a:3 clear @0s", "gpu:b:1 clear @0s", "gpu:b:2 0/1 @0s"]);
    let without = |comma: &str| state.replace(r#""nvml_dev":0,"status""#, &format!(r#""nvml_dev":0{comma}"status""#));
    assert_eq!(read(&without("\n   ")).map(|items| words(&items)), read(state).map(|items| words(&items)));
    assert!(read(&without(" x")).is_err());
    let devices: Vec<String> = (0..=ITEMS_MAX).map(|device| device.to_string()).collect();
    let many = dead.replace("[1,4]", &format!("[{}]", devices.join(",")));
    assert_eq!(read(&many), Err(FeedError::TooMany { limit: ITEMS_MAX }));
    let again = dead.replace("[1,4]", &format!("[1{}]", ",1".repeat(ITEMS_MAX)));
    assert_eq!(words(&read(&again).unwrap()), ["gpu:node7:1 0/1 @-73s"]);
    assert!(read("{}").unwrap_err().to_string().starts_with("event is missing; an event needs `event`"));
    assert!(read(r#"{"event":"PEER_DEAD"}"#).unwrap_err().to_string().starts_with("peer is missing"));
    let nameless = r#"{"event":"PEER_DEAD","peer":{"host":"a b","cuda_devs":[1]}}"#;
    assert_eq!(words(&read(nameless).unwrap()), ["? a b:1"]);
}

#[test]
fn states_of_slurm_are_faults_clears_or_neither() {
    let read = |line: &str| read_slurm(line, &options("short host:node.long"), NOW).unwrap();
    for state in [
        "down",
        "down*",
        "drained",
        "draining",
        "drain",
        "fail",
        "failing",
        "idle*",
        "DOWN+DRAIN",
        "IDLE+DRAIN",
        "DOWN*+DRAIN+NOT_RESPONDING",
        "mixed*",
        "ALLOCATED+FAIL",
        "drng@",
    ] {
        assert_eq!(words(&read(&format!("gpu01 {state}"))), ["host:gpu01 0/1 @0s"], "{state}");
    }
    for state in ["idle", "allocated", "allocated+", "mixed-", "idle~", "IDLE+PLANNED", "comp", "mix$"] {
        assert_eq!(words(&read(&format!("gpu01 {state}"))), ["host:gpu01 clear @0s"], "{state}");
    }
    for state in ["maint", "unknown", "future", "~", "POWERED_DOWN", "idling"] {
        assert_eq!(words(&read(&format!("gpu01 {state}"))), [format!("- gpu01 is {state}")]);
    }
    let node =
        "NodeName=gpu02 Arch=x86_64 CoresPerSocket=32 State=IDLE+DRAIN ThreadsPerCore=2 Reason=bad card [root@x]";
    assert_eq!(words(&read(node)), ["host:gpu02 0/1 @0s"]);
    assert_eq!(words(&read("short down")), ["host:node.long 0/1 @0s"]);
    assert_eq!(
        words(&read("gpu[01-02,7],short down*")),
        ["host:gpu01 0/1 @0s", "host:gpu02 0/1 @0s", "host:gpu7 0/1 @0s", "host:node.long 0/1 @0s"]
    );
    assert_eq!(words(&read("r[1-2]n[08-09] maint"))[1..3], ["- r1n09 is maint", "- r2n08 is maint"]);
    assert_eq!((words(&read("gpu:1 idle")), words(&read(" "))), (vec!["? gpu:1".to_owned()], Vec::new()));
    for (line, expected) in
        [("gpu[01-04 idle", "a bracket does not close"), ("n[0-65536] idle", "more than 65536 hosts")]
    {
        let error = read_slurm(line, &options(""), NOW).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for line in ["gpu01", "gpu01 idle 7", "NodeName=gpu01 Arch=x", "NODELIST STATE REASON"] {
        let error = read_slurm(line, &options(""), NOW).unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{line}` is neither `NODE STATE`")), "{error}");
    }
}

/// The forms of 21.08, of 23.02 and later, and of `sinfo`.
#[test]
fn slurm_says_states_in_json() {
    let read = |document: &str| read_slurm_json(document, &options("short host:node.long"), NOW);
    let nodes = r#"{"meta": {"Slurm": {}}, "nodes": [
        {"name": "g1", "state": "mixed", "state_flags": [], "reason": ""},
        {"name": "g2", "state": "idle", "state_flags": ["DRAIN"], "reason": "bad card"},
        {"name": "short", "state": ["IDLE", "NOT_RESPONDING"], "cpus": 8},
        {"name": "g4", "state": ["ALLOCATED"]}, {"name": "g5", "state": ["FUTURE"]}, {"name": "a b", "state": ["DOWN"]}],
        "errors": []}"#;
    assert_eq!(
        words(&read(nodes).unwrap()),
        [
            "host:g1 clear @0s",
            "host:g2 0/1 @0s",
            "host:node.long 0/1 @0s",
            "host:g4 clear @0s",
            "- g5 is FUTURE",
            "? a b"
        ]
    );
    let sinfo = r#"{"sinfo": [
        {"node": {"state": ["DOWN", "NOT_RESPONDING"]}, "nodes": {"total": 3, "nodes": ["g1", "g[2-3]"]}, "partition": {"name": "x"}},
        {"node": {"state": "IDLE"}, "nodes": {"nodes": "h[08-09]"}}]}"#;
    assert_eq!(
        words(&read(sinfo).unwrap()),
        ["host:g1 0/1 @0s", "host:g2 0/1 @0s", "host:g3 0/1 @0s", "host:h08 clear @0s", "host:h09 clear @0s"]
    );
    assert_eq!(read(r#"{"nodes": []}"#), Ok(Vec::new()));
    for (document, expected) in [
        ("{}", "nodes is missing; use scontrol show nodes --json or sinfo --json"),
        (r#"{"nodes": [{"state": ["DOWN"]}]}"#, "missing field `name`"),
        (r#"{"nodes": [{"name": "g1"}]}"#, "missing field `state`"),
        (r#"{"nodes": [{"name": "g1", "state": 3}]}"#, "expected a text or a list of texts"),
        (r#"{"sinfo": [{"node": {"state": []}, "nodes": {"nodes": ["g[1"]}}]}"#, "a bracket does not close"),
        (
            r#"{"sinfo": [{"node": {"state": []}, "nodes": {"nodes": ["g[0-65535]", "h"]}}]}"#,
            "more than 65536 statements",
        ),
    ] {
        let error = read(document).unwrap_err().to_string();
        assert!(error.contains(expected), "{document}: {error}");
    }
}

fn entity((kind, value): &(&str, &str)) -> Entity {
    Entity { kind: (*kind).to_owned(), value: (*value).to_owned() }
}

fn found(entities: &[(&str, &str)], is_fatal: bool, is_healthy: bool) -> HealthEvent {
    HealthEvent {
        check_name: "GpuXid".to_owned(),
        is_fatal,
        is_healthy,
        entities: entities.iter().map(entity).collect(),
        generated_ms: Some(NOW - 2_000),
        node_name: "node7".to_owned(),
        is_store_only: false,
    }
}

#[test]
fn sentinels_name_devices_in_many_ways() {
    let aliases =
        options("node7/GPU-9 gpu:b0g4\nnode7/nvlink14 link:b0g3=b0nv\n0000:3b:00.0 gpu:b0g5\nnode7/gpu6 gpu:six");
    let read = |entities: &[(&str, &str)]| words(&read_health(&found(entities, true, false), &aliases, NOW).unwrap());
    for (entities, said) in [
        // Where the number is known, addresses may be those of a switch.
        (&[("GPU", "3"), ("PCI", "0000:3b:00"), ("GPU_UUID", "GPU-1")][..], &["gpu:node7:3 0/1 @-2s"][..]),
        (&[("NVSWITCH", "1"), ("PCI", "0000:c3:00"), ("NVLINK", "7"), ("GPU", "6")], &["gpu:six 0/1 @-2s"]),
        (&[("PCI", "0000:3b:00"), ("GPU_UUID", "GPU-1"), ("NVLINK", "7"), ("REG0", "00ff")], &["gpu:b0g5 0/1 @-2s"]),
        (&[("GPU_UUID", "GPU-9"), ("NVLINK", "14")], &["gpu:b0g4 0/1 @-2s", "link:b0g3=b0nv 0/1 @-2s"]),
        (&[("PCI", "3b:00.0"), ("PCI", "0000:3B:00")], &["gpu:b0g5 0/1 @-2s"]),
        (&[("GPU", "0"), ("GPU", "1"), ("GPU", "0")], &["gpu:node7:0 0/1 @-2s", "gpu:node7:1 0/1 @-2s"]),
        (&[("NIC", "mlx5_2"), ("NICPort", "1"), ("PCI", "0000:01:00.0")], &["nic:node7:2 0/1 @-2s"]),
        (&[("NICPort", "mlx5_5_port1")], &["nic:node7:5 0/1 @-2s"]),
        (&[("NIC", "mlx5_2"), ("NIC", "mlx5_bond_0")], &["nic:node7:2 0/1 @-2s", "? node7/mlx5_bond_0"]),
        (&[("NODE", "node7")], &["host:node7 0/1 @-2s"]),
        (&[], &["host:node7 0/1 @-2s"]),
        (
            &[("PCI", "0000:3c:00"), ("NVSWITCH", "1"), ("NVLINK", "7"), ("GPU", "x"), ("GPU", "+1"), ("CPU", "0")],
            &["? node7/0000:3c:00", "? node7/nvswitch1", "? node7/nvlink7", "? node7/x", "? node7/+1", "? node7/cpu0"],
        ),
    ] {
        assert_eq!(read(entities), said, "{entities:?}");
    }
    let items = read_health(&found(&[("NVSWITCH", "1")], true, false), &aliases, NOW).unwrap();
    let [Item::Unmapped { device, remedy }] = &items[..] else { panic!("{items:?}") };
    let line = remedy.split('`').nth(1).unwrap();
    assert!(line.starts_with(device.as_str()) && Aliases::read(line).is_ok(), "{remedy}");
    let many = HealthEvent { entities: vec![entity(&("GPU", "3")); ITEMS_MAX + 1], ..found(&[], true, false) };
    assert_eq!(read_health(&many, &aliases, NOW), Err(FeedError::TooMany { limit: ITEMS_MAX }));
}

#[test]
fn checks_of_sentinels_are_sources_of_their_own() {
    let aliases = options("node7/nvlink14 link:b0g3=b0nv\nnode70/nvlink14 link:b0g4=b0nv");
    let read = |event: &HealthEvent| words(&read_health(event, &aliases, NOW).unwrap());
    assert_eq!(read(&found(&[("NIC", "mlx5_2")], true, true)), ["nic:node7:2 clear @-2s"]);
    assert_eq!(read(&found(&[("NODE", "node7")], false, true)), ["host:node7 clear @-2s"]);
    assert_eq!(read(&found(&[], false, true)), ["host:node7 all clear @-2s", "link:b0g3=b0nv clear @-2s"]);
    let mild = found(&[("GPU", "3")], false, false);
    assert_eq!(read(&mild), ["- GpuXid of node7: not fatal, and the remaining rate is unknown"]);
    let half = FeedOptions { degraded: Remaining::new(1, 2).ok(), ..options("") };
    assert_eq!(words(&read_health(&mild, &half, NOW).unwrap()), ["gpu:node7:3 1/2 @-2s"]);
    assert_eq!(read(&HealthEvent { is_store_only: true, ..mild.clone() }), ["- GpuXid of node7: informational only"]);
    assert_eq!(read(&HealthEvent { is_fatal: true, node_name: String::new(), ..mild.clone() }), ["? "]);
    let long = HealthEvent { is_fatal: true, check_name: "ü".repeat(300), ..mild };
    let [Item::Event(event)] = &read_health(&long, &aliases, NOW).unwrap()[..] else { panic!() };
    assert!(event.clone().checked().is_ok() && event.source.starts_with("nvsentinel/üü"), "{}", event.source);
}

proptest! {
    /// Whatever comes, a reader answers, and every event of it can be entered.
    #[test]
    fn nothing_panics(text in "\\PC{0,60}", node in "\\PC{0,70}", state in "[A-Za-z*+~#]{0,70}", json in "[{}\\[\\]\":,a-z0-9]{0,40}") {
        let options = options("");
        let slurm = read_slurm(&format!("{node} {state}"), &options, NOW);
        let ras = format!(r#"{{"event":"PEER_DEAD","peer":{{"host":{},"cuda_devs":[7]}}}}"#, serde_json::to_string(&node).unwrap());
        let ras = read_ras(&ras, &options, NOW);
        let states = format!(r#"{{"nodes":[{{"name":{},"state":["{state}"]}}]}}"#, serde_json::to_string(&node).unwrap());
        let states = read_slurm_json(&states, &options, NOW);
        let entities = [("GPU", text.as_str()), ("NIC", &node), ("NICPort", &text), ("NVLINK", &state), (&state, &json)];
        let health = HealthEvent { node_name: node.clone(), ..found(&entities, true, false) };
        let health = read_health(&health, &options, NOW);
        let (line, document) = (read_json_line(&text, &options, NOW), read_ras(&json, &options, NOW));
        let parts = read_slurm_json(&json, &options, NOW);
        for items in [slurm, states, ras, health, line, document, parts].into_iter().flatten() {
            for item in items {
                if let Item::Event(event) | Item::AllClear(event) = item {
                    prop_assert!(event.checked().is_ok());
                }
            }
        }
        let _ = read_time(&text, 0);
    }
}
