//! Whatever bytes come, an answer does, and soon.

use canopy_import::{Cluster, Content, FileKind, ImportError, Layout, MachineOf, Rates, compose, read, read_content};
use canopy_topology::TopologyLimits;
use proptest::prelude::*;

use crate::small::SMALL;

const LIMITS: TopologyLimits = TopologyLimits { nodes_max: 300, links_max: 5_000, bytes_max: 1 << 20 };

/// What means something in one kind of file or another.
const MARKS: &[u8] = b"[]{}<>=\"' \n\\9-,";

#[test]
fn there_is_a_file_of_every_kind_and_it_is_recognised() {
    for kind in FileKind::foreign() {
        let (_, text) = SMALL.iter().find(|(of, _)| *of == kind).unwrap_or_else(|| panic!("none of {}", kind.name()));
        let (found, _) = read_content(text.as_bytes(), &TopologyLimits::STANDARD, &|| false).unwrap();
        assert_eq!(found, kind);
    }
}

/// What is no network is called by its name; other XML is read as that of NCCL, and of other text the kinds
/// that are read are named.
#[test]
fn files_are_told_apart() {
    let refusal = |bytes: &[u8]| read(bytes, None, &LIMITS).unwrap_err();
    assert!(matches!(refusal(b"<graphs/>"), ImportError::NotNetwork(_)));
    assert!(matches!(refusal(b"\x89PNG\xff"), ImportError::Binary { .. }));
    assert!(matches!(refusal(b"<other/>"), ImportError::Nccl(_)));
    assert!(matches!(refusal(b"<"), ImportError::Xml(_)));
    assert!(matches!(refusal(b"canopy: x"), ImportError::Malformed(_)));
    assert!(matches!(refusal(b"{"), ImportError::Unknown { .. }));
    assert!(matches!(refusal(b"ring"), ImportError::Unknown { .. }));
    assert!(matches!(refusal(b"a\xff"), ImportError::Document(_)));
    let own = b"canopy: 1\nnodes: [{id: \"<algo\"}, {id: \"<system\"}]\nlinks: []\n";
    assert_eq!(read(own, None, &LIMITS).unwrap().topology.rank_count(), 2);
}

#[test]
fn files_may_end_anywhere() {
    for (kind, text) in SMALL {
        // Every third place: each is read twice, as it is and without what may be around it.
        for end in (0..text.len()).step_by(3).filter(|&end| text.is_char_boundary(end)) {
            let _ = read(&text.as_bytes()[..end], Some(*kind), &LIMITS);
        }
    }
}

proptest! {
    #[test]
    fn garbage_is_refused_without_panic(bytes: Vec<u8>, text in "[\\[\\]{}<>:,&*!|\"' \\n\\-a-z0-9=#\\\\]{0,200}") {
        for kind in FileKind::foreign().map(Some).chain([None]) {
            let _ = read(&bytes, kind, &LIMITS);
            let _ = read(text.as_bytes(), kind, &LIMITS);
        }
    }

    #[test]
    fn damaged_files_get_an_answer(
        number in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..5), 1..6),
    ) {
        let (kind, text) = SMALL[number.index(SMALL.len())];
        let mut bytes = text.as_bytes().to_vec();
        for (place, byte, what) in damage {
            if bytes.is_empty() {
                break;
            }
            let place = place.index(bytes.len());
            match what {
                0 => bytes[place] = byte,
                1 => drop(bytes.remove(place)),
                2 => bytes.insert(place, MARKS[usize::from(byte) % MARKS.len()]),
                3 => bytes.truncate(place),
                _ => {
                    let end = (place + usize::from(byte)).min(bytes.len());
                    let copy = bytes[place..end].to_vec();
                    bytes.splice(place..place, copy);
                }
            }
        }
        if let Ok(imported) = read(&bytes, Some(kind), &LIMITS) {
            prop_assert!(imported.topology.nodes().len() <= 300 && imported.topology.links().len() <= 5_000);
        }
        let _ = read_content(&bytes, &LIMITS, &|| false);
    }
}

/// Numbers that mean trouble.
const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1e999",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999",
    "0.0000001",
    "NaN",
];

/// Changes a text as a person, a program or an attacker might: bytes, marks, numbers, lines, nesting.
fn change(bytes: &mut Vec<u8>, other: &[u8], next: &mut impl FnMut() -> usize) {
    let place = next() % (bytes.len() + 1);
    match next() % 11 {
        0 if place < bytes.len() => bytes[place] = u8::try_from(next() % 256).unwrap_or_default(),
        1 if place < bytes.len() => drop(bytes.remove(place)),
        2 => bytes.insert(place, MARKS[next() % MARKS.len()]),
        3 => bytes.truncate(place.max(bytes.len() / 2)),
        4 => {
            let end = (place + next() % 400).min(bytes.len());
            let copy = bytes[place..end].repeat(1 + next() % 8);
            bytes.splice(place..place, copy);
        }
        5 => {
            let end = (place + next() % 60).min(bytes.len());
            drop(bytes.drain(place..end));
        }
        6 | 7 => {
            let Some(start) = (place..bytes.len()).find(|&at| bytes[at].is_ascii_digit()) else { return };
            let end = (start..bytes.len()).find(|&at| !bytes[at].is_ascii_digit()).unwrap_or(bytes.len());
            bytes.splice(start..end, NUMBERS[next() % NUMBERS.len()].bytes());
        }
        8 => {
            let (open, close) = [("[", "]"), ("{\"a\":", "}"), ("<a>", "</a>"), ("- ", "")][next() % 4];
            let depth = next() % 300;
            bytes.splice(place..place, format!("{}{}", open.repeat(depth), close.repeat(depth)).into_bytes());
        }
        9 => {
            let mut lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
            let (a, b) = (next() % lines.len().max(1), next() % lines.len().max(1));
            if a < lines.len() && b < lines.len() {
                lines.swap(a, b);
            }
            *bytes = lines.concat();
        }
        _ => {
            let start = next() % (other.len() + 1);
            let end = (start + next() % 300).min(other.len());
            bytes.splice(place..place, other[start..end].iter().copied());
        }
    }
}

/// All that may be made of a file: a network, parts of a cluster, and the cluster.
fn use_up(kind: FileKind, bytes: &[u8]) {
    let whole = read(bytes, Some(kind), &LIMITS);
    if let Ok(imported) = whole {
        assert!(imported.topology.nodes().len() <= 300 && imported.topology.links().len() <= 5_000);
    }
    let rates: Rates = "nic=1GB/s".parse().expect("a rate");
    let (machines, fabric) = match read_content(bytes, &LIMITS, &|| false) {
        Ok((_, Content::Machine(machine))) => {
            let names: Vec<String> = vec!["a".to_owned(), "b".to_owned()];
            let Ok(fabric) = Layout::Star.fabric(machine.ports.len(), names) else { return };
            (vec![MachineOf { machine: Some(machine), hosts: None }], fabric)
        }
        Ok((_, Content::Fabric(fabric))) => (vec![MachineOf { machine: None, hosts: None }], fabric),
        _ => return,
    };
    let cluster = Cluster { machines, fabric, rates };
    let _ = cluster.check();
    let nodes = cluster.nodes();
    let _ = compose(&cluster, &nodes[..nodes.len().min(40)], &LIMITS, &|| false);
}

/// Changed files of every kind: some hundred, or for as many seconds of each kind as `CANOPY_FUZZ_SECONDS` says. A file that
/// takes a second thrice is a finding then. `CANOPY_FUZZ_KINDS` names the kinds, separated by commas; all without it.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "CANOPY_FUZZ_SECONDS states the duration, CANOPY_FUZZ_KINDS what is read"
)]
fn changed_files_of_every_kind_get_an_answer() {
    let seconds = std::env::var("CANOPY_FUZZ_SECONDS").ok().and_then(|text| text.parse::<u64>().ok());
    let begun =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    let kinds = std::env::var("CANOPY_FUZZ_KINDS").ok();
    let is_wanted = |name: &str| kinds.as_ref().is_none_or(|kinds| kinds.split(',').any(|kind| kind == name));
    for (kind, text) in SMALL.iter().filter(|(kind, _)| is_wanted(kind.name())) {
        let mut state = if seconds.is_some() { u64::from(begun) } else { 7 };
        let mut next = || {
            // SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            usize::try_from((mixed ^ (mixed >> 31)) >> 1).unwrap_or_default()
        };
        let (started, mut count) = (std::time::Instant::now(), 0_u64);
        let goes_on = |count| match seconds {
            None => count < 300,
            Some(seconds) => started.elapsed().as_secs() < seconds,
        };
        while goes_on(count) {
            let mut bytes = text.as_bytes().to_vec();
            let other = SMALL[next() % SMALL.len()].1.as_bytes();
            for _ in 0..1 + next() % 8 {
                change(&mut bytes, other, &mut next);
            }
            // A busy machine may take a second once.
            let is_quick = (0..3).any(|_| {
                let began = std::time::Instant::now();
                let used = std::panic::catch_unwind(|| use_up(*kind, &bytes));
                assert!(used.is_ok(), "{}: {}", kind.name(), bytes.escape_ascii());
                seconds.is_none() || began.elapsed().as_millis() <= 1_000
            });
            assert!(is_quick, "{}: {}", kind.name(), bytes.escape_ascii());
            count += 1;
        }
        println!("{}: {count} files", kind.name());
    }
}
