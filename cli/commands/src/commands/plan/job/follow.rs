//! The plans of a job, made again whenever faults change its network.

use canopy_client::GroupsRound;
use canopy_proto::v1::{GroupsProgress, PlanGroupsRequest};

use super::manifest::Printed;
use super::{PlanJobArgs, in_users_words, in_words, kept, report};
use crate::clock::Deadline;
use crate::commands::plan::folder::NewFolder;
use crate::connection::{CallError, Session};
use crate::exit::Failure;
use crate::messages::{say, warn};
use crate::output::print_json;
use crate::progress::ProgressLine;
use crate::stdout::print;

/// Follows rounds; where the server ends or the connection breaks, begins again with what faults have left by then.
pub(super) async fn run(args: &PlanJobArgs, request: PlanGroupsRequest) -> Result<(), Failure> {
    if !args.server.names_one() {
        let failure = Failure::input("--follow waits for faults, and no server is named that hears of them");
        return Err(failure.help("add `--server ADDR` or set CANOPY_SERVER"));
    }
    let mut session = Session::open(&args.server).await?;
    let mut rounds = 0;
    loop {
        let error = match follow(args, &mut session, &request, &mut rounds).await {
            Ok(()) => return Ok(()),
            Err(CallError::Here(failure)) => return Err(failure),
            Err(CallError::Server(error)) => in_users_words(error, args),
        };
        if let Some(pause) = session.pause_after(error, Deadline::after(None))? {
            say("connection lost; all groups are planned again once there is another one");
            tokio::time::sleep(pause).await;
        }
        session.reconnect().await?;
    }
}

/// Shows and writes rounds until there were as many as are wanted.
async fn follow(
    args: &PlanJobArgs,
    session: &mut Session,
    request: &PlanGroupsRequest,
    rounds: &mut u64,
) -> Result<(), CallError> {
    let mut stream = session.connection().shared().follow_groups(request.clone()).await?;
    loop {
        let line = ProgressLine::start();
        let round = stream.next_round(|done: &GroupsProgress| line.working(in_words(done))).await;
        drop(line);
        let Some(GroupsRound { planned, .. }) = round? else {
            return Err(CallError::Here(Failure::fault("the server ended the stream")));
        };
        session.forget_failures();
        match planned {
            Ok(planned) => {
                // The earlier folder stays until the new one is whole.
                let folder = args.file.file().map(NewFolder::prepare).transpose().map_err(CallError::Here)?;
                let planned = (&planned, !request.members_only);
                let manifest = kept(args, session.connection(), planned, folder).await.map_err(CallError::Here)?;
                let shown = match args.json {
                    true => print_json("plan-job", &Printed { job: &manifest }),
                    false => print(&report::readable(&manifest)),
                };
                shown.map_err(CallError::Here)?;
            }
            Err(error) => warn(format!("no plans on what faults have left: {}", error.message)),
        }
        *rounds += 1;
        if args.rounds.is_some_and(|wanted| *rounds >= wanted) {
            return Ok(());
        }
    }
}
