//! The file as Open MPI 4.1 reads it.

use canopy_topology::{TopologyLimits, generate};

use super::*;

/// Smallest message, algorithm and segment.
type Rule = (u64, u32, u64);
/// By communicator size.
type Sizes = Vec<(u64, Vec<Rule>)>;

/// By collective, communicator size and message size: algorithm and segment.
fn read(text: &str) -> Vec<(u32, Sizes)> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let mut numbers = lines.flat_map(str::split_whitespace).map(|word| word.parse::<u64>().unwrap());
    let mut next = || numbers.next().unwrap();
    let mut found = Vec::new();
    for _ in 0..next() {
        let collective = u32::try_from(next()).unwrap();
        let mut sizes: Sizes = Vec::new();
        for _ in 0..next() {
            let (ranks, count) = (next(), next());
            assert!(sizes.last().is_none_or(|(before, _)| *before < ranks), "sizes rise");
            let mut rules: Vec<Rule> = Vec::new();
            for _ in 0..count {
                let (first, id, fan_out, segment) = (next(), next(), next(), next());
                assert!(if rules.is_empty() { first == 0 } else { rules.iter().all(|rule| rule.0 < first) });
                assert_eq!(fan_out, 0);
                rules.push((first, u32::try_from(id).unwrap(), segment));
            }
            sizes.push((ranks, rules));
        }
        assert_eq!(sizes[0].0, 0, "a communicator below the first size would take it");
        found.push((collective, sizes));
    }
    assert!(numbers.next().is_none(), "{text}");
    found
}

/// The last size that is not above, of communicators and of messages.
fn answer(file: &[(u32, Sizes)], collective: u32, ranks: u64, bytes: u64) -> (u32, u64) {
    let Some((_, sizes)) = file.iter().find(|(number, _)| *number == collective) else { return (0, 0) };
    let (_, rules) = sizes.iter().rfind(|(size, _)| *size <= ranks).unwrap();
    let (_, id, segment) = rules.iter().rfind(|(first, ..)| *first <= bytes).unwrap();
    (*id, *segment)
}

#[test]
fn each_communicator_has_its_choices_and_others_are_left_alone() {
    let topology = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
    let ranks = [7, 8, 16];
    let choices: Vec<MpiChoice> = ranks
        .iter()
        .map(|&ranks| Paths::new(&topology, ranks, 1_000))
        .flat_map(|paths| OPENMPI_COLLECTIVES.map(|kind| openmpi_choices(&paths, kind)))
        .flatten()
        .collect();
    let text = openmpi_rules(&choices);
    let file = read(&text);
    assert_eq!(file.len(), OPENMPI_COLLECTIVES.len());
    for (kind, number) in NUMBERS {
        for choice in choices.iter().filter(|choice| choice.collective == kind) {
            let expected = (choice.candidate.id, choice.candidate.segment);
            for bytes in [choice.first, choice.first + 1, choice.last.saturating_sub(1), choice.last] {
                assert_eq!(answer(&file, number, choice.ranks, bytes), expected, "{kind} {bytes}\n{text}");
            }
        }
        for other in [2, 6, 9, 15, 17, 1000] {
            assert_eq!(answer(&file, number, other, 1 << 20), (0, 0), "{other}");
        }
    }
}

#[test]
fn collectives_without_a_choice_have_no_rule() {
    let topology = generate("dims:switch4,bw=50GB/s", &TopologyLimits::STANDARD).unwrap();
    let choices = openmpi_choices(&Paths::new(&topology, 4, 1_000), CollectiveKind::Reduce);
    let file = read(&openmpi_rules(&choices));
    assert_eq!(file.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [11]);
    assert_eq!(openmpi_rules(&[]), "0 # collectives\n");
}
