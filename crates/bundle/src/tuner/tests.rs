//! The table as the plugin reads it.

use canopy_nccl::{Machine, Version};

use super::*;

/// Four DGX H100.
fn across() -> Stock {
    Stock::nccl(Version::default(), Machine::DGX_H100, 4)
}

fn advice(collective: CollectiveKind, first: u64, end: u64, algorithm: Algorithm) -> Advice {
    let range = ByteRange::new(first, end).unwrap();
    Advice { collective, ranks: 16, nodes: Some(2), range, algorithm, channels: 16 }
}

/// A row as the plugin takes it: lines below 256 characters, ten columns, `#` only at the start of a line.
struct Row<'a> {
    words: Vec<&'a str>,
}

impl Row<'_> {
    fn number(&self, column: usize) -> i128 {
        self.words[column].parse().unwrap()
    }
}

fn rows(text: &str) -> Vec<Row<'_>> {
    assert!(text.is_ascii() && text.lines().all(|line| line.len() < 255), "{text}");
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<Row<'_>> = rows.map(|line| Row { words: line.split(',').collect() }).collect();
    assert!(rows.iter().all(|row| row.words.len() == 10), "{text}");
    rows
}

/// The plugin's answer: the first row of the collective whose sizes, nodes and ranks match, and whose algorithm NCCL has.
fn answer<'a>(rows: &'a [Row<'a>], call: (&str, u64, i128, i128), has_nvls: bool) -> Option<&'a Row<'a>> {
    let (word, size, nodes, ranks) = call;
    rows.iter().find(|row| {
        let any = |column: usize, own: i128| row.number(column) == -1 || row.number(column) == own;
        let is_there = has_nvls || !row.words[3].starts_with("nvls");
        row.words[0] == word
            && (row.number(1)..=row.number(2)).contains(&i128::from(size))
            && any(6, nodes)
            && any(7, ranks)
            && is_there
    })
}

#[test]
fn rows_have_ten_columns_and_begin_where_protocols_do_not_decide() {
    let given = [
        advice(CollectiveKind::Allreduce, 1, 1 << 20, Algorithm::Tree),
        advice(CollectiveKind::Allreduce, 1 << 10, (1 << 23) + 1, Algorithm::Tree),
        advice(CollectiveKind::Allreduce, (1 << 23) + 1, 1 << 30, Algorithm::Ring),
        Advice { nodes: None, ..advice(CollectiveKind::ReduceScatter, 1 << 21, 1 << 22, Algorithm::Ring) },
        advice(CollectiveKind::Gather, 1 << 21, 1 << 22, Algorithm::Ring),
    ];
    let text = tuner_csv(&given, &across());
    let of_16: Vec<&str> = text.lines().filter(|line| line.ends_with(",16,-1,-1")).collect();
    assert_eq!(
        of_16,
        [
            "allreduce,1048576,8388608,tree,simple,16,2,16,-1,-1",
            "allreduce,8388609,1073741823,ring,simple,16,2,16,-1,-1",
            "reducescatter,2097152,4194303,ring,simple,16,-1,16,-1,-1",
        ]
    );
}

/// A call without a row, or with a row of -1 channels, gets one channel.
#[test]
fn every_call_has_a_row_that_names_channels() {
    let given = [advice(CollectiveKind::Allreduce, 1 << 20, 1 << 30, Algorithm::Ring)];
    let stock = |machine, nodes| Stock::nccl(Version::default(), machine, nodes);
    let single = Machine { gpus: 1, inside: 0, has_nvlink: false, nics: 1, nic: 25_000, ..Machine::DGX_A100 };
    let nothing = Machine { nics: 0, nic: 0, ..single };
    for network in [across(), across().on(1), stock(single, 6), stock(nothing, 1)] {
        let text = tuner_csv(&given, &network);
        let rows = rows(&text);
        assert!(rows.iter().all(|row| (2..=64).contains(&row.number(5))), "{text}");
        for word in ["allreduce", "allgather", "reducescatter", "broadcast", "reduce"] {
            let sizes = (0..64).flat_map(|power| [(1_u64 << power) - 1, 1 << power]).chain([u64::MAX]);
            for size in sizes {
                for (nodes, ranks) in [(1, 2), (1, 8), (2, 16), (4, 32), (1000, 8000)] {
                    for has_nvls in [true, false] {
                        assert!(answer(&rows, (word, size, nodes, ranks), has_nvls).is_some(), "{word} {size}\n{text}");
                    }
                }
            }
        }
        for words in ["example tuner plugin (ext-tuner/example) of NCCL 2.27 to 2.31", "NCCL_TUNER_PLUGIN"] {
            assert!(text.contains(words), "{text}");
        }
    }
}

/// Small messages by the protocol of least latency, large ones by Simple over rings, where nothing is advised; in between an
/// allreduce goes over trees. Where switches add up, one machine or two do so.
#[test]
fn other_calls_get_what_nccl_would_choose() {
    let text = tuner_csv(&[], &across());
    let rows = rows(&text);
    let choice = |word, size, nodes, has_nvls| {
        let row = answer(&rows, (word, size, nodes, 8 * nodes), has_nvls).unwrap();
        (row.words[3], row.words[4])
    };
    assert_eq!(choice("allreduce", 1 << 10, 4, false), ("tree", "ll"));
    assert_eq!(choice("allreduce", 8 << 30, 4, true), ("ring", "simple"));
    assert_eq!(choice("allgather", 1 << 10, 4, true), ("ring", "ll"));
    assert_eq!(choice("allgather", 8 << 30, 4, true), ("ring", "simple"));
    assert_eq!(choice("allreduce", 1 << 30, 1, true), ("nvls", "simple"));
    assert_eq!(choice("allreduce", 1 << 30, 2, true), ("nvls_tree", "simple"));
    assert_eq!(choice("allreduce", 8 << 30, 1, false), ("ring", "simple"));
}
