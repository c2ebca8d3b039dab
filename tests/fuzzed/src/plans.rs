//! Files of plans: what is read can be written and read again, and what a proof accepts can be run.

use std::collections::BTreeSet;

use canopy_plan::oneccl;
use canopy_plan::routes;
use canopy_plan::{
    EmulateOptions, EmulationError, ExecutorProfile, Expected, Format, Profile, RankFileOptions, convert, emulate,
    emulate_execution_plan, parse_execution_plan, parse_execution_plan_head, parse_msccl_xml, parse_rank_steps, prove,
    prove_execution_plan, rank_file, read_foreign_msccl_xml, read_msccl_xml_as_runtime, read_plan, read_rule,
    write_execution_plan, write_msccl_xml, write_plan, write_rank_steps,
};
use canopy_schedule::{certified_bound, judge_until};

use crate::topologies::check;
use crate::{LIMITS, seen, text};

/// Bytes of a file that a reader takes beyond its own limit; nothing here is larger.
const BYTES_MAX: usize = 1 << 20;
/// Seed of what is run.
const SEED: u64 = 7;

const fn never() -> bool {
    false
}

/// MSCCL XML, as each runtime reads it.
pub(crate) fn msccl_xml(input: &[u8]) {
    looked_at(Format::MscclXml, input);
    let Some(text) = text(input) else { return };
    for profile in Profile::ALL {
        if let Ok(program) = parse_msccl_xml(text, profile) {
            let written = write_msccl_xml(&program, profile);
            let read = parse_msccl_xml(&written, profile);
            let read = read.unwrap_or_else(|error| panic!("not read back: {error}\n{written}"));
            assert_eq!(read, program, "{written}");
            if prove(&program, profile).is_ok() {
                match emulate(&program, &EmulateOptions::standard(profile, SEED)) {
                    Ok(_) | Err(EmulationError::TooLarge { .. }) => {}
                    Err(error) => panic!("proved for {}, but: {error}", profile.name()),
                }
            }
        }
        seen(read_msccl_xml_as_runtime(text, profile, BYTES_MAX, &never));
        let Ok(foreign) = read_foreign_msccl_xml(text, profile, &never) else { continue };
        for to in Profile::ALL {
            let Ok(conversion) = convert(&foreign, profile, to) else { continue };
            let written = write_msccl_xml(&conversion.program, to);
            let read = parse_msccl_xml(&written, to);
            let read = read.unwrap_or_else(|error| panic!("converted and not read back: {error}\n{written}"));
            assert_eq!(read, conversion.program, "{written}");
        }
    }
}

/// Execution plans of MSCCL++, for each version of its executor.
pub(crate) fn mscclpp_json(input: &[u8]) {
    looked_at(Format::MscclppJson, input);
    let Some(text) = text(input) else { return };
    let head = parse_execution_plan_head(text);
    let Ok(plan) = parse_execution_plan(text) else { return };
    let head = head.unwrap_or_else(|error| panic!("the plan is read, but not its head: {error}"));
    assert_eq!((&head.name, &head.collective, head.ranks.len()), (&plan.name, &plan.collective, plan.ranks.len()));
    let written = write_execution_plan(&plan);
    let read = parse_execution_plan(&written);
    assert_eq!(read.unwrap_or_else(|error| panic!("not read back: {error}\n{written}")), plan, "{written}");
    for profile in ExecutorProfile::ALL {
        let proof = prove_execution_plan(&plan, None, profile, &never).expect("nothing stops it");
        if !proof.is_ok() {
            continue;
        }
        match emulate_execution_plan(&plan, None, profile, [SEED], &never) {
            Ok(()) => {}
            Err(error) if is_too_large(&error.to_string()) => {}
            Err(error) => panic!("proved for {}, but: {error}", profile.name()),
        }
    }
}

/// Plans of oneCCL.
pub(crate) fn oneccl_xml(input: &[u8]) {
    looked_at(Format::OnecclXml, input);
    let Some(text) = text(input) else { return };
    if let Ok(plan) = oneccl::parse_rank_plan(text) {
        let written = oneccl::write_rank_plan(&plan);
        let read = oneccl::parse_rank_plan(&written);
        assert_eq!(read.unwrap_or_else(|error| panic!("not read back: {error}\n{written}")), plan, "{written}");
    }
    let Ok(program) = oneccl::parse(text) else { return };
    let written = oneccl::write(&program);
    let read = oneccl::parse(&written);
    assert_eq!(read.unwrap_or_else(|error| panic!("not read back: {error}\n{written}")), program, "{written}");
    if !oneccl::prove(&program).is_ok() {
        return;
    }
    for options in oneccl::EmulateOptions::various(&program, SEED) {
        match oneccl::emulate(&program, &options) {
            Ok(_) | Err(oneccl::EmulationError::TooLarge { .. }) => {}
            Err(error) => panic!("proved, but: {error}"),
        }
    }
}

/// Route plans.
pub(crate) fn routes_xml(input: &[u8]) {
    looked_at(Format::RoutesXml, input);
    let Some(text) = text(input) else { return };
    let Ok(program) = routes::parse(text) else { return };
    let written = routes::write(&program);
    let read = routes::parse(&written);
    assert_eq!(read.unwrap_or_else(|error| panic!("not read back: {error}\n{written}")), program, "{written}");
    seen(routes::prove(&program).is_ok());
}

/// canopy's own plans.
pub(crate) fn plan_json(input: &[u8]) {
    looked_at(Format::Json, input);
    one_rank(input);
    let Ok(plan) = read_plan(input, &LIMITS) else { return };
    check(&plan.topology);
    let written = |plan| {
        let mut bytes = Vec::new();
        write_plan(plan, &mut bytes).expect("memory takes all that is written");
        bytes
    };
    let first = written(&plan);
    let limits = canopy_topology::TopologyLimits { bytes_max: usize::MAX, ..LIMITS };
    let shown = || String::from_utf8_lossy(&first).into_owned();
    let again = read_plan(&first, &limits);
    let again = again.unwrap_or_else(|error| panic!("not read back: {error}\n{}", shown()));
    // The first reading may have tables in another order.
    assert_eq!(written(&again), first, "{}", shown());
    seen(judge_until(&plan.topology, &plan.schedule, &never));
    let (shares, certificate) = (&plan.schedule.shares, &plan.bound.certificate);
    seen(certified_bound(&plan.topology, plan.schedule.collective, shares, certificate));
}

/// The rule of a plan, and the steps of a rank.
fn one_rank(input: &[u8]) {
    if let Some(Ok(steps)) = text(input).map(parse_rank_steps) {
        let written = write_rank_steps(&steps);
        let read = parse_rank_steps(&written);
        assert_eq!(read.unwrap_or_else(|error| panic!("not read back: {error}\n{written}")), steps, "{written}");
    }
    let Ok(rule) = read_rule(input) else { return };
    let options = RankFileOptions { name: "fuzzed".to_owned(), in_place: false, bytes_max: 1 << 30 };
    for rank in [0, rule.rank_count.saturating_sub(1)] {
        for format in Format::ALL {
            seen(rank_file(&rule, rank, format.usual(), &options));
        }
    }
}

/// What is done to a file before anybody reads all of it, and what `canopy verify` says of it.
fn looked_at(format: Format, input: &[u8]) {
    seen(Format::of(input));
    if let Some(Ok(part)) = format.slice(input, &BTreeSet::from([0])) {
        // Stubs of other ranks are shorter than the ranks, but may be more than nothing.
        assert!(part.len() <= input.len() * 2 + 1024, "a part has {} bytes of {}", part.len(), input.len());
    }
    let bound = |_| Err("no network is given".to_owned());
    let expected = Expected { topology: None, kind: None, root: None, bound: &bound };
    for profile in format.profiles() {
        seen(format.verify(input, Some(profile), &expected));
    }
}

/// Whether a plan is not run for its size alone.
fn is_too_large(problem: &str) -> bool {
    problem.contains("over the limit")
}
