//! oneCCL plans of single ranks: joined, they are proved and run as any plan of all ranks.

use canopy_plan::RankFileError;
use canopy_plan::oneccl::{
    self, EmulateOptions, JoinError, LowerError, LowerOptions, Program, join_rank_plans, parse_rank_plan,
    write_rank_plan,
};
use canopy_schedule::CollectiveKind;

use super::rules::{PHASES, Random, Rule, any, inside_first, plain};

fn options(in_place: bool) -> LowerOptions {
    LowerOptions { name: "stages".to_owned(), in_place, bytes_max: None, instances: 1 }
}

/// All files, written and read.
fn joined(rule: &Rule, in_place: bool) -> Program {
    let plans = (0..rule.rank_count).rev().map(|rank| {
        let plan = canopy_plan::lower_oneccl_rank(&rule.request(rank), &options(in_place)).unwrap();
        let read = parse_rank_plan(&write_rank_plan(&plan)).unwrap();
        assert_eq!(read, plan);
        read
    });
    join_rank_plans(plans).unwrap()
}

fn judge(rule: &Rule, in_place: bool) -> Program {
    let program = joined(rule, in_place);
    let proof = oneccl::prove(&program);
    assert!(proof.problems.is_empty(), "{:?} {rule:?}", proof.problems.first());
    assert_eq!(proof.checks.last().copied(), Some(("meaning", true)));
    for options in EmulateOptions::various(&program, 3) {
        oneccl::emulate(&program, &options).unwrap_or_else(|error| panic!("{error} {rule:?}"));
    }
    program
}

#[test]
fn random_rules_give_files_that_are_proved_together() {
    let mut random = Random(11);
    for round in 0..150 {
        judge(&any(&mut random, 40), round % 2 == 0);
    }
}

#[test]
fn a_thousand_ranks_are_proved_and_run() {
    for (kind, _) in PHASES {
        judge(&plain(kind, &[8, 16], 8, 1), kind == CollectiveKind::Allreduce);
        judge(&inside_first(plain(kind, &[4, 8], 8, 1), 3), kind == CollectiveKind::Allgather);
    }
}

#[test]
fn what_arrives_is_sent_on_while_the_next_arrives() {
    let program = judge(&plain(CollectiveKind::Allgather, &[4, 4], 4, 1), false);
    let sends_and_receives = |step: &oneccl::Step| !step.sends.is_empty() && !step.receives.is_empty();
    // Three rounds in each of two stages, the first with the own shares; what the last round brings is sent on alone.
    let steps = &program.ranks[9].steps;
    assert_eq!((steps.len(), steps.iter().all(sends_and_receives)), (7, true), "{steps:?}");
}

#[test]
fn scratch_is_used_again() {
    // A sum has 3 contributions from the box; as many chunks as any piece has wait for them.
    let program = joined(&plain(CollectiveKind::Allreduce, &[4, 4], 4, 1), true);
    let piece = 4;
    assert!(program.ranks.iter().all(|rank| (piece..=8 * piece).contains(&rank.scratch_chunks)));
    let program = joined(&plain(CollectiveKind::Allgather, &[4, 4], 4, 1), false);
    assert!(program.ranks.iter().all(|rank| rank.scratch_chunks == 0));
}

#[test]
fn one_rank_of_a_hundred_thousand_has_a_small_file() {
    let (copies, sums) = (CollectiveKind::Allgather, CollectiveKind::Allreduce);
    let limits = [
        (copies, [32, 64], 200_000),
        (copies, [64, 128], 300_000),
        (copies, [128, 128], 400_000),
        (CollectiveKind::ReduceScatter, [128, 128], 600_000),
        (sums, [128, 128], 800_000),
    ];
    for (kind, digits, bytes_max) in limits {
        let rule = plain(kind, &digits, 8, 1);
        let plan = canopy_plan::lower_oneccl_rank(&rule.request(rule.rank_count / 3), &options(false)).unwrap();
        let text = write_rank_plan(&plan);
        assert!(text.len() <= bytes_max, "{kind:?} {} ranks: {} bytes", rule.rank_count, text.len());
        assert_eq!(parse_rank_plan(&text).unwrap(), plan);
    }
}

#[test]
fn versions_are_told_apart_and_ranks_are_counted() {
    let rule = plain(CollectiveKind::Allgather, &[2], 2, 1);
    let plan = |rank| canopy_plan::lower_oneccl_rank(&rule.request(rank), &options(false)).unwrap();
    let text = write_rank_plan(&plan(1));
    assert!(text.starts_with("<onecclplan version=\"2\" name=\"stages\" coll=\"allgather\" nranks=\"4\""), "{text}");
    assert!(oneccl::parse(&text).unwrap_err().to_string().contains("use 1, a plan of all ranks"));
    let refused = |text: &str| parse_rank_plan(text).unwrap_err().to_string();
    assert!(refused(&oneccl::write(&plan(1))).contains("use 2, a plan of a single rank"));
    assert!(refused(&text.replacen("id=\"1\"", "id=\"4\"", 1)).contains("found rank 4, expected one <rank>"));
    let (start, end) = (text.find("  <rank").unwrap(), text.find("</onecclplan>").unwrap());
    assert!(refused(&text.replacen(&text[start..end], "", 1)).contains("found no <rank>"));
    assert!(refused(&text.replacen("  <rank", &(text[start..end].to_owned() + "  <rank"), 1)).contains("limit of 1"));
    assert_eq!(join_rank_plans([]), Err(JoinError::Nothing));
    assert_eq!(join_rank_plans([plan(0), plan(1), plan(3)]), Err(JoinError::Missing { rank: 2, rank_count: 4 }));
    assert_eq!(join_rank_plans([plan(0), plan(1), plan(2)]), Err(JoinError::Missing { rank: 3, rank_count: 4 }));
    assert_eq!(join_rank_plans([plan(0), plan(1), plan(1)]), Err(JoinError::Twice { rank: 1 }));
    let other = Program { name: "other".to_owned(), ..plan(1) };
    assert_eq!(join_rank_plans([plan(0), other]), Err(JoinError::Head { first: 0, rank: 1 }));
    let whole = join_rank_plans((0..4).map(plan)).unwrap();
    assert_eq!(join_rank_plans([whole]), Err(JoinError::Ranks { found: 4 }));
}

#[test]
fn altered_files_are_found() {
    let mut found = 0;
    for kind in [CollectiveKind::Allgather, CollectiveKind::Allreduce] {
        let sound = joined(&plain(kind, &[2, 2], 2, 1), false);
        let steps =
            sound.ranks.iter().enumerate().flat_map(|(rank, of)| (0..of.steps.len()).map(move |step| (rank, step)));
        for (rank, step) in steps {
            let mut program = sound.clone();
            let step = &mut program.ranks[rank].steps[step];
            let locals = &mut step.completion.as_mut().unwrap().locals;
            let span = match kind {
                CollectiveKind::Allgather => step.receives.first_mut().map(|receive| &mut receive.span),
                _ => locals.iter_mut().find(|local| local.is_reduction).map(|local| &mut local.destination),
            };
            let Some(span) = span else { continue };
            span.first ^= 1;
            found += 1;
            assert!(!oneccl::prove(&program).problems.is_empty(), "{rank} {:?}", program.ranks[rank]);
        }
    }
    assert!(found > 50, "{found}");
}

#[test]
fn options_and_sizes_that_the_format_does_not_know_are_refused() {
    let rule = plain(CollectiveKind::Allgather, &[2], 2, 1);
    let name = LowerOptions { name: "two words".to_owned(), ..options(false) };
    let refused = canopy_plan::lower_oneccl_rank(&rule.request(0), &name).unwrap_err();
    assert_eq!(refused, RankFileError::Messages(LowerError::Name { name: "two words".to_owned() }));
    let many = plain(CollectiveKind::Allgather, &[2], 2, 1 << 29);
    let refused = canopy_plan::lower_oneccl_rank(&many.request(0), &options(false)).unwrap_err();
    assert_eq!(refused, RankFileError::Chunks { rank_count: 4, chunks_per_share: 1 << 29, limit: 1 << 30 });
}
