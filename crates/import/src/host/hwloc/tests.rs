//! Files of lstopo give the devices and rates that they state.

use crate::host::tests::{links, machine, refusal, whole};

const HOST: &str = include_str!("../../../tests/data/lstopo.xml");

fn owned(links: &[(&str, u64)]) -> Vec<(String, u64)> {
    links.iter().map(|&(ends, rate)| (ends.to_owned(), rate)).collect()
}

/// A GPU in a slot of 31.5 GB/s behind a port of 15.7 gets 15.7. To two NVSwitches each has 50 + 50 GB/s. NCCL joins
/// sockets of AMD at 16 GB/s.
#[test]
fn the_whole_machine_has_every_device_and_rate() {
    assert_eq!(
        whole(HOST),
        owned(&[
            ("cpu0 cpu1", 160),
            ("cpu0 pci-0000.01.00.0", 315),
            ("cpu1 gpu2", 240),
            ("gpu0 nvs", 1000),
            ("gpu0 pci-0000.01.00.0", 157),
            ("gpu1 nvs", 1000),
            ("gpu1 pci-0000.01.00.0", 315),
            ("gpu2 nvs", 1000),
            ("nic-0000.04.00.0 pci-0000.01.00.0", 315),
        ])
    );
    let machine = machine(HOST);
    let rates: Vec<u64> = machine.draft.links.iter().map(|link| link.capacity.bytes_per_sec()).collect();
    assert!(rates.contains(&31_507_692_000), "{rates:?}");
    assert_eq!(machine.cpus, ["cpu0", "cpu1"]);
    let [port] = machine.ports.as_slice() else { panic!("{:?}", machine.ports) };
    assert_eq!((port.node.as_str(), port.device.as_deref()), ("nic-0000.04.00.0", Some("mlx5_0")));
    assert_eq!((port.guid, port.rate), (Some(0x9803_9b03_00a0_d2e4), None));
    let labels: Vec<_> = machine.draft.nodes.iter().map(|node| node.attributes.label.as_deref()).collect();
    assert_eq!(labels[..3], [Some("0000:03:00.0"), Some("0000:04:00.0 mlx5_0"), Some("0000:05:00.0")]);
    let report = machine.report;
    assert_eq!(report.understood, ["3 GPUs, 1 NICs, 6 directed links of NVLink or xGMI"]);
    assert_eq!(
        report.assumed,
        [
            "CPUs are joined at 16GB/s, which NCCL takes for their make; the file does not say",
            "the file has no ranks; GPUs are ranked by their bus ids",
            "1 PCIe links have no rate; 16 lanes of generation 4, 24GB/s, are taken",
        ]
    );
    assert_eq!(report.left_out, ["2 other displays and network devices: 0000:06:00.0 eno1"]);
}

#[test]
fn gpus_alone_keep_what_joins_them() {
    assert_eq!(
        links(HOST),
        owned(&[
            ("gpu0 nvs", 1000),
            ("gpu0 pci-0000.01.00.0", 157),
            ("gpu1 nvs", 1000),
            ("gpu1 pci-0000.01.00.0", 315),
            ("gpu2 nvs", 1000),
        ])
    );
}

/// Version 1 has NUMA nodes around sockets, no indices and no matrix of rates; types are in `info`.
#[test]
fn version_1_is_read_without_links_between_gpus() {
    let text = r#"<topology>
  <object type="Machine" os_index="0"><object type="NUMANode" os_index="1"><object type="Socket" os_index="0"/>
    <object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="0000:[00-0f]">
      <object type="PCIDev" pci_busid="0000:0A:00.0" pci_type="0302 [10de:15f9] [10de:116b] a1" pci_link_speed="4.0">
        <object type="OSDev" name="cuda0" osdev_type="5"><info name="CoProcType" value="CUDA"/></object></object>
      <object type="PCIDev" pci_busid="0000:08:00.0" pci_type="0380 [1002:740c] [1002:0b0c] 00" pci_link_speed="15.75">
      </object>
      <object type="PCIDev" pci_busid="0000:09:00.0" pci_type="0200 [8086:1533] [8086:1533] 03" pci_link_speed="0.5">
        <object type="OSDev" name="eth0" osdev_type="2"><info name="Address" value="00:11:22:33:44:55"/>
      </object></object>
    </object></object></object></topology>"#;
    assert_eq!(whole(text), owned(&[("cpu1 gpu0", 157), ("cpu1 gpu1", 40), ("cpu1 nic-0000.09.00.0", 5)]));
    let machine = machine(text);
    assert_eq!(machine.ports[0].device.as_deref(), Some("eth0"));
    assert_eq!(machine.ports[0].guid, Some(0x0011_2233_4455));
    assert!(machine.report.assumed[1].starts_with("NVLink and xGMI are unknown"), "{:?}", machine.report);
    assert!(machine.report.assumed[2].starts_with("1 GPUs have PCIe links below 7GB/s"), "{:?}", machine.report);
}

/// Version 3 has bits for types of devices, and a matrix over GPUs alone: 25000 MB/s are 25 GB/s.
#[test]
fn version_3_and_direct_links_are_read() {
    let (start, rest) = HOST.split_once("  <distances2hetero").unwrap();
    let (_, end) = rest.split_once("</distances2hetero>").unwrap();
    let matrix = r#"<distances2 type="OSDev" nbobjs="3" name="XGMIBandwidth" indexing="gp"><indexes>16 23 34 </indexes>
        <u64values>100 25000 0 25000 100 50000 0 50000 100</u64values></distances2>"#;
    let text = format!("{start}{matrix}{end}")
        .replace("version=\"2.0\"", "version=\"3.0\"")
        .replace("osdev_type=\"2\"", "osdev_type=\"16\"")
        .replace("osdev_type=\"3\"", "osdev_type=\"32\"");
    let links = links(&text);
    assert!(links.contains(&("gpu0 gpu1".to_owned(), 250)), "{links:?}");
    assert!(links.contains(&("gpu1 gpu2".to_owned(), 500)), "{links:?}");
    assert_eq!(machine(&text).ports[0].device.as_deref(), Some("mlx5_0"));
}

/// Displays inside CPUs and on boards of servers are no GPUs, nor is one of another vendor than most.
#[test]
fn displays_are_no_gpus() {
    let device = |number: usize, ids: &str| {
        format!(
            r#"<object type="PCIDev" pci_busid="0000:0{number}:00.0" pci_type="0300 [{ids}] [{ids}] a1" pci_link_speed="15.75"/>"#
        )
    };
    let gpus = |ids: &[&str]| {
        let devices: String = ids.iter().enumerate().map(|(number, ids)| device(number, ids)).collect();
        machine(&format!(
            "<topology version=\"2.0\"><object type=\"Machine\"><object type=\"Package\" os_index=\"0\"/>\
             <object type=\"Bridge\" bridge_type=\"0-1\">{devices}</object></object></topology>"
        ))
        .gpu_count()
    };
    assert_eq!(gpus(&["10de:2684", "1002:164e"]), 1, "a display of a CPU");
    assert_eq!(gpus(&["10de:2684", "1002:515e", "1a03:2000"]), 1, "consoles");
    assert_eq!(gpus(&["10de:2684", "10de:2684", "1002:9999"]), 2, "of another vendor");
    assert_eq!(gpus(&["1002:744c", "1002:744c"]), 2);
    assert_eq!(gpus(&["1002:744c", "10de:2684"]), 2, "one of each may be meant");
}

#[test]
fn refusals_name_the_element_and_the_remedy() {
    for (from, to, message) in [
        ("pci_link_speed=\"15.753846\"", "pci_link_speed=\"fast\"", "expected GB/s such as 31.507692"),
        ("pci_link_speed=\"15.753846\"", "pci_link_speed=\"1.2.3\"", "expected GB/s such as 31.507692"),
        ("pci_busid=\"0000:05:00.0\"", "", "<object> has no attribute `pci_busid`; write the file with lstopo"),
        ("pci_busid=\"0000:05:00.0\"", "pci_busid=\"a > b\"", "a PCI bus id such as 0000:c1:00.0"),
        ("pci_busid=\"0000:05:00.0\"", "pci_busid=\"0000:03:00.0\"", "two devices have the bus id 0000:03:00.0"),
        ("nbobjs=\"5\"", "nbobjs=\"6\"", "5 objects have 25 values, not one for each two"),
        (">0 0 0 50000", ">0 0 50000", "5 objects have 24 values"),
        (">0 0 0 50000", ">0 0 0 much", "`much` is no number"),
        (">0 0 0 50000", ">0 0 0 18446744073709551615", "more than any link has"),
    ] {
        let text = HOST.replacen(from, to, 1);
        assert_ne!(text, HOST, "{from}");
        let found = refusal(&text);
        assert!(found.contains(message), "{found}");
    }
    assert!(refusal("<topology version=\"2.0\"/>").contains("names no GPU"));
}
