//! Every committed input of every fuzz target, without a fuzzer.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use canopy_fuzzed::TARGETS;

/// Most bytes of all corpora together: they are read by every build of the tests.
const BYTES_MAX: u64 = 1 << 20;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("a readable entry").file_name().to_string_lossy().into_owned()).collect()
}

fn target_names() -> BTreeSet<String> {
    TARGETS.iter().map(|target| target.name.to_owned()).collect()
}

#[test]
fn every_committed_input_passes() {
    for target in TARGETS {
        let folder = fuzz().join("corpus").join(target.name);
        let inputs = names(&folder);
        assert!(!inputs.is_empty(), "{} has no input", folder.display());
        for input in inputs {
            let bytes = fs::read(folder.join(&input)).expect("a readable input");
            let outcome = std::panic::catch_unwind(|| (target.run)(&bytes));
            assert!(outcome.is_ok(), "fuzz/corpus/{}/{input} fails; what it says is above", target.name);
        }
    }
}

#[test]
fn no_target_panics_at_nothing() {
    for target in TARGETS {
        for input in [&b""[..], b"\0", b"\xff\xfe", b"{", b"<", b"[[[[[[[["] {
            (target.run)(input);
        }
    }
}

#[test]
fn every_target_has_a_binary_and_a_corpus_and_nothing_else_has() {
    let names_of = |folder: &str, ending: &str| -> BTreeSet<String> {
        names(&fuzz().join(folder)).iter().map(|name| name.trim_end_matches(ending).to_owned()).collect()
    };
    assert_eq!(names_of("corpus", ""), target_names(), "folders of fuzz/corpus");
    assert_eq!(names_of("fuzz_targets", ".rs"), target_names(), "files of fuzz/fuzz_targets");
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).expect("a readable manifest");
    let listed = manifest.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let listed: BTreeSet<String> = listed.filter(|name| *name != "canopy-fuzz").map(str::to_owned).collect();
    assert_eq!(listed, target_names(), "binaries of fuzz/Cargo.toml");
}

#[test]
fn binaries_call_the_body_of_their_name() {
    for target in TARGETS {
        let path = fuzz().join(format!("fuzz_targets/{}.rs", target.name));
        let source = fs::read_to_string(&path).expect("a readable source");
        assert!(source.contains(&format!("canopy_fuzzed::{}(", target.name)), "{}", path.display());
    }
}

#[test]
fn corpora_are_small() {
    let sizes = TARGETS.iter().flat_map(|target| {
        let folder = fuzz().join("corpus").join(target.name);
        names(&folder).into_iter().map(move |name| fs::metadata(folder.join(name)).expect("a readable input").len())
    });
    let bytes: u64 = sizes.sum();
    assert!(bytes <= BYTES_MAX, "{bytes} bytes; minimise them: fuzz/README.md");
}
