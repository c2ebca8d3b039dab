//! Tables give the links that xGMI and the host have.

use crate::host::tests::{links, machine, refusal, whole};

const TABLES: &str = include_str!("../../../tests/data/rocm-smi-topo.txt");

/// Tables of so many GPUs, linked in one hop where `is_linked` says so.
fn tables(gpus: usize, is_linked: impl Fn(usize, usize) -> bool) -> String {
    let mut text = String::new();
    for (title, yes, no) in [("Hops", "1", "2"), ("Link Type", "XGMI", "XGMI")] {
        text += &format!("======== {title} between two GPUs =========\n");
        text += &(0..gpus).map(|gpu| format!(" GPU{gpu}")).collect::<String>();
        for a in 0..gpus {
            text += &format!("\nGPU{a}");
            for b in 0..gpus {
                let cell = if is_linked(a, b) { yes } else { no };
                text += &format!(" {}", if a == b { "0" } else { cell });
            }
        }
        text += "\n\n";
    }
    text
}

/// Two pairs of GPUs, each with a link of 36 GB/s and in a NUMA node of its own; PCIe of generation 4 has 24 GB/s.
#[test]
fn the_whole_machine_has_every_device_and_rate() {
    assert_eq!(
        whole(TABLES),
        [
            ("GPU0 GPU1", 360),
            ("GPU0 cpu0", 240),
            ("GPU1 cpu0", 240),
            ("GPU2 GPU3", 360),
            ("GPU2 cpu1", 240),
            ("GPU3 cpu1", 240),
            ("cpu0 cpu1", 60)
        ]
        .map(|(ends, rate)| (ends.to_owned(), rate))
    );
    let machine = machine(TABLES);
    assert_eq!(machine.cpus, ["cpu0", "cpu1"]);
    assert_eq!(machine.report.understood, ["4 GPUs, 2 pairs linked by xGMI"]);
    assert_eq!(machine.report.assumed.len(), 3, "{:?}", machine.report);
    assert!(machine.report.assumed[0].contains("MI250"), "{:?}", machine.report);
}

/// Eight GPUs, each to each: 28 pairs of 48 GB/s, as MI300.
#[test]
fn a_full_mesh_is_of_mi300() {
    let links = links(&tables(8, |_, _| true));
    assert_eq!(links.len(), 28);
    assert!(links.iter().all(|(_, rate)| *rate == 480), "{links:?}");
}

/// Eight GPUs in a ring: what is two hops away has no link of its own.
#[test]
fn pairs_of_two_hops_have_no_link() {
    let links = links(&tables(8, |a, b| (a + 1) % 8 == b || (b + 1) % 8 == a));
    assert_eq!(links.len(), 8);
    assert!(links.iter().all(|(_, rate)| *rate == 360), "{links:?}");
}

/// Where weights and hops differ, weights are right: twice that of a hop is two. Rates are the larger ones, where there are
/// any.
#[test]
fn weights_tell_hops_and_amd_smi_has_rates() {
    const AMD: &str = include_str!("../../../tests/data/amd-smi-topology.txt");
    let expected = [("GPU0 GPU1", 1000), ("GPU0 GPU2", 500), ("GPU1 GPU3", 360), ("GPU2 GPU3", 1000)]
        .map(|(ends, rate)| (ends.to_owned(), rate));
    assert_eq!(links(AMD), expected);
    let found = machine(AMD);
    assert_eq!(found.draft.nodes[2].attributes.label.as_deref(), Some("0000:85:00.0"));
    assert!(found.report.understood[1].contains("table of bandwidths"), "{:?}", found.report);
    let without = AMD.replace("NUMA BW", "OTHER");
    assert!(links(&without).iter().all(|(_, rate)| *rate == 360), "{:?}", links(&without));
    for (text, message) in [
        (AMD.replace("LINK TYPE", "KIND"), "no table `LINK TYPE TABLE`; send all that `amd-smi topology` prints"),
        (format!("{AMD}\n{AMD}"), "line 55: a second such table begins here; send the tables of one machine"),
        (AMD.replace("50000-100000", "fast"), "has `fast`; send what `amd-smi topology` prints"),
    ] {
        let found = refusal(&text);
        assert!(found.starts_with("amd-smi tables") && found.contains(message), "{found}");
    }
}

#[test]
fn older_versions_write_numa_nodes_otherwise_and_may_have_no_hops() {
    let text = TABLES.replace("GPU[", "GPU ").replace("]\t\t:", "          :");
    assert_eq!(whole(&text), whole(TABLES));
    let text = TABLES.replace("Hops", "Steps");
    assert_eq!(whole(&text), whole(TABLES));
    assert!(machine(&text).report.assumed[1].contains("no table of hops"));
}

#[test]
fn refusals_name_the_row_and_the_remedy() {
    for (text, message) in [
        (TABLES.replace("Link Type", "Kind"), "no table `Link Type between two GPUs`; send all"),
        (TABLES.replace("GPU1   XGMI         0 ", "GPU1   XGMI "), "line 20: row `GPU1` has 3 cells for 4 GPUs"),
        (TABLES.replace("GPU1   XGMI ", "GPU1   PCIE "), "line 20: row `GPU1` and row `GPU0` do not agree"),
        (TABLES.replace("XGMI", "CABLE"), "line 19: row `GPU0` has `CABLE`"),
        (TABLES.replace("GPU0   0            XGMI", "GPU0   XGMI         XGMI"), "0 stands for the GPU itself"),
        (TABLES.replace("GPU1   1 ", "GPU9   1 "), "GPUs are missing from a table that another has"),
        (tables(10, |_, _| true), "`GPU0` is one hop from 9 others"),
    ] {
        let found = refusal(&text);
        assert!(found.starts_with("rocm-smi tables") && found.contains(message), "{found}");
    }
}
