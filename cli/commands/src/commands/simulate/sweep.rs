//! `canopy simulate T --collective C --sweep`: which algorithm is fastest for messages of which size, and where one overtakes another.
//!
//! The plan of each is asked of a server like any other, judged as a plan file would be, and simulated at every size with the
//! same options. An algorithm that has no plan, or takes too much work, is told with the reason, and the others go on.

mod contest;
mod entrants;
mod report;

use canopy_schedule::CollectiveKind;

use super::SimulateArgs;
use crate::exit::Failure;
use crate::progress::ProgressLine;
use crate::running::on_a_thread;
use contest::Contest;
pub(super) use entrants::require_distinct;

/// Most work for one size of one algorithm, where nobody says otherwise: a second or so.
const WORK_MAX: u64 = 20_000_000;

/// Has all plans made, simulates them and prints what was found.
///
/// # Errors
/// A name that is given twice; no algorithm has a plan, which is then the first one's refusal; nothing that can be simulated.
pub(super) async fn run(args: SimulateArgs, kind: CollectiveKind) -> Result<(), Failure> {
    let algorithms = entrants::named(&args.algorithms, kind)?;
    let answers = entrants::plans(&args, kind, &algorithms).await?;
    on_a_thread(move || {
        let line = ProgressLine::start();
        let contest = Contest::of(&args, answers, &line)?;
        let found = contest.held(&line)?;
        drop(line);
        report::print(&args, &contest, &found)
    })
    .await
}
