//! Committed inputs with changes that a fuzzer would try first. They are always the same ones: a finding stops the change
//! that brought it, and no other.
//!
//! `CANOPY_MUTATIONS` says how many are tried of each target.

use std::fs;
use std::path::Path;

use canopy_fuzzed::{FuzzTarget, TARGETS};

/// Changed inputs of each target where nothing else is said.
const MUTATIONS: u64 = 1000;
/// Longest input.
const BYTES_MAX: usize = 8192;
/// What often stands at the edge of something.
const WORDS: [&[u8]; 14] = [
    b"0",
    b"-1",
    b"4294967296",
    b"18446744073709551615",
    b"1e400",
    b"1/0",
    b"\"\"",
    b"[[[[[[[[",
    b"}}",
    b"<!--",
    b"\0",
    b"\xff",
    b"\n",
    "é".as_bytes(),
];

/// Numbers that look as if by chance (SplitMix64, Steele et al. 2014).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of the numbers below `end`; zero if that is zero.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).expect("it is below a length")
    }

    /// A part of this length at most.
    fn range(&mut self, length: usize, most: usize) -> std::ops::Range<usize> {
        let begin = self.below(length + 1);
        begin..begin + self.below((length - begin).min(most) + 1)
    }
}

/// The input with one to four changes.
fn mutated(inputs: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = inputs[chance.below(inputs.len())].clone();
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        match chance.below(6) {
            0 => {
                let changed = u8::try_from(chance.below(256)).expect("it is below 256");
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = changed);
            }
            1 => bytes.drain(chance.range(bytes.len(), 64)).for_each(drop),
            2 => {
                let range = chance.range(bytes.len(), 64);
                let again = bytes[range].to_vec();
                bytes.splice(at..at, again);
            }
            3 => {
                let word = WORDS[chance.below(WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
            4 => {
                let other = &inputs[chance.below(inputs.len())];
                let part = other[chance.range(other.len(), 256)].to_vec();
                bytes.splice(at..at, part);
            }
            _ => bytes.truncate(at),
        }
    }
    bytes.truncate(BYTES_MAX);
    bytes
}

fn run(target: &FuzzTarget, count: u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target.name);
    let mut paths: Vec<_> =
        fs::read_dir(&folder).expect("a corpus").map(|entry| entry.expect("an input").path()).collect();
    paths.sort();
    let inputs: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).expect("a readable input")).collect();
    for number in 0..count {
        let input = mutated(&inputs, &mut Chance(number));
        let outcome = std::panic::catch_unwind(|| (target.run)(&input));
        if outcome.is_err() {
            let kept = std::env::temp_dir().join(format!("canopy-{}-{number}", target.name));
            fs::write(&kept, &input).expect("a writable folder for temporary files");
            panic!("{} fails at change {number}, kept as {}; what it says is above", target.name, kept.display());
        }
    }
}

#[test]
fn changed_inputs_are_refused_or_read_like_any_other() {
    let count = std::env::var("CANOPY_MUTATIONS").map_or(MUTATIONS, |text| text.parse().expect("a number"));
    TARGETS.iter().for_each(|target| run(target, count));
}
