//! A plan and its file.

use std::path::{Path, PathBuf};

use canopy_client::ClientError;
use canopy_proto::v1::{self, PlanRequest, PlanResponse, PlanSpec};
use canopy_synth::Algorithm;
use clap::ValueEnum;

use super::file::FileArgs;
use super::receive::Receiver;
use super::{CallArgs, Common, loader, report};
use crate::args::{CollectiveArgs, LimitArgs, MemoryArgs};
use crate::clock::{self, Deadline};
use crate::connection::{CallError, Session};
use crate::destination;
use crate::exit::Failure;
use crate::local;
use crate::request;
use crate::runtime::RuntimeProfile;
use crate::whole_file::cannot_write;

/// What only the one plan is told.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) call: CallArgs,
    pub(super) algorithm: Algorithm,
    pub(super) limits: LimitArgs,
    pub(super) on_miss: Option<OnMiss>,
    pub(super) memory: MemoryArgs,
}

/// What to do without the plan that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnMiss {
    /// Report a failure
    Fail,
    /// Take a checked plan of algorithm `direct`
    Fallback,
    /// Take the best of that and of plans within 1/4 and 1/64 of the best rate, as far as they come in time
    BestSoFar,
}

impl OnMiss {
    const fn on_the_wire(self) -> v1::OnMiss {
        match self {
            Self::Fail => v1::OnMiss::Fail,
            Self::Fallback => v1::OnMiss::Fallback,
            Self::BestSoFar => v1::OnMiss::BestSoFar,
        }
    }
}

/// Makes the plan, writes the file, says what came of it.
pub(super) async fn run(common: Common, asked: Asked) -> Result<(), Failure> {
    let output = destination::of_machines(common.file.output.as_ref(), common.json, "the plan")?;
    let request = plan_request(&common, asked)?;
    let module = module(&common.file)?;
    let format = common.file.untold_format();
    let mut receiver = Receiver::new(output)?;
    let started = clock::now();
    let made = match common.server.folder()? {
        Some(folder) => local::plan(&folder, &request, common.deadline, &mut receiver).await,
        None => Ok(None),
    };
    let made = made.map_err(|error| common.told(at_output(error, output)))?;
    let (reply, session) = match made {
        Some(reply) => (reply, None),
        None => {
            let (reply, session) = by_server(&common, &request, output, &mut receiver).await?;
            (reply, Some(session))
        }
    };
    let elapsed = started.elapsed();
    receiver.commit()?;
    if let (Some(plan), Some(module)) = (output, &module) {
        let map = reply.plan.as_ref().and_then(|plan| plan.rank_map.as_ref());
        loader::write(plan, module, map.and_then(loader::ranks_per_node))?;
    }
    let written = report::print(&report::Outcome { reply: &reply, output, format, elapsed }, common.json);
    if let Some(session) = session {
        session.close().await;
    }
    written
}

/// Has a server make the plan; returns its reply, and the session, whose server may be one of this process.
async fn by_server(
    common: &Common,
    request: &PlanRequest,
    output: Option<&Path>,
    receiver: &mut Receiver,
) -> Result<(PlanResponse, Session), Failure> {
    let mut session = Session::open(&common.server).await?;
    // Opening a store does not count: the first server gets all the time there is, further ones what it left.
    let end = Deadline::after(common.deadline);
    let mut is_first = true;
    let answer = session.ask(end, async |connection, left| {
        let limit = if is_first { common.deadline } else { left };
        if !std::mem::take(&mut is_first) {
            *receiver = Receiver::new(output).map_err(CallError::Here)?;
        }
        let answer = connection.shared().clone().plan(request.clone(), limit, &mut *receiver).await;
        answer.map_err(|error| at_output(error.into(), output))
    });
    match answer.await {
        Ok(reply) => Ok((reply, session)),
        Err(error) => {
            session.close().await;
            Err(common.told(error))
        }
    }
}

/// The error with the file that could not be written, if that is the error.
fn at_output(error: CallError, output: Option<&Path>) -> CallError {
    match (error, output) {
        (CallError::Server(ClientError::Write(error)), Some(path)) => CallError::Here(cannot_write(path, &error)),
        (error, _) => error,
    }
}

/// Where the module goes that registers the plan, where the runtime needs one.
fn module(file: &FileArgs) -> Result<Option<PathBuf>, Failure> {
    let target = file.profile.or(RuntimeProfile::usual(file.format()));
    let is_registered = target.is_some_and(|target| target.format() == Some(file.format()) && target.is_registered());
    file.file().filter(|_| is_registered).map(loader::path).transpose()
}

/// The request as it goes to the server, which judges all that needs the topology.
fn plan_request(common: &Common, asked: Asked) -> Result<PlanRequest, Failure> {
    let Asked { call, algorithm, limits, on_miss, memory } = asked;
    if let [_, second, ..] = call.collective.as_slice() {
        let second = second.kind();
        return Err(Failure::input(format!("one plan is for one collective, and {second} is given, too"))
            .help("name one, or add `--sizes FROM..TO` for a folder with the plans of all"));
    }
    let collective = CollectiveArgs { collective: call.collective.first().copied(), root: call.root };
    let kind = collective.kind()?;
    if common.file.profile == Some(RuntimeProfile::Nccl) {
        return Err(Failure::input("NCCL cannot load external plans").help(
            "use `--sizes FROM..TO` to write tuner advice instead, or name the profile of a runtime that runs plans",
        ));
    }
    let output = common.file.spec()?;
    let request =
        request::plan(request::topology(&common.topology)?, request::collective_spec(kind, call.root), vec![output]);
    let spec = limits.on(call.part.in_request(
        PlanSpec {
            size_bytes_max: call.size,
            in_place: memory.in_place(),
            algorithm: Some(algorithm.name().to_owned()),
            placement: call.placement.placement,
            fault_policy: common.faults.policy().into(),
            ..request
        },
        &collective,
    )?);
    let on_miss = on_miss.map_or(v1::OnMiss::Unspecified, OnMiss::on_the_wire).into();
    Ok(PlanRequest { on_miss, ..spec.into_plan() })
}
