//! Plans as versions before 0.2 stored them: fractions as texts, times as milliseconds.

use bytes::Bytes;
use canopy_proto::v1;
use prost::Message;

use crate::fraction::fraction;
use crate::plan::duration_of_ms;

/// The parts of a reply that are laid out otherwise today.
#[derive(Clone, PartialEq, Message)]
struct Reply {
    #[prost(message, optional, tag = "1")]
    plan: Option<Plan>,
}

#[derive(Clone, PartialEq, Message)]
struct Plan {
    #[prost(message, optional, tag = "3")]
    provenance: Option<Provenance>,
    #[prost(message, optional, tag = "4")]
    quality: Option<Quality>,
    #[prost(message, optional, tag = "16")]
    form: Option<FormChoice>,
    #[prost(message, optional, tag = "20")]
    step_cost: Option<StepCost>,
    #[prost(message, optional, tag = "23")]
    path_choice: Option<PathChoice>,
    #[prost(message, optional, tag = "25")]
    joint: Option<JointPlan>,
}

#[derive(Clone, PartialEq, Message)]
struct Provenance {
    #[prost(double, tag = "3")]
    wall_ms: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Quality {
    #[prost(string, tag = "1")]
    bound: String,
    #[prost(string, tag = "2")]
    lower: String,
    #[prost(string, tag = "4")]
    achieved: String,
    #[prost(string, tag = "5")]
    optimality: String,
    #[prost(message, optional, tag = "9")]
    certificate: Option<Certificate>,
    #[prost(message, optional, tag = "15")]
    in_network: Option<InNetwork>,
    #[prost(string, tag = "16")]
    with_in_network: String,
}

#[derive(Clone, PartialEq, Message)]
struct Certificate {
    #[prost(message, optional, tag = "4")]
    sum: Option<SumCertificate>,
}

#[derive(Clone, PartialEq, Message)]
struct SumCertificate {
    #[prost(string, tag = "4")]
    data: String,
}

#[derive(Clone, PartialEq, Message)]
struct InNetwork {
    #[prost(string, tag = "1")]
    traffic_without: String,
    #[prost(string, tag = "2")]
    traffic: String,
    #[prost(string, tag = "3")]
    saved: String,
    #[prost(string, tag = "4")]
    algbw: String,
    #[prost(string, tag = "5")]
    optimality: String,
}

#[derive(Clone, PartialEq, Message)]
struct FormChoice {
    #[prost(string, tag = "3")]
    two_phases: String,
}

#[derive(Clone, PartialEq, Message)]
struct StepCost {
    #[prost(string, tag = "2")]
    bandwidth: String,
}

#[derive(Clone, PartialEq, Message)]
struct PathChoice {
    #[prost(string, tag = "1")]
    bound: String,
}

#[derive(Clone, PartialEq, Message)]
struct JointPlan {
    #[prost(string, tag = "5")]
    seconds_alone: String,
    #[prost(string, tag = "6")]
    seconds_bound: String,
    #[prost(message, optional, tag = "7")]
    together: Option<JointTimes>,
}

#[derive(Clone, PartialEq, Message)]
struct JointTimes {
    #[prost(string, tag = "3")]
    seconds: String,
    #[prost(string, tag = "4")]
    seconds_one_by_one: String,
    #[prost(string, tag = "5")]
    seconds_longest_alone: String,
}

/// Whether a plan that was read by today's layout was written by an earlier one.
pub(crate) fn is_former(plan: &v1::Plan) -> bool {
    plan.quality.as_ref().is_some_and(|quality| quality.bound.is_none())
}

/// Adds what today's layout does not find in the bytes of a plan; `None` if they are no plan.
pub(crate) fn add(bytes: Bytes, now: &mut v1::Plan) -> Option<()> {
    let former = Reply::decode(bytes).ok()?.plan?;
    if let (Some(now), Some(former)) = (&mut now.provenance, former.provenance) {
        now.wall_time = duration_of_ms(former.wall_ms);
    }
    if let (Some(now), Some(former)) = (&mut now.quality, former.quality) {
        add_quality(former, now);
    }
    if let (Some(now), Some(former)) = (&mut now.form, former.form) {
        now.two_phases = fraction(&former.two_phases);
    }
    if let (Some(now), Some(former)) = (&mut now.step_cost, former.step_cost) {
        now.bandwidth = fraction(&former.bandwidth);
    }
    if let (Some(now), Some(former)) = (&mut now.path_choice, former.path_choice) {
        now.bound = fraction(&former.bound);
    }
    if let (Some(now), Some(former)) = (&mut now.joint, former.joint) {
        add_joint(former, now);
    }
    Some(())
}

fn add_quality(former: Quality, now: &mut v1::Quality) {
    let Quality { bound, lower, achieved, optimality, certificate, in_network, with_in_network } = former;
    (now.bound, now.lower) = (fraction(&bound), fraction(&lower));
    (now.achieved, now.optimality) = (fraction(&achieved), fraction(&optimality));
    now.with_in_network = fraction(&with_in_network);
    if let (Some(now), Some(former)) = (&mut now.in_network, in_network) {
        let InNetwork { traffic_without, traffic, saved, algbw, optimality } = former;
        *now = v1::InNetwork {
            traffic_without: fraction(&traffic_without),
            traffic: fraction(&traffic),
            saved: fraction(&saved),
            algbw: fraction(&algbw),
            optimality: fraction(&optimality),
        };
    }
    let kind = now.certificate.as_mut().and_then(|certificate| certificate.kind.as_mut());
    if let (Some(v1::certificate::Kind::Sum(now)), Some(former)) = (kind, certificate.and_then(|former| former.sum)) {
        now.data = fraction(&former.data);
    }
}

fn add_joint(former: JointPlan, now: &mut v1::JointPlan) {
    let JointPlan { seconds_alone, seconds_bound, together } = former;
    (now.seconds_alone, now.seconds_bound) = (fraction(&seconds_alone), fraction(&seconds_bound));
    if let (Some(now), Some(former)) = (&mut now.together, together) {
        now.seconds = fraction(&former.seconds);
        now.seconds_one_by_one = fraction(&former.seconds_one_by_one);
        now.seconds_longest_alone = fraction(&former.seconds_longest_alone);
    }
}
