//! The table as NCCLX reads it.

use crate::nccl::{Machine, Version};

use super::*;
use crate::advice::nccl::TUNED;

/// A row: words, and the interval of bytes per rank.
struct Row<'a> {
    words: Vec<&'a str>,
    first: u64,
    end: Option<u64>,
}

/// Splits at commas outside brackets, and takes intervals that include their lower bound and not their upper one.
fn rows(text: &str) -> Vec<Row<'_>> {
    let of = |line| {
        let mut depth = 0;
        let split = |character: char| {
            match character {
                '[' | '(' => depth += 1,
                ']' | ')' => depth -= 1,
                _ => {}
            }
            character == ',' && depth == 0
        };
        let words: Vec<&str> = str::split(line, split).collect();
        assert_eq!(words.len(), 7, "{line}");
        let inner = words[1].strip_prefix('[').and_then(|interval| interval.strip_suffix(')')).unwrap();
        let (first, end) = inner.split_once(',').unwrap();
        let end = if end.is_empty() { None } else { Some(end.parse().unwrap()) };
        let first = first.parse().unwrap();
        assert!(end.is_none_or(|end| first < end), "{line}");
        Row { words, first, end }
    };
    text.lines().filter(|line| !line.starts_with('#')).map(of).collect()
}

/// The library's answer: the first row that matches and whose algorithm is there.
fn answer<'a>(rows: &'a [Row<'_>], word: &str, bytes: u64, stock: &Stock, has_nvls: bool) -> Option<&'a Row<'a>> {
    let per_rank = bytes / stock.ranks();
    let of_node = stock.ranks() / u64::from(stock.nodes());
    rows.iter().find(|row| {
        row.words[0] == word
            && row.first <= per_rank
            && row.end.is_none_or(|end| per_rank < end)
            && row.words[5] == stock.nodes().to_string()
            && row.words[6] == of_node.to_string()
            && (has_nvls || !row.words[2].starts_with("nvls"))
    })
}

/// Sizes of whole bytes per rank get what the formulas choose. Where a bound is none, all sizes with the same bytes per rank
/// get what the smallest of them does.
#[test]
fn every_size_gets_what_is_chosen_for_its_bytes_per_rank() {
    for (machine, nodes) in [(Machine::DGX_H100, 4), (Machine::DGX_A100, 3), (Machine::DGX_B200, 2)] {
        let whole = Stock::nccl(Version::default(), machine, nodes);
        let communicators = [whole.on(1), whole];
        let text = ncclx_csv(&TUNED, &communicators);
        let rows = rows(&text);
        assert!(rows.iter().all(|row| row.words[4] == "-1"));
        for (stock, kind) in communicators.iter().flat_map(|stock| TUNED.map(|kind| (stock, kind))) {
            let word = tuner_word(kind).unwrap();
            let choices = stock.choices(kind);
            let bounds = choices.iter().flat_map(|choice| [choice.first, choice.last]);
            let near =
                |bound: u64| (bound.saturating_sub(stock.ranks())..=bound.saturating_add(stock.ranks())).take(99);
            for bytes in bounds.flat_map(near) {
                let whole_bytes = bytes / stock.ranks() * stock.ranks();
                let choice = choices.iter().find(|choice| (choice.first..=choice.last).contains(&whole_bytes)).unwrap();
                let row = answer(&rows, word, bytes, stock, true).unwrap();
                assert_eq!(
                    (row.words[2], row.words[3]),
                    (csv_word(choice.algorithm), choice.protocol.name()),
                    "{bytes}"
                );
                assert!(answer(&rows, word, bytes, stock, false).is_some(), "{word} {bytes}");
            }
        }
        assert!(answer(&rows, "allreduce", 1 << 20, &whole.on(7), true).is_none(), "others are left to the library");
    }
}
