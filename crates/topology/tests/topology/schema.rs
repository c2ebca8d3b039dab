//! The JSON Schema of topology files: it accepts what the reader accepts, and refuses what a schema can refuse.

mod validator;

use std::path::Path;

use canopy_topology::{Capacity, DocumentFormat, SCHEMA, TopologyLimits, generate, read_document, to_json};
use proptest::prelude::*;
use serde_json::{Value, json};

use self::validator::Schema;

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

fn reads(document: &Value) -> Result<(), String> {
    let text = document.to_string();
    let read = read_document(text.as_bytes(), Some(DocumentFormat::Json), &LIMITS);
    read.map(|_| ()).map_err(|error| {
        std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source())
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": ")
    })
}

fn pair() -> Value {
    json!({
        "canopy": 1,
        "nodes": [{"id": "a"}, {"id": "b"}, {"id": "s", "kind": "switch"}],
        "links": [
            {"from": "a", "to": "s", "bandwidth": "1GB/s", "both": true},
            {"from": "b", "to": "s", "bandwidth": "1GB/s", "both": true}
        ]
    })
}

/// A place in [`pair`], and what the fields there are.
const PLACES: [(&str, &str); 4] = [
    ("", "/properties"),
    ("/defaults", "/properties/defaults/properties"),
    ("/nodes/0", "/definitions/node/properties"),
    ("/links/0", "/definitions/link/properties"),
];

fn with(place: &str, field: &str, value: Value) -> Value {
    let mut document = pair();
    document["defaults"] = json!({});
    document.pointer_mut(place).unwrap()[field] = value;
    document
}

/// The fields that the reader knows at a place are those that it lists when it meets another.
#[test]
fn the_schema_has_the_fields_of_the_reader_with_examples_that_it_reads() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    for (place, fields) in PLACES {
        let fields = schema.pointer(fields).unwrap().as_object().unwrap();
        let error = reads(&with(place, "zz", json!(1))).unwrap_err();
        let known: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        let mut stated: Vec<&str> = fields.keys().map(String::as_str).collect();
        let mut listed: Vec<&str> = known.into_iter().filter(|name| !name.contains(' ')).collect();
        stated.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, stated, "{place}: {error}");
        for (name, field) in fields {
            assert!(field["description"].is_string(), "{name} is described");
            let examples = field["examples"].as_array().unwrap_or_else(|| panic!("{name} has examples"));
            for example in examples.iter().filter(|_| !["nodes", "links", "from", "to", "id"].contains(&name.as_str()))
            {
                let document = with(place, name, example.clone());
                // A rank is stated by all or none.
                assert!(*name == "rank" || reads(&document).is_ok(), "{document}");
                assert_eq!(Schema::read(SCHEMA).check(&document), Ok(()));
            }
        }
    }
}

#[test]
fn what_is_wrong_with_single_fields_both_refuse() {
    let schema = Schema::read(SCHEMA);
    assert_eq!(schema.check(&pair()), Ok(()));
    let cases = [
        ("", "canopy", json!(2)),
        ("", "name", json!(7)),
        ("", "cluster", json!("a b")),
        ("", "cluster", json!("")),
        ("", "nodes", json!([])),
        ("", "links", json!({})),
        ("/defaults", "latency", json!("fast")),
        ("/defaults", "latency", json!("7")),
        ("/nodes/0", "id", json!("a b")),
        ("/nodes/0", "id", json!("")),
        ("/nodes/0", "kind", json!("router")),
        ("/nodes/0", "rank", json!(-1)),
        ("/nodes/0", "rank", json!(1.5)),
        ("/nodes/0", "multicast", json!(true)),
        ("/nodes/0", "aggregate", json!(true)),
        ("/nodes/0", "forwards", json!("yes")),
        ("/nodes/0", "host", json!(["a"])),
        ("/nodes/0", "loops", json!("fast")),
        ("/nodes/2", "rank", json!(0)),
        ("/nodes/2", "forwards", json!(true)),
        ("/links/0", "bandwidth", json!("25")),
        ("/links/0", "bandwidth", json!("-1GB/s")),
        ("/links/0", "bandwidth", json!("0GB/s")),
        ("/links/0", "bandwidth", json!("25G")),
        ("/links/0", "bandwidth", json!("25gb/s")),
        ("/links/0", "bandwidth", json!("1e9B/s")),
        ("/links/0", "bandwidth", json!(0)),
        ("/links/0", "bandwidth", json!(-5)),
        ("/links/0", "bandwidth", json!(2.5)),
        ("/links/0", "bandwidth", json!(null)),
        ("/links/0", "latency", json!("1.5")),
        ("/links/0", "latency", json!("1 h")),
        ("/links/0", "latency", json!(-1)),
        ("/links/0", "both", json!(1)),
        ("/links/0", "count", json!(0)),
        ("/links/0", "count", json!("2")),
    ];
    for (place, field, value) in cases {
        let document = with(place, field, value);
        assert!(reads(&document).is_err(), "{document}");
        assert!(schema.check(&document).is_err(), "{document}");
    }
    for (place, field) in [("", "canopy"), ("", "nodes"), ("", "links"), ("/nodes/0", "id"), ("/links/0", "bandwidth")]
    {
        let mut document = pair();
        document.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(field);
        assert!(reads(&document).is_err() && schema.check(&document).is_err(), "{document}");
    }
}

#[test]
fn networks_as_canopy_writes_them_and_the_examples_are_valid() {
    let schema = Schema::read(SCHEMA);
    for expression in ["dgx-h100:boxes=2,nvls=true", "ring:4,lat=700ns", "torus:4x4,host=75GB/s", "twisted-cube"] {
        let written = to_json(&generate(expression, &LIMITS).unwrap());
        assert_eq!(schema.check(&serde_json::from_str(&written).unwrap()), Ok(()), "{expression}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let modeline = "# yaml-language-server: $schema=../crates/topology/schema/topology.schema.json\n";
        assert!(text.starts_with(modeline), "{} names its schema", path.display());
        assert_eq!(schema.check(&serde_saphyr::from_str(&text).unwrap()), Ok(()), "{}", path.display());
        let topology = read_document(text.as_bytes(), None, &LIMITS).unwrap().topology;
        assert_eq!(topology.name(), path.file_stem().and_then(|stem| stem.to_str()));
        count += 1;
    }
    assert!(count >= 10, "{count} examples");
}

/// Any value but a list: the reader accepts a list in place of an object, field by field, and the schema does not.
fn values() -> impl Strategy<Value = Value> {
    let number = prop_oneof![Just(0_i64), Just(1), Just(-1), Just(7), Just(5_000_000_000)];
    let texts = "[0-9]{0,3}(\\.[0-9])? ?(k|G|Gi|M)?(b|B|bit|Bytes|n|u|m)?(/s|ps|s)?";
    prop_oneof![
        number.prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        texts.prop_map(Value::from),
        prop_oneof![Just("switch"), Just("compute"), Just("a"), Just("b"), Just("x"), Just("prod")]
            .prop_map(Value::from),
        Just(Value::Null),
        Just(json!({})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// An editor must not mark what works.
    #[test]
    fn what_the_reader_accepts_the_schema_accepts(
        changes in prop::collection::vec((0_usize..PLACES.len(), any::<prop::sample::Index>(), values()), 1..3),
    ) {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let mut document = pair();
        document["defaults"] = json!({});
        for (place, field, value) in changes {
            let (place, fields) = PLACES[place];
            let fields: Vec<&String> = schema.pointer(fields).unwrap().as_object().unwrap().keys().collect();
            let Some(object) = document.pointer_mut(place).filter(|object| object.is_object()) else { continue };
            object[field.get(&fields).as_str()] = value;
        }
        if reads(&document).is_ok() {
            prop_assert_eq!(Schema::read(SCHEMA).check(&document), Ok(()), "{}", document);
        }
    }

    /// Rates as they are read and as the schema sees them.
    #[test]
    fn rates_that_are_read_match_the_pattern(text in "[0-9]{1,3}(\\.[0-9])? ?(k|K|M|G|T|Ki|Mi|Gi|Ti)?(b|bit|bits|B|byte|Bytes)?(/s|/sec|ps)?") {
        if text.parse::<Capacity>().is_ok() {
            prop_assert_eq!(Schema::read(SCHEMA).check(&with("/links/0", "bandwidth", json!(text))), Ok(()));
        }
    }
}
