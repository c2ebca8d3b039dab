//! Plans a collective in a program of one's own: no server, no runtime, no files.
//!
//! `cargo run --release --package canopy-planner --example embed -- torus:4x4`

use canopy_planner::{Context, Planner, Request, SchedulesInMemory};
use canopy_schedule::CollectiveKind;
use canopy_topology::TopologyLimits;

#[expect(clippy::print_stdout, reason = "it is a program")]
fn main() -> Result<(), canopy_planner::PlanError> {
    let network = std::env::args().nth(1).unwrap_or_else(|| "dgx-a100:boxes=2".to_owned());
    let (planner, schedules) = (Planner::new(TopologyLimits::STANDARD), SchedulesInMemory::new(64 << 20));
    let request = Request::on(&network, CollectiveKind::Allgather);
    let plan = planner.plan(&request, Context::new(&schedules))?;
    println!("{network}: {:.3} GB/s, {} of the best possible", plan.achieved().gigabytes_per_sec(), plan.optimality);
    for file in &plan.files.files {
        println!("a file of {} bytes", file.content.len());
    }
    Ok(())
}
