//! Plans, requests and faults in the bytes of version 0.1.0 (commit 5acdf5fb): they are read as what is made of the same
//! requests today.

use std::fs;
use std::path::PathBuf;

use canopy_planner::{Context, NoSchedules, Planner, Request};
use canopy_topology::TopologyLimits;
use canopy_wire::{StoredPlan, kept_request, loss_read, plan};

const PLANS: &[&str] =
    &["tree", "file", "trees", "steps", "paths", "pairs", "switches", "tolerance", "joint", "limits"];

fn bytes(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/former");
    fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn asked(name: &str) -> Request {
    let read = kept_request::<()>(bytes(&format!("{name}.request")).into(), |_| Err(()));
    read.unwrap_or_else(|error| panic!("{name}: {error:?}"))
}

#[test]
fn plans_are_read_as_they_are_made_today() {
    let planner = Planner::new(TopologyLimits::STANDARD);
    for name in PLANS {
        let read = StoredPlan::decode(bytes(&format!("{name}.reply")).into()).unwrap_or_else(|| panic!("{name}"));
        let request = asked(name);
        let planned = planner.plan(&request, Context::new(&NoSchedules)).unwrap();
        let (mut then, mut now) = (read.plan, plan(&request, planned));
        // How long it took and who made it, and which of several proofs of one bound its files have.
        for plan in [&mut then, &mut now] {
            plan.provenance = None;
            plan.artifacts.clear();
            let quality = plan.quality.as_mut().unwrap();
            assert!(quality.certificate.take().is_some(), "{name}");
            // Said by later versions only.
            quality.with_in_network = None;
        }
        assert_eq!(then, now, "{name}");
    }
}

#[test]
fn limits_and_joint_collectives_of_requests_are_read() {
    assert_eq!(asked("tolerance").limits.tolerance.unwrap().parts(), (1, 8));
    let joint = asked("joint").joint.unwrap();
    assert_eq!((joint.position, joint.tasks.len()), (1, 2));
    assert_eq!(asked("limits").limits.max_depth.unwrap().get(), 2);
    assert!(asked("joint").limits.chunks.is_some_and(|chunks| chunks.get() == 1));
}

#[test]
fn faults_are_read() {
    for (name, text) in [("fault", "link:b0g3-ib*1/2"), ("dead", "nic:gpu01:3")] {
        assert_eq!(loss_read(bytes(&format!("{name}.loss")).into()), Some(text.parse().unwrap()), "{name}");
    }
}
