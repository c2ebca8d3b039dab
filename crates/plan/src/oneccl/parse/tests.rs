//! What is read and what is refused, with its place; the grammar and the schema name the same things.

use std::collections::BTreeSet;

use super::*;
use crate::oneccl::examples::{ALL_TO_ALL, ALLREDUCE, programs};
use crate::oneccl::{SCHEMA, write};

#[test]
fn the_examples_read_back_as_written() {
    for program in programs() {
        let text = write(&program);
        assert_eq!(parse(&text), Ok(program));
        assert_eq!(write(&parse(&text).unwrap()), text);
        assert!(is_plan(&text));
    }
    assert!(is_plan(ALL_TO_ALL));
    for other in ["", "<algo/>", "{}", "<?xml version=\"1.0\"?><!-- onecclplan --><plan/>"] {
        assert!(!is_plan(other));
    }
}

/// The text of an example with one thing changed, and what is said of it.
#[track_caller]
fn refused(from: &str, to: &str, message: &str) {
    assert!(ALLREDUCE.contains(from), "{from}");
    let error = parse(&ALLREDUCE.replacen(from, to, 1)).unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}

#[test]
fn what_the_format_does_not_know_is_refused() {
    refused("inplace=\"0\"", "inplace=\"0\" color=\"red\"", "the unknown attribute `color`");
    refused("inplace=\"0\"", "inplace=\"0\" inplace=\"0\"", "duplicate");
    refused("<sync scope=\"local\"/>", "<wait/>", "found <wait>, expected <send>, <recv>, <sync> in this order");
    refused("<sync scope=\"local\"/>", "", "local work needs a <sync> before it");
    refused("<sync scope=\"local\"/>", "<sync scope=\"some\"/>", "use local or all");
    refused("nranks=\"2\" ", "", "<onecclplan> has no attribute `nranks`");
    refused("nranks=\"2\" ", "nranks=\"1\" ", "use 2 to 65535");
    refused("nchunks=\"2\"", "nchunks=\"0\"", "use 1 to 4294967295");
    refused("instances=\"1\"", "instances=\"65\"", "use 1 to 64");
    refused("coll=\"allreduce\"", "coll=\"all-reduce\"", "use allgather, reducescatter");
    refused("coll=\"allreduce\"", "coll=\"allreduce\" root=\"0\"", "only for broadcast");
    refused("coll=\"allreduce\"", "coll=\"reduce\"", "has no attribute `root`");
    refused("coll=\"allreduce\"", "coll=\"reduce\" root=\"2\"", "root=\"2\"");
    refused("version='1'", "version='2'", "1, a plan of all ranks; 2 is one of a single rank");
    refused("minbytes=\"0\"", "minbytes=\"9223372036854775808\"", "9223372036854775807");
    for number in ["", " 1", "01", "+1", "-1", "1.0", "0x1", "4294967296", "one"] {
        refused("off=\"1\"", &format!("off=\"{number}\""), "is not valid; use a whole number");
    }
    refused("buf=\"i\"", "buf=\"x\"", "use i, o or s");
    refused("</onecclplan>", "</onecclplan><onecclplan/>", "the end of the text");
    refused("</onecclplan>", "", "it ends inside an element");
    refused("<rank id=\"0\"", "rank <rank id=\"0\"", "text between elements does not belong");
    refused("<rank id=\"0\"", "<![CDATA[x]]><rank id=\"0\"", "CDATA does not belong");
    refused("<rank id=\"0\"", "<?php ?><rank id=\"0\"", "a processing instruction does not belong");
    refused("<!--", "<!DOCTYPE onecclplan><!--", "the text has a document type declaration");
    refused("<!--", "<?xml version=\"1.1\"?><!--", "use 1.0");
    refused("<!--", "<?xml version=\"1.0\" encoding=\"latin1\"?><!--", "use UTF-8");
    refused("ar_pair2", "&secret;", "is not XML");
    refused("ar_pair2", "two words", "1 to 63 letters");
}

#[test]
fn a_fault_has_its_line_and_column() {
    let text = ALLREDUCE.replacen("peer=\"1\" buf=\"i\" off=\"1\"", "peer=\"1\" buf=\"i\" off=\"x\"", 1);
    let error = parse(&text).unwrap_err();
    assert_eq!((error.line, error.column), (5, 7), "{error}");
    assert_eq!(parse("").unwrap_err().line, 1);
}

#[test]
fn limits_hold_before_anything_grows() {
    let limit = ParseFault::TooLarge { bytes: ALLREDUCE.len(), limit: 10 };
    assert_eq!(parse_until(ALLREDUCE, 10, &|| false).unwrap_err().fault, limit);
    assert_eq!(parse_until(ALLREDUCE, BYTES_MAX, &|| true).unwrap_err().fault, ParseFault::Stopped);
    let many = "<meta key=\"a\" value=\"b\"/>".repeat(65);
    refused("<rank id=\"0\"", &format!("{many}<rank id=\"0\""), "<meta> of a plan are over the limit of 64");
    let long = "x".repeat((1 << 20) + 1);
    let statement = |value: &str| format!("<meta key=\"a\" value=\"{value}\"/><rank id=\"0\"");
    refused("<rank id=\"0\"", &statement(&long), "use at most 1048576 characters");
    assert!(parse(&ALLREDUCE.replacen("<rank id=\"0\"", &statement(&long[1..]), 1)).is_ok());
    let wide: String = (0..17).map(|number| format!(" a{number}=\"\"")).collect();
    refused("<rank id=\"0\"", &format!("<rank{wide} id=\"0\""), "attributes of one element are over the limit of 16");
    let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    assert!(parse(&deep).is_err());
}

#[test]
fn statements_and_routes_are_read() {
    let extra = "<meta key=\"note\" value=\"a &lt;b&gt; &amp; &quot;c&quot;\"/><routes><route id=\"7\" src=\"0\" dst=\"1\" \
                 layer=\"0\" hops=\"0 5 1\"/></routes><rank id=\"0\"";
    let text = ALLREDUCE.replacen("<rank id=\"0\"", extra, 1);
    let text = text.replacen("<send peer=\"1\"", "<send route=\"7\" peer=\"1\"", 1);
    let program = parse(&text).unwrap();
    assert_eq!(program.meta[0].value, "a <b> & \"c\"");
    assert_eq!(program.routes[0].hops, [0, 5, 1]);
    assert_eq!(program.ranks[0].steps[0].sends[0].route, Some(7));
    assert_eq!(parse(&write(&program)), Ok(program));
}

/// Elements with their attributes, as the schema names them.
fn schema_names() -> BTreeSet<(String, String)> {
    let mut names = BTreeSet::new();
    let mut types = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut reader = quick_xml::Reader::from_str(SCHEMA);
    loop {
        let event = reader.read_event().unwrap();
        let (quick_xml::events::Event::Start(tag) | quick_xml::events::Event::Empty(tag)) = &event else {
            match event {
                quick_xml::events::Event::End(_) => drop(open.pop()),
                quick_xml::events::Event::Eof => break,
                _ => {}
            }
            continue;
        };
        let value = |key: &str| {
            let found = tag.try_get_attribute(key).unwrap();
            found.map(|found| found.normalized_value(quick_xml::XmlVersion::Implicit1_0).unwrap().into_owned())
        };
        let mut label = String::new();
        match (tag.name().as_ref(), value("name")) {
            ("xs:element", Some(name)) => {
                names.insert((name.clone(), String::new()));
                types.extend(value("type").map(|of| (name.clone(), of)));
                label = name;
            }
            ("xs:complexType", Some(name)) => label = format!("type {name}"),
            ("xs:attribute", Some(name)) => {
                let owner = open.iter().rev().find(|label| !label.is_empty()).unwrap();
                names.insert((owner.clone(), name));
            }
            _ => {}
        }
        if matches!(event, quick_xml::events::Event::Start(_)) {
            open.push(label);
        }
    }
    // Attributes of a named type belong to every element of that type.
    for (element, of) in types {
        let owner = format!("type {of}");
        let own: Vec<String> = names.iter().filter(|(name, _)| *name == owner).map(|(_, name)| name.clone()).collect();
        names.extend(own.into_iter().map(|attribute| (element.clone(), attribute)));
    }
    names.retain(|(element, _)| !element.starts_with("type "));
    names
}

/// Everything the parser knows, in one text that it reads and that the schema's names describe exactly.
#[test]
fn the_schema_names_what_the_parser_knows() {
    let known: [(&str, &str); 11] = [
        ("onecclplan", "version name coll root nranks nchunks inplace instances minbytes maxbytes"),
        ("meta", "key value"),
        ("routes", ""),
        ("route", "id src dst layer hops"),
        ("rank", "id i_chunks o_chunks s_chunks"),
        ("step", "t"),
        ("send", "peer buf off cnt route"),
        ("recv", "peer buf off cnt"),
        ("sync", "scope"),
        ("copy", "src srcoff dst dstoff cnt"),
        ("reduce", "src srcoff dst dstoff cnt"),
    ];
    let pairs = known.iter().flat_map(|(element, attributes)| {
        let attributes = attributes.split(' ').filter(|name| !name.is_empty());
        std::iter::once("").chain(attributes).map(|name| ((*element).to_owned(), name.to_owned()))
    });
    let expected: BTreeSet<(String, String)> = pairs.collect();
    assert_eq!(schema_names(), expected);
    // The parser reads each of them, and lacks it where it is required.
    let full = "<onecclplan version=\"1\" name=\"all\" coll=\"broadcast\" root=\"0\" nranks=\"2\" nchunks=\"1\" \
                inplace=\"0\" instances=\"2\" minbytes=\"0\" maxbytes=\"9\"><meta key=\"a\" value=\"b\"/><routes>\
                <route id=\"0\" src=\"0\" dst=\"1\" layer=\"0\" hops=\"0 1\"/></routes><rank id=\"0\" i_chunks=\"1\" \
                o_chunks=\"1\" s_chunks=\"0\"><step t=\"0\"><send peer=\"1\" buf=\"i\" off=\"0\" cnt=\"1\" route=\"0\"/>\
                <recv peer=\"1\" buf=\"o\" off=\"0\" cnt=\"1\"/><sync scope=\"local\"/><copy src=\"i\" srcoff=\"0\" \
                dst=\"o\" dstoff=\"0\" cnt=\"1\"/><reduce src=\"i\" srcoff=\"0\" dst=\"o\" dstoff=\"0\" cnt=\"1\"/>\
                <sync scope=\"all\"/></step></rank></onecclplan>";
    parse(full).unwrap();
    let optional = ["root", "instances", "route", "scope"];
    for (element, attribute) in expected.iter().filter(|(_, attribute)| !attribute.is_empty()) {
        let start = full.find(&format!("<{element} ")).unwrap();
        let name = full[start..].find(&format!(" {attribute}=\"")).unwrap() + start;
        let end = full[name + attribute.len() + 3..].find('"').unwrap() + name + attribute.len() + 4;
        let without = parse(&format!("{}{}", &full[..name], &full[end..]));
        let may_lack = optional.contains(&attribute.as_str()) && attribute != "root";
        assert_eq!(without.is_ok(), may_lack, "{element} {attribute}");
        let required = SCHEMA.contains(&format!("<xs:attribute name=\"{attribute}\""));
        assert!(required);
    }
}
