//! Neighbours give the ports and switches that they name.

use canopy_topology::TopologyLimits;

use crate::content::Content;
use crate::fabric::{Fabric, PortName};
use crate::read::{read as read_network, read_content};

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;
const SMALL: &str = include_str!("../../tests/data/lldp.json");

fn read(text: &str) -> Result<Fabric, String> {
    match read_content(text.as_bytes(), &LIMITS, &|| false) {
        Ok((_, Content::Fabric(fabric))) => Ok(fabric),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

/// `machine device switch` of each attachment.
fn ports(fabric: &Fabric) -> Vec<String> {
    let mut ports = Vec::new();
    for host in &fabric.hosts {
        for attachment in &host.attachments {
            let PortName::Device(device, None) = &attachment.port else { panic!("{attachment:?}") };
            assert_eq!(attachment.rate, None);
            ports.push(format!("{} {device} {}", host.name, fabric.switches[attachment.switch].id));
        }
    }
    ports
}

#[test]
fn both_forms_say_which_port_is_on_which_switch() {
    let fabric = read(SMALL).unwrap();
    assert_eq!(ports(&fabric), ["gpu1 mlx5_0 leaf1", "gpu1 ens2np0 leaf2", "gpu2 ens1np0 leaf1"]);
    let id = |switch: usize| fabric.switches[switch].id.as_str();
    let links: Vec<_> = fabric.links.iter().map(|link| (id(link.ends.0), id(link.ends.1), link.count)).collect();
    assert_eq!(links, [("spine", "leaf1", Some(2)), ("spine", "leaf2", Some(1))]);
    assert_eq!(fabric.report.understood, ["2 machines with 3 ports, 3 switches, 3 cables between switches"]);
    assert_eq!(fabric.report.left_out, ["1 neighbours that forward nothing or have no name"]);
}

/// The output of one machine has one interface, in place of a list of them.
const ONE: &str = r#"{"lldp": {"interface": {"eth0": {"via": "LLDP", "chassis": {"sw": {"id": {"value": "1"}}}}}}}"#;

#[test]
fn an_output_without_a_name_is_of_one_machine() {
    let fabric = read(ONE).unwrap();
    assert_eq!(ports(&fabric), ["host eth0 sw"]);
    assert!(fabric.report.assumed[0].contains("\"host\": NAME"), "{:?}", fabric.report);
    let nameless =
        read(&ONE.replace("{\"sw\": {\"id\": {\"value\": \"1\"}}}", "{\"id\": {\"value\": \"a:b\"}}")).unwrap();
    assert_eq!(ports(&nameless), ["host eth0 a-b"]);
}

/// The output stands in a list of machines as it is, or without its own name around it.
#[test]
fn the_whole_output_may_stand_beside_a_name() {
    let whole = read(&format!("[{{\"host\": \"a\", \"lldp\": {ONE}}}]")).unwrap();
    let inner = ONE.strip_prefix("{\"lldp\": ").and_then(|rest| rest.strip_suffix('}')).unwrap();
    let bare = read(&format!("[{{\"host\": \"a\", \"lldp\": {inner}}}]")).unwrap();
    assert_eq!((ports(&whole), ports(&bare)), (vec!["a eth0 sw".to_owned()], vec!["a eth0 sw".to_owned()]));
}

#[test]
fn switches_of_one_name_are_told_apart() {
    let fabric = read(&SMALL.replace("leaf2", "leaf1")).unwrap();
    assert_eq!(ports(&fabric)[..2], ["gpu1 mlx5_0 leaf1-aa-bb-cc-00-00-01", "gpu1 ens2np0 leaf1-aa-bb-cc-00-00-02"]);
}

/// A port has one cable: what else is seen through a switch that hides itself does not count.
#[test]
fn a_port_has_one_neighbour() {
    let chassis = |name: &str| format!(r#"{{"eth0": {{"chassis": {{"{name}": {{"id": {{"value": "{name}"}}}}}}}}}}"#);
    let text = format!(r#"[{{"host": "a", "lldp": {{"interface": [{}, {}]}}}}]"#, chassis("s1"), chassis("s2"));
    let fabric = read(&text).unwrap();
    assert_eq!(ports(&fabric), ["a eth0 s1"]);
    assert_eq!(fabric.report.left_out, ["1 neighbours of ports that see another one first"]);
}

#[test]
fn refusals_name_the_remedy() {
    for (text, words) in [
        (format!("{ONE}\n{ONE}"), "write a list such as [{\"host\": \"gpu001\""),
        (SMALL.replace("gpu2", "gpu1"), "machine `gpu1` has no name or is given twice"),
        (SMALL.replace("\"switch\"", "\"host\": \"a\", \"switch\""), "`host` and `switch`; give one"),
        (SMALL.replace("\"host\"", "\"switch\""), "no machine sees a switch"),
        ("{\"lldp\": {}}".to_owned(), "start lldpd on the machines"),
        ("{\"lldp\": {\n\"interface\": [".to_owned(), "LLDP neighbours line 2: EOF while parsing"),
        ("{\"lldp\": [1]}".to_owned(), "line 1: invalid type"),
        (format!("{}{}", &ONE[..ONE.find("{\"sw\"").unwrap()], "{\"a\":".repeat(200)), "recursion limit"),
    ] {
        let error = read(&text).expect_err(words);
        assert!(error.contains(words), "{words}: {error}");
    }
    let error = read_network(SMALL.as_bytes(), None, &LIMITS).unwrap_err().to_string();
    assert!(error.contains("does not say how fast"), "{error}");
    let small = TopologyLimits { nodes_max: 3, ..LIMITS };
    assert!(read_content(SMALL.as_bytes(), &small, &|| false).unwrap_err().is_over_limit());
}
