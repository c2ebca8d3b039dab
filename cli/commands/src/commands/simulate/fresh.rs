//! A plan that is made to be simulated: asked of a server like any other, and kept in memory.

use std::io::Error;
use std::num::NonZeroU64;
use std::time::Duration;

use canopy_client::{ClientError, ErrorClass, PlanReceiver};
use canopy_proto::v1::{self, Accepted, PlanResponse, PlanSpec, Progress};
use canopy_schedule::CollectiveKind;
use canopy_synth::Algorithm;

use super::SimulateArgs;
use crate::connection::{Connection, ask};
use crate::exit::Failure;
use crate::input::PLAN_BYTES_MAX;
use crate::progress::ProgressLine;
use crate::request;

/// The file of the plan for the network and collective that the arguments name.
pub(super) async fn plan(args: &SimulateArgs, kind: CollectiveKind) -> Result<Vec<u8>, Failure> {
    let mut request = by(&unnamed(args, kind, args.collective.root)?, args.algorithm);
    request.chunks = args.chunks.map(NonZeroU64::get);
    ask(&args.server, args.deadline, async |connection, left| fetched(connection, request.clone(), left).await).await
}

/// The request for a plan by whatever algorithm.
pub(super) fn unnamed(args: &SimulateArgs, kind: CollectiveKind, root: Option<u32>) -> Result<PlanSpec, Failure> {
    let text = args.plan.to_str().ok_or_else(|| {
        Failure::input(format!("{} is no text", args.plan.display())).help("give a file a name in UTF-8")
    })?;
    let collective = request::collective_spec(kind, root);
    let request = request::plan(request::topology(text)?, collective, vec![request::json_output()]);
    // What is simulated is the network as it is named.
    Ok(PlanSpec { fault_policy: v1::FaultPolicy::Ignore.into(), ..request })
}

/// The same request by this algorithm.
fn by(request: &PlanSpec, algorithm: Algorithm) -> PlanSpec {
    PlanSpec { algorithm: Some(algorithm.name().to_owned()), ..request.clone() }
}

/// The file of the plan by an algorithm, or why it has none.
///
/// # Errors
/// What has nothing to do with this plan: no server, or one that has no room or is at fault.
pub(super) async fn tried(
    connection: &Connection,
    unnamed: &PlanSpec,
    algorithm: Algorithm,
    left: Option<Duration>,
) -> Result<Result<Vec<u8>, Failure>, ClientError> {
    match fetched(connection, by(unnamed, algorithm), left).await {
        Ok(plan) => Ok(Ok(plan)),
        Err(error) if matches!(error.class(), ErrorClass::Input | ErrorClass::Infeasible | ErrorClass::Deadline) => {
            Ok(Err(request::in_users_words(error, "T").into()))
        }
        Err(error) => Err(error),
    }
}

/// Why there is no plan, without the name of what refuses, which stands before it, and without what to do instead.
pub(super) fn reason(failure: &Failure, algorithm: Algorithm) -> String {
    let sentence = failure.sentence();
    let sentence = sentence.strip_prefix("cannot plan: ").unwrap_or(&sentence);
    let without = sentence.strip_prefix(algorithm.name()).and_then(|rest| rest.strip_prefix(' '));
    let sentence = without.unwrap_or(sentence);
    sentence.split("; ").next().unwrap_or(sentence).to_owned()
}

/// The file of a plan that is asked for over a connection.
async fn fetched(connection: &Connection, request: PlanSpec, left: Option<Duration>) -> Result<Vec<u8>, ClientError> {
    let mut receiver = Receiver { bytes: Vec::new(), progress: ProgressLine::start() };
    connection.shared().clone().plan(request.into_plan(), left, &mut receiver).await?;
    Ok(receiver.bytes)
}

/// Receives the one file.
struct Receiver {
    bytes: Vec<u8>,
    progress: ProgressLine,
}

impl PlanReceiver for Receiver {
    fn accepted(&mut self, accepted: &Accepted) {
        self.progress.accepted(accepted);
    }

    fn progress(&mut self, progress: &Progress) {
        self.progress.progress(progress);
    }

    fn plan(&mut self, _: &PlanResponse) -> std::io::Result<()> {
        Ok(())
    }

    fn content(&mut self, file: usize, data: &[u8]) -> std::io::Result<()> {
        if file > 0 || self.bytes.len() + data.len() > PLAN_BYTES_MAX {
            return Err(Error::other("one plan file was asked for, and the server sends more than that"));
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }
}
