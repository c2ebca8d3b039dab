//! Rates, sizes and latencies from one end of their ranges to the other: what is planned passes a check of its own, and what
//! is not is refused with the field and the limit.
//!
//! `CANOPY_CASES=300 cargo test --workspace --test cli -- extremes` tries more.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Numbers, Workspace};

/// Cases of each kind, unless the environment says otherwise.
const CASES: u64 = 10;
/// Greatest rate of a link where traffic moves, in bytes per second.
const MOVING_RATE_MAX: u64 = 1 << 48;
/// Most bytes of a matrix.
const MATRIX_MAX: u128 = 1 << 60;

fn cases() -> u64 {
    std::env::var("CANOPY_CASES").ok().map_or(CASES, |text| text.parse().unwrap()).min(1_000)
}

/// A number below 2^`bits` of any size, round or odd.
fn any(random: &mut Numbers, bits: u64) -> u64 {
    let power = 1 << random.below(bits);
    match random.below(3) {
        0 => power,
        1 => power + random.below(power),
        _ => 10_u64.pow(u32::try_from(random.below(bits * 3 / 10)).unwrap()) + random.below(9),
    }
}

/// What the commands say where they refuse; nothing that blames canopy.
fn refused(workspace: &Workspace, arguments: &str, words: &[&str]) {
    let run = workspace.run(arguments);
    assert!(matches!(run.status, Some(2 | 3)), "{arguments}: {run:?}");
    assert!(!run.stderr.contains("bug in canopy") && !run.stderr.contains("panicked"), "{run:?}");
    assert!(words.iter().all(|word| run.stderr.contains(word)), "{arguments}: {words:?}: {run:?}");
}

/// Boxes of ranks with these rates inside and outside.
struct Boxes {
    size: u64,
    inner: u64,
    outer: u64,
}

impl Boxes {
    /// The time of the busiest link of a plan, as bytes and rate, and the bytes of each pair, from the lists of its file.
    fn time(&self, plan: &Value) -> (u128, u128, BTreeMap<(u64, u64), u64>) {
        let list = |name: &str| -> Vec<u64> {
            plan[name].as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
        };
        let [from, to, leaves, enters, bytes] = ["from", "to", "leaves", "enters", "bytes"].map(list);
        let mut arrived = BTreeMap::new();
        // By end, direction and kind of link.
        let mut loads: BTreeMap<(u64, bool, bool), u128> = BTreeMap::new();
        for part in 0..bytes.len() {
            *arrived.entry((from[part], to[part])).or_default() += bytes[part];
            let mut hop = |start: u64, end: u64, is_by_nic: bool| {
                assert!(is_by_nic || start / self.size == end / self.size, "{plan}");
                if start != end {
                    *loads.entry((start, true, is_by_nic)).or_default() += u128::from(bytes[part]);
                    *loads.entry((end, false, is_by_nic)).or_default() += u128::from(bytes[part]);
                }
            };
            let relays = plan["relayed"].as_array().map_or(&[][..], Vec::as_slice);
            if let Some(relay) = relays.iter().find(|relay| relay["part"] == part) {
                let ends = relay["ranks"].as_array().unwrap().iter().zip(relay["by_nic"].as_array().unwrap());
                let last = ends.fold(from[part], |at, (rank, by_nic)| {
                    let rank = rank.as_u64().unwrap();
                    hop(at, rank, by_nic.as_bool().unwrap());
                    rank
                });
                assert_eq!(last, to[part], "{plan}");
            } else if from[part] / self.size == to[part] / self.size {
                hop(from[part], to[part], false);
            } else {
                hop(from[part], leaves[part], false);
                hop(leaves[part], enters[part], true);
                hop(enters[part], to[part], false);
            }
        }
        let times = loads
            .iter()
            .map(|((.., is_by_nic), load)| (*load, u128::from(if *is_by_nic { self.outer } else { self.inner })));
        let slower =
            |one: (u128, u128), other: (u128, u128)| if one.0 * other.1 >= other.0 * one.1 { one } else { other };
        let (load, rate) = times.fold((0, 1), slower);
        (load, rate, arrived)
    }
}

fn fraction(text: &Value) -> (u128, u128) {
    let text = text.as_str().unwrap();
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    (above.parse().unwrap(), below.parse().unwrap())
}

#[test]
fn traffic_of_any_size_moves_at_rates_of_any_size() {
    let workspace = Workspace::new();
    let mut random = Numbers(11);
    for case in 0..cases() {
        let size = 2 + random.below(2);
        let ranks = size * (2 + random.below(2));
        let inner = any(&mut random, 48);
        let outer = if case % 3 == 0 { inner / 1_000_000_000 + 1 } else { any(&mut random, 48) };
        let latency = ["0ns", "1ns", "3s", "1000000s"][usize::try_from(random.below(4)).unwrap()];
        let network = format!("rail:boxes={},gpus={size},nv={inner}B/s,nic={outer}B/s,lat={latency}", ranks / size);
        let mut entries = vec![0; usize::try_from(ranks * ranks).unwrap()];
        for (position, entry) in (0..).zip(&mut entries) {
            *entry = if position / ranks == position % ranks { 0 } else { any(&mut random, 60) };
        }
        let sum: u128 = entries.iter().map(|&entry| u128::from(entry)).sum();
        let divisor = if case % 4 == 3 { 1 } else { u64::try_from(sum / MATRIX_MAX + 1).unwrap() };
        entries.iter_mut().for_each(|entry| *entry /= divisor);
        let rows: Vec<&[u64]> = entries.chunks(usize::try_from(ranks).unwrap()).collect();
        workspace.write("m.jsonl", format!("{{\"bytes\":{}}}\n", serde_json::to_string(&rows).unwrap()));
        let arguments = format!("plan-moving {network} m.jsonl -o plans.jsonl");
        if entries.iter().map(|&entry| u128::from(entry)).sum::<u128>() > MATRIX_MAX {
            refused(&workspace, &arguments, &["`bytes` adds up to more than 1152921504606846976"]);
            continue;
        }
        workspace.text(&arguments);
        let plan: Value = serde_json::from_slice(&workspace.read("plans.jsonl")).unwrap();
        let (load, rate, arrived) = Boxes { size, inner, outer }.time(&plan);
        let (above, below) = fraction(&plan["seconds"]);
        // Both are below 2^61 ÷ 2^48.
        assert_eq!(load * below, above * rate, "{network}: {plan}");
        let (least, unit) = fraction(&plan["seconds_bound"]);
        assert!(least as f64 / unit as f64 <= above as f64 / below as f64 * 1.000_000_001, "{network}: {plan}");
        let expected = (0..).zip(&entries).filter(|(_, entry)| **entry > 0);
        let expected: BTreeMap<(u64, u64), u64> =
            expected.map(|(position, &entry)| ((position / ranks, position % ranks), entry)).collect();
        assert_eq!(arrived, expected, "{network}");
    }
}

#[test]
fn links_that_are_too_fast_for_moving_traffic_are_named() {
    let workspace = Workspace::new();
    workspace.write("m.jsonl", "{\"bytes\":[[0,1,2,3],[4,0,5,6],[7,8,0,9],[1,2,3,0]]}\n");
    let limit = MOVING_RATE_MAX.to_string();
    for (rates, way) in [("nv=281474976710657B/s", "to its box"), ("nic=18446744073709551615B/s", "out of its NIC")] {
        let arguments = format!("plan-moving rail:boxes=2,gpus=2,{rates} m.jsonl");
        refused(&workspace, &arguments, &["`b0g0`", way, &limit]);
    }
    workspace.text("plan-moving rail:boxes=2,gpus=2,nv=281474976710656B/s,nic=1B/s m.jsonl");
}

/// A network of boxes on one switch whose links all have other rates and latencies.
fn uneven(random: &mut Numbers, boxes: u64, gpus: u64) -> String {
    let mut text = "canopy: 1\nnodes:\n".to_owned();
    let mut links = String::new();
    for rank in 0..boxes * gpus {
        let of_box = rank / gpus;
        text += &format!("- {{id: g{rank}, box: b{of_box}}}\n");
        for switch in [format!("nv{of_box}"), "ib".to_owned()] {
            let rate = any(random, 61);
            let latency = ["0ns", "1ns", "17us", "9s"][usize::try_from(random.below(4)).unwrap()];
            links +=
                &format!("- {{from: g{rank}, to: {switch}, bandwidth: {rate}B/s, latency: {latency}, both: true}}\n");
        }
    }
    (0..boxes).for_each(|of_box| text += &format!("- {{id: nv{of_box}, kind: switch, box: b{of_box}}}\n"));
    text + "- {id: ib, kind: switch}\nlinks:\n" + &links
}

#[test]
fn jobs_of_any_size_share_links_of_any_rate() {
    const SIZE_MAX: u64 = 1 << 62;
    let workspace = Workspace::new();
    let mut random = Numbers(13);
    for case in 0..cases() {
        let gpus = 2;
        let boxes = 2 + random.below(2);
        workspace.write("network.yaml", uneven(&mut random, boxes, gpus));
        let sizes = [any(&mut random, 62), if case % 5 == 4 { SIZE_MAX + 1 + random.below(1 << 62) } else { SIZE_MAX }];
        let calls = ["allreduce", "allgather", "reduce-scatter", "all-to-all"];
        let mut call = || calls[usize::try_from(random.below(4)).unwrap()];
        workspace.write(
            "job.yaml",
            format!(
                "topology: network.yaml\nlayout: tp={gpus} dp={boxes}\ngroups: [{{name: tp, over: tp, collective: {}, \
                 size: {}B}}, {{name: dp, over: dp, collective: {}, size: {}B}}]\n",
                call(),
                sizes[0],
                call(),
                sizes[1]
            ),
        );
        let arguments = "plan-job job.yaml -o plans --json";
        if sizes[1] > SIZE_MAX {
            refused(&workspace, arguments, &["groups[1].size_bytes", "4611686018427387904"]);
            continue;
        }
        let run = workspace.run(arguments);
        if run.status == Some(0) {
            workspace.text("verify --joint plans");
        } else {
            refused(&workspace, arguments, &["would get less than a byte per second of a link"]);
        }
    }
}

/// Speeds in a dump that no machine has are planned for, or refused with the attribute.
#[test]
fn dumps_with_speeds_of_any_size_are_planned_or_refused() {
    const DUMP: &str = include_str!("../../../crates/import/tests/data/four-gpus.xml");
    let workspace = Workspace::new();
    let mut random = Numbers(17);
    let attributes = [("speed", "400000"), ("count", "18"), ("link_width", "16"), ("link_speed", "32.0 GT/s PCIe")];
    let odd = ["0", "-1", "1e400", "nan", "18446744073709551616", "999999999999 GT/s PCIe", "0.0001 GT/s", ""];
    for case in 0..cases() {
        let (name, usual) = attributes[usize::try_from(random.below(4)).unwrap()];
        let value = match case % 2 {
            0 => any(&mut random, 60).to_string(),
            _ => odd[usize::try_from(random.below(8)).unwrap()].to_owned(),
        };
        let [usual, value] = [usual, value.as_str()].map(|value| format!(" {name}=\"{value}\""));
        assert!(DUMP.contains(&usual));
        let count = if random.below(2) == 0 { 1 } else { 99 };
        workspace.write("dump.xml", DUMP.replacen(&usual, &value, count));
        for collective in ["allreduce", "all-to-all"] {
            let arguments = format!("plan dump.xml -c {collective} -o plan.json");
            match workspace.run(&arguments).status {
                Some(0) => drop(workspace.text("verify plan.json")),
                _ => refused(&workspace, &arguments, &["of dump.xml: line "]),
            }
        }
    }
}
