//! Reduced files of users, each with what it must be read as; they lie beside the checkout.

use canopy_prerequisites::real_cases;

use crate::support::Workspace;

/// Arguments, the exit status, and words of the answer or of its warnings. `@` stands before names of files.
const CASES: &[(&str, i32, &[&str])] = &[
    ("calibrate dgx-a100:boxes=2 @01-two-boxes.txt @01-one-box.txt@dgx-a100 -o c.yaml", 0, &["0.9567", "0.7941"]),
    ("topology show @02-numaid-minus-1.xml", 0, &["ranks      2", "of 24 GB/s", "of 12 GB/s"]),
    (
        "topology compose --fabric @03-oci-labels.yaml --nodes n[0-3] --rates nic=400Gb/s -o x.yaml",
        0,
        &["4 nodes and 4 switches", "rdma.hpc_island_id > ", "rdma.network_block_id > ", "rdma.local_block_id"],
    ),
    (
        "topology compose --fabric @04-scontrol-show-topology.txt --nodes tux[0-11] --rates nic=400Gb/s -o x.yaml",
        0,
        &["12 nodes and 4 switches, 3 with 4 nodes"],
    ),
    (
        "calibrate dgx-h100:boxes=2 @05-mpirun-tag-output.txt --keep across-latency,inside-rate -o c.yaml",
        0,
        &["12 times"],
    ),
    (
        "calibrate dgx-h100:boxes=2 @06-rendered-without-hash.txt --keep across-latency,inside-rate -o c.yaml",
        0,
        &["12 times"],
    ),
    (
        "calibrate dgx-h100:boxes=2 @07-container-host-name.txt --keep across-latency,inside-rate -o c.yaml",
        0,
        &["12 times"],
    ),
    (
        "topology replicate @08-virtual-nics.xml --boxes 2 --fabric star -o v.yaml",
        0,
        &["4 virtual interfaces, which are no wires"],
    ),
    ("bound v.yaml -c allgather", 0, &["0.25 GB/s"]),
    (
        "topology replicate @09-net-without-speed.xml --boxes 2 --fabric star -o n.yaml",
        0,
        &["2 ports state no speed", "--rates nic=400Gb/s"],
    ),
    (
        "topology replicate @09-net-without-speed.xml --boxes 2 --fabric star --rates nic=400Gb/s -o n.yaml",
        0,
        &["4 ranks"],
    ),
    ("bound @10-nic-numa-detour.txt -c allgather", 0, &["bound      12 GB/s"]),
    ("topology show @11-rocm-smi-weights.txt", 0, &["links      8 directed"]),
    ("topology show @12-amd-smi-mesh.txt", 0, &["ranks      4", "12 links compute -> compute of 50 GB/s"]),
    ("topology show @13-ibnetdiscover-prompt.txt", 0, &["ranks      8", "of 50 GB/s"]),
    (
        "topology compose --fabric @13b-kubectl-prompt.yaml --nodes gke-[0-3] --rates nic=400Gb/s -o x.yaml",
        0,
        &["4 nodes and 3 switches", "4 of 4 machines"],
    ),
    ("topology show @14-hwloc-amd-igpu.xml", 0, &["ranks      2"]),
    (
        "topology compose --fabric @15-cpu-node-without-label.yaml --nodes gke-[0-3] --rates nic=400Gb/s -o x.yaml",
        0,
        &["4 of 4 machines", "1 nodes without the label", "system-0"],
    ),
    (
        "topology compose --fabric @16-lldp-as-documented.json --nodes gpu[01-02] --rates nic=400Gb/s -o x.yaml",
        0,
        &["2 machines with 4 ports, 2 switches"],
    ),
    (
        "doctor --log @17-executor.log --env /dev/null --profile msccl-executor",
        2,
        &["runtime: the MSCCL executor on NCCL 2.18.3", "problem  log", "minBytes", "or convert the file"],
    ),
    (
        "topology compose --fabric @18-order.conf --nodes gpu-[1-4,9-12] --rates nic=100Gb/s,oversub=4 -o o.yaml",
        0,
        &["8 nodes and 3 switches"],
    ),
    ("order o.yaml", 0, &["by name    2.000"]),
    ("verify @19-nop-cnt-1.xml", 0, &["a nop moves no data"]),
    ("topology show @20-gb200-topo-m.txt", 0, &["of 721.8 GB/s"]),
    ("bound @21-sys-within-one-numa.txt -c allgather", 0, &["bound      12 GB/s", "the NUMA column"]),
    (
        "topology show @22-two-tables.txt",
        2,
        &["line 19: a second table begins", "help: send the table of one machine alone"],
    ),
    (
        "topology compose --fabric @23-slurm-spaces.conf --nodes tux[0-7] --rates nic=400Gb/s -o x.yaml",
        0,
        &["8 nodes and 3 switches"],
    ),
    (
        "topology compose --fabric @24-block-without-nodes.yaml --nodes a4x-[0-17] --rates nic=400Gb/s -o x.yaml",
        0,
        &["18 of 18 machines", "1 without nodes: phantom_1"],
    ),
    (
        "topology compose --fabric @25-volcano-hypernodes.yaml --nodes node[0-3] --rates nic=400Gb/s -o x.yaml",
        0,
        &["4 nodes and 3 switches"],
    ),
    ("topology show @26-collect-env.txt", 0, &["ranks      8", "of 160 GB/s"]),
    ("topology show @27-glued-columns.txt", 0, &["ranks      8", "of 240 GB/s"]),
    ("topology show @28-details.xml", 0, &["ranks      4", "of 370.8 GB/s"]),
    ("calibrate dgx-h100:boxes=2 @29-alltoall.txt @29-allgather-one-box.txt@dgx-h100 -o c.yaml", 0, &["0.4800"]),
    ("topology show @30-subset.txt", 0, &["ranks      2", "of 240 GB/s"]),
];

#[test]
fn files_of_users_are_read_as_they_are_meant() {
    let Some(folder) = real_cases() else { return };
    let workspace = Workspace::new();
    let mut problems = Vec::new();
    for (arguments, status, words) in CASES {
        let file = |word: &str| match word.strip_prefix('@') {
            Some(name) => folder.join(name).display().to_string(),
            None => word.to_owned(),
        };
        let run = workspace.run(&arguments.split(' ').map(file).collect::<Vec<_>>().join(" "));
        let said = format!("{}{}", run.stdout, run.stderr);
        let missing: Vec<&&str> = words.iter().filter(|words| !said.contains(**words)).collect();
        if run.status != Some(*status) || !missing.is_empty() {
            problems.push(format!("{arguments}: {:?}, without {missing:?}\n{said}", run.status));
        }
    }
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), CASES.len(), problems.join("\n"));
}
