//! Single faults and what they leave, on the wire.

use crate::fraction::fraction;
use crate::stated_fraction::small_fraction_read;
use canopy_faults::{EquivalentFaults, Loss, Remaining, SINGLE_KINDS};
use canopy_planner::Left;
use canopy_proto::Exact as _;
use canopy_proto::v1;
use canopy_topology::{FaultKind, Rate};

use crate::losses::on_the_wire;
use crate::refused::RequestError;

/// Most faults of a group that are named.
const NAMED_MAX: usize = 1000;

const KINDS: &str = "FAULT_KIND_LINKS, _LINKS_INSIDE, _LINKS_OUTSIDE, _NICS, _GPUS, _BOXES or _SWITCHES";

const TABLE: [(FaultKind, v1::FaultKind); 7] = [
    (FaultKind::Links, v1::FaultKind::Links),
    (FaultKind::LinksInside, v1::FaultKind::LinksInside),
    (FaultKind::LinksOutside, v1::FaultKind::LinksOutside),
    (FaultKind::Nics, v1::FaultKind::Nics),
    (FaultKind::Gpus, v1::FaultKind::Gpus),
    (FaultKind::Boxes, v1::FaultKind::Boxes),
    (FaultKind::Switches, v1::FaultKind::Switches),
];

/// What may fail, and what remains of it.
///
/// # Errors
/// A kind is unknown, or the fraction is not one.
pub fn what_may_fail(request: &v1::WeighFaultsRequest) -> Result<(Vec<FaultKind>, Remaining), RequestError> {
    let kind = |(position, &number): (usize, &i32)| {
        let known = v1::FaultKind::try_from(number).ok().and_then(fault_kind_of_wire);
        let field = format!("kinds[{position}]");
        known.ok_or(RequestError::UnknownValue { field, number, known: KINDS })
    };
    let kinds: Vec<FaultKind> = request.kinds.iter().enumerate().map(kind).collect::<Result<_, _>>()?;
    let remaining = match &request.remaining {
        None => Remaining::GONE,
        Some(stated) => {
            let (numerator, denominator) = small_fraction_read("remaining", stated)?;
            Remaining::new(numerator, denominator)?
        }
    };
    Ok((if kinds.is_empty() { SINGLE_KINDS.to_vec() } else { kinds }, remaining))
}

/// A kind of elements on the wire.
pub fn fault_kind_on_the_wire(kind: FaultKind) -> v1::FaultKind {
    TABLE.iter().find(|(of, _)| *of == kind).map_or(v1::FaultKind::Unspecified, |(_, sent)| *sent)
}

/// What [`fault_kind_on_the_wire`] was given.
pub fn fault_kind_of_wire(sent: v1::FaultKind) -> Option<FaultKind> {
    TABLE.iter().find(|(_, of)| *of == sent).map(|(kind, _)| *kind)
}

/// A group of faults, and what each of them leaves of a network with this bound.
pub fn weighed_fault(group: &EquivalentFaults, remaining: Remaining, left: &Left, sound: &Rate) -> v1::WeighedFault {
    let ratio = |rate: &Rate| rate.ratio_to(sound).and_then(|ratio| fraction(&ratio));
    let (outcome, bound, ratio, components) = match left {
        Left::Bound(rate) => (v1::WeighedOutcome::Bounded, fraction(rate), ratio(rate), 0),
        Left::Apart(components) => (v1::WeighedOutcome::Disconnected, None, None, *components),
        Left::TooFewRanks => (v1::WeighedOutcome::TooFewRanks, None, None, 0),
        Left::RootLost => (v1::WeighedOutcome::RootLost, None, None, 0),
    };
    let fault = |target: &canopy_faults::Target| on_the_wire(&Loss { target: target.clone(), remaining });
    v1::WeighedFault {
        kind: fault_kind_on_the_wire(group.kind).into(),
        outcome: outcome.into(),
        bound,
        ratio,
        components,
        alike: u32::try_from(group.targets.len()).unwrap_or(u32::MAX),
        faults: group.targets.iter().take(NAMED_MAX).map(fault).collect(),
    }
}

/// What each fault of a group leaves; `None` if the message says nothing that this build knows.
pub fn left_of_wire(weighed: &v1::WeighedFault) -> Option<Left> {
    Some(match weighed.outcome() {
        v1::WeighedOutcome::Bounded => Left::Bound(weighed.bound.read()?),
        v1::WeighedOutcome::Disconnected => Left::Apart(weighed.components),
        v1::WeighedOutcome::TooFewRanks => Left::TooFewRanks,
        v1::WeighedOutcome::RootLost => Left::RootLost,
        v1::WeighedOutcome::Unspecified => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fraction::fraction_of;

    #[test]
    fn what_faults_leave_is_read_as_it_is_sent() {
        let rate = |text: &str| -> Rate { text.parse().unwrap() };
        let targets = vec!["nic:gpu01:3".parse().unwrap(), "nic:gpu01:4".parse().unwrap()];
        let group = EquivalentFaults { kind: FaultKind::Nics, targets };
        for left in [Left::Bound(rate("100/3")), Left::Apart(2), Left::TooFewRanks, Left::RootLost] {
            let sent = weighed_fault(&group, Remaining::GONE, &left, &rate("200/3"));
            assert_eq!(left_of_wire(&sent).as_ref(), Some(&left));
            assert_eq!(sent.ratio.exact(), if matches!(left, Left::Bound(_)) { "1/2" } else { "" });
            assert_eq!((sent.alike, sent.faults.len(), sent.kind()), (2, 2, v1::FaultKind::Nics));
        }
        assert_eq!(left_of_wire(&v1::WeighedFault::default()), None);
    }

    #[test]
    fn every_kind_travels_and_others_are_refused_by_their_place() {
        for kind in FaultKind::ALL {
            assert_eq!(fault_kind_of_wire(fault_kind_on_the_wire(kind)), Some(kind));
        }
        let asked = |kinds: &[i32], remaining| {
            let remaining = remaining_of(remaining);
            what_may_fail(&v1::WeighFaultsRequest {
                kinds: kinds.to_vec(),
                remaining,
                ..v1::WeighFaultsRequest::default()
            })
        };
        assert_eq!(asked(&[], None), Ok((SINGLE_KINDS.to_vec(), Remaining::GONE)));
        let nics = v1::FaultKind::Nics.into();
        assert_eq!(asked(&[nics], Some((1, 2))), Ok((vec![FaultKind::Nics], Remaining::new(1, 2).unwrap())));
        assert_eq!(asked(&[nics, 0], None).unwrap_err().field(), "kinds[1]");
        assert_eq!(asked(&[99], None).unwrap_err().field(), "kinds[0]");
        for bad in [(1, 0), (3, 2), (0, 0)] {
            assert_eq!(asked(&[], Some(bad)).unwrap_err().field(), "remaining");
        }
    }

    fn remaining_of(remaining: Option<(u64, u64)>) -> Option<v1::Fraction> {
        remaining.map(|(numerator, denominator)| fraction_of(numerator, denominator))
    }
}
