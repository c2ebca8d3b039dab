//! The table of the guide: 15 networks and collectives, each in a lab of its own.

use canopy_schedule::CollectiveKind;
use canopy_synth::Algorithm;

use super::report::Report;
use super::{LabArgs, network};
use crate::clock::Deadline;
use crate::exit::Failure;
use crate::material::Material;
use crate::running::on_a_thread;

/// Networks and their collectives.
const ROWS: [(&str, &[CollectiveKind]); 7] = [
    ("ring:6", &[CollectiveKind::Allgather, CollectiveKind::Allreduce]),
    ("torus:3x3", &[CollectiveKind::Allgather, CollectiveKind::Allreduce, CollectiveKind::AllToAll]),
    ("torus:3x3,down=00-01", &[CollectiveKind::Allgather, CollectiveKind::Allreduce]),
    ("dgx-a100:boxes=2,gpus=4", &[CollectiveKind::Allgather, CollectiveKind::Allreduce]),
    ("dgx-a100:boxes=2,gpus=4,degrade=b0g3-ib*1/2", &[CollectiveKind::Allgather, CollectiveKind::Allreduce]),
    ("dgx-a100:boxes=4,gpus=4,nodes-down=b0g3", &[CollectiveKind::Allgather, CollectiveKind::Allreduce]),
    ("mi250:boxes=2,gpus=8", &[CollectiveKind::Allgather, CollectiveKind::Allreduce]),
];

/// Runs all rows, each with canopy's ring beside the plan where there is one.
pub(super) async fn run(args: &LabArgs, report: &mut Report) -> Result<(), Failure> {
    for (name, kinds) in ROWS {
        for &kind in kinds {
            let deadline = args.deadline;
            let plans = on_a_thread(move || {
                let plan = |algorithm: Algorithm| {
                    let planned = Material::planned(name, kind, None, algorithm, Deadline::after(deadline))?;
                    Ok::<_, Failure>((algorithm.name().to_owned(), planned))
                };
                let mut plans = vec![plan(Algorithm::Auto)?];
                if kind != CollectiveKind::AllToAll {
                    plans.push(plan(Algorithm::Ring)?);
                }
                Ok(plans)
            });
            network(args, name, plans.await?, report).await?;
        }
    }
    Ok(())
}
