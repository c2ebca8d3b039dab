//! Rules and texts that are wrong: refused, or wrong in what comes out, but never a panic.

use canopy_plan::oneccl::{LowerOptions, parse_rank_plan, write_rank_plan};
use canopy_plan::{
    ExecutionSliceOptions, ExecutorProfile, lower_execution_slice, lower_oneccl_rank, parse_rank_steps, rank_steps,
    write_execution_slice, write_rank_steps,
};
use canopy_schedule::CollectiveKind;

use super::rules::{Random, alter, any, plain};

fn messages() -> LowerOptions {
    LowerOptions { name: "stages".to_owned(), in_place: false, bytes_max: None, instances: 1 }
}

#[test]
fn wrong_rules_are_refused_or_give_wrong_files() {
    let mut random = Random(31);
    let (mut made, mut refused) = (0, 0);
    for _ in 0..4_000 {
        let mut rule = any(&mut random, 24);
        (0..1 + random.below(2)).for_each(|_| alter(&mut rule, &mut random));
        if rule.rank_count == 0 {
            continue;
        }
        let request = rule.request(random.below(rule.rank_count + 1));
        let execution = ExecutionSliceOptions {
            name: "stages".to_owned(),
            in_place: random.below(2) == 0,
            bytes_max: u64::MAX,
            profile: ExecutorProfile::V08,
            blocks_min: random.below(40),
        };
        let files = [
            rank_steps(&request).map(|steps| write_rank_steps(&steps)),
            lower_oneccl_rank(&request, &messages()).map(|plan| write_rank_plan(&plan)),
            lower_execution_slice(&request, &execution).map(|slice| write_execution_slice(&slice)),
        ];
        made += files.iter().flatten().count();
        refused += files.iter().filter(|file| file.is_err()).count();
    }
    assert!(made > 500 && refused > 500, "{made} {refused}");
}

/// Replaces some bytes of a text.
fn altered(text: &str, random: &mut Random) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let length = u32::try_from(bytes.len()).unwrap();
    for _ in 0..1 + random.below(3) {
        let at = random.below(length) as usize;
        bytes[at] = *random.of(b"0123456789\"<>{}[],:/= ace");
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn altered_texts_are_refused_or_read_as_what_they_say() {
    let mut random = Random(37);
    let rule = plain(CollectiveKind::Allreduce, &[2, 2], 2, 2);
    let steps = write_rank_steps(&rank_steps(&rule.request(3)).unwrap());
    let messages = write_rank_plan(&lower_oneccl_rank(&rule.request(3), &messages()).unwrap());
    let (mut read, mut refused) = (0, 0);
    for _ in 0..3_000 {
        match parse_rank_steps(&altered(&steps, &mut random)) {
            Ok(found) => {
                assert_eq!(parse_rank_steps(&write_rank_steps(&found)).unwrap(), found);
                read += 1;
            }
            Err(_) => refused += 1,
        }
        match parse_rank_plan(&altered(&messages, &mut random)) {
            Ok(found) => {
                assert_eq!(parse_rank_plan(&write_rank_plan(&found)), Ok(found));
                read += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(read > 50 && refused > 1_000, "{read} {refused}");
}
