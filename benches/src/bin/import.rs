//! What it takes to read files of 50 MB of every kind, each in a process of its own: time until there is an answer, and the
//! peak of memory. The files have as many elements as fit, all different, in the words of their programs.
//!
//! `cargo run --release -p canopy-benches --bin import`
//!
//! Most are refused at a limit; then the table has the first words of the answer.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::Command;

use canopy_benches::{memory_peak_bytes, print_table, timed};
use canopy_import::{read, read_content};
use canopy_topology::TopologyLimits;

const BYTES: usize = 50_000_000;

/// A kind of file: its head, its element of a number, and its end.
struct Large {
    name: &'static str,
    head: &'static str,
    element: fn(usize) -> String,
    end: &'static str,
}

const FILES: &[Large] = &[
    Large {
        name: "NCCL XML",
        head: "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n",
        element: |i| {
            format!(
                "<pci busid=\"{:04x}:{:02x}:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"{i}\" sm=\"90\" rank=\"{i}\" gdr=\"1\"/></pci>\n",
                i / 256,
                i % 256
            )
        },
        end: "</cpu></system>\n",
    },
    Large {
        name: "lstopo XML",
        head: "<?xml version=\"1.0\"?>\n<topology version=\"2.0\"><object type=\"Machine\" gp_index=\"1\">\n",
        element: |i| {
            format!(
                "<object type=\"PCIDev\" gp_index=\"{i}\" pci_busid=\"{:04x}:{:02x}:00.0\" pci_type=\"0302 [10de:2330] [10de:16c1] a1\" pci_link_speed=\"63.0\"/>\n",
                i / 256,
                i % 256
            )
        },
        end: "</object></topology>\n",
    },
    Large {
        name: "GraphML",
        head: "<graphml><key id=\"b\" for=\"edge\" attr.name=\"bandwidth\"/><graph edgedefault=\"undirected\">\n",
        element: |i| {
            format!(
                "<node id=\"n{i}\"/><edge source=\"n{i}\" target=\"n{}\"><data key=\"b\">1GB/s</data></edge>\n",
                i / 2
            )
        },
        end: "</graph></graphml>\n",
    },
    Large {
        name: "SimGrid",
        head: "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\"><zone id=\"a\" routing=\"Full\">\n",
        element: |i| {
            format!("<host id=\"h{i}\" speed=\"1Gf\"/><link id=\"l{i}\" bandwidth=\"1GBps\" latency=\"1us\"/>\n")
        },
        end: "</zone></platform>\n",
    },
    Large {
        name: "topology.conf",
        head: "",
        element: |i| format!("SwitchName=leaf{i} Nodes=gpu{i}\n"),
        end: "SwitchName=spine Switches=leaf[1-2]\n",
    },
    Large {
        name: "topology.conf, ranges",
        head: "",
        element: |i| format!("SwitchName=leaf{i} Nodes=gpu{i}-[0-65000]\n"),
        end: "",
    },
    Large {
        name: "topology.yaml",
        head: "- topology: fabric\n  cluster_default: true\n  tree:\n    switches:\n",
        element: |i| format!("      - switch: leaf{i}\n        nodes: gpu{i}\n"),
        end: "",
    },
    Large {
        name: "ibnetdiscover",
        head: "#\n# Topology file: generated on Mon Jan  5 10:00:00 2026\n#\n",
        element: |i| {
            format!(
                "\nvendid=0x2c9\nswitchguid=0x{i:x}({i:x})\nSwitch\t65 \"S-{i:016x}\"\t# \"MF0;leaf{i}:MQM9700/U1\" enhanced port 0 lid 1 lmc 0\n[1]\t\"H-{:016x}\"[1]({i:x}) \t# \"gpu{i} mlx5_0\" lid 11 4xNDR\n",
                i + (1 << 40)
            )
        },
        end: "",
    },
    Large {
        name: "iblinkinfo",
        head: "",
        element: |i| {
            format!(
                "CA: gpu{i} mlx5_0:\n      0x{0:016x}     {0}    1[  ] ==( 4X         106.25 Gbps Active/  LinkUp)==>       {1}    1[  ] \"leaf{i}\" ( )\n",
                i + 1,
                i + 50_000_000
            )
        },
        end: "",
    },
    Large {
        name: "LLDP",
        head: "[\n",
        element: |i| {
            format!(
                "{{\"host\": \"gpu{i}\", \"lldp\": {{\"interface\": [{{\"eth0\": {{\"via\": \"LLDP\", \"chassis\": {{\"leaf{i}\": {{\"id\": {{\"type\": \"mac\", \"value\": \"{i:012x}\"}}}}}}, \"port\": {{\"id\": {{\"type\": \"local\", \"value\": \"Ethernet{i}\"}}}}}}}}]}}}},\n"
            )
        },
        end: "{\"host\": \"last\", \"lldp\": {}}]\n",
    },
    Large {
        name: "Topograph",
        head: "switches:\n  spine:\n    switches: [leaf0]\nblocks:\n",
        element: |i| format!("- switch: leaf{i}\n  nodes: [node{i}]\n"),
        end: "",
    },
    Large {
        name: "Kubernetes nodes",
        head: "apiVersion: v1\nkind: List\nitems:\n",
        element: |i| {
            format!(
                "- apiVersion: v1\n  kind: Node\n  metadata:\n    name: gpu-{i}\n    labels:\n      cloud.provider.com/topology-block: block{i}\n      cloud.provider.com/topology-rack: rack{i}\n"
            )
        },
        end: "",
    },
    Large {
        name: "CSV",
        head: "src,dst,bandwidth_GBps,latency_ns\n",
        element: |i| format!("n{i},n{},25,700\n", i + 1),
        end: "",
    },
    Large {
        name: "ASTRA-sim",
        head: "npus_count: [ 2 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\ntopology: [ Ring",
        element: |_| ", Ring".to_owned(),
        end: " ]\n",
    },
    Large {
        name: "canopy YAML",
        head: "canopy: 1\nnodes:\n",
        element: |i| format!("  - {{id: n{i}}}\n"),
        end: "links: []\n",
    },
    Large {
        name: "nvidia-smi table",
        head: "",
        element: |i| table(i, "NV12\t", "\t"),
        end: "\nLegend:\n\n  X    = Self\n",
    },
    Large {
        name: "rocm-smi tables",
        head: "===== ROCm System Management Interface =====\n===== Link Type between two GPUs =====\n",
        element: |i| table(i, "72   ", "  "),
        end: "\n",
    },
];

/// Columns of a table whose rows are its elements.
const COLUMNS: usize = 200;

/// Row `i` of a table of GPUs, the first of which has the names.
fn table(i: usize, cell: &str, gap: &str) -> String {
    if i == 0 {
        let mut names = gap.to_owned();
        (0..COLUMNS).for_each(|column| {
            let _ = write!(names, "GPU{column}{gap}");
        });
        return names + "\n";
    }
    format!("GPU{}{gap}{}\n", i - 1, cell.repeat(COLUMNS))
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(name) = env::args().nth(1) {
        return answer(&name);
    }
    let mut rows = Vec::new();
    for Large { name, .. } in FILES {
        let told = Command::new(env::current_exe()?).arg(name).output()?;
        let mut cells: Vec<String> =
            String::from_utf8(told.stdout)?.trim_end().split('\t').map(str::to_owned).collect();
        cells.resize(3, "it failed".to_owned());
        let [time, memory, answer] = <[String; 3]>::try_from(cells).unwrap_or_default();
        rows.push([(*name).to_owned(), time, memory, answer]);
    }
    print_table(["file of 50 MB", "time (s)", "memory (MiB)", "answer"], &rows);
    Ok(())
}

/// Reads one of the files and prints what it took.
fn answer(name: &str) -> Result<(), Box<dyn Error>> {
    let Large { head, element, end, .. } = FILES.iter().find(|file| file.name == name).ok_or("no such file")?;
    let mut text = (*head).to_owned();
    let mut number = 0;
    while text.len() + end.len() < BYTES {
        text.push_str(&element(number));
        number += 1;
    }
    text.push_str(end);
    let limits = TopologyLimits::STANDARD;
    let (answer, time) = timed(|| {
        let _parts = read_content(text.as_bytes(), &limits, &|| false);
        read(text.as_bytes(), None, &limits)
    });
    let answer = match answer {
        Ok(imported) => format!("{} ranks", imported.topology.rank_count()),
        Err(error) => error.to_string().chars().take(70).collect(),
    };
    let (seconds, memory) = (time.as_secs_f64(), memory_peak_bytes().unwrap_or_default() >> 20);
    writeln!(io::stdout(), "{seconds:.2}\t{memory}\t{}", answer.replace(['\t', '\n'], " "))?;
    Ok(())
}
