//! Listings of a subnet give the switches, machines and cables that one counts by hand.

use canopy_topology::TopologyLimits;

use super::rates::Speed;
use crate::content::Content;
use crate::fabric::{Fabric, PortName};
use crate::read::{read as read_network, read_content};

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;
const DISCOVER: &str = include_str!("../../tests/data/ibnetdiscover.out");
const LINKINFO: &str = include_str!("../../tests/data/iblinkinfo.out");

fn read(text: &str) -> Result<Fabric, String> {
    match read_content(text.as_bytes(), &LIMITS, &|| false) {
        Ok((_, Content::Fabric(fabric))) => Ok(fabric),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

/// `machine device switch MB/s` of each attachment, and `switch switch count MB/s` of each link.
fn shape(fabric: &Fabric) -> (Vec<String>, Vec<String>) {
    let id = |switch: usize| fabric.switches[switch].id.as_str();
    let rate = |rate: Option<canopy_topology::Capacity>| rate.map_or(0, |rate| rate.bytes_per_sec() / 1_000_000);
    let mut ports = Vec::new();
    for host in &fabric.hosts {
        for attachment in &host.attachments {
            let PortName::Device(device, _) = &attachment.port else { panic!("{attachment:?}") };
            ports.push(format!("{} {device} {} {}", host.name, id(attachment.switch), rate(attachment.rate)));
        }
    }
    let links = fabric.links.iter().map(|link| {
        let (from, to) = link.ends;
        format!("{} {} {} {}", id(from), id(to), link.count.unwrap(), rate(link.rate))
    });
    (ports, links.collect())
}

/// NDR has 4 lanes of 100 Gbit/s of data, 50 GB/s; HDR half of it. Two cables join leaf and spine.
const PORTS: [&str; 4] =
    ["gpu1 mlx5_0 leaf1 50000", "gpu1 mlx5_1 leaf1 25000", "gpu2 mlx5_0 leaf1 50000", "gpu3 mlx5_0 spine 50000"];
const LINKS: [&str; 1] = ["leaf1 spine 2 50000"];

fn check(text: &str) -> Fabric {
    let fabric = read(text).unwrap();
    let (mut ports, links) = shape(&fabric);
    ports.sort();
    assert_eq!((ports.as_slice(), links.as_slice()), (&PORTS.map(str::to_owned)[..], &LINKS.map(str::to_owned)[..]));
    fabric
}

#[test]
fn a_subnet_has_the_cables_that_are_listed_from_both_ends() {
    let fabric = check(DISCOVER);
    assert_eq!(fabric.switches[0].label.as_deref(), Some("MF0;leaf1:MQM9700/U1"));
    assert!(fabric.switches.iter().all(|switch| !switch.reduces));
    assert_eq!(fabric.hosts[0].attachments[0].port, PortName::Device("mlx5_0".to_owned(), Some(0xa000_0000_0000_0001)));
    let report = &fabric.report;
    assert_eq!(report.understood[0], "3 machines with 4 ports, 2 switches, 2 cables between switches");
    assert_eq!(report.understood[1], "rates of the cables: 50GB/s x5, 25GB/s x1");
    assert!(report.left_out[0].starts_with("1 SHARP"), "{report:?}");
    assert!(report.left_out[1].contains("H-a000000000000009"), "{report:?}");
}

#[test]
fn iblinkinfo_says_the_same_in_both_of_its_forms() {
    let fabric = check(LINKINFO);
    assert!(fabric.report.left_out.iter().any(|line| line.starts_with("1 ports with a cable that is not active")));
    let fabric = check(&by_line(LINKINFO));
    assert_eq!(fabric.hosts[0].attachments[0].port, PortName::Device("mlx5_0".to_owned(), Some(0xa000_0000_0000_0001)));
}

/// The listing as `--line` writes it: each line has the GUIDs and names of both ends.
fn by_line(text: &str) -> String {
    let guid = |lid: &str| match lid.parse().unwrap() {
        lid @ 1..=2 => format!("0xb{lid:015x}"),
        21 => "0xb000000000000011".to_owned(),
        lid => format!("0xa{:015x}", lid - 10_u64),
    };
    let mut name = "";
    let mut lines = String::new();
    for line in text.lines() {
        let Some((left, right)) = line.split_once("==>") else {
            name = line.split_once(": ").unwrap().1.trim_end_matches(':').rsplit("0001 ").next().unwrap();
            name = name.rsplit("0002 ").next().unwrap();
            continue;
        };
        let start = left.trim_start();
        let start = if start.starts_with("0x") { start.split_once(' ').unwrap().1.trim_start() } else { start };
        let lid = start.split_whitespace().next().unwrap();
        let remote = right.split_whitespace().next().filter(|word| !word.starts_with('['));
        let remote = remote.map(guid).unwrap_or_default();
        lines += &format!("{} \"{name:>30}\" {start}==>  {remote} {right}\n", guid(lid));
    }
    lines
}

#[test]
fn rates_are_those_of_the_data() {
    let rate = |name: &str, lanes: &str| Speed::named(name).unwrap().over(lanes).map(|rate| rate.bytes_per_sec());
    // Gbit/s of four lanes: 8, 16, 32, 40, 54.54…, 100, 200, 400, 800.
    let of_four =
        ["SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR"].map(|name| rate(name, "4").unwrap());
    let expected = [1_000_000_000, 2_000_000_000, 4_000_000_000, 5_000_000_000, 6_818_181_818];
    assert_eq!(of_four[..5], expected);
    assert_eq!(of_four[5..], [12_500_000_000, 25_000_000_000, 50_000_000_000, 100_000_000_000]);
    assert_eq!((rate("NDR", "2"), rate("NDR", "3")), (Some(25_000_000_000), None));
    assert_eq!(Speed::signalled("14.0625").unwrap().over("12").unwrap().bytes_per_sec(), 20_454_545_454);
}

/// Switches of one name are told apart by their descriptions, or by their GUIDs.
#[test]
fn switches_have_names_of_their_own() {
    let ids = |text: &str| read(text).unwrap().switches.into_iter().map(|switch| switch.id).collect::<Vec<_>>();
    assert_eq!(ids(&DISCOVER.replace("MF0;spine:MQM9700/U1", "MF0;leaf1:MQM9700/U2"))[1], "MF0;leaf1-MQM9700/U2");
    let twins = ids(&DISCOVER.replace("MF0;spine:", "MF0;leaf1:"));
    assert_eq!(twins, ["leaf1-S-b000000000000001", "leaf1-S-b000000000000002"]);
    assert_eq!(ids(&DISCOVER.replace("MF0;spine:MQM9700/U1", "gpu1"))[1], "gpu1-S-b000000000000002");
}

#[test]
fn what_is_unusual_is_said() {
    let said = |text: &str| read(text).unwrap().report;
    let report = said(&DISCOVER.replace("gpu2", "gpu1"));
    assert!(report.assumed[0].ends_with("gpu1.mlx5_0"), "{report:?}");
    let report = said(&format!("{DISCOVER}ibwarn: [17] mad_rpc: bad status\n"));
    assert!(report.left_out.iter().any(|line| line.contains("could not ask")), "{report:?}");
    let report = said(&DISCOVER.replace("4xHDR", "4x???"));
    assert!(report.understood[1].ends_with("unknown x1"), "{report:?}");
    let router =
        "Rt\t1 \"R-1\"\t\t# \"router\"\n[1](c1) \t\"S-b000000000000002\"[9]\t\t# lid 5 lmc 0 \"spine\" lid 2 4xNDR";
    let report = said(&format!("{DISCOVER}\n{router}\n"));
    assert!(report.left_out.iter().any(|line| line.starts_with("1 cables to routers")), "{report:?}");
}

#[test]
fn a_subnet_is_a_network_of_its_machines() {
    let topology = read_network(DISCOVER.as_bytes(), None, &LIMITS).unwrap().topology;
    assert_eq!((topology.rank_count(), topology.nodes().len()), (3, 5));
    assert_eq!((topology.first_unbalanced(), topology.first_unreachable()), (None, None));
}

#[test]
fn refusals_name_the_line_and_the_remedy() {
    let moved = DISCOVER.replace("\"S-b000000000000001\"[34]", "\"S-b000000000000001\"[35]");
    for (text, words) in [
        (moved, "ibnetdiscover line 25: port 2 of S-b000000000000002, `MF0;spine:MQM9700/U1`, is joined to two"),
        (DISCOVER.replace("4xHDR", "HDR"), "line 13: `[3]"),
        (format!("\nvendid=0x2c9\n{}", "[1]\t\"S-1\"[1]\t\t# \"a\" lid 1 4xNDR\n"), "is not below the device"),
        (DISCOVER.replace("mlx5_0", "").replace("mlx5_1", ""), "no adapter with a machine and a device"),
        (DISCOVER.replace("caguid", "guid"), "is not a line of ibnetdiscover"),
        (LINKINFO.replace("CA: gpu1", "CA gpu1"), "line 1: `CA gpu1 mlx5_0:` is no line of iblinkinfo"),
        (LINKINFO.replace("      11    1[", "       0    1["), "iblinkinfo line 6: the line says neither"),
        (LINKINFO.replace("Polling", "").replace('/', ""), "line 2: "),
    ] {
        let error = read(&text).expect_err(words);
        assert!(error.contains(words), "{words}: {error}");
    }
    let small = TopologyLimits { nodes_max: 4, ..LIMITS };
    let error = read_content(DISCOVER.as_bytes(), &small, &|| false).unwrap_err();
    assert!(error.is_over_limit() && error.to_string().contains("limit of 4"), "{error}");
    assert!(read_content(DISCOVER.as_bytes(), &LIMITS, &|| true).is_err());
}
