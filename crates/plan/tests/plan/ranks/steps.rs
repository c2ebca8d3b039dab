//! The steps of one rank as JSON.

use std::collections::{BTreeMap, VecDeque};

use canopy_plan::{RankFileError, RankSteps, parse_rank_steps, rank_steps, write_rank_steps};
use canopy_schedule::{Action, CollectiveKind, ProgramPhase};

use super::rules::{PHASES, Random, Rule, any, inside_first, plain};

#[test]
fn steps_are_read_as_they_were_written() {
    let mut random = Random(7);
    for _ in 0..200 {
        let rule = any(&mut random, 40);
        let rank = random.below(rule.rank_count);
        let steps = rank_steps(&rule.request(rank)).unwrap();
        assert_eq!(steps.program, rule.stages.program(rank, rule.rank_count).unwrap());
        let text = write_rank_steps(&steps);
        assert_eq!(parse_rank_steps(&text).unwrap(), steps);
    }
}

#[test]
fn the_format_is_small_and_says_what_it_is() {
    let rule = plain(CollectiveKind::Allgather, &[2], 1, 3);
    let text = write_rank_steps(&rank_steps(&rule.request(1)).unwrap());
    let expected = "{\"schema\":1,\"collective\":\"allgather\",\"ranks\":2,\"rank\":1,\"chunks_per_share\":3,\"phases\":[{\
                    \"action\":\"copy\",\"steps\":[{\"inside\":true,\"sends\":[],\"receives\":[]},{\"inside\":false,\"sends\":\
                    [{\"peer\":0,\"chunks\":[[3,6]]}],\"receives\":[{\"peer\":0,\"chunks\":[[0,3]]}]},{\"inside\":true,\
                    \"sends\":[],\"receives\":[]}]}]}\n";
    assert_eq!(text, expected);
    let refused = |from: &str, to: &str| parse_rank_steps(&text.replacen(from, to, 1)).unwrap_err().to_string();
    assert!(refused("\"schema\":1", "\"schema\":2").contains("version 2"));
    assert!(refused("allgather", "broadcast").contains("`broadcast` has no steps of ranks"));
    assert!(refused("\"rank\":1", "\"rank\":2").contains("rank 2 is not one of 2 ranks"));
    assert!(refused("\"peer\":0", "\"peer\":1").ends_with("phase 0, step 1: peer 1 is not another rank"));
    assert!(refused("[[3,6]]", "[[3,7]]").contains("chunks 3 to 7 are not a range of 6 chunks"));
    assert!(refused("[[3,6]]", "[[3,3]]").contains("chunks 3 to 3 are not a range"));
    assert!(refused("[[3,6]]", "[]").contains("a move to or from rank 0 has no chunks"));
    assert!(refused("\"inside\":true", "\"inside\":true,\"more\":1").contains("unknown field"));
}

#[test]
fn other_collectives_and_too_many_chunks_are_refused() {
    let mut rule = plain(CollectiveKind::Allgather, &[2], 1, 3);
    rule.kind = CollectiveKind::ReduceScatter;
    let refused = rank_steps(&rule.request(0)).unwrap_err();
    assert_eq!(refused, RankFileError::Phases { collective: CollectiveKind::ReduceScatter, found: 1 });
    let mut rule = plain(CollectiveKind::Allgather, &[2], 1, u64::MAX / 2);
    assert!(rank_steps(&rule.request(0)).unwrap_err().to_string().contains("over the limit of 4294967295 chunks"));
    rule.stages.chunks_per_share = 1;
    rule.stages.actions = vec![Action::Copy];
    assert!(rank_steps(&rule.request(2)).unwrap_err().to_string().contains("rank 2 does not exist"));
}

/// By rank and chunk: whose contributions are there, as their number; a rank that has sent a part of a sum has none.
fn run(rule: &Rule) {
    let ranks = rule.rank_count as usize;
    let programs: Vec<RankSteps> = (0..rule.rank_count)
        .map(|rank| parse_rank_steps(&write_rank_steps(&rank_steps(&rule.request(rank)).unwrap())).unwrap())
        .collect();
    for number in 0..rule.stages.actions.len() {
        let phases: Vec<&ProgramPhase> = programs.iter().map(|steps| &steps.program.phases[number]).collect();
        let is_copy = phases[0].action == Action::Copy;
        let own = |rank: usize, chunk: usize| if is_copy { usize::from(rank == chunk) * ranks } else { 1 };
        let mut held: Vec<Vec<usize>> =
            (0..ranks).map(|rank| (0..ranks).map(|chunk| own(rank, chunk)).collect()).collect();
        for step in 0..phases[0].steps.len() {
            let mut sent: BTreeMap<(usize, usize), VecDeque<(u64, usize)>> = BTreeMap::new();
            for (rank, phase) in phases.iter().enumerate() {
                for one in &phase.steps[step].sends {
                    for chunk in one.chunks.iter().cloned().flatten() {
                        let has = &mut held[rank][usize::try_from(chunk).unwrap()];
                        assert!(*has > 0, "{rank} sends chunk {chunk} without having it");
                        sent.entry((rank, one.peer as usize)).or_default().push_back((chunk, *has));
                        *has *= usize::from(is_copy);
                    }
                }
            }
            for (rank, phase) in phases.iter().enumerate() {
                for one in &phase.steps[step].receives {
                    for chunk in one.chunks.iter().cloned().flatten() {
                        let next = sent.get_mut(&(one.peer as usize, rank)).and_then(VecDeque::pop_front).unwrap();
                        assert_eq!(next.0, chunk);
                        held[rank][usize::try_from(chunk).unwrap()] += next.1;
                    }
                }
            }
            assert!(sent.values().all(VecDeque::is_empty));
        }
        for (rank, held) in held.iter().enumerate() {
            let expected = |chunk: usize| if is_copy || chunk == rank { ranks } else { 0 };
            assert!(held.iter().enumerate().all(|(chunk, &has)| has == expected(chunk)), "{rank}");
        }
    }
}

#[test]
fn the_steps_of_a_thousand_ranks_are_the_collective() {
    for (kind, _) in PHASES {
        run(&plain(kind, &[8, 16], 8, 1));
        run(&inside_first(plain(kind, &[4, 8], 8, 1), 3));
    }
}
