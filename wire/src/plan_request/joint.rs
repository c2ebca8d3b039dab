//! Requests for one of several plans that are made in common: what all of them do, and the same request as if it were for one alone.

use std::num::NonZeroU64;

use canopy_planner::{JointRequest, JointTask};
use canopy_proto::v1;
use canopy_proto::v1::topology_source::Source;
use canopy_synth::Algorithm;

use super::{SIZE_BYTES_MAX_DEFAULT, SIZE_BYTES_MAX_LIMIT, collective_kind};
use crate::refused::{RequestError, above_zero};

/// Most collectives that are planned in common.
const COLLECTIVES_MAX: u64 = 16;
/// What such a request is for.
const WHAT: &str = "a joint plan";

/// Takes out of a request what it is planned in common with; what is left asks for its own task.
///
/// # Errors
/// The first field that is wrong, or says again what the tasks say.
pub(super) fn taken(mut request: v1::PlanSpec) -> Result<(v1::PlanSpec, Option<JointRequest>), RequestError> {
    let Some(joint) = request.joint.take() else { return Ok((request, None)) };
    refuse_others(&request)?;
    let found = joint.collectives.len() as u64;
    if found == 0 {
        let remedy = "list the concurrent collectives, or leave out `joint`";
        return Err(RequestError::Missing { field: "joint.collectives", remedy });
    }
    if found > COLLECTIVES_MAX {
        return Err(RequestError::TooMany { field: "joint.collectives", found, limit: COLLECTIVES_MAX });
    }
    let tasks = joint.collectives.iter().enumerate().map(|(position, stated)| {
        let within = |(field, error): (&str, RequestError)| RequestError::InBundle {
            field: format!("joint.collectives[{position}].{field}"),
            error: Box::new(error),
        };
        task(stated).map_err(within)
    });
    let tasks: Vec<JointTask> = tasks.collect::<Result<_, _>>()?;
    let found = u64::from(joint.position);
    let beyond = RequestError::TooMany { field: "joint.position", found, limit: tasks.len() as u64 - 1 };
    let position = usize::try_from(joint.position).unwrap_or(usize::MAX);
    let (Some(own), Some(stated)) = (tasks.get(position), joint.collectives.get(position)) else {
        return Err(beyond);
    };
    let transit = if own.ranks.is_empty() { v1::GroupTransit::Unspecified } else { v1::GroupTransit::Forward };
    let request = v1::PlanSpec {
        collective: stated.collective,
        ranks: own.ranks.clone(),
        transit: transit.into(),
        chunks: Some(own.chunks.get()),
        size_bytes_max: Some(own.size_bytes.get()),
        algorithm: Some(Algorithm::Tacos.name().to_owned()),
        ..request
    };
    Ok((request, Some(JointRequest { tasks, position })))
}

/// What the tasks say, or nobody can say of plans in common.
fn refuse_others(request: &v1::PlanSpec) -> Result<(), RequestError> {
    let source = request.topology.as_ref().and_then(|topology| topology.source.as_ref());
    let algorithm = request.algorithm.as_deref().unwrap_or(Algorithm::Auto.name());
    let is_own_algorithm = [Algorithm::Auto.name(), Algorithm::Tacos.name()].contains(&algorithm);
    let others = [
        ("topology.punctured", matches!(source, Some(Source::Punctured(_)))),
        ("collective", request.collective.is_some()),
        ("size_bytes_max", request.size_bytes_max.is_some()),
        ("algorithm", !is_own_algorithm),
        ("trees_per_root", request.trees_per_root.is_some()),
        ("max_chunks", request.max_chunks.is_some()),
        ("max_depth", request.max_depth.is_some()),
        ("shares", !request.shares.is_empty()),
        ("ranks", !request.ranks.is_empty()),
        ("transit", request.transit != 0),
        ("tolerance", request.tolerance.is_some()),
        ("form", request.form != 0),
        ("root_policy", request.root_policy != 0),
        ("placement", request.placement.is_some()),
        ("chunks", request.chunks.is_some()),
        ("seed", request.seed > 0),
        ("alpha_ns", request.alpha_ns.is_some()),
    ];
    match others.into_iter().find(|&(_, is_given)| is_given) {
        Some((field, _)) => Err(RequestError::NotApplicable { field, method: WHAT }),
        None => Ok(()),
    }
}

/// Reads one of them; what is wrong comes with its field.
fn task(stated: &v1::JointCollective) -> Result<JointTask, (&'static str, RequestError)> {
    let missing = || ("collective", RequestError::Missing { field: "collective", remedy: "set its collective" });
    let collective = stated.collective.ok_or_else(missing)?;
    let kind = collective_kind(collective.kind).map_err(|error| ("collective.kind", error))?;
    let found = stated.size_bytes.unwrap_or(SIZE_BYTES_MAX_DEFAULT);
    let size = NonZeroU64::new(found).filter(|size| size.get() <= SIZE_BYTES_MAX_LIMIT);
    let wrong_size = || ("size_bytes", RequestError::Size { found, limit: SIZE_BYTES_MAX_LIMIT });
    Ok(JointTask {
        ranks: stated.ranks.clone(),
        kind,
        root: collective.root,
        size_bytes: size.ok_or_else(wrong_size)?,
        chunks: above_zero("chunks", stated.chunks).map_err(|error| ("chunks", error))?.unwrap_or(NonZeroU64::MIN),
    })
}

#[cfg(test)]
mod tests {
    use canopy_planner::Group;
    use canopy_topology::Transit;

    use super::*;
    use crate::plan_request;

    fn collective(kind: v1::Collective, ranks: &[u32]) -> v1::JointCollective {
        let collective = Some(v1::CollectiveSpec { kind: kind.into(), root: None });
        v1::JointCollective { ranks: ranks.to_vec(), collective, size_bytes: Some(1 << 20), ..Default::default() }
    }

    fn request() -> v1::PlanSpec {
        let source = Source::Expression("mesh:2x2".to_owned());
        v1::PlanSpec {
            topology: Some(v1::TopologySource { source: Some(source) }),
            joint: Some(v1::JointSpec {
                collectives: vec![
                    collective(v1::Collective::Allgather, &[]),
                    collective(v1::Collective::Reduce, &[3, 1]),
                ],
                position: 1,
            }),
            ..Default::default()
        }
    }

    fn common(request: &mut v1::PlanSpec) -> &mut v1::JointSpec {
        request.joint.get_or_insert_default()
    }

    fn refused(change: impl FnOnce(&mut v1::PlanSpec)) -> String {
        let mut request = request();
        change(&mut request);
        match plan_request(request) {
            Ok(_) => "accepted".to_owned(),
            Err(error) => error.field(),
        }
    }

    #[test]
    fn an_order_is_for_its_own_task_and_knows_the_others() {
        let order = plan_request(request()).unwrap();
        assert_eq!((order.kind, order.size_bytes_max), (canopy_schedule::CollectiveKind::Reduce, 1 << 20));
        assert_eq!(order.group, Some(Group { ranks: vec![3, 1], transit: Transit::Forward }));
        let joint = order.joint.clone().unwrap();
        assert_eq!((joint.position, joint.tasks.len(), joint.tasks[1].ranks.clone()), (1, 2, vec![3, 1]));
        assert!(order.stand_ins().is_empty(), "nothing else keeps out of the way of the others");
        let mut first = request();
        common(&mut first).position = 0;
        assert_eq!(plan_request(first).unwrap().group, None);
    }

    #[test]
    fn what_the_tasks_say_is_not_said_again_and_each_fault_has_its_field() {
        assert_eq!(refused(|_| {}), "accepted");
        assert_eq!(refused(|request| request.algorithm = Some("tacos".to_owned())), "accepted");
        assert_eq!(refused(|request| request.algorithm = Some("ring".to_owned())), "algorithm");
        assert_eq!(refused(|request| request.ranks = vec![0, 1]), "ranks");
        assert_eq!(refused(|request| request.chunks = Some(2)), "chunks");
        assert_eq!(refused(|request| request.seed = 2), "seed");
        assert_eq!(refused(|request| request.alpha_ns = Some(2)), "alpha_ns");
        assert_eq!(refused(|request| request.size_bytes_max = Some(1)), "size_bytes_max");
        assert_eq!(refused(|request| request.collective = common(request).collectives[0].collective), "collective");
        assert_eq!(refused(|request| common(request).position = 2), "joint.position");
        assert_eq!(refused(|request| common(request).collectives.clear()), "joint.collectives");
        let many = |request: &mut v1::PlanSpec| {
            common(request).collectives = vec![collective(v1::Collective::Allgather, &[]); 17];
        };
        assert_eq!(refused(many), "joint.collectives");
        let second =
            |change: fn(&mut v1::JointCollective)| refused(|request| change(&mut common(request).collectives[1]));
        assert_eq!(second(|task| task.collective = None), "joint.collectives[1].collective");
        assert_eq!(
            second(|task| task.collective = Some(v1::CollectiveSpec::default())),
            "joint.collectives[1].collective.kind"
        );
        assert_eq!(second(|task| task.size_bytes = Some(0)), "joint.collectives[1].size_bytes");
        assert_eq!(second(|task| task.chunks = Some(0)), "joint.collectives[1].chunks");
        let mut beyond = request();
        common(&mut beyond).position = 9;
        let error = plan_request(beyond).err();
        assert!(matches!(error, Some(RequestError::TooMany { found: 9, limit: 1, .. })));
    }
}
