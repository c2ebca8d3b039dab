//! Topology files give the graph NCCL sees, and from it what GPUs need.

use canopy_prerequisites::samples;

use canopy_topology::{Topology, TopologyLimits};

use super::*;
use crate::error::XmlError;
use crate::machine::Port;
use crate::read::Imported;

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

/// The network and all that a person is warned of.
fn read(text: &str) -> Result<(Topology, Vec<String>), ImportError> {
    let Imported { topology, report, .. } = crate::read::read(text.as_bytes(), Some(FileKind::NcclXml), &LIMITS)?;
    Ok((topology, report.warnings().cloned().collect()))
}

/// How a text is refused; errors of XML are those of the file, too.
#[track_caller]
fn refusal(text: &str) -> NcclError {
    match read(text) {
        Err(ImportError::Nccl(error)) => error,
        Err(ImportError::Xml(error)) => error.into(),
        other => panic!("{other:?}\n{text}"),
    }
}

fn machine(text: &str) -> Machine {
    let source = Source { text, limits: &LIMITS, stop: &|| false };
    match super::read(source).unwrap() {
        Content::Machine(machine) => machine,
        other => panic!("{other:?}"),
    }
}

/// The whole graph, nothing left out.
#[track_caller]
fn whole(text: &str) -> (Topology, Vec<String>) {
    let Machine { draft, report, .. } = machine(text);
    (draft.build(&LIMITS).unwrap(), report.warnings().cloned().collect())
}

/// Links as `(from, to, tenths of GB/s)`; of two equal opposite links the one that sorts first.
fn links(topology: &Topology) -> Vec<(&str, &str, u64)> {
    let id = |node| topology.node(node).id.as_str();
    let tenths = |link: &canopy_topology::Link| link.capacity.bytes_per_sec() / 100_000_000;
    let all: Vec<_> = topology.links().iter().map(|link| (id(link.from), id(link.to), tenths(link))).collect();
    let first = all.iter().copied().filter(|&(from, to, rate)| from < to || !all.contains(&(to, from, rate)));
    let mut links: Vec<_> = first.collect();
    links.sort_unstable();
    links
}

fn ids(topology: &Topology) -> Vec<&str> {
    topology.nodes().iter().map(|node| node.id.as_str()).collect()
}

/// Two GPUs at an NVSwitch, one with a NIC behind the same PCI switch, the other at the CPU with eight lanes.
const TWO_GPUS: &str = r#"
<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1">
          <nvlink target="0000:f0:00.0" count="12" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" speed="200000" port="1" guid="0xa1" maxconn="131072" gdr="1"/>
        </nic>
      </pci>
    </pci>
    <pci busid="0000:04:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="8">
      <gpu dev="1" sm="80" rank="1" gdr="1">
        <nvlink target="0000:f0:00.0" count="12" tclass="0x068000"/>
      </gpu>
    </pci>
  </cpu>
</system>"#;

#[test]
fn the_whole_graph_has_every_device_and_rate() {
    let (topology, warnings) = whole(TWO_GPUS);
    assert_eq!(
        links(&topology),
        [
            ("cpu0", "gpu1", 120),
            ("cpu0", "pci-0000.01.00.0", 240),
            ("gpu0", "nvs", 2400),
            ("gpu0", "pci-0000.01.00.0", 240),
            ("gpu1", "nvs", 2400),
            ("nic-0000.03.00.0", "pci-0000.01.00.0", 240),
        ]
    );
    let labels: Vec<_> = topology.nodes().iter().map(|node| node.attributes.label.as_deref()).collect();
    let bus = |label| Some(label);
    assert_eq!(
        labels,
        [
            bus("0000:02:00.0"),
            bus("0000:04:00.0"),
            None,
            bus("0000:03:00.0 mlx5_0"),
            bus("all NVSwitches"),
            bus("0000:01:00.0")
        ]
    );
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn what_leads_nowhere_is_left_out_and_said() {
    let Imported { topology, report, .. } =
        crate::read::read(TWO_GPUS.as_bytes(), Some(FileKind::NcclXml), &LIMITS).unwrap();
    assert_eq!(ids(&topology), ["gpu0", "gpu1", "nvs"]);
    assert_eq!(links(&topology), [("gpu0", "nvs", 2400), ("gpu1", "nvs", 2400)]);
    let said = [
        "not needed, because no path between GPUs needs them: cpu0",
        "not needed, because they connect no GPUs of the host: pci-0000.01.00.0 nic-0000.03.00.0",
        "ports that lead out of the machine, to no other that the file knows: mlx5_0; join machines with `canopy \
         network replicate` or `compose`",
    ];
    assert!(report.understood.ends_with(&said.map(str::to_owned)), "{:?}", report.understood);
    // That is so with every machine, and nothing to be warned of.
    assert_eq!(report.warnings().count(), 0);
}

#[test]
fn a_made_up_h100_host_keeps_its_pairs_and_the_nvswitch() {
    let text = include_str!("../../tests/data/h100-host.xml");
    let (topology, warnings) = read(text).unwrap();
    assert_eq!((topology.rank_count(), topology.nodes().len(), topology.links().len()), (8, 13, 32));
    assert_eq!((topology.first_unbalanced(), topology.first_unreachable()), (None, None));
    let all = links(&topology);
    assert!((0..8).all(|rank| all.contains(&(format!("gpu{rank}").as_str(), "nvs", 3708))), "{all:?}");
    assert!(all.contains(&("gpu7", "pci-0000.40.00.0", 480)), "{all:?}");
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(counts(text), [2, 8, 8, 2, 32]);
}

/// How many elements of each kind a file has: cpu, gpu, devices of a GPU's class, net, nvlink or xgmi.
fn counts(text: &str) -> [usize; 5] {
    let source = Source { text, limits: &LIMITS, stop: &|| false };
    let root = xml::parse(FileKind::NcclXml, source).unwrap();
    let mut counts = [0; 5];
    let mut open = vec![&root];
    while let Some(element) = open.pop() {
        match element.name.as_str() {
            "cpu" => counts[0] += 1,
            "gpu" => counts[1] += 1,
            "pci" if graph::is_gpu_class(element.attribute("class").unwrap_or_default()) => counts[2] += 1,
            "net" => counts[3] += 1,
            "nvlink" | "xgmi" => counts[4] += 1,
            _ => {}
        }
        open.extend(&element.children);
    }
    counts
}

#[test]
fn real_files_hold_what_is_known_of_them() {
    let known = [
        ("rccl-topo_8p_940vm.xml", [2, 8, 8, 8, 56]),
        ("rccl-topo_8p_90a.xml", [1, 8, 8, 1, 24]),
        ("rccl-topo_16p1h.xml", [4, 16, 16, 8, 56]),
        ("rccl-topo_4p4h.xml", [1, 16, 16, 16, 48]),
        ("rccl-topo_3p_pcie.xml", [2, 3, 3, 1, 0]),
        ("rccl-topo_8p6l.xml", [2, 8, 8, 1, 48]),
        ("azure-ncv4-topo.xml", [4, 4, 4, 1, 4]),
        ("azure-ndv5-topo.xml", [2, 0, 8, 0, 0]),
        ("aws-p4d-24xl-topo.xml", [2, 0, 8, 0, 0]),
    ];
    if samples("nccl-topo").is_none() {
        return;
    }
    for (name, expected) in known {
        let file = samples(&format!("nccl-topo/{name}")).expect("there with the others");
        assert_eq!(counts(&std::fs::read_to_string(file).unwrap()), expected, "{name}");
    }
}

/// GPUs joined as told, each a child of one CPU: `(bus, attributes of gpu, links)`.
fn host(version: u32, gpus: &[(&str, &str, &str)]) -> String {
    let device = |(bus, attributes, links): &(&str, &str, &str)| {
        format!(
            r#"<pci busid="{bus}" class="0x038000" link_speed="" link_width="0"><gpu {attributes}>{links}</gpu></pci>"#
        )
    };
    let devices: String = gpus.iter().map(device).collect();
    format!(r#"<system version="{version}"><cpu numaid="0" vendor="AuthenticAMD">{devices}</cpu></system>"#)
}

#[test]
fn links_between_gpus_have_the_rate_of_their_generation() {
    for (attributes, element, tenths) in [
        (r#"sm="60""#, "nvlink", 180),
        (r#"sm="70""#, "nvlink", 200),
        (r#"sm="80""#, "nvlink", 200),
        (r#"sm="86""#, "nvlink", 120),
        (r#"sm="89""#, "nvlink", 200),
        (r#"sm="90""#, "nvlink", 206),
        (r#"sm="100""#, "nvlink", 401),
        (r#"sm="103""#, "nvlink", 401),
        (r#"sm="120""#, "nvlink", 401),
        (r#"gcn="gfx90a""#, "xgmi", 360),
        (r#"gcn="910""#, "xgmi", 360),
        (r#"gcn="gfx942""#, "xgmi", 480),
        (r#"gcn="940""#, "xgmi", 480),
        (r#"gcn="gfx950""#, "xgmi", 480),
        (r#"gcn="908""#, "xgmi", 240),
        ("", "xgmi", 240),
    ] {
        let to = |bus| format!(r#"<{element} target="{bus}" count="3" tclass="0x038000"/>"#);
        // Bus ids differ in case and domain; the second GPU states no rank.
        let gpus = [("0000:0A:00.0", attributes, to("0000:0b:00.0")), ("0b:00.0", attributes, to("00000000:0a:00.0"))];
        let gpus = gpus.each_ref().map(|(bus, attributes, links)| (*bus, *attributes, links.as_str()));
        let (topology, warnings) = read(&host(2, &gpus)).unwrap();
        assert_eq!(links(&topology), [("gpu0", "gpu1", 3 * tenths)], "{attributes}");
        assert_eq!(warnings[0], "the file has no ranks; GPUs are ranked in its order");
    }
}

#[test]
fn far_ends_are_told_by_their_class() {
    let links_of = |links: &str| {
        let (topology, warnings) =
            whole(&host(1, &[("01:00.0", r#"sm="90" rank="1""#, links), ("02:00.0", r#"sm="90" rank="0""#, "")]));
        let far = self::links(&topology).into_iter().filter(|link| link.0 != "cpu0" || link.2 != 120);
        (far.map(|link| format!("{} {} {}", link.0, link.1, link.2)).collect::<Vec<_>>(), warnings)
    };
    // One direction only: the peer says nothing.
    assert_eq!(links_of(r#"<nvlink target="02:00.0" count="1" tclass="0x030200"/>"#).0, ["gpu1 gpu0 206"]);
    // NVLink and PCI to the CPU add up.
    assert_eq!(links_of(r#"<nvlink target="0:0" count="1" tclass="0x068001"/>"#).0, ["cpu0 gpu1 326"]);
    assert_eq!(links_of(r#"<c2c bw="44000" count="10"/>"#).0, ["cpu0 gpu1 4520"]);
    let two_switches = r#"<nvlink target="f0:00.0" count="1" tclass="0x068000"/><nvlink target="f1:00.0" count="2" tclass="0x068000"/>"#;
    assert_eq!(links_of(two_switches).0, ["gpu1 nvs 618"]);
    let (none, warnings) = links_of(
        r#"<nvlink target="01:00.0" count="1" tclass="0x030200"/><nvlink target="09:00.0" count="1" tclass="0x030200"/>"#,
    );
    assert_eq!(none, Vec::<String>::new());
    assert_eq!(
        warnings,
        [
            "line 1: <nvlink> leads from 0000:01:00.0 to itself; left out",
            "line 1: <nvlink> leads to 0000:09:00.0, which is not a GPU of the file; left out",
        ]
    );
}

#[test]
fn pci_links_follow_lanes_and_generation() {
    for (speed, width, megabytes) in [
        ("2.5 GT/s", 16, 3_000),
        ("2.5 GT/s PCIe", 1, 187),
        ("5.0 GT/s PCIe", 4, 1_500),
        ("8 GT/s", 16, 12_000),
        ("16.0 GT/s PCIe", 8, 12_000),
        ("32.0 GT/s PCIe", 16, 48_000),
        ("64.0 GT/s PCIe", 16, 96_000),
        ("Unknown speed", 16, 12_000),
        ("", 0, 12_000),
    ] {
        let text = TWO_GPUS.replace(
            r#"link_speed="16.0 GT/s PCIe" link_width="8""#,
            &format!(r#"link_speed="{speed}" link_width="{width}""#),
        );
        let (topology, _) = whole(&text);
        let gpu1 = topology.find_node("gpu1").unwrap();
        let rate = topology
            .links_from(gpu1)
            .map(|link| topology.link(link).capacity.bytes_per_sec() / 1_000_000)
            .find(|rate| *rate != 240_000);
        assert_eq!(rate, Some(megabytes), "{speed} x{width}");
    }
}

#[test]
fn cpus_are_joined_by_what_they_are() {
    for (version, cpu, tenths) in [
        (1, r#"arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="79""#, 60),
        (1, r#"arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85""#, 100),
        (1, r#"arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143""#, 220),
        (1, r#"arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="207""#, 400),
        (2, r#"arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143""#, 100),
        (1, r#"arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="1""#, 160),
        (1, r#"arch="x86_64" vendor="CentaurHauls" familyid="7" modelid="91""#, 90),
        (1, r#"arch="x86_64" vendor="CentaurHauls" familyid="7" modelid="1""#, 60),
        (1, r#"arch="arm64""#, 60),
        (1, r#"arch="ppc64""#, 320),
        (1, "", 60),
    ] {
        let gpu = |bus| format!(r#"<pci busid="{bus}" class="0x030200"/>"#);
        let text = format!(
            r#"<system version="{version}"><cpu numaid="0" {cpu}>{}</cpu><cpu numaid="1" {cpu}>{}</cpu></system>"#,
            gpu("01:00.0"),
            gpu("02:00.0")
        );
        let (topology, warnings) = read(&text).unwrap();
        assert!(links(&topology).contains(&("cpu0", "cpu1", tenths)), "{cpu}");
        assert!(warnings.iter().any(|warning| warning.starts_with("NVLink unknown: 2 GPUs")), "{warnings:?}");
        assert_eq!(
            warnings.iter().any(|warning| warning.contains("unknown CPU model")),
            cpu.is_empty(),
            "{warnings:?}"
        );
    }
}

#[test]
fn ports_without_a_device_hang_at_the_cpu_and_pci_switches_may_be_joined() {
    let text = r#"<system version="1"><cpu numaid="0" arch="arm64">
      <nic><net name="eth0" dev="0" speed="-1"/><net name="eth1" dev="0" speed="1000"/></nic>
      <net name="eth2" dev="1" speed="25000"/>
      <pci busid="01:00.0" class="0x060400"><pcilink target="02:00.0"/><pci busid="11:00.0" class="0x030000"/></pci>
      <pci busid="02:00.0" class="0x060400"><pcilink target="01:00.0"/><pci busid="12:00.0" class="0x120000"/></pci>
      <pci busid="03:00.0" class="0x010802"/><strange/>
    </cpu></system>"#;
    let ports = machine(text).ports;
    let tenths = |port: &Port| port.rate.map(|rate| rate.bytes_per_sec() / 100_000_000);
    let named: Vec<_> = ports.iter().map(|port| (port.node.as_str(), port.device.as_deref(), tenths(port))).collect();
    assert_eq!(
        named,
        [
            ("nic-cpu0", Some("eth0"), Some(12)),
            ("nic-cpu0", Some("eth1"), Some(1)),
            ("nic-cpu0#2", Some("eth2"), Some(31))
        ]
    );
    let (topology, warnings) = whole(text);
    let all = links(&topology);
    for link in
        [("cpu0", "nic-cpu0", 50_000), ("cpu0", "nic-cpu0#2", 50_000), ("pci-0000.01.00.0", "pci-0000.02.00.0", 50_000)]
    {
        assert!(all.contains(&link), "{link:?} of {all:?}");
    }
    assert!(warnings.contains(&"1 <pci> elements are of an unknown kind; left out".to_owned()), "{warnings:?}");
    assert!(warnings.contains(&"1 <strange> elements are of an unknown kind; left out".to_owned()), "{warnings:?}");
    // The switches join the GPUs, so the CPU goes, and with it the ports.
    assert_eq!(ids(&read(text).unwrap().0), ["gpu0", "gpu1", "pci-0000.01.00.0", "pci-0000.02.00.0"]);
}

/// Bridges and ends of containers are no wires, and a port that states no speed is taken for a slow one, which is said.
#[test]
fn virtual_interfaces_are_no_ports_and_silent_ones_are_said() {
    let text = r#"<system version="1"><cpu numaid="-1" arch="arm64">
      <nic><net name="br-1a2b" speed="10000"/><net name="veth1" speed="10000"/></nic>
      <nic><net name="docker0" speed="10000"/><net name="eth0" speed="10000"/></nic>
      <pci busid="01:00.0" class="0x020000"><nic><net name="mlx5_0"/><net name="eno1.100" speed="1000"/></nic></pci>
      <pci busid="02:00.0" class="0x030000" vendor="0x1a03" device="0x2000"/>
      <pci busid="11:00.0" class="0x030000"><gpu dev="0"/></pci>
    </cpu></system>"#;
    let Machine { ports, report, cpus, draft } = machine(text);
    let ports: Vec<_> = ports.iter().filter_map(|port| port.device.as_deref()).collect();
    assert_eq!((ports, cpus), (vec!["eth0", "mlx5_0"], vec!["cpu0".to_owned()]));
    assert_eq!(draft.nodes.iter().filter(|node| node.id.starts_with("nic-")).count(), 2);
    assert!(report.assumed.iter().any(|text| text.starts_with("1 ports state no speed: 1.25GB/s")), "{report:?}");
    let virtual_ones = "4 virtual interfaces, which are no wires: br-1a2b veth1 docker0 eno1.100";
    assert!(report.left_out.contains(&virtual_ones.to_owned()), "{report:?}");
}

/// CPUs without a number get those that no other has.
#[test]
fn cpus_without_a_number_are_numbered() {
    let cpu = |numaid: &str, bus: &str| {
        format!(r#"<cpu numaid="{numaid}" arch="arm64"><pci busid="{bus}:00.0" class="0x030000"/></cpu>"#)
    };
    let text = [cpu("-1", "01"), cpu("0", "02"), cpu("-1", "03")].concat();
    let found = machine(&format!(r#"<system version="1">{text}</system>"#));
    assert_eq!(found.cpus, ["cpu1", "cpu0", "cpu2"]);
}

/// The path over a CPU that has a NIC alone is none: traffic between GPUs stays off it.
#[test]
fn a_cpu_without_gpus_is_no_detour() {
    let cpu = |numaid: usize, device: &str| format!(r#"<cpu numaid="{numaid}" arch="arm64">{device}</cpu>"#);
    let gpus =
        cpu(0, r#"<pci busid="01:00.0" class="0x030000"/>"#) + &cpu(1, r#"<pci busid="02:00.0" class="0x030000"/>"#);
    let nic = r#"<pci busid="03:00.0" class="0x020000"><nic><net name="eth0" speed="1000"/></nic></pci>"#;
    let file = |cpus: String| format!(r#"<system version="1">{cpus}</system>"#);
    let (with, _) = read(&file(gpus.clone() + &cpu(2, nic))).unwrap();
    assert_eq!(links(&with), links(&read(&file(gpus)).unwrap().0));
}

#[test]
fn ranks_of_the_file_count_if_they_are_complete() {
    let gpus = |ranks: [&str; 3]| {
        let bus = ["01:00.0", "02:00.0", "03:00.0"];
        let attributes = ranks.map(|rank| if rank.is_empty() { String::new() } else { format!("rank=\"{rank}\"") });
        let gpus: Vec<_> =
            bus.iter().zip(&attributes).map(|(bus, attributes)| (*bus, attributes.as_str(), "")).collect();
        let (topology, warnings) = read(&host(1, &gpus)).unwrap();
        let labels = topology.nodes()[..3].iter().map(|node| node.attributes.label.clone().unwrap()[5..7].to_owned());
        (labels.collect::<Vec<_>>().concat(), warnings.iter().any(|warning| warning.contains("ranked in its order")))
    };
    assert_eq!(gpus(["2", "0", "1"]), ("020301".to_owned(), false));
    for ranks in [["", "", ""], ["0", "1", ""], ["0", "1", "3"], ["0", "1", "1"], ["8", "9", "10"], ["-1", "0", "1"]] {
        assert_eq!(gpus(ranks), ("010203".to_owned(), true), "{ranks:?}");
    }
}

#[test]
fn refusals_name_line_element_and_remedy() {
    for (from, to, field, words) in [
        (r#"version="1""#, r#"version="3""#, "system@version", "1 (NCCL) or 2 (RCCL)"),
        (r#"version="1""#, "", "system@version", "NCCL_TOPO_DUMP_FILE"),
        (r#" numaid="0""#, "", "cpu@numaid", "no attribute `numaid`"),
        (r#" numaid="0""#, r#" numaid="a b""#, "cpu@numaid", "whole number"),
        (r#"busid="0000:02:00.0""#, "", "pci@busid", "no attribute `busid`"),
        (r#"busid="0000:02:00.0""#, r#"busid="x > y""#, "pci@busid", "0000:c1:00.0"),
        (r#"busid="0000:02:00.0""#, r#"busid="0000:04:00.0""#, "pci@busid", "two GPUs have the bus id"),
        (r#"count="12""#, "", "nvlink@count", "no attribute `count`"),
        (r#"count="12""#, r#"count="many""#, "nvlink@count", "whole number"),
        (r#"count="12""#, r#"count="-1""#, "nvlink@count", "whole number from 0"),
        (r#"count="12""#, r#"count="9000000000000000000""#, "nvlink", "18446744073709551615 bytes/s"),
        (r#"link_width="8""#, r#"link_width="x8""#, "pci@link_width", "line 16: <pci> has link_width=\"x8\""),
        (r#"speed="200000""#, r#"speed="9223372036854775807""#, "net", "use smaller numbers"),
        (r#"sm="80""#, r#"sm="8.0""#, "gpu@sm", "whole number"),
        ("</gpu>", "</gpu><gpu/>", "pci", "several <gpu>"),
        (
            "<cpu ",
            r#"<cpu numaid="1" host_hash="1"/><cpu numaid="1" host_hash="2"/><cpu "#,
            "cpu@host_hash",
            "no attribute",
        ),
        ("<cpu ", r#"<cpu numaid="0"/><cpu "#, "cpu@numaid", "two <cpu> elements"),
    ] {
        let text = TWO_GPUS.replacen(from, to, 1);
        assert_ne!(text, TWO_GPUS, "{from}");
        let error = refusal(&text);
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.field().as_deref(), Some(field), "{error}");
    }
    assert!(matches!(read("<graphs version=\"1\"/>"), Err(ImportError::NotNetwork(_))));
    assert_eq!(refusal("<algo/>"), NcclError::Root { found: "algo".to_owned() });
    assert_eq!(refusal("<system version=\"1\"/>"), NcclError::NoGpu);
    assert_eq!(refusal("\n<!DOCTYPE s [<!ENTITY a \"b\">]><system/>"), XmlError::DocType { line: 2 }.into());
}

#[test]
fn hostile_xml_is_refused_at_once() {
    let attributes: String = (0..100_000).map(|index| format!("a{index}='' ")).collect();
    for text in ["<a>".repeat(100_000), format!("<a>{}", "<b/>".repeat(300_000)), format!("<a {attributes}/>")] {
        assert!(refusal(&text).is_over_limit());
    }
    for text in ["<a></b>", "<a/><b/>", "<a", "<a b>", "<a b='&nosuch;'/>", "<a b='1' b='2'/>", "</a>", "", "&#0;"] {
        let error = read(text).unwrap_err();
        assert!(matches!(error, ImportError::Xml(XmlError::Syntax { kind: FileKind::NcclXml, .. })), "{text}: {error}");
    }
    let cpus: String = (0..5_000).map(|numaid| format!("<cpu numaid='{numaid}'/>")).collect();
    let text = format!("<system version='1'>{cpus}<cpu numaid='5000'><pci busid='1:0' class='0x03'/></cpu></system>");
    let error = read(&text).unwrap_err();
    assert!(error.is_over_limit(), "{error}");
}

/// Two hosts of one NVLink domain, with the same bus ids: each with a GPU and a NIC behind its CPU.
const TWO_HOSTS: &str = r#"<system version="1">
  <cpu numaid="0" host_hash="0xa" arch="arm64"><pci busid="0008:01:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
    <gpu dev="0" sm="100" rank="0"><nvlink target="0000:f0:00.0" count="18" tclass="0x068000"/></gpu></pci>
    <pci busid="0008:03:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"><nic>
      <net name="mlx5_0" dev="0" speed="400000" port="1" guid="0xa1"/></nic></pci></cpu>
  <cpu numaid="0" host_hash="0xb" arch="arm64"><pci busid="0008:01:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
    <gpu dev="0" sm="100" rank="1"><nvlink target="0000:f0:00.0" count="18" tclass="0x068000"/></gpu></pci>
    <pci busid="0008:03:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"><nic>
      <net name="mlx5_0" dev="0" speed="400000" port="1" guid="0xb1"/></nic></pci></cpu>
</system>"#;

#[test]
fn hosts_of_one_nvlink_domain_are_one_machine() {
    let (topology, warnings) = whole(TWO_HOSTS);
    let nics = ["host0-nic-0008.03.00.0", "host1-nic-0008.03.00.0"];
    assert_eq!(ids(&topology), ["gpu0", "gpu1", "host0-cpu0", nics[0], "host1-cpu0", nics[1], "nvs"]);
    // 18 links of 40.1 GB/s; PCIe 5 with 16 lanes. CPUs of different hosts have no link.
    let to_cpu = [("gpu0", "host0-cpu0", 480), ("gpu1", "host1-cpu0", 480)];
    let to_nic = [("host0-cpu0", nics[0], 480), ("host1-cpu0", nics[1], 480)];
    let nvlinks = [("gpu0", "nvs", 7218), ("gpu1", "nvs", 7218)];
    let mut expected = [to_cpu, to_nic, nvlinks].concat();
    expected.sort_unstable();
    assert_eq!(links(&topology), expected);
    assert!(warnings.iter().any(|text| text == "the NVSwitches of all 2 hosts are one NVLink domain"), "{warnings:?}");
    let Machine { ports, .. } = machine(TWO_HOSTS);
    let at: Vec<_> = ports.iter().map(|port| (port.node.as_str(), port.guid)).collect();
    assert_eq!(at, [(nics[0], Some(0xa1)), (nics[1], Some(0xb1))]);
    let apart = TWO_HOSTS.replace("0x068000", "0x068001");
    assert_eq!(refusal(&apart), NcclError::SeveralHosts { hosts: 2 });
}

#[test]
fn a_chain_of_switches_stays_where_it_leads_on() {
    let text = r#"<system version="1"><cpu numaid="0">
      <pci busid="01:00.0" class="0x060400"><pci busid="02:00.0" class="0x060400"><pci busid="03:00.0" class="0x030000"/></pci></pci>
      <pci busid="04:00.0" class="0x060400"><pci busid="05:00.0" class="0x030000"/><pci busid="06:00.0" class="0x060400"/></pci>
    </cpu></system>"#;
    let topology = read(text).unwrap().0;
    assert_eq!(ids(&topology), ["gpu0", "gpu1", "cpu0", "pci-0000.01.00.0", "pci-0000.02.00.0", "pci-0000.04.00.0"]);
}
