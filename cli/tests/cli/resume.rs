//! `canopy job fetch` from a server that breaks off in the middle of a file.

use std::sync::{Arc, Mutex};

use canopy_proto::v1::fetch_plan_file_event::Event as Fetched;
use canopy_proto::v1::plan_event::Event;
use canopy_proto::v1::{
    Accepted, Artifact, ContentPiece, FetchPlanFileEvent, FetchPlanFileRequest, Fraction, OutputFormat, Plan,
    PlanEvent, PlanResponse, Quality, Validity,
};
use sha2::{Digest as _, Sha256};
use tonic::{Code, Status};

use crate::scripted::{Events, Script, serve};
use crate::support::{Run, Workspace};

/// As much of a file as the runtime looks at before it runs it.
const CONTENT: &[u8] = br#"<algo name="pair" proto="Simple" nchannels="1" nchunksperloop="1" ngpus="2" coll="allreduce" inplace="1" minBytes="0" maxBytes="1025">
  <gpu id="0" i_chunks="1" o_chunks="0" s_chunks="0"></gpu>
  <gpu id="1" i_chunks="1" o_chunks="0" s_chunks="0"></gpu>
</algo>
"#;
/// Bytes that come before the break.
const BROUGHT: usize = 9;

/// Breaks off the first stream after some bytes, and notes what else is asked for.
#[derive(Clone, Default)]
struct Breaking {
    /// Whether files can be fetched afterwards; else they are gone.
    keeps: bool,
    asked: Arc<Mutex<Vec<String>>>,
}

fn hex(data: &[u8]) -> String {
    Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn artifact() -> Artifact {
    let (size_bytes, sha256) = (CONTENT.len() as u64, hex(CONTENT));
    let format = OutputFormat::MscclXml.into();
    Artifact {
        format,
        profile: "msccl".to_owned(),
        size_bytes,
        sha256,
        content: None,
        instances: Some(1),
        layers: None,
    }
}

fn piece(offset: usize, data: &'static [u8]) -> ContentPiece {
    ContentPiece { artifact: 0, offset: offset as u64, data: data.into(), sha256: hex(data) }
}

impl Script for Breaking {
    fn planned(&self) -> Result<Events<PlanEvent>, Status> {
        let is_first = {
            let mut asked = self.asked.lock().unwrap();
            asked.push("plan".to_owned());
            asked.len() == 1
        };
        let plan = Plan {
            name: "plans/x".to_owned(),
            artifacts: vec![artifact()],
            quality: Some(Quality { optimality: Some(Fraction::new("1/1", 1.0)), ..Quality::default() }),
            valid_for: Some(Validity { ranks: 2, size_bytes_max: 1024, in_place: true, ..Validity::default() }),
            ..Plan::default()
        };
        let reply = PlanResponse { plan: Some(plan), ..PlanResponse::default() };
        let data = if is_first { &CONTENT[..BROUGHT] } else { CONTENT };
        let events = [Event::Accepted(Accepted::default()), Event::Final(reply), Event::Content(piece(0, data))];
        let numbered = (0..).zip(events).map(|(sequence, event)| Ok(PlanEvent { sequence, event: Some(event) }));
        let end = is_first.then(|| Err(Status::unavailable("about to end")));
        Ok(Box::pin(tokio_stream::iter(numbered.chain(end).collect::<Vec<_>>())))
    }

    fn fetched(&self, request: FetchPlanFileRequest) -> Result<Events<FetchPlanFileEvent>, Status> {
        let FetchPlanFileRequest { name: plan, offset, .. } = request;
        self.asked.lock().unwrap().push(format!("{plan} from {offset}"));
        if !self.keeps {
            return Err(Status::new(Code::NotFound, "no such plan"));
        }
        let start = usize::try_from(offset).unwrap();
        let events = [Fetched::Artifact(artifact()), Fetched::Content(piece(start, &CONTENT[start..]))];
        let events = events.map(|event| Ok(FetchPlanFileEvent { event: Some(event), ..Default::default() }));
        Ok(Box::pin(tokio_stream::iter(events)))
    }
}

/// Runs the command against such a server; what it left, and what it asked for.
fn fetch(workspace: &Workspace, keeps: bool) -> (Run, Vec<String>) {
    let service = Breaking { keeps, ..Breaking::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _in_runtime = runtime.enter();
    let _ends_with_the_runtime = runtime.spawn(serve(service.clone(), &workspace.path("socket")));
    let run = workspace.run("fetch ring:2 -c allreduce --job 1 --out out --strict --server unix:socket");
    let asked = service.asked.lock().unwrap().clone();
    (run, asked)
}

#[track_caller]
fn check_file(workspace: &Workspace) {
    let manifest: serde_json::Value = serde_json::from_slice(&workspace.read("out/manifest.json")).unwrap();
    let path = manifest["files"][0]["path"].as_str().unwrap();
    assert!(path.ends_with(&format!("/plans/00-allreduce-{:.12}.xml", hex(CONTENT))), "{path}");
    assert_eq!(workspace.read(&format!("out/{path}")), CONTENT);
    assert_eq!(std::fs::read_dir(workspace.path("out")).unwrap().count(), 3, "the plans, the manifest and env");
}

#[test]
fn a_broken_file_is_fetched_from_where_it_broke() {
    let workspace = Workspace::new();
    let (run, asked) = fetch(&workspace, true);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert_eq!(asked, ["plan", "plans/x from 9"]);
    check_file(&workspace);
}

#[test]
fn a_broken_file_that_is_gone_is_asked_for_anew() {
    let workspace = Workspace::new();
    let (run, asked) = fetch(&workspace, false);
    assert_eq!(run.status, Some(0), "{run:?}");
    assert_eq!(asked, ["plan", "plans/x from 9", "plan"]);
    check_file(&workspace);
}
