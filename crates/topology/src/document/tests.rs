//! Documents are read as the schema says, or refused with the field and what to do.

use super::*;
use crate::error::TopologyError;
use crate::hash::identity_hash;
use crate::model::Topology;
use crate::quantity::Quantity;

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

fn read(text: &str) -> Result<ReadTopology, ReadError> {
    read_document(text.as_bytes(), None, &LIMITS)
}

#[track_caller]
fn topology(text: &str) -> Topology {
    read(text).unwrap_or_else(|error| panic!("{error}\n{text}")).topology
}

/// Links as (from, to, bytes per second, nanoseconds).
fn links(topology: &Topology) -> Vec<(&str, &str, u64, u64)> {
    let id = |node| topology.node(node).id.as_str();
    let row =
        |link: &crate::model::Link| (id(link.from), id(link.to), link.capacity.bytes_per_sec(), link.latency.nanos());
    topology.links().iter().map(row).collect()
}

const EXAMPLE: &str = "
canopy: 1                    # format version
name: two-boxes
defaults: {latency: 700ns}
nodes:
  - {id: g0, rank: 0, box: b0}
  - {id: g1, rank: 1, box: b0, host: h7, rail: r1, label: 'the second: one'}
  - {id: nvsw0, kind: switch, multicast: true, aggregate: true}
  - {id: spine, kind: switch}
links:
  - {from: g0, to: nvsw0, bandwidth: 300GB/s, latency: 500ns, both: true}
  - {from: g1, to: nvsw0, bandwidth: 300GB/s, both: true}
  - {from: g0, to: spine, bandwidth: 200Gbps, both: true, count: 2}
  - {from: g1, to: spine, bandwidth: 1000000000}
  - {from: g1, to: spine, bandwidth: 1GB/s, latency: 700}
";

#[test]
fn every_field_of_the_schema_is_read() {
    let ReadTopology { topology, warnings } = read(EXAMPLE).unwrap();
    assert_eq!((topology.name(), topology.rank_count()), (Some("two-boxes"), 2));
    let g1 = &topology.nodes()[1];
    let text = |text: &str| Some(text.to_owned());
    let (host, box_name, rail, label) = (text("h7"), text("b0"), text("r1"), text("the second: one"));
    assert_eq!(g1.attributes, crate::model::Attributes { host, box_name, rail, label, loops: None });
    assert_eq!(topology.nodes()[2].kind, crate::model::NodeKind::Switch { multicast: true, aggregate: true });
    assert_eq!(topology.nodes()[3].kind, crate::model::NodeKind::PLAIN_SWITCH);
    assert_eq!(
        links(&topology),
        [
            ("g0", "nvsw0", 300_000_000_000, 500),
            ("g0", "spine", 50_000_000_000, 700),
            ("g1", "nvsw0", 300_000_000_000, 700),
            ("g1", "spine", 2_000_000_000, 700),
            ("nvsw0", "g0", 300_000_000_000, 500),
            ("nvsw0", "g1", 300_000_000_000, 700),
            ("spine", "g0", 50_000_000_000, 700),
        ]
    );
    // g1 sends to the spine what nothing brings back.
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("node `g1` receives 300000000000 bytes/s and sends 302000000000"), "{warnings:?}");
}

#[test]
fn json_says_the_same_and_formats_are_told_apart() {
    let yaml = topology(EXAMPLE);
    let json = to_json(&yaml);
    assert_eq!(topology(&json), yaml);
    assert_eq!(topology(&format!("\u{feff} \n\t{json}")), yaml);
    assert_eq!(read_document(json.as_bytes(), Some(DocumentFormat::Json), &LIMITS).unwrap().topology, yaml);
    // JSON is YAML too.
    assert_eq!(read_document(json.as_bytes(), Some(DocumentFormat::Yaml), &LIMITS).unwrap().topology, yaml);
    assert!(matches!(read("{"), Err(ReadError::Syntax { format: DocumentFormat::Json, .. })));
    assert!(matches!(read("canopy"), Err(ReadError::Syntax { format: DocumentFormat::Yaml, .. })));
}

#[test]
fn ids_that_look_like_numbers_or_flags_stay_text() {
    let text = "
canopy: 1
nodes: [{id: 012}, {id: 12}, {id: 1e3}, {id: yes}, {id: 0x10}, {id: 'null'}, {id: 00}, {id: 1.0}]
links:
- {from: 012, to: 00, bandwidth: 1, both: true}
- {from: 12, to: 1.0, bandwidth: 1, both: true}
";
    let topology = topology(text);
    let ids: Vec<&str> = topology.nodes().iter().map(|node| node.id.as_str()).collect();
    assert_eq!(ids, ["012", "12", "1e3", "yes", "0x10", "null", "00", "1.0"]);
    assert_eq!(links(&topology)[0].1, "00");
    for written in [to_yaml(&topology), to_json(&topology)] {
        assert_eq!(read(&written).unwrap().topology, topology, "{written}");
    }
}

#[test]
fn a_part_of_a_cluster_says_so() {
    let text =
        "canopy: 1\nname: job\ncluster: prod\nnodes: [{id: a}, {id: b}]\nlinks: [{from: a, to: b, bandwidth: 1GB/s}]\n";
    let whole = read_document(text.as_bytes(), None, &LIMITS).unwrap().topology;
    assert_eq!(whole.cluster(), Some("prod"));
    assert_eq!(whole.transposed().cluster(), Some("prod"));
    let alone = read_document(text.replace("cluster: prod\n", "").as_bytes(), None, &LIMITS).unwrap().topology;
    assert_ne!(identity_hash(&whole), identity_hash(&alone));
    for written in [to_yaml(&whole), to_json(&whole)] {
        assert_eq!(read_document(written.as_bytes(), None, &LIMITS).unwrap().topology, whole);
    }
    for name in ["", "-a", "a b", "é", "a/b", &"a".repeat(64)] {
        let error = read_document(text.replace("prod", &format!("'{name}'")).as_bytes(), None, &LIMITS).unwrap_err();
        assert!(error.to_string().contains("cannot name a cluster"), "{error}");
    }
}

#[test]
fn odd_names_survive_writing() {
    let mut draft =
        crate::draft::TopologyDraft { name: Some("a: b # \"c\" \\ \n\té😀".to_owned()), ..Default::default() };
    for id in [
        "-", "#", "{", "}x", "[", "*a", "&a", "!t", "%", "@", "`", "\"q\"", "'s'", "\\", "~", "?", "|", "é", "日本",
        "a\u{301}", "😀", "y", "NO", ".inf", "---", "<<",
    ] {
        draft.add_compute(id);
    }
    let topology = draft.build(&LIMITS).unwrap();
    for (written, format) in [(to_yaml(&topology), DocumentFormat::Yaml), (to_json(&topology), DocumentFormat::Json)] {
        let back = read_document(written.as_bytes(), Some(format), &LIMITS)
            .unwrap_or_else(|error| panic!("{error}\n{written}"));
        assert_eq!(back.topology, topology);
        assert_eq!(identity_hash(&back.topology), identity_hash(&topology));
    }
}

/// Names in which a person would not see every character are refused, wherever they stand.
#[test]
fn names_that_are_not_shown_as_they_are_are_refused() {
    for hidden in ["\u{1}", "\u{7f}", "\u{85}", "\u{200b}", "\u{2028}", "\u{202e}", "\u{2066}", "\u{feff}", "\u{e0041}"]
    {
        let name = format!("a{hidden}b");
        for (field, at) in [("name", 0), ("nodes[1].id", 1), ("nodes[1].host", 2), ("nodes[1].label", 3)] {
            let text = |place| if place == at { Some(name.clone()) } else { None };
            let mut draft = crate::draft::TopologyDraft { name: text(0), ..Default::default() };
            draft.add_compute("first");
            let attributes = crate::model::Attributes { host: text(2), label: text(3), ..Default::default() };
            draft.add_node(text(1).unwrap_or("second".to_owned()), crate::model::NodeKind::Compute, attributes);
            let refused = draft.build(&LIMITS).unwrap_err();
            assert_eq!(refused.field().as_deref(), Some(field), "{hidden:?}: {refused}");
            assert!(!refused.to_string().contains(hidden), "{hidden:?}: {refused}");
        }
    }
}

#[test]
fn equal_opposite_links_are_written_once() {
    let text = "
canopy: 1
nodes: [{id: a}, {id: b}, {id: c}]
links:
- {from: b, to: a, bandwidth: 25GB/s, both: true}
- {from: b, to: c, bandwidth: 2GB/s, latency: 1us}
- {from: c, to: b, bandwidth: 1GB/s, latency: 1us}
- {from: c, to: a, bandwidth: 1GB/s, latency: 5ns}
- {from: a, to: c, bandwidth: 1GB/s}
";
    let written = to_yaml(&topology(text));
    let expected = "canopy: 1
nodes:
  - {id: a, rank: 0}
  - {id: b, rank: 1}
  - {id: c, rank: 2}
links:
  - {from: a, to: b, bandwidth: 25GB/s, both: true}
  - {from: a, to: c, bandwidth: 1GB/s}
  - {from: b, to: c, bandwidth: 2GB/s, latency: 1us}
  - {from: c, to: a, bandwidth: 1GB/s, latency: 5ns}
  - {from: c, to: b, bandwidth: 1GB/s, latency: 1us}
";
    assert_eq!(written, expected);
    let document = TopologyDocument::from(&topology(&written));
    assert_eq!(document.links[0].bandwidth, Quantity::Text("25GB/s".to_owned()));
    assert_eq!(serde_json::from_str::<TopologyDocument>(&serde_json::to_string(&document).unwrap()).unwrap(), document);
}

/// What is refused, the field that is named, and words the message must have. The second entry of `links` is at fault.
#[test]
fn refusals_of_links_name_the_field_and_the_remedy() {
    for (link, field, words) in [
        ("from: a, to: b", "links[1]", "missing field `bandwidth`"),
        (
            "from: a, to: b, bandwith: 1",
            "links[1].bandwith",
            "expected one of from, to, bandwidth, latency, both, count",
        ),
        ("from: a, to: b, bandwidth: 1e9", "links[1].bandwidth", "whole number of base units"),
        ("from: a, to: b, bandwidth: .nan", "links[1].bandwidth", "not a finite number"),
        ("from: a, to: b, bandwidth: -5", "links[1].bandwidth", "whole number of base units"),
        ("from: a, to: b, bandwidth: -5GB/s", "links[1].bandwidth", "without sign or exponent"),
        ("from: a, to: b, bandwidth: 1e9GB/s", "links[1].bandwidth", "without sign or exponent"),
        ("from: a, to: b, bandwidth: 0", "links[1].bandwidth", "leave out links that carry nothing"),
        ("from: a, to: b, bandwidth: 3bps", "links[1].bandwidth", "not a whole number of bytes/s"),
        ("from: a, to: b, bandwidth: 99999999999TB/s", "links[1].bandwidth", "use a smaller number"),
        ("from: a, to: b, bandwidth: 99999999999999999999999", "links[1].bandwidth", "whole number"),
        ("from: a, to: b, bandwidth: 5furlongs", "links[1].bandwidth", "use GB/s or MB/s for bytes"),
        ("from: a, to: b, bandwidth: '25'", "links[1].bandwidth", "`25` has no unit; write `25GB/s`"),
        ("from: a, to: b, bandwidth: 1, latency: '3'", "links[1].latency", "`3` has no unit; write `3ns` or `3us`"),
        ("from: a, to: b, bandwidth: [1]", "links[1].bandwidth", "whole number of base units"),
        ("from: a, to: b, bandwidth: 1, latency: 1.5ns", "links[1].latency", "whole number of nanoseconds"),
        ("from: a, to: b, bandwidth: 1, count: 0", "links[1].count", "give at least 1"),
        ("from: a, to: b, bandwidth: 1, count: -1", "links[1].count", "whole number from 0"),
        ("from: a, to: b, bandwidth: 1, both: maybe", "links[1].both", "`true` or `false`"),
        ("from: a, to: z, bandwidth: 1, both: true", "links[1].to", "not the id of a node"),
        ("from: z, to: a, bandwidth: 1, both: true", "links[1].from", "not the id of a node"),
        ("from: a, to: a, bandwidth: 1, both: true", "links[1].to", "two different nodes"),
        ("from: a, from: b, to: b, bandwidth: 1", "links[1]", "given twice"),
        ("from: a, to: ~, bandwidth: 1", "links[1].to", "expected text"),
        ("from: a, to: b, bandwidth: 10000000000000000000, count: 2", "links.bandwidth", "use smaller rates"),
    ] {
        let text = format!(
            "canopy: 1\nnodes: [{{id: a}}, {{id: b}}]\nlinks:\n- {{from: a, to: b, bandwidth: 1, both: true}}\n- {{{link}}}\n"
        );
        check_refusal(&text, Some(field), words);
    }
}

#[test]
fn refusals_of_nodes_name_the_field_and_the_remedy() {
    for (nodes, field, words) in [
        ("{id: a}", Some("nodes"), "at least two compute nodes, and this one has 1"),
        ("{id: a}, {id: b, kind: router}", Some("nodes[1].kind"), "expected one of compute, switch"),
        ("{id: a}, {id: b, multicast: true}", Some("nodes[1].multicast"), "`kind: switch`"),
        ("{id: a}, {id: b, aggregate: true}", Some("nodes[1].aggregate"), "`kind: switch`"),
        ("{id: a}, {id: 'b c'}", Some("nodes[1].id"), "without white space"),
        ("{id: a}, {id: 'b:c'}", Some("nodes[1].id"), "without white space"),
        ("{id: a}, {id: ''}", Some("nodes[1].id"), "1 to 255 bytes of text"),
        ("{id: a}, {id: a}", Some("nodes.id"), "given twice"),
        ("{id: a}, {rank: 1}", Some("nodes[1]"), "missing field `id`"),
        ("{id: a}, {id: b, rank: 1}", Some("nodes.rank"), "every compute node a rank, or none"),
        ("{id: a, rank: 0}, {id: b, rank: 2}", Some("nodes.rank"), "without gaps"),
        ("{id: a, rank: 0}, {id: b, rank: 0}", Some("nodes.rank"), "is given to both a and b"),
        ("{id: a, rank: 0}, {id: b, rank: -1}", Some("nodes[1].rank"), "whole number from 0"),
        ("{id: a}, {id: b}, {id: c, kind: switch, rank: 0}", Some("nodes.rank"), "which only compute nodes have"),
        ("{id: a}, {id: b, colour: red}", Some("nodes[1].colour"), "expected one of id, kind"),
        ("{id: a}, 5", Some("nodes[1]"), "expected fields"),
    ] {
        check_refusal(&format!("canopy: 1\nnodes: [{nodes}]\nlinks: []\n"), field, words);
    }
}

#[test]
fn refusals_of_documents_name_the_field_and_the_remedy() {
    for (text, field, words) in [
        ("", None, "`canopy: 1`, `nodes` and `links`"),
        ("nodes: []\nlinks: []", None, "missing field `canopy`"),
        ("canopy: 2\nsomething: else", Some("canopy"), "reads `canopy: 1`"),
        ("canopy: one", Some("canopy"), "whole number"),
        ("canopy: 1\nnodes: 5", Some("nodes"), "expected a list"),
        ("canopy: 1\nlinks: []", None, "missing field `nodes`"),
        ("canopy: 1\ndefaults: {latency: 5m}\nnodes: []\nlinks: []", Some("defaults.latency"), "use ns, us, ms or s"),
        (
            "canopy: 1\ndefaults: {bandwidth: 5}\nnodes: []\nlinks: []",
            Some("defaults.bandwidth"),
            "expected one of latency",
        ),
        ("canopy: 1\nname: a\nname: b", None, "given twice"),
        ("---\ncanopy: 1\nnodes: []\nlinks: []\n---\ncanopy: 1\n", None, "put one topology in one file"),
        ("{\"canopy\": 1, \"canopy\": 1}", None, "duplicate field"),
        ("{\"canopy\": 1, \"nodes\": [{\"id\": 5}]}", Some("nodes[0].id"), "expected text, found the number `5`"),
        ("{\"canopy\": 1, \"nodes\": [], \"links\": []} x", None, "trailing characters"),
        ("- a\n- b", None, "expected fields"),
        ("canopy: [1", Some("canopy"), "line 1"),
    ] {
        check_refusal(text, field, words);
    }
}

#[track_caller]
fn check_refusal(text: &str, field: Option<&str>, words: &str) {
    let error = read(text).expect_err(text);
    let message = error.to_string();
    assert!(message.contains(words), "{message}\n{text}");
    assert_eq!(error.field().as_deref(), field, "{message}\n{text}");
    assert!(!message.ends_with('.') && !error.is_over_limit(), "{message}");
}

#[test]
fn bytes_are_checked_before_anything_is_parsed() {
    let small = TopologyLimits { bytes_max: 10, ..LIMITS };
    let error = read_document(b"canopy: 1\n\n", None, &small).unwrap_err();
    assert_eq!(error, ReadError::TooManyBytes { found: 11, limit: 10 });
    assert!(error.is_over_limit());
    assert_eq!(read_document(b"canopy: \xff", None, &LIMITS).unwrap_err(), ReadError::NotUtf8 { offset: 8 });
}

#[test]
fn lists_over_the_limits_are_refused_while_they_are_read() {
    let limits = TopologyLimits { nodes_max: 3, links_max: 2, ..LIMITS };
    let link = "{\"from\": \"a\", \"to\": \"b\", \"bandwidth\": 1},";
    let node = "{\"id\": \"a\"},";
    for (nodes, links, what) in [(4, 0, "nodes"), (100_000, 0, "nodes"), (2, 3, "links"), (2, 100_000, "links")] {
        let (nodes, links) = (node.repeat(nodes), link.repeat(links));
        let (nodes, links) = (nodes.trim_end_matches(','), links.trim_end_matches(','));
        let text = format!("{{\"canopy\": 1, \"nodes\": [{nodes}], \"links\": [{links}]}}");
        for format in [DocumentFormat::Json, DocumentFormat::Yaml] {
            let error = read_document(text.as_bytes(), Some(format), &limits).unwrap_err();
            assert!(error.is_over_limit(), "{error}");
            assert!(
                matches!(error, ReadError::Topology(TopologyError::TooLarge { what: w, .. }) if w == what),
                "{error}"
            );
        }
    }
    // `both` makes two links of one entry.
    let text = "canopy: 1\nnodes: [{id: a}, {id: b}]\nlinks:\n- {from: a, to: b, bandwidth: 1, both: true}\n";
    assert!(read_document(text.as_bytes(), None, &limits).is_ok());
    assert!(
        read_document(text.as_bytes(), None, &TopologyLimits { links_max: 1, ..limits }).unwrap_err().is_over_limit()
    );
}

/// The budget of the YAML reader follows from the limits: a document that states every field of every entry, and as
/// many entries as allowed, is admitted.
#[test]
fn a_document_at_the_limits_fits_the_yaml_budget() {
    let limits = TopologyLimits { nodes_max: 400, links_max: 300, ..LIMITS };
    let mut text = "canopy: 1\nname: full\ndefaults: {latency: 5}\nnodes:\n".to_owned();
    for rank in 0..200 {
        text += &format!(
            "- {{id: g{rank}, kind: compute, rank: {rank}, multicast: false, aggregate: false, host: h, box: b, rail: r, label: l}}\n"
        );
        text += &format!(
            "- {{id: s{rank}, kind: switch, multicast: true, aggregate: true, host: h, box: b, rail: r, label: l}}\n"
        );
    }
    text += "links:\n";
    for link in 0..150 {
        text += &format!("- {{from: g{link}, to: s{link}, bandwidth: 25GB/s, latency: 1us, both: true, count: 3}}\n");
    }
    for link in 0..150 {
        text += &format!(
            "- {{from: g{link}, to: g{}, bandwidth: 25GB/s, latency: 1us, both: false, count: 1}}\n",
            link + 1
        );
    }
    let error = read_document(text.as_bytes(), None, &limits).unwrap_err();
    assert!(matches!(error, ReadError::Topology(TopologyError::TooLarge { what: "links", .. })), "{error}");
    let limits = TopologyLimits { links_max: 450, ..limits };
    assert_eq!(read_document(text.as_bytes(), None, &limits).unwrap().topology.links().len(), 450);
}

/// Each of these costs a naive reader its stack, its memory or minutes.
#[test]
fn hostile_documents_are_refused_at_once() {
    let deep = |open: &str| open.repeat(100_000);
    let mut bomb = "canopy: 1\nnodes: [{id: &a0 x}]\nlinks:\n- &b0 [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
    for level in 1..40 {
        bomb += &format!("- &b{level} [{}]\n", vec![format!("*b{}", level - 1); 10].join(","));
    }
    let repeated = format!("canopy: 1\nlinks: []\nnodes:\n- &n {{id: a}}\n{}", "- *n\n".repeat(100_000));
    for text in [
        deep("["),
        deep("{a: "),
        deep("- "),
        deep("? "),
        format!("canopy: {}", deep("[")),
        format!("canopy: 1\nnodes: {}", deep("[")),
        format!("canopy: 1\nnodes:\n- id: {}", deep("{a: ")),
        format!("{{\"canopy\": 1, \"nodes\": {}", deep("[")),
        format!("{{\"canopy\": 1, \"nodes\": [{}", deep("{\"id\": ")),
        bomb,
        repeated,
        "---\n".repeat(100_000),
        "canopy: 1\nnodes: &n [*n]\nlinks: []\n".to_owned(),
        format!("canopy: 1\nname: {}", "&a ".repeat(100_000)),
        format!("canopy: 1\n{}", "<<: {}\n".repeat(100_000)),
        format!("{}: 1", "x".repeat(1_000)),
        format!("{{\"{}\": 1}}", "x".repeat(1_000_000)),
        format!("canopy: 1\nnodes: [{{id: a, kind: {}}}]", "x".repeat(1_000_000)),
        format!("canopy: 1\nnodes: [{{id: {}, multicast: true}}]\nlinks: []", "x".repeat(1_000_000)),
        format!(
            "canopy: 1\nnodes: [{{id: a}}, {{id: b}}]\nlinks: [{{from: a, to: {}, bandwidth: 1}}]",
            "x".repeat(1_000_000)
        ),
        format!(
            "canopy: 1\nnodes: [{{id: a}}, {{id: b}}]\nlinks: [{{from: a, to: b, bandwidth: {}}}]",
            "1".repeat(1_000_000)
        ),
        format!("<{}></a>", "x".repeat(1_000_000)),
        format!("<system version='{}'/>", "1".repeat(1_000_000)),
    ] {
        let shown: String = text.chars().take(60).collect();
        let error = read(&text).expect_err(&shown);
        assert!(error.to_string().len() < 1_000, "{error}");
        assert!(error.field().is_none_or(|field| field.len() < 300), "{error}");
    }
}

/// What is too much is told in words, wherever it comes from.
#[test]
fn a_document_that_holds_too_much_is_over_a_limit() {
    let limits = TopologyLimits { nodes_max: 40, links_max: 40, bytes_max: 40_000 };
    let label = "x".repeat(5_000);
    let labels = "- {id: b, label: *l}\n".repeat(10);
    for (text, words) in [
        (
            format!("canopy: 1\nlinks: []\nnodes:\n- {{id: a, label: &l {label}}}\n{labels}"),
            "aliases expand to too much text",
        ),
        (format!("canopy: 1\nname: &n x\nlinks: []\nnodes:\n{}", "- {id: *n}\n".repeat(81)), "more than 40 nodes"),
        ("? ".repeat(20), "nested too deeply"),
    ] {
        let error = read_document(text.as_bytes(), None, &limits).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(words) && !message.contains('{'), "{message}");
        assert!(error.is_over_limit(), "{message}");
    }
}

/// Reading is given up at the next entry, whatever the format.
#[test]
fn a_stop_ends_the_reading() {
    let text = to_json(&topology(EXAMPLE));
    for (format, patience) in [(DocumentFormat::Json, 0), (DocumentFormat::Yaml, 3), (DocumentFormat::Json, 9)] {
        let asked = std::cell::Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() > patience
        };
        let error = read_document_until(text.as_bytes(), Some(format), &LIMITS, &stop).unwrap_err();
        assert_eq!((error, asked.get()), (ReadError::Stopped, patience + 1));
    }
    assert!(read_document_until(text.as_bytes(), None, &LIMITS, &|| false).is_ok());
}

/// Anchors and merge keys are YAML too.
#[test]
fn aliases_within_reason_are_read() {
    let repeated: String = (0..1_000).map(|rank| format!("- {{id: g{rank}, box: *b}}\n")).collect();
    let merged: String = (1..1_000).map(|rank| format!("- {{<<: *l, to: g{rank}}}\n")).collect();
    let text = format!(
        "canopy: 1\nname: &b full\nnodes:\n{repeated}- {{id: s, kind: switch}}\nlinks:\n- &l {{from: s, to: g0, bandwidth: 1GB/s, both: true}}\n{merged}"
    );
    let topology = topology(&text);
    assert_eq!((topology.rank_count(), topology.links().len()), (1_000, 2_000));
    assert_eq!(topology.nodes()[7].attributes.box_name.as_deref(), Some("full"));
}

/// A number without a unit that no network has is read, as programs may write it, with a warning that says what to write.
#[test]
fn small_numbers_without_a_unit_are_doubted() {
    let read = |fields: &str| {
        let text =
            format!("canopy: 1\nnodes: [{{id: a}}, {{id: b}}]\nlinks: [{{from: a, to: b, both: true, {fields}}}]");
        let yaml = read_document(text.as_bytes(), None, &LIMITS).unwrap();
        let json = serde_json::to_string(&serde_saphyr::from_str::<serde_json::Value>(&text).unwrap()).unwrap();
        assert_eq!(read_document(json.as_bytes(), None, &LIMITS).unwrap(), yaml, "{json}");
        yaml.warnings
    };
    for (fields, said) in [
        ("bandwidth: 50", "links[0].bandwidth: `50` has no unit and is read as 50 bytes/s; write `50GB/s` or `50Gb/s`"),
        ("bandwidth: 999999", "or `999999B/s` if that is meant"),
        ("bandwidth: 1GB/s, latency: 5", "links[0].latency: `5` has no unit and is read as 5 nanoseconds; write `5us`"),
    ] {
        let warnings = read(fields);
        assert!(warnings.len() == 1 && warnings[0].contains(said), "{fields}: {warnings:?}");
    }
    assert_eq!(read("bandwidth: 400, latency: 2").len(), 2);
    for meant in
        ["bandwidth: 1000000, latency: 10", "bandwidth: 50B/s, latency: 5ns", "bandwidth: 25000000000, latency: 0"]
    {
        assert!(read(meant).is_empty(), "{meant}");
    }
    let text = "canopy: 1\ndefaults: {latency: 3}\nnodes: [{id: a, loops: 5}, {id: b}]\n\
                links: [{from: a, to: b, bandwidth: 7, both: true}, {from: b, to: a, bandwidth: 8, count: 2}]";
    let warnings = read_document(text.as_bytes(), None, &LIMITS).unwrap().warnings;
    assert!(warnings[0].contains("`7` has no unit and is read as 7 bytes/s, and 2 other numbers too"), "{warnings:?}");
    assert!(warnings[1].contains("defaults.latency: `3` has no unit"), "{warnings:?}");
}
