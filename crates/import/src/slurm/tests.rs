//! Files of Slurm give the switches and machines that they name.

use canopy_topology::TopologyLimits;

use crate::content::Content;
use crate::fabric::Fabric;
use crate::read::read_content;

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

fn read(text: &str) -> Result<Fabric, String> {
    match read_content(text.as_bytes(), &LIMITS, &|| false) {
        Ok((_, Content::Fabric(fabric))) => Ok(fabric),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

/// Machines with their switches, and switches with those above them.
fn shape(text: &str) -> (Vec<String>, Vec<String>) {
    let Fabric { switches, links, hosts, .. } = read(text).unwrap();
    let id = |switch: usize| switches[switch].id.as_str();
    let hosts = hosts.iter().map(|host| format!("{} {}", host.name, id(host.attachments[0].switch)));
    let links = links.iter().map(|link| format!("{} {}", id(link.ends.0), id(link.ends.1)));
    (hosts.collect(), links.collect())
}

#[test]
fn a_tree_has_the_machines_and_switches_that_it_names() {
    let text = "# fabric\nSwitchName=leaf1 Nodes=gpu[01-02] LinkSpeed=400\nswitchname=leaf2 nodes=gpu03,\\\ngpu04 # two\n\
        SwitchName=spine Switches=leaf[1-2]\n";
    let (hosts, links) = shape(text);
    assert_eq!(hosts, ["gpu01 leaf1", "gpu02 leaf1", "gpu03 leaf2", "gpu04 leaf2"]);
    assert_eq!(links, ["leaf1 spine", "leaf2 spine"]);
    let report = read(text).unwrap().report;
    assert_eq!(report.understood, ["4 nodes and 3 switches, 2 with 2 nodes"]);
    assert!(report.left_out[0].starts_with("LinkSpeed"), "{report:?}");
}

#[test]
fn yaml_says_the_same_and_names_what_it_leaves_out() {
    let text = "- topology: a\n  tree:\n    switches:\n    - {switch: s1, nodes: \"n[1-2]\"}\n    - {switch: s2, nodes: n3}\n\
        \x20   - {switch: top, children: \"s[1-2]\"}\n- topology: b\n  cluster_default: true\n  ring: {rings: [{ring: r, nodes: \"n[1-3]\"}]}\n";
    let (hosts, links) = shape(text);
    assert_eq!(hosts, ["n1 r.n1", "n2 r.n2", "n3 r.n3"]);
    assert_eq!(links, ["r.n1 r.n2", "r.n2 r.n3", "r.n3 r.n1"]);
    assert_eq!(read(text).unwrap().report.left_out, ["other topologies of the file: a"]);
    let (hosts, links) = shape(&text.replace("  cluster_default: true\n", ""));
    assert_eq!((hosts.len(), links), (3, vec!["s1 top".to_owned(), "s2 top".to_owned()]));
}

/// Slurm reads blanks around `=`, and quotes; people put blanks behind commas.
#[test]
fn blanks_and_quotes_say_nothing() {
    let plain = "SwitchName=s0 Nodes=n[0-3,5],m1\nSwitchName=s1 Nodes=n4\nSwitchName=top Switches=s[0-1] LinkSpeed=1\n";
    for text in [
        "SwitchName = s0 Nodes = n[0-3,5],m1\nSwitchName =s1 Nodes= n4\nSwitchName = top Switches = s[0-1] LinkSpeed = 1\n",
        "SwitchName=\"s0\" Nodes=\"n[0-3,5],m1\"\nSwitchName='s1' Nodes='n4'\nSwitchName=top Switches=\"s[0-1]\" LinkSpeed=1\n",
        "  SwitchName=s0  Nodes=n[0-3, 5] , m1\nSwitchName=s1\tNodes=n4\nSwitchName=top Switches= s[0-1] LinkSpeed=1\n",
    ] {
        assert_eq!(shape(text), shape(plain), "{text}");
    }
}

/// A switch of switches has all nodes below these, too; blocks come with their sizes, and once more together.
#[test]
fn what_scontrol_shows_is_the_file_that_it_read() {
    let shown = "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-1]\nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[2-3]\n\
                 SwitchName=top Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=s[0-1]\n";
    assert_eq!(
        shape(shown),
        shape("SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Nodes=n[2-3]\nSwitchName=top Switches=s[0-1]\n")
    );
    let shown = "BlockName=b0 BlockIndex=0 Nodes=n[0-1] BlockSize=2\nBlockName=b1 BlockIndex=1 Nodes=n[2-3] BlockSize=2\n\
                 AggregatedBlock=b[0-1] BlockIndex=2 Nodes=n[0-3] BlockSize=4\n";
    assert_eq!(shape(shown), shape("BlockName=b0 Nodes=n[0-1]\nBlockName=b1 Nodes=n[2-3]\n"));
}

#[test]
fn places_that_are_not_filled_are_left_out() {
    for text in [
        "BlockName=b1 Nodes=n[1-4]\nBlockName=later\n",
        "SwitchName=b1 Nodes=n[1-4]\nSwitchName=later\n",
        "- topology: a\n  block:\n    blocks:\n    - {block: b1, nodes: \"n[1-4]\"}\n    - block: later\n",
        "- topology: a\n  tree:\n    switches:\n    - {switch: b1, nodes: \"n[1-4]\"}\n    - switch: later\n",
    ] {
        let fabric = read(text).unwrap();
        assert_eq!((fabric.hosts.len(), fabric.hosts[0].attachments[0].switch), (4, 0), "{text}");
        assert_eq!(fabric.report.left_out, ["1 without nodes: later"], "{text}");
    }
}

#[test]
fn blocks_are_joined_by_the_sizes_above_them() {
    let blocks: String = (1..=4).map(|block| format!("BlockName=b{block} Nodes=n{block}[1-4]\n")).collect();
    let (hosts, links) = shape(&format!("{blocks}BlockSizes=4,8\n"));
    assert_eq!((hosts.len(), hosts[5].as_str()), (16, "n22 b2"));
    assert_eq!(
        links,
        ["b1 blocks1.0", "b2 blocks1.0", "b3 blocks1.1", "b4 blocks1.1", "blocks1.0 blocks2.0", "blocks1.1 blocks2.0"]
    );
    assert_eq!(shape(&format!("{blocks}BlockSizes=4\n")).1.len(), 4, "one switch joins all");
}

#[test]
fn a_torus_wraps_around_with_x_fastest() {
    let text =
        "- topology: t\n  torus3d:\n    toruses:\n    - {name: t, dims: {x: 3, y: 2, z: 1}, nodes: \"n[0-5]\"}\n";
    let (_, links) = shape(text);
    let of_x = ["t.n0 t.n1", "t.n1 t.n2", "t.n2 t.n0", "t.n3 t.n4", "t.n4 t.n5", "t.n5 t.n3"];
    let of_y = ["t.n0 t.n3", "t.n1 t.n4", "t.n2 t.n5"];
    assert_eq!(links, [&of_x[..], &of_y[..]].concat());
}

#[test]
fn refusals_name_the_line_and_the_remedy() {
    for (text, words) in [
        ("SwitchName=a Nodes=n1 Ndoes=n2\n", "topology.conf line 1: `ndoes` is no key here; did you mean `Nodes`?"),
        ("SwitchName=a Nodes=n[1-\n", "line 1: "),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", "line 2: `a` is given twice"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1\n", "line 2: node `n1` is below `a` and below `b`"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Switches=c\n", "line 2: switch `b` is above `c`, which is no switch"),
        ("SwitchName=a Nodes=n1 Switches=b\n", "switch `a` needs `Switches` or `Nodes`, one of them"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=c Nodes=n\n", "is above itself"),
        ("SwitchName=a Nodes=n[1-99999]\n", "more than 65536 hosts"),
        ("SwitchName=a Nodes=n[1-70000]\n", "more than 65536 hosts"),
        ("BlockName=a Nodes=n1\nSwitchName=b Nodes=n2\n", "give lines of one kind"),
        ("BlockName=a\n", "`a` has no `Nodes`; name its machines"),
        ("BlockName=a Nodes=n1\nBlockSizes=0\n", "line 2: BlockSizes is `0`"),
        ("Switchname=a b\n", "line 1: `b` is no `Key=Value`"),
        ("- topology: a\n  flat: true\n", "topology `a` is flat"),
        ("- topology: a\n  tree: {switches: []}\n", "the file names no nodes; give"),
        ("- topology: a\n  tree: {switches: []}\n  ring: {rings: []}\n", "needs one of tree, block"),
        (
            "- topology: a\n  torus3d: {toruses: [{name: t, dims: {x: 2, y: 2, z: 2}, nodes: \"n[1-7]\"}]}\n",
            "2x2x2 has 7 nodes",
        ),
        ("- topology: a\n  tre: {}\n", "unknown field `tre`"),
    ] {
        let error = read(text).expect_err(text);
        assert!(error.contains(words), "{text}: {error}");
    }
}

/// Machines joined by files of Slurm need rates that these do not have.
#[test]
fn a_fabric_alone_asks_for_rates() {
    let error = crate::read::read(b"SwitchName=a Nodes=n[1-2]\n", None, &LIMITS).unwrap_err().to_string();
    assert!(error.contains("does not say how fast") && error.contains("network compose"), "{error}");
}
