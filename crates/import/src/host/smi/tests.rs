//! Tables give the links that their cells mean.

use crate::host::tests::{links, machine, refusal, whole};

const TABLE: &str = include_str!("../../../tests/data/nvidia-smi-topo.txt");

/// A table of GPUs without affinities, by its cells.
fn table(cells: &[&[&str]]) -> String {
    let mut text: String = (0..cells.len()).map(|gpu| format!("\tGPU{gpu}")).collect();
    for (gpu, row) in cells.iter().enumerate() {
        text += &format!("\nGPU{gpu}\t{}", row.join("\t"));
    }
    text + "\n"
}

/// A table of some GPUs of which each two have this cell.
fn alike(count: usize, cell: &str) -> String {
    let row = |gpu: usize| (0..count).map(|other| if other == gpu { "X" } else { cell }).collect::<Vec<_>>();
    let rows: Vec<Vec<&str>> = (0..count).map(row).collect();
    table(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// 12 NVLinks are an A100: 12 × 20 = 240 GB/s to NVSwitches, and 16 lanes of generation 4 are 24 GB/s.
#[test]
fn the_whole_machine_has_every_device_and_rate() {
    assert_eq!(
        whole(TABLE),
        [
            ("GPU0 nvs".to_owned(), 2400),
            ("GPU0 pcie0".to_owned(), 240),
            ("GPU1 nvs".to_owned(), 2400),
            ("GPU1 pcie0".to_owned(), 240),
            ("GPU2 cpu1".to_owned(), 240),
            ("GPU2 nvs".to_owned(), 2400),
            ("GPU3 cpu1".to_owned(), 240),
            ("GPU3 nvs".to_owned(), 2400),
            ("NIC0 pcie0".to_owned(), 240),
            ("NIC1 cpu1".to_owned(), 240),
            ("cpu0 cpu1".to_owned(), 60),
            ("cpu0 pcie0".to_owned(), 240),
        ]
    );
    let machine = machine(TABLE);
    let ports: Vec<_> = machine.ports.iter().map(|port| (port.node.as_str(), port.device.as_deref())).collect();
    assert_eq!(ports, [("NIC0", Some("mlx5_0")), ("NIC1", Some("mlx5_3"))]);
    assert!(machine.ports.iter().all(|port| port.rate.is_none() && port.guid.is_none()));
    assert_eq!(machine.cpus, ["cpu0", "cpu1"]);
    let label = |id: &str| machine.draft.nodes.iter().find(|node| node.id == id).unwrap().attributes.label.clone();
    assert_eq!((label("cpu1").as_deref(), label("NIC1").as_deref()), (Some("NUMA 1"), Some("mlx5_3")));
    assert_eq!(
        machine.report.understood,
        ["4 GPUs, 2 NICs", "4 GPUs with 12 NVLinks each to NVSwitches, as to all others alike"]
    );
    assert_eq!(
        machine.report.assumed,
        [
            "the table names no GPU: 12 NVLinks are taken for those of A100, 20GB/s a link",
            "PCIe slots and switches have 16 lanes of generation 4, 24GB/s; the table does not say",
            "CPUs are joined at 6GB/s, the lowest rate NCCL takes",
        ]
    );
}

/// 18 × 20.6 = 370.8 GB/s.
#[test]
fn a_box_of_h100_is_its_gpus_and_one_switch() {
    let links = links(&alike(8, "NV18"));
    assert_eq!(links.len(), 8);
    assert!(links.iter().all(|(ends, rate)| ends.ends_with(" nvs") && *rate == 3708), "{links:?}");
}

/// Rows of four GPUs with NV4 add up to the 12 links of A100, those with NV6 to the 18 of H100.
#[test]
fn links_that_add_up_to_those_of_a_gpu_are_direct() {
    // 4 × 20 GB/s for A100, 6 × 20.6 for H100, 6 × 20 for V100 at the NVSwitches of a DGX-2.
    for (text, count, tenths) in
        [(alike(4, "NV4"), 6, 800), (alike(4, "NV6"), 6, 1236), (alike(16, "NV6"), 16, 1200), (alike(2, "NV4"), 1, 480)]
    {
        let links = links(&text);
        assert_eq!((links.len(), links[0].1), (count, tenths), "{text}");
    }
}

/// Four V100 of a host with two links here and one there: 2 × 20 and 1 × 20 GB/s.
#[test]
fn direct_links_have_their_own_counts() {
    let text = table(&[
        &["X", "NV1", "NV1", "NV2"],
        &["NV1", "X", "NV2", "NV1"],
        &["NV1", "NV2", "X", "NV2"],
        &["NV2", "NV1", "NV2", "X"],
    ]);
    let expected = [
        ("GPU0 GPU1", 200),
        ("GPU0 GPU2", 200),
        ("GPU0 GPU3", 400),
        ("GPU1 GPU2", 400),
        ("GPU1 GPU3", 200),
        ("GPU2 GPU3", 400),
    ];
    assert_eq!(links(&text), expected.map(|(ends, rate)| (ends.to_owned(), rate)));
    // Without the links that are left, P100: 18 GB/s each.
    let ring = table(&[&["X", "NV1", "SYS"], &["NV1", "X", "NV1"], &["SYS", "NV1", "X"]]);
    assert_eq!(links(&ring).len(), 2);
}

/// Without NVLink, GPUs of one socket meet at its CPU, and sockets at 6 GB/s.
#[test]
fn gpus_without_nvlink_meet_through_pcie() {
    let text = "    GPU0 GPU1 GPU2 mlx4_0 CPU Affinity\nGPU0 X PIX SOC PHB 0-7\nGPU1 PIX X SOC PHB 0-7\n\
        GPU2 SOC SOC X SOC 8-15\nmlx4_0 PHB PHB SOC X\n";
    assert_eq!(
        links(text),
        [("GPU0 pcie0", 240), ("GPU1 pcie0", 240), ("GPU2 cpu1", 240), ("cpu0 cpu1", 60), ("cpu0 pcie0", 240)]
            .map(|(ends, rate)| (ends.to_owned(), rate))
    );
    let machine = machine(text);
    assert_eq!(machine.ports[0].device.as_deref(), Some("mlx4_0"));
    assert_eq!(machine.report.assumed.len(), 2, "{:?}", machine.report);
}

/// A NIC in a NUMA node without GPUs is no detour for them: 6 GB/s between the sockets, not 12.
#[test]
fn a_node_without_gpus_is_no_detour() {
    let without = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t0-7\t0\nGPU1\tSYS\t X \t8-15\t1\n";
    let with = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\tSYS\t0-7\t0\nGPU1\tSYS\t X \tSYS\t8-15\t1\n\
        NIC0\tSYS\tSYS\t X \n";
    assert_eq!(links(with), links(without));
    assert_eq!(links(with).len(), 3);
}

/// Both GPUs of a pair say that they are in one NUMA node, and the cell that they are not.
#[test]
fn the_column_of_numa_nodes_counts_against_cells() {
    let row = |gpu: usize, node: usize| {
        let cells: Vec<&str> = (0..4).map(|other| if other == gpu { "X" } else { "SYS" }).collect();
        format!("GPU{gpu}\t{}\t{}-{}\t{node}\t\tN/A\n", cells.join("\t"), node * 16, node * 16 + 15)
    };
    let rows: String = [(0, 0), (1, 0), (2, 1), (3, 1)].map(|(gpu, node)| row(gpu, node)).concat();
    let text = format!("\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n{rows}");
    let ends: Vec<String> = links(&text).into_iter().map(|(ends, _)| ends).collect();
    assert_eq!(ends, ["GPU0 cpu0", "GPU1 cpu0", "GPU2 cpu1", "GPU3 cpu1", "cpu0 cpu1"]);
    assert!(machine(&text).report.assumed[0].contains("the NUMA column is taken to be right"));
    let unsaid = text.replace("\t\tN/A", "").replace("NUMA Affinity\tGPU NUMA ID", "");
    assert_eq!(
        links(&unsaid).iter().filter(|(ends, _)| ends.starts_with("cpu")).count(),
        6,
        "each has a CPU of its own"
    );
}

/// Two GPUs at each Grace CPU, with memory that is a NUMA node, are Blackwell: 18 × 40.1 GB/s. A GH200 is Hopper: 6 × 20.6.
#[test]
fn gpus_that_share_a_grace_cpu_are_of_its_generation() {
    let text = |cell: &str, cpus: [&str; 4]| {
        let row = |gpu: usize| {
            let cells: Vec<&str> = (0..4).map(|other| if other == gpu { "X" } else { cell }).collect();
            format!("GPU{gpu}\t{}\t{}\t{}\t\t{}\n", cells.join("\t"), cpus[gpu], cpus[gpu].len(), 2 + 8 * gpu)
        };
        let rows: String = (0..4).map(row).collect();
        format!("\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n{rows}")
    };
    let shared = links(&text("NV18", ["0-71", "0-71", "72-143", "72-143"]));
    assert!(shared.iter().all(|(ends, rate)| ends.ends_with("nvs") && *rate == 7218), "{shared:?}");
    let alone = links(&text("NV6", ["0-71", "72-143-", "144-215--", "216-287---"]));
    assert!(alone.len() == 6 && alone.iter().all(|(_, rate)| *rate == 1236), "{alone:?}");
}

/// Some of the GPUs of a machine, and a table that is too wide for the blank before its last heading.
#[test]
fn parts_of_machines_and_glued_columns_are_read() {
    let renamed = TABLE.replace("GPU3", "GPU7").replace("GPU0", "GPU4");
    let rates = |text: &str| {
        let mut rates: Vec<u64> = links(text).into_iter().map(|(_, rate)| rate).collect();
        rates.sort_unstable();
        rates
    };
    assert_eq!(rates(&renamed), rates(TABLE));
    let glue = |count: usize, cell: &str| {
        let row = |gpu: usize| {
            let cells = (0..count).map(|other| if other == gpu { " X" } else { cell });
            format!("GPU{gpu} {}0-31 0\n", cells.collect::<Vec<_>>().join(" "))
        };
        let names: Vec<String> = (0..count).map(|gpu| format!("GPU{gpu}")).collect();
        format!("  {}CPU Affinity NUMA Affinity\n{}", names.join(" "), (0..count).map(row).collect::<String>())
    };
    for (count, cell) in [(8, "NV12"), (8, "NV1"), (4, "NV4"), (2, "SYS"), (3, "NODE"), (3, "PIX")] {
        let plain = glue(count, cell).replace("0-31 0", " 0-31 0").replace("CPU Aff", " CPU Aff");
        assert_eq!(links(&glue(count, cell)), links(&plain), "{cell}");
        assert_eq!(machine(&glue(count, cell)).report, machine(&plain).report);
    }
    let broken = glue(4, "NV4").replacen("NV40-31", "NV50-31", 1);
    assert!(
        refusal(&broken).contains("the last cell of row `GPU0` is glued to its CPU affinity"),
        "{}",
        refusal(&broken)
    );
}

#[test]
fn a_missing_legend_is_said() {
    let text = TABLE.replace("  NIC0: mlx5_0\n", "");
    let machine = machine(&text);
    assert_eq!(machine.ports[0].device, None);
    assert!(machine.report.assumed.last().unwrap().contains("NIC Legend"), "{:?}", machine.report);
}

#[test]
fn refusals_name_the_row_and_the_remedy() {
    for (text, message) in [
        ("\tGPU0\tGPU1\nGPU0\t X \tNV4\n", "no row of `GPU1`; send the whole table"),
        ("\tGPU0\tGPU1\nGPU0\t X \n", "line 2: row `GPU0` has 1 cells for 2 columns"),
        ("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV2\t X \n", "row `GPU1` has NV2 for `GPU0`, and row `GPU0` NV4"),
        ("\tGPU0\tGPU1\nGPU0\t X \tNV99\n", "line 2: cell `NV99` is none of X, NV1 to NV64"),
        ("\tGPU0\tGPU1\nGPU0\t X \tX\nGPU1\tX\tX\n", "row `GPU1` has X for `GPU0`; X stands for the device itself"),
        ("\tGPU0\tGPU0\nGPU0\t X \tX\n", "`GPU0` is a column twice"),
        ("\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU0\t X \tPIX\n", "line 3: row `GPU0` comes twice"),
        ("\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU7\t X \tPIX\n", "row `GPU7` is no device of the columns"),
        ("GPU0\t X \tPIX\n", "no row of device names"),
        (
            "\tGPU0\nGPU0\t X \n\n\tGPU0\nGPU0\t X \n",
            "line 4: a second table begins here; send the table of one machine",
        ),
    ] {
        let found = refusal(text);
        assert!(found.starts_with("nvidia-smi table") && found.contains(message), "{found}");
    }
}
