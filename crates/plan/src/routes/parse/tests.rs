//! Texts are read as they are meant, and refused with the place where they say what the format does not know.

use super::*;
use crate::oneccl::ParseFault;
use crate::routes::{SCHEMA, write};

const RING: &str = include_str!("../../../tests/route_files/all_to_all_ring3.xml");

#[track_caller]
fn refused(from: &str, to: &str, words: &str) {
    assert!(RING.contains(from), "{from}");
    let error = parse(&RING.replacen(from, to, 1)).unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn what_is_written_is_read() {
    let program = parse(RING).unwrap();
    assert_eq!((program.rank_count, program.block_chunks, program.layer_count, program.routes_max), (3, 2, 2, 1));
    assert_eq!(program.ranks[2].ports_of(&program.ranks[2].queue_pairs[1]), [0, 0]);
    let text = write(&program);
    assert_eq!(parse(&text).as_ref(), Ok(&program));
    assert_eq!(write(&parse(&text).unwrap()), text);
    let mut named = program;
    named.nodes[0].name = "a <b> & \"c\"".to_owned();
    assert_eq!(parse(&write(&named)), Ok(named));
}

#[test]
fn what_is_not_known_is_refused_where_it_stands() {
    refused("<node id=\"0\"", "<node mtu=\"9\" id=\"0\"", "line 4, column 3: <node> has the unknown attribute `mtu`");
    refused("<rank id=\"0\"", "<route/><rank id=\"0\"", "found <route>, expected <node>, <rank> in this order");
    refused("version=\"1\"", "version=\"2\"", "use 1, the only version");
    refused("alltoall", "allgather", "use gather, scatter or alltoall");
    refused("coll=\"alltoall\"", "coll=\"scatter\"", "has no attribute `root`");
    refused("coll=\"alltoall\"", "coll=\"scatter\" root=\"3\"", "use one of the ranks");
    refused("coll=\"alltoall\"", "coll=\"alltoall\" root=\"0\"", "only for gather and scatter");
    refused("nranks=\"3\"", "nranks=\"1\"", "use 2 to 65535");
    refused("nlayers=\"2\"", "nlayers=\"4097\"", "use 1 to 4096");
    refused("blockchunks=\"2\"", "blockchunks=\"0\"", "use 1 to 4294967295");
    refused("algbw=\"6000000000\"", "algbw=\"6e9\"", "a fraction such as 7/3");
    refused("algbw=\"6000000000\"", "algbw=\"12000000000/2\"", "a fraction such as 7/3");
    refused("rate=\"6000000000\"", "rate=\"0\"", "at least 1");
    refused("kind=\"rank\"", "kind=\"gpu\"", "use rank, switch or forwarder");
    refused("ports=\"0 0\"", "ports=\"0  0\"", "one space between them");
    refused("ports=\"0 0\"", "ports=\"\"", "one space between them");
    refused("layer=\"1\"", "layer=\"-1\"", "a whole number up to 4294967295");
    refused("cnt=\"2\"/>", "cnt=\"2\">x</qp>", "text between elements does not belong");
    refused("</routeplan>", "</routeplan><routeplan/>", "the end of the text");
    refused("<routeplan", "<!DOCTYPE routeplan><routeplan", "document type");
    assert!(is_plan(RING) && !is_plan("<onecclplan/>") && !is_plan(""));
    let stopped = parse_until(RING, &|| true).unwrap_err();
    assert_eq!(stopped.fault, ParseFault::Stopped);
}

/// Each attribute is needed, and the schema names it.
#[test]
fn every_attribute_counts() {
    let names = |text: &str| -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (at, _) in text.match_indices("=\"") {
            let start = text[..at].rfind(' ').unwrap() + 1;
            found.push((start, text[start..at].to_owned()));
        }
        found
    };
    let plain = write(&parse(RING).unwrap());
    for (start, name) in names(&plain) {
        assert!(SCHEMA.contains(&format!("<xs:attribute name=\"{name}\"")), "{name}");
        let end = plain[start + name.len() + 2..].find('"').unwrap() + start + name.len() + 3;
        let without = format!("{}{}", &plain[..start - 1], &plain[end..]);
        let error = parse(&without).unwrap_err();
        assert!(error.to_string().contains(&format!("has no attribute `{name}`")), "{error}");
    }
}
