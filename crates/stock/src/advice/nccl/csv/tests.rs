//! The table as the plugin reads it.

use crate::nccl::{Known, Machine, Version};

use super::*;

/// Four DGX H100.
fn across() -> Stock {
    Stock::nccl(Version::default(), Machine::DGX_H100, 4)
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

/// A call without a row, or with a row of -1 channels, gets one channel.
#[test]
fn every_call_has_a_row_that_names_channels() {
    let stock = |machine, nodes| Stock::nccl(Version::default(), machine, nodes);
    let single = Machine { gpus: 1, inside: 0, has_nvlink: false, nics: 1, nic: 25_000, ..Machine::DGX_A100 };
    let nothing = Machine { nics: 0, nic: 0, ..single };
    for network in [across(), across().on(1), stock(single, 6), stock(nothing, 1)] {
        let text = nccl_csv(&[CollectiveKind::Allreduce], &[network]);
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

/// Sizes on both sides of every bound of a table, and the ends.
fn bounds(rows: &[Row<'_>]) -> Vec<u64> {
    let near = |bound: i128| [bound - 1, bound, bound + 1];
    let all = rows.iter().flat_map(|row| near(row.number(1)).into_iter().chain(near(row.number(2))));
    all.filter_map(|size| u64::try_from(size).ok()).chain([0, u64::MAX]).collect()
}

/// On each communicator, every size of every collective gets what the formulas choose there, and the same size without
/// switches that add up gets what they choose without them.
#[test]
fn each_communicator_gets_its_own_choices() {
    let single = Machine { gpus: 1, inside: 0, has_nvlink: false, nics: 1, nic: 25_000, ..Machine::DGX_A100 };
    let networks = [(Machine::DGX_H100, 4), (Machine::DGX_A100, 2), (Machine::DGX_B200, 2), (single, 6)];
    for (machine, nodes) in networks {
        let whole = Stock::nccl(Version::default(), machine, nodes);
        let communicators = [whole.on(1), whole];
        let text = nccl_csv(&TUNED, &communicators);
        let rows = rows(&text);
        assert!(rows.iter().all(|row| (2..=64).contains(&row.number(5))), "{text}");
        for (stock, kind) in communicators.iter().flat_map(|stock| TUNED.map(|kind| (stock, kind))) {
            let word = tuner_word(kind).unwrap();
            for size in bounds(&rows) {
                let chosen = |choices: Vec<Choice>| {
                    let choice = choices.into_iter().find(|choice| (choice.first..=choice.last).contains(&size));
                    choice.map(|choice| (csv_word(choice.algorithm), choice.protocol.name()))
                };
                let call = (word, size, stock.nodes().into(), stock.ranks().into());
                let found = |has_nvls| answer(&rows, call, has_nvls).map(|row| (row.words[3], row.words[4]));
                let Some(expected) = chosen(stock.choices(kind)) else {
                    assert!(found(true).is_some(), "{word} {size}");
                    continue;
                };
                assert_eq!(found(true), Some(expected), "{word} {size}\n{text}");
                if expected.0.starts_with("nvls") {
                    assert_eq!(found(false), chosen(stock.choices_of(kind, nccl_algorithms(kind))), "{word} {size}");
                }
            }
        }
        // Others have a row, too.
        assert!(answer(&rows, ("reduce", 1 << 20, 3, 7), false).is_some());
    }
}

/// Collectives that are not asked for are in the last rows alone: without a row they would have a single channel.
#[test]
fn a_list_of_collectives_leaves_no_other_without_a_row() {
    let text = nccl_csv(&[CollectiveKind::Allgather, CollectiveKind::AllToAll], &[across()]);
    let rows = rows(&text);
    assert!(rows.iter().filter(|row| row.number(6) == 4).all(|row| row.words[0] == "allgather"));
    assert!(answer(&rows, ("allreduce", 1 << 30, 4, 32), true).is_some_and(|row| row.number(7) == -1));
    assert_eq!(nccl_csv(&TUNED, &[]), "");
}

/// From a megabyte on, every size has one row of each communicator, with RCCL's own channels; below and elsewhere none has.
#[test]
fn rccl_gets_rows_from_a_megabyte_on() {
    let machine = Machine { nics: 8, nic: 50_000, ..Machine::DGX_H100 };
    let whole = Stock::rccl(Known::Mi300x, machine, 4);
    let communicators = [whole.on(1), whole];
    let text = rccl_csv(&TUNED, &communicators);
    let rows = rows(&text);
    assert!(rows.iter().all(|row| row.number(5) == -1));
    for (stock, kind) in communicators.iter().flat_map(|stock| TUNED.map(|kind| (stock, kind))) {
        for size in bounds(&rows) {
            let matching = rows.iter().filter(|row| {
                row.words[0] == tuner_word(kind).unwrap()
                    && (row.number(1)..=row.number(2)).contains(&i128::from(size))
                    && (row.number(6), row.number(7)) == (stock.nodes().into(), stock.ranks().into())
            });
            let words: Vec<(&str, &str)> = matching.map(|row| (row.words[3], row.words[4])).collect();
            let choices = stock.choices(kind);
            let choice = choices.iter().find(|choice| (choice.first..=choice.last).contains(&size)).unwrap();
            let expected = [(csv_word(choice.algorithm), choice.protocol.name())];
            assert_eq!(
                words,
                if size < ADVICE_BYTES_MIN { &expected[..0] } else { &expected },
                "{kind} {size}\n{text}"
            );
        }
    }
    assert!(answer(&rows, ("allreduce", 1 << 30, 2, 16), true).is_none());
}
