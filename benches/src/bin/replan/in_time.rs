//! A large torus planned for in time, of which one link breaks.

use canopy_proto::v1::{Collective, PlanSpec};
use canopy_topology::{Rank, TopologyLimits, generate};

use super::{Failure, Times, Workspace, best_so_far, link, ms, request};

const NETWORK: &str = "torus:16x16";

/// When there is any plan, when the one that keeps what can be sent when it was, and when one that was found anew; and what each
/// reaches of the bound.
#[expect(clippy::print_stdout, reason = "the figures are the result")]
pub(super) async fn in_time() -> Result<(), Failure> {
    let whole = generate(NETWORK, &TopologyLimits::STANDARD)?;
    let ends = [87, 88].map(|rank| whole.node(Rank::new(rank).node()).id.clone());
    for collective in [Collective::Allgather, Collective::Allreduce] {
        let mut workspace = Workspace::open(|_| {}).await?;
        let asked =
            |faults: &[_]| PlanSpec { algorithm: Some("tacos".to_owned()), ..request(NETWORK, collective, faults) };
        workspace.client.plan(best_so_far(asked(&[])), None, &mut Times::new()).await?;
        let mut times = Times::new();
        workspace.client.plan(best_so_far(asked(&[link(&ends[0], &ends[1], None)])), None, &mut times).await?;
        let figures = [("first", times.first), ("repaired", times.repaired), ("final", times.last)];
        let figures = figures.map(|(what, seen)| match seen {
            Some((after, reached)) => format!("{what} after {:.0} ms ({reached:.4} of the bound)", ms(after)),
            None => format!("{what} never"),
        });
        println!("{NETWORK} {} by tacos, one dead link: {}", collective.as_str_name(), figures.join(", "));
        workspace.close().await?;
    }
    Ok(())
}
