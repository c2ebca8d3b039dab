//! The dialect: what is read, and each refusal with its line.

use super::{MSCCL_BYTES_MAX, ParseFault, parse_msccl_xml, parse_msccl_xml_until, read_msccl_xml_as_runtime};
use crate::msccl::examples::{ring_allgather, ring_allreduce, split_allgather};
use crate::msccl::program::{Program, Purpose};
use crate::msccl::{Profile, write_msccl_xml};

/// A complete file of two ranks; line 4 is the first step.
const PAIR: &str = r#"<algo name="pair" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allgather" inplace="1">
  <gpu id="0" i_chunks="0" o_chunks="2" s_chunks="0">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="o" srcoff="0" dstbuf="o" dstoff="-1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="0" o_chunks="2" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
"#;

#[track_caller]
fn read(text: &str) -> Program {
    parse_msccl_xml(text, Profile::Msccl).unwrap()
}

/// The pair with the first `from` replaced is refused at this line with this reason.
#[track_caller]
fn refuse(from: &str, to: &str, line: u32, message: &str) {
    let text = PAIR.replacen(from, to, 1);
    assert_ne!(text, PAIR, "`{from}` is not in the text");
    let error = parse_msccl_xml(&text, Profile::Msccl).unwrap_err();
    assert!(error.to_string().contains(message), "`{error}` does not say `{message}`");
    assert_eq!(error.line, line, "{error}");
}

#[test]
fn what_is_written_is_read_back() {
    for program in [ring_allgather(1), ring_allgather(5), ring_allreduce(), split_allgather()] {
        assert_eq!(read(&write_msccl_xml(&program, Profile::Msccl)), program);
    }
    let optional =
        Program { out_of_place: None, bytes_min: None, bytes_max: None, thread_count: Some(512), ..ring_allgather(1) };
    assert_eq!(read(&write_msccl_xml(&optional, Profile::Msccl)), optional);
}

/// Faults are found at their column too; each runtime demands its own attributes.
#[test]
fn attributes_are_demanded_by_who_needs_them() {
    let error = parse_msccl_xml(&PAIR.replacen("cnt=\"1\"", "cnt=\"01\"", 1), Profile::Msccl).unwrap_err();
    assert_eq!((error.line, error.column), (4, 73), "{error}");
    let error = parse_msccl_xml(&PAIR.replacen("    <tb", "  é <tb\t", 1), Profile::Msccl).unwrap_err();
    assert_eq!(error.to_string().split(": ").next(), Some("line 3, column 3"));
    let later = PAIR.replacen("inplace=\"1\"", "inplace=\"1\" outofplace=\"0\" minBytes=\"0\" maxBytes=\"9\"", 1);
    for profile in [Profile::MscclExecutor, Profile::RcclMsccl] {
        let read = |text: &str| parse_msccl_xml(text, profile);
        let lacks = |text: &str| read(text).unwrap_err().fault.to_string();
        assert_eq!(lacks(PAIR), "<algo> has no attribute `outofplace`; add it");
        assert_eq!(lacks(&later.replace(" minBytes=\"0\"", "")), "<algo> has no attribute `minBytes`; add it");
        assert_eq!(lacks(&later.replace(" maxBytes=\"9\"", "")), "<algo> has no attribute `maxBytes`; add it");
        assert_eq!(read(&later).unwrap(), Program { out_of_place: Some(false), ..self::read(&later) });
        let nameless = read(&later.replace(" name=\"pair\"", "")).unwrap();
        assert_eq!(nameless.name, "");
        assert_eq!(read(&write_msccl_xml(&nameless, profile)), Ok(nameless));
        let spelled = later.replace("allgather", "reduce_scatter");
        assert!(lacks(&spelled).contains("write allgather, reducescatter"), "{}", lacks(&spelled));
        assert_eq!(read(&later.replace("allgather", "alltoallv")).unwrap().purpose, Purpose::Unjudged("alltoallv"));
    }
    assert_eq!(read(&PAIR.replace("allgather", "custom")).purpose, Purpose::Unjudged("custom"));
}

#[test]
fn harmless_variations_are_read() {
    let program = read(PAIR);
    assert_eq!((program.bytes_max, program.out_of_place), (None, None));
    let same = [
        PAIR.replace("/>", " />"),
        PAIR.replace("\">\n", "\" >\r\n"),
        PAIR.replace('\n', ""),
        PAIR.replace("\"/>", "\"></step>"),
        format!("\n<!-- a comment\n with <tags> and \t = -->\n{PAIR}<!-- the end -->\r\n"),
        PAIR.replace("id=\"0\" send=\"1\" recv=\"1\"", "recv=\"1\" id=\"0\" send=\"1\""),
    ];
    for text in same {
        assert_eq!(read(&text), program, "{text}");
    }
}

#[test]
fn the_reader_of_the_runtime_is_no_xml_parser() {
    refuse("<algo", "<?xml version=\"1.0\"?><algo", 1, "knows no declaration");
    refuse("<algo", "<!DOCTYPE algo><algo", 1, "knows no declaration");
    refuse("    <tb", "\t<tb", 3, "found a tab between elements");
    refuse("    <tb", "text<tb", 3, "found 't' between elements");
    refuse(" send=", "  send=", 3, "exactly one space before each attribute");
    refuse(" send=", "\nsend=", 3, "keep an element on one line");
    refuse(" send=", "\tsend=", 3, "found '\\t'");
    refuse("send=\"1\"", "send='1'", 3, "no value in double quotes");
    refuse("send=\"1\"", "send", 3, "no value in double quotes");
    refuse("send=\"1\" ", "send=\"1\"", 3, "expected a space");
    refuse("<tb", "<!--=--><tb", 3, "put a space after <!--");
    refuse("</algo>", "</algo><!-- open", 14, "comment is not closed");
    refuse("</algo>", "</algo", 14, "expected a space");
    refuse("hasdep=\"0\"/>\n", "hasdep=\"0\"/ >\n", 4, "expected a space");
    refuse("name=\"pair\"", &format!("name=\"{}\"", "n".repeat(256)), 1, "longer than 255");
    refuse("<tb", &format!("<{}", "t".repeat(255)), 3, "longer than 254");
    let many: String = (0..17).map(|index| format!(" a{index}=\"0\"")).collect();
    refuse("<tb", &format!("<tb{many}"), 3, "more than 16 attributes");
}

#[test]
fn elements_nest_as_they_must() {
    refuse("<algo", "<algorithm", 1, "found <algorithm>, expected <algo>");
    refuse("</algo>", "</algo><algo>", 14, "found <algo>, expected the end");
    refuse("</algo>", "</gpu>", 14, "found </gpu> in <algo>");
    refuse("</algo>", "", 15, "<algo> is not closed");
    refuse("</tb>", "<copy i_off=\"0\"/></tb>", 6, "found <copy> in <tb>, which holds only <step>");
    refuse("<step", "<gpu", 4, "found <gpu> in <tb>");
    refuse("\"/>", "\"><step/></step>", 4, "found <step> in <step>");
    for empty in ["", " \n", "<!-- nothing -->"] {
        let error = parse_msccl_xml(empty, Profile::Msccl).unwrap_err();
        assert!(error.to_string().contains("ends, expected <algo>"), "{error}");
    }
}

#[test]
fn attributes_are_known_complete_and_single() {
    refuse(" chan=\"0\"", "", 3, "<tb> has no attribute `chan`");
    refuse(" name=\"pair\"", "", 1, "<algo> has no attribute `name`");
    refuse(" chan=\"0\"", " chan=\"0\" chan=\"0\"", 3, "has the attribute `chan` twice");
    refuse(" chan=\"0\"", " chan=\"0\" colour=\"0\"", 3, "unknown attribute `colour`");
    refuse(" inplace", " redop=\"nop\" inplace", 1, "unknown attribute `redop`");
}

#[test]
fn values_are_plain() {
    refuse("cnt=\"1\"", "cnt=\"01\"", 4, "`cnt` of <step> is `01`");
    refuse("cnt=\"1\"", "cnt=\"+1\"", 4, "a plain decimal number");
    refuse("cnt=\"1\"", "cnt=\"-1\"", 4, "a plain decimal number");
    refuse("cnt=\"1\"", "cnt=\"\"", 4, "a plain decimal number");
    refuse("cnt=\"1\"", "cnt=\"0x1\"", 4, "a plain decimal number");
    refuse("cnt=\"1\"", "cnt=\"2147483648\"", 4, "from 0 to 2147483647");
    refuse("depid=\"-1\"", "depid=\"-2\"", 4, "-1 or a plain decimal number");
    refuse("hasdep=\"0\"", "hasdep=\"2\"", 4, "write 0 or 1");
    refuse("type=\"s\"", "type=\"ra\"", 4, "write s, r, rcs, rrs, rrc, rrcs, cpy, re or nop");
    refuse("srcbuf=\"o\"", "srcbuf=\"x\"", 4, "write i, o or s");
    refuse("proto=\"Simple\"", "proto=\"simple\"", 1, "write Simple, LL or LL128");
    refuse("coll=\"allgather\"", "coll=\"reducescatter\"", 1, "reduce_scatter");
    refuse("coll=\"allgather\"", "coll=\"gather\"", 1, "write allgather");
    refuse("name=\"pair\"", "name=\"a&amp;b\"", 1, "letters, digits");
    refuse("name=\"pair\"", &format!("name=\"{}\"", "n".repeat(64)), 1, "1 to 63 letters");
    refuse("inplace=\"1\"", "inplace=\"1\" maxBytes=\"9223372036854775808\"", 1, "9223372036854775807");
    refuse("inplace=\"1\"", "inplace=\"1\" minBytes=\"-1\"", 1, "a plain decimal number");
}

#[test]
fn reading_can_be_stopped() {
    let asked = std::sync::atomic::AtomicU32::new(0);
    let stop = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= 5;
    let error = parse_msccl_xml_until(PAIR, Profile::Msccl, MSCCL_BYTES_MAX, &stop).unwrap_err();
    assert_eq!((error.line, error.fault), (5, ParseFault::Stopped));
}

#[test]
fn counts_are_bounded_before_anything_is_kept() {
    let step = PAIR.lines().nth(3).unwrap();
    refuse(step, &[step; 1025].join("\n"), 1028, "<tb> has more than 1024 <step>");
    let huge = " ".repeat(MSCCL_BYTES_MAX + 1);
    let error = parse_msccl_xml(&huge, Profile::Msccl).unwrap_err();
    assert!(error.to_string().contains("over the limit of 67108864"), "{error}");
    // Who knows where a text comes from may allow it more, or less.
    let within = |text: &str, bytes_max| parse_msccl_xml_until(text, Profile::Msccl, bytes_max, &|| false);
    let padded = format!("{huge}{PAIR}");
    assert_eq!(within(&padded, padded.len()).as_ref(), parse_msccl_xml(PAIR, Profile::Msccl).as_ref());
    let error = within(PAIR, PAIR.len() - 1).unwrap_err();
    assert_eq!(error.fault, ParseFault::TooLarge { bytes: PAIR.len(), limit: PAIR.len() - 1 });
}

/// Whatever a runtime passes over is listed at once, and the program is the same without it.
#[test]
fn what_runtimes_pass_over_is_listed_and_changes_nothing() {
    let odd = PAIR
        .replacen("<algo", "<algo redop=\"sum\" nthreadblocks=\"2\"", 1)
        .replace("<tb", "<tb maxcount=\"4\"")
        .replacen("    <tb", "    <copy i_off=\"0\" o_off=\"1\"/>\n    <copy i_off=\"1\" o_off=\"0\"/>\n    <tb", 1);
    let found = read_msccl_xml_as_runtime(&odd, Profile::Msccl, MSCCL_BYTES_MAX, &|| false).unwrap();
    assert_eq!(found.program, read(PAIR));
    let listed: Vec<(&str, bool, u64)> =
        found.deviations.iter().map(|odd| (odd.name.as_str(), odd.is_element, odd.count)).collect();
    let blocks = PAIR.matches("<tb").count() as u64;
    let expected = [("redop", false, 1), ("nthreadblocks", false, 1), ("copy", true, 2), ("maxcount", false, blocks)];
    assert_eq!(listed, expected);
    // However many kinds there are, the runtime reads the file; 64 of them are listed.
    let many: String = (0..100).map(|kind| format!("    <k{kind}/>\n")).collect();
    let odd = PAIR.replacen("    <tb", &format!("{many}    <tb"), 1);
    let found = read_msccl_xml_as_runtime(&odd, Profile::Msccl, MSCCL_BYTES_MAX, &|| false).unwrap();
    assert_eq!((found.program, found.deviations.len()), (read(PAIR), 64));
    // What the runtime demands is demanded.
    let lacks = read_msccl_xml_as_runtime(PAIR, Profile::MscclExecutor, MSCCL_BYTES_MAX, &|| false).unwrap_err();
    assert!(lacks.to_string().contains("has no attribute `outofplace`"), "{lacks}");
}
