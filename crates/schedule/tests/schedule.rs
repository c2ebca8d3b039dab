//! The compiler, the judge and the certificates: hand-made schedules with hand-computed rates, refusals by name,
//! properties of random forests, and mutations of transfer graphs that a slow and simple second judge must agree on.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

#[path = "schedule/accepted.rs"]
mod accepted;
#[path = "schedule/certificates.rs"]
mod certificates;
#[path = "schedule/depth_bound.rs"]
mod depth_bound;
#[path = "schedule/depths.rs"]
mod depths;
#[path = "schedule/fabrics.rs"]
mod fabrics;
#[path = "schedule/flows.rs"]
mod flows;
#[path = "schedule/forests.rs"]
mod forests;
#[path = "schedule/in_network.rs"]
mod in_network;
#[path = "schedule/in_turn.rs"]
mod in_turn;
#[path = "schedule/mutate.rs"]
mod mutate;
#[path = "schedule/mutations.rs"]
mod mutations;
#[path = "schedule/once.rs"]
mod once;
#[path = "schedule/orbits.rs"]
mod orbits;
#[path = "schedule/programs.rs"]
mod programs;
#[path = "schedule/properties.rs"]
mod properties;
#[path = "schedule/reference.rs"]
mod reference;
#[path = "schedule/refused.rs"]
mod refused;
#[path = "schedule/shapes.rs"]
mod shapes;
#[path = "schedule/shared.rs"]
mod shared;
#[path = "schedule/stages.rs"]
mod stages;
#[path = "schedule/steps.rs"]
mod steps;
#[path = "schedule/transform.rs"]
mod transform;
#[path = "schedule/transforms.rs"]
mod transforms;
