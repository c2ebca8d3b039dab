//! The table as the plugin reads it.

use super::*;

/// Four DGX H100.
const ACROSS: NcclNetwork = NcclNetwork {
    ranks: 32,
    nodes: 4,
    nics: 8,
    nic_bytes_per_sec: 50_000_000_000,
    inside_bytes_per_sec: 450_000_000_000,
};

fn advice(collective: CollectiveKind, first: u64, end: u64, algorithm: NcclAlgorithm) -> Advice {
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
        advice(CollectiveKind::Allreduce, 1, 1 << 20, NcclAlgorithm::Tree),
        advice(CollectiveKind::Allreduce, 1 << 10, (1 << 23) + 1, NcclAlgorithm::Tree),
        advice(CollectiveKind::Allreduce, (1 << 23) + 1, 1 << 30, NcclAlgorithm::Ring),
        Advice { nodes: None, ..advice(CollectiveKind::ReduceScatter, 1 << 21, 1 << 22, NcclAlgorithm::Ring) },
        advice(CollectiveKind::Gather, 1 << 21, 1 << 22, NcclAlgorithm::Ring),
    ];
    let text = tuner_csv(&given, &ACROSS);
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
    let given = [advice(CollectiveKind::Allreduce, 1 << 20, 1 << 30, NcclAlgorithm::Ring)];
    let inside = NcclNetwork { ranks: 8, nodes: 1, ..ACROSS };
    let single =
        NcclNetwork { ranks: 6, nodes: 6, nics: 1, nic_bytes_per_sec: 25_000_000_000, inside_bytes_per_sec: 0 };
    let nothing = NcclNetwork { ranks: 0, nodes: 0, nics: 0, nic_bytes_per_sec: 0, inside_bytes_per_sec: 0 };
    for network in [ACROSS, inside, single, nothing] {
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

/// 16 across DGX A100 or H100, 24 inside one; four fast NICs have 16 as well, four slow ones 8.
#[test]
fn channels_are_those_that_nccl_sets_up() {
    let four = |rate| NcclNetwork { nics: 4, nic_bytes_per_sec: rate, ..ACROSS };
    assert_eq!(ACROSS.channels(), 16);
    assert_eq!(NcclNetwork { nic_bytes_per_sec: 25_000_000_000, ..ACROSS }.channels(), 16);
    assert_eq!(NcclNetwork { nodes: 1, ..ACROSS }.channels(), 24);
    assert_eq!(NcclNetwork { nodes: 1, inside_bytes_per_sec: 300_000_000_000, ..ACROSS }.channels(), 24);
    assert_eq!((four(50_000_000_000).channels(), four(25_000_000_000).channels()), (16, 8));
}

/// Small messages by the protocol of least latency, large ones by Simple over rings, where nothing is advised; in between an
/// allreduce goes over trees. Where switches add up, one machine or two do so.
#[test]
fn other_calls_get_what_nccl_would_choose() {
    let text = tuner_csv(&[], &ACROSS);
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
