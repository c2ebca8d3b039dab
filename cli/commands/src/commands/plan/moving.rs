//! `canopy tools plan-moving`: an all-to-all whose traffic changes, matrix by matrix, on one stream.

mod lines;
mod report;
mod slots;

use std::path::{Path, PathBuf};

use canopy_client::{ClientError, ErrorClass, MovingEvents, MovingMatrices};
use canopy_proto::v1::plan_moving_event::Event;
use canopy_proto::v1::{MovingMatrix, MovingNetwork, MovingPlan};
use tokio::sync::{Notify, mpsc};
use tokio::task::spawn_blocking;

use crate::connection::{CallError, ServerArgs, Session};
use crate::destination::Destination;
use crate::exit::Failure;
use crate::input::STDIN;
use crate::known_faults::FaultArgs;
use crate::request;

use lines::Lines;
use report::Report;
use slots::{SlotArgs, SlotFile};

/// Plan an all-to-all whose traffic changes, matrix by matrix
#[derive(Debug, clap::Args)]
#[command(after_help = "\
MATRICES has a JSON object on each line: {\"number\":1,\"bytes\":[[0,5],[7,0]]}. Row s has the bytes that rank s sends to
each rank, with 0 for itself. Numbers are ascending; without one, a matrix has the next number.

NETWORK consists of boxes of the same number of ranks, joined by a switch or in pairs, with a NIC for each rank on the
switch of its rail, or on one for all ranks.

Of a file, each matrix is planned. Of standard input (`-`), the latest is: those that come while one is planned are passed
over, but for the last. Prints the time of the busiest link and what no routes beat; with `-o`, a line for each plan.

With `--mscclpp`, MATRICES has one matrix. Every rank's buffers have a slot for each rank, in their order, all as large as
the greatest entry needs in whole units. Each slot is filled from its start; the rest of a slot is not moved.

Examples:
  canopy tools plan-moving rail:boxes=4,gpus=8,nv=450GB/s,nic=50GB/s traffic.jsonl
  canopy tools plan-moving dgx-h100:boxes=4 traffic.jsonl -o plans.jsonl
  canopy tools plan-moving dgx-h100:boxes=4 traffic.jsonl --mscclpp plan.json --unit 64KiB
  ./measure | canopy tools plan-moving dgx-h100:boxes=4 - --server 127.0.0.1:7433 -o - | ./send")]
pub(crate) struct PlanMovingArgs {
    /// Generator expression, file or stored topology
    #[arg(value_name = "NETWORK")]
    network: String,
    /// File of matrices, one on each line; `-` for standard input
    #[arg(value_name = "MATRICES")]
    matrices: PathBuf,
    /// File for the plans, a JSON object on each line; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<Destination>,
    #[command(flatten)]
    faults: FaultArgs,
    /// Print one JSON object on each line in place of the table, with all but the routes
    #[arg(long)]
    json: bool,
    /// Relay in the boxes of sender and receiver alone, for programs that take no other routes, such as canopy_torch.
    /// Implied by `--mscclpp`
    #[arg(long)]
    ends_only: bool,
    #[command(flatten)]
    slots: SlotArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// Plans until no matrix is left.
pub(crate) async fn run(args: PlanMovingArgs) -> Result<(), Failure> {
    let network = MovingNetwork {
        topology: Some(request::topology(&args.network)?),
        fault_policy: args.faults.policy().into(),
        any_routes: !args.ends_only && !args.slots.is_wanted(),
    };
    let mut lines = Lines::open(&args.matrices)?;
    let mut file = args.slots.file(&mut lines)?;
    let mut report = Report::new(args.output.as_ref(), args.json, !is_stdin(&args.matrices))?;
    let session = Session::open(&args.server).await?;
    let outcome = planned(&args, &session, (network, lines), (&mut report, &mut file)).await;
    session.close().await;
    outcome.map_err(|error| error.told(|error| in_users_words(error, &args.network)))?;
    report.finish()
}

fn is_stdin(matrices: &Path) -> bool {
    matrices == Path::new(STDIN)
}

/// Sends matrices, and writes down what comes back.
async fn planned(
    args: &PlanMovingArgs,
    session: &Session,
    (network, lines): (MovingNetwork, Lines),
    (report, file): (&mut Report, &mut Option<SlotFile>),
) -> Result<(), CallError> {
    let (matrices, events) = session.connection().shared().plan_moving(network, None).await?;
    // A read that still waits for input when the stream has ended ends with the process.
    let (sender, read) = mpsc::channel(1);
    let _reading = spawn_blocking(move || lines.run(&sender));
    let answered = Notify::new();
    let one_by_one = (!is_stdin(&args.matrices)).then_some(&answered);
    tokio::try_join!(send(matrices, read, one_by_one), receive(events, (report, file), &answered)).map(|((), ())| ())
}

/// Sends what is read; one after the other, where each is to be planned.
async fn send(
    matrices: MovingMatrices,
    mut read: mpsc::Receiver<Result<MovingMatrix, Failure>>,
    one_by_one: Option<&Notify>,
) -> Result<(), CallError> {
    while let Some(matrix) = read.recv().await {
        if !matrices.send(matrix.map_err(CallError::Here)?).await {
            // The events say why.
            return Ok(());
        }
        if let Some(answered) = one_by_one {
            answered.notified().await;
        }
    }
    Ok(())
}

async fn receive(
    mut events: MovingEvents,
    (report, file): (&mut Report, &mut Option<SlotFile>),
    answered: &Notify,
) -> Result<(), CallError> {
    while let Some(event) = events.next().await? {
        match event {
            Event::Tiers(tiers) => {
                report.network(&tiers).and_then(|()| file.as_mut().map_or(Ok(()), |file| file.network(&tiers)))
            }
            Event::Plan(plan) => {
                answered.notify_one();
                planned_matrix(&plan, report, file.as_ref()).await
            }
            Event::Refusal(refusal) => {
                answered.notify_one();
                report.refusal(&refusal)
            }
        }
        .map_err(CallError::Here)?;
    }
    Ok(())
}

/// Writes down a plan, and its file for a runtime if one is wanted.
async fn planned_matrix(plan: &MovingPlan, report: &mut Report, file: Option<&SlotFile>) -> Result<(), Failure> {
    let Some(file) = file else { return report.plan(plan) };
    let written = file.write(plan).await?;
    report.plan(plan)?;
    report.slot_file(&written, plan.number)
}

/// What the server refused, in the words of the arguments.
fn in_users_words(error: ClientError, network: &str) -> ClientError {
    let error = request::in_users_words(error, network);
    request::renamed(error, |field| (field == "network.topology").then(|| network.to_owned()))
}

/// Whose move it is where a matrix has no plan, by the code of the refusal.
const fn class_of(code: i32) -> ErrorClass {
    match code {
        3 => ErrorClass::Input,
        9 => ErrorClass::Infeasible,
        8 | 14 => ErrorClass::Busy,
        _ => ErrorClass::Fault,
    }
}
