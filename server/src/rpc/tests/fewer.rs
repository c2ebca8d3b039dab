//! Fewer trees where a runtime has no room, and numbers of trees that were stated.

use canopy_plan::{Certainty, ExecutionLowerError, ExecutorProfile, Format, Profile, Target};
use canopy_proto::Exact as _;

use super::*;

/// Three ranks whose links share no factor: a chunk for each of 10⁵ units of bandwidth, of which files have room for a
/// third.
fn uneven() -> TopologyInput {
    let yaml = "canopy: 1\nnodes: [{id: a}, {id: b}, {id: c}]\nlinks:\n\
                - {from: a, to: b, bandwidth: 99991MB/s, both: true}\n\
                - {from: b, to: c, bandwidth: 60013MB/s, both: true}\n\
                - {from: a, to: c, bandwidth: 40009MB/s, both: true}\n";
    TopologyInput::Document {
        kind: Some(FileKind::Own(DocumentFormat::Yaml)),
        content: bytes::Bytes::from_static(yaml.as_bytes()),
    }
}

fn made_with(
    limits: TreeLimits,
    topology: TopologyInput,
    kind: CollectiveKind,
    output: Target,
) -> Result<StoredPlan, PlanFailure> {
    produce(&Order { limits, ..order(topology, kind, vec![output]) }, &Witness::default()).map(|produced| produced.plan)
}

/// MSCCL files name 32,767 chunks; the optimal plan has 3 · 50,011. The best plan that fits has five per rank: no
/// other number up to a third of it comes as close.
#[test]
fn a_plan_too_large_for_its_runtime_gets_fewer_trees() {
    let kind = CollectiveKind::Allgather;
    let json = made_with(TreeLimits::NONE, uneven(), kind, Format::Json.usual()).unwrap();
    assert_eq!((json.plan.chunks_per_rank, json.warnings.len()), (50_011, 0));
    let output = Target::from(Profile::Msccl);
    let fitting = made_with(TreeLimits::NONE, uneven(), kind, output).unwrap();
    assert_eq!(fitting.plan.chunks_per_rank, 5);
    let [warning] = fitting.warnings.as_slice() else { panic!("{:?}", fitting.warnings) };
    assert_eq!(warning.code, "FEWER_TREES");
    let expected = "the msccl profile allows 32767 chunks as an offset, and the best plan needs 150032: planned with 5 trees \
                    per root instead of 50011, at 300065/300066 of their rate; set trees_per_root to choose the number";
    assert_eq!(warning.text, expected);
}

/// The optimal allreduce adds its 200,013 chunks up anywhere; the best number of them that fits loses next to nothing,
/// where two phases of a few trees per rank would lose a fifth.
#[test]
fn an_allreduce_too_large_for_its_runtime_gets_fewer_trees() {
    let kind = CollectiveKind::Allreduce;
    let json = made_with(TreeLimits::NONE, uneven(), kind, Format::Json.usual()).unwrap();
    assert_eq!((json.plan.quality.unwrap().optimality.exact(), json.warnings.len()), ("1/1", 0));
    let output = Target::from(Profile::Msccl);
    let fitting = made_with(TreeLimits::NONE, uneven(), kind, output).unwrap();
    let fewer = fitting.warnings.iter().find(|warning| warning.code == "FEWER_TREES").unwrap();
    let expected = "the msccl profile allows 32767 chunks as an offset, and the best plan needs 200012: planned with 32610 trees \
                    in all instead of 200013, at 1304682620/1304684799 of their rate; set trees_per_root to choose the number";
    assert_eq!(fewer.text, expected);
}

/// However few trees there is room for, they are of the form that was asked for; roots are spread in two phases then.
#[test]
fn trees_that_were_asked_for_are_never_made_two_phases() {
    let asked = |form, roots| {
        let sums = SumOptions { form, roots, ..SumOptions::AUTO };
        let msccl = vec![Target::from(Profile::Msccl)];
        let order = Order { sums, ..order(uneven(), CollectiveKind::Allreduce, msccl) };
        produce(&order, &Witness::default()).map(|produced| produced.plan)
    };
    let trees = asked(Some(AllreduceForm::Trees), RootPolicy::Centre).unwrap();
    let form = trees.plan.form.unwrap();
    assert_eq!((form.form(), form.reason()), (v1::AllreduceForm::Trees, v1::FormReason::Asked));
    assert!(trees.warnings.iter().any(|warning| warning.code == "FEWER_TREES"));
    let spread = asked(None, RootPolicy::Spread).unwrap();
    assert_eq!(spread.plan.form.unwrap().reason(), v1::FormReason::Limited);
    assert_eq!(spread.warnings.first().map(|warning| &*warning.code), Some("FEWER_TREES"));
    let phases = asked(Some(AllreduceForm::TwoPhases), RootPolicy::Centre).unwrap();
    assert_eq!(phases.plan.form.unwrap().reason(), v1::FormReason::Asked);
}

#[test]
fn a_number_of_trees_that_was_stated_is_never_changed() {
    let exactly = |trees| TreeLimits { trees_per_root: NonZeroU64::new(trees), ..TreeLimits::NONE };
    let made = |trees| {
        let output = Target::from(Profile::Msccl);
        made_with(exactly(trees), uneven(), CollectiveKind::Allgather, output)
    };
    match made(50_011) {
        Err(failure) => {
            assert!(
                matches!(file_error(&failure), Some((0, LowerError::OverLimit { limit: 32_767, .. }))),
                "{failure}"
            );
        }
        Ok(_) => panic!("there is room"),
    }
    let made = made(7).unwrap();
    assert_eq!(made.plan.chunks_per_rank, 7);
    assert!(made.warnings.iter().all(|warning| warning.code != "FEWER_TREES"), "{:?}", made.warnings);
}

/// Each of 66 ranks has a link to every other, and blocks for 64 of them.
#[test]
fn where_nothing_fits_the_fewest_trees_tried_say_why() {
    let limits = TreeLimits { max_chunks: NonZeroU64::new(2), ..TreeLimits::NONE };
    let output = Target::from(Profile::RcclMsccl);
    let failure =
        made_with(limits, expression("complete:66,degrade=0-1*1/2"), CollectiveKind::Allgather, output).unwrap_err();
    assert!(matches!(file_error(&failure), Some((_, LowerError::OverLimit { limit: 64, .. }))), "{failure}");
}

/// 288 ranks of four racks: blocks have no room for a tree of each, and a tenth of these trees reaches 99 % of the
/// bound.
#[test]
fn an_allreduce_without_room_for_a_tree_of_each_rank_has_fewer_in_all() {
    let racks = expression("rail:boxes=4,gpus=72,nv=900GB/s,nic=50GB/s");
    let output = Target::from(ExecutorProfile::NEWEST);
    let made = made_with(TreeLimits::NONE, racks.clone(), CollectiveKind::Allreduce, output).unwrap();
    let fewer = made.warnings.iter().find(|warning| warning.code == "FEWER_TREES").unwrap();
    assert!(fewer.text.contains("trees in all instead of"), "{}", fewer.text);
    let form = made.plan.form.as_ref().unwrap();
    assert_eq!((form.form(), form.reason()), (v1::AllreduceForm::Trees, v1::FormReason::Limited));
    assert!(made.plan.quality.unwrap().optimality.unwrap().value > 0.99);
    // One tree of each rank is what was asked for here.
    let exactly = TreeLimits { trees_per_root: NonZeroU64::new(1), ..TreeLimits::NONE };
    match made_with(exactly, racks, CollectiveKind::Allreduce, output) {
        Err(failure) => {
            let error = file_error(&failure);
            let is_over = matches!(error, Some((_, ExecutionLowerError::OverLimit { limit: 108, need: 109.., .. })));
            assert!(is_over, "{failure}");
        }
        Ok(_) => panic!("there is room"),
    }
}

/// 1,024 ranks: a tree of each has no room, or a file that takes long to check. A few trees in all lose less than a
/// hundredth, in every format; the number that is stated is kept, and what it needs is counted.
#[test]
fn large_allreduces_have_few_trees_in_all() {
    let network = || expression("dgx-a100:boxes=128");
    for output in [Profile::Msccl.into(), ExecutorProfile::NEWEST.into(), Format::OnecclXml.usual()] {
        let made = made_with(TreeLimits::NONE, network(), CollectiveKind::Allreduce, output).unwrap();
        let fewer = made.warnings.iter().find(|warning| warning.code == "FEWER_TREES").unwrap();
        let expected = "files of more than 524288 transfers take long to check, and the best plan has 2095104: \
                        planned with 4 trees in all instead of 1 per root, at 127/128 of their rate; \
                        set trees_per_root to choose the number";
        assert_eq!(fewer.text, expected);
        assert_eq!(crate::rpc::shared::judge::judge_plan(&made.plan, &TopologyLimits::STANDARD), Ok(()));
        assert!(made.plan.artifacts[0].size_bytes < 10_000_000);
    }
    let exactly = TreeLimits { trees_per_root: NonZeroU64::new(1), ..TreeLimits::NONE };
    match made_with(exactly, network(), CollectiveKind::Allreduce, Profile::Msccl.into()) {
        Err(failure) => match file_error(&failure) {
            Some((0, error @ &LowerError::OverLimit { limit: 4095, need, certainty: Certainty::AtLeast, .. })) => {
                assert!(need > 4095 && error.to_string().contains("needs, as arranged here, at least"), "{error}");
            }
            _ => panic!("{failure:?}"),
        },
        Ok(_) => panic!("there is room"),
    }
}
