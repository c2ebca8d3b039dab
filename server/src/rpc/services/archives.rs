//! Archives on their way out of the store and into it.
//!
//! An archive that comes in is kept in a file without a name until its last byte is there, then verified, then judged,
//! and only then taken: nothing of a damaged one is ever stored.

mod incoming;
mod outgoing;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Seek as _};
use std::path::PathBuf;
use std::sync::Arc;

use canopy_planner::PlanKey;
use canopy_proto::v1::{
    ArchiveContents, ArchiveEvent, ExportPlansRequest, ImportPlansRequest, ImportPlansResponse, SkippedPlan,
};
use canopy_topology::TopologyLimits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::spawn_blocking;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status, Streaming};

use self::incoming::{Incoming, Refused};
use self::outgoing::PieceWriter;
use crate::call;
use crate::clock;
use crate::failure::{CallFailure, PlanFailure};
use crate::jobs::planner::Planner;
use crate::ops::config::Options;
use crate::replan::{Replanner, Snapshot};
use crate::rpc::EventStream;
use crate::rpc::shared::call_pool::{CallPool, Repeated, log, repeated};
use crate::rpc::shared::events::STREAM_BUFFER;
use crate::rpc::shared::judge::{Verdict, judge_plan, judge_request};
use crate::rpc::shared::plan_summaries::{chosen, for_each};
use crate::rpc::shared::status::call_status;
use crate::store::read_signed_archive;
use crate::store::receipts::Repeatable;
use crate::store::topologies::{TopologyStore, id_of, judge_topology};
use crate::store::{
    ArchiveKey, ArchiveTrust, ArchiveWriter, ArchivedRecord, PlanSummary, Records, Space, Store, StoreError,
    read_archive,
};
use crate::tasks;
use crate::tenant::Viewer;

/// Exports at once; the others wait.
const EXPORTS_AT_ONCE: usize = 2;
/// Most plans of which it is told why they were skipped.
const SKIPPED_TOLD_MAX: usize = 100;
/// Room in an archive for topologies and what stands beside the records.
const SLACK_BYTES: u64 = 2 << 30;

/// Writes and reads archives for calls.
#[derive(Clone)]
pub(crate) struct Archives {
    pool: CallPool,
    topologies: TopologyStore,
    /// The space of plans below the records, which archives take as they are.
    plans: PlanSpace,
    /// Where an archive that comes in is kept.
    directory: PathBuf,
    limits: TopologyLimits,
    /// Makes the keys of plans that come in.
    planner: Arc<dyn Planner>,
    plan_bytes_max: u64,
    key: Arc<ArchiveKey>,
    trust: ArchiveTrust,
    clusters: Arc<dyn Store>,
    replanner: Replanner,
    exports: Arc<Semaphore>,
    /// One at a time: two could each fit, and together not.
    imports: Arc<Semaphore>,
}

/// The space of plans.
#[derive(Clone)]
pub(crate) struct PlanSpace(pub(crate) Arc<dyn Store>);

impl Archives {
    pub(crate) fn new(
        pool: CallPool,
        (topologies, clusters, replanner): (TopologyStore, Arc<dyn Store>, Replanner),
        plans: PlanSpace,
        (planner, options, key): (&Arc<dyn Planner>, &Options, &Arc<ArchiveKey>),
    ) -> Self {
        Self {
            pool,
            topologies,
            clusters,
            replanner,
            plans,
            directory: options.data_dir.clone(),
            limits: options.limits,
            planner: Arc::clone(planner),
            plan_bytes_max: options.store_bytes_max,
            key: Arc::clone(key),
            trust: options.archive_trust.clone(),
            exports: Arc::new(Semaphore::new(EXPORTS_AT_ONCE)),
            imports: Arc::new(Semaphore::new(1)),
        }
    }

    /// Sends an archive of the plans that the filter wants, and of all topologies.
    pub(in crate::rpc) async fn export(
        &self,
        request: Request<ExportPlansRequest>,
    ) -> Result<EventStream<ArchiveEvent>, Status> {
        let (headers, _, ExportPlansRequest { filter }) = request.into_parts();
        let permit = Arc::clone(&self.exports).acquire_owned().await.map_err(|error| broken(&error))?;
        let topologies = self.topologies.clone();
        let viewer = Viewer::of(&headers);
        let selection = self.pool.run("ExportPlans", &headers, move |records| {
            let (plans, contents) = chosen(records, &viewer?, &filter)?;
            Selection { plans, contents, beside: None }.with_all(&topologies)
        });
        Ok(self.send(permit, selection.await?))
    }

    /// Sends an archive of everything that a successor needs.
    pub(in crate::rpc) async fn back_up(&self, headers: &MetadataMap) -> Result<EventStream<ArchiveEvent>, Status> {
        let permit = Arc::clone(&self.exports).acquire_owned().await.map_err(|error| broken(&error))?;
        let (topologies, replanner) = (self.topologies.clone(), self.replanner.clone());
        let selection = self.pool.run("BackUp", headers, move |records| {
            // Plans that they speak of are there already, as they were stored before.
            let beside = replanner.snapshot();
            let (mut plans, mut contents) = (Vec::new(), ArchiveContents::default());
            for_each(records, |summary| {
                plans.push(summary.key());
                contents.record_bytes += summary.size_bytes;
                contents.pinned_plans += u64::from(summary.pinned);
                Ok(())
            })?;
            contents.plans = plans.len() as u64;
            (contents.leases, contents.faults, contents.events) = beside.counts();
            Selection { plans, contents, beside: Some(beside) }.with_all(&topologies)
        });
        Ok(self.send(permit, selection.await?))
    }

    fn send(&self, permit: OwnedSemaphorePermit, selection: Selection) -> EventStream<ArchiveEvent> {
        let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
        let this = self.clone();
        let write = move || {
            let _one_of_few = permit;
            this.write(&selection, PieceWriter::new(sender));
        };
        let task = tasks::spawn("archive", async {
            // A panic is the writer's: the stream ends without an end, which its reader notices.
            let _ended = spawn_blocking(write).await;
        });
        EventStream::new(receiver, task)
    }

    /// Takes an archive whole, or not at all.
    pub(in crate::rpc) async fn import(
        &self,
        request: Request<Streaming<ImportPlansRequest>>,
    ) -> Result<ImportPlansResponse, Status> {
        let arrived = clock::now();
        let (headers, _, stream) = request.into_parts();
        let taken = self.take(Viewer::of(&headers), stream).await;
        match taken {
            Ok(reply) => {
                log("ImportPlans", arrived, None);
                Ok(reply)
            }
            Err(Refused::Call(failure)) => {
                log("ImportPlans", arrived, Some(&failure));
                Err(call_status(&failure))
            }
            // Whoever refused it on the way has said why, and so does the line of the call.
            Err(Refused::Transport(status)) => Err(status),
        }
    }

    async fn take(
        &self,
        viewer: Result<Viewer, PlanFailure>,
        stream: Streaming<ImportPlansRequest>,
    ) -> Result<ImportPlansResponse, Refused> {
        let viewer = viewer?;
        let _one_at_a_time = self.imports.acquire().await.map_err(|error| lost(&error))?;
        let limit = self.plan_bytes_max.saturating_add(SLACK_BYTES);
        let Incoming { file, request_id, digest } = incoming::receive(stream, &self.directory, limit).await?;
        call::has_request_id(&request_id);
        let request = Repeatable::with_digest(&viewer.method("ImportPlans"), &request_id, &digest)?;
        let this = self.clone();
        // It goes on when its caller has left: half an import would be worse.
        let done = spawn_blocking(move || {
            let open = match repeated(this.pool.receipts(), request)? {
                Repeated::Answered(answer) => return Ok(answer),
                Repeated::Open(open) => open,
            };
            let reply = this.store(&viewer, file)?;
            open.into_iter().for_each(|open| open.keep(prost::Message::encode_to_vec(&reply)));
            Ok(reply)
        });
        let stored: Result<ImportPlansResponse, CallFailure> = done.await.map_err(|error| lost(&error))?;
        let stored = stored?;
        call::concerns(&format!("{} plans, {} topologies", stored.plans_added, stored.topologies_added));
        Ok(stored)
    }

    /// Verifies, judges and stores what is in the file.
    fn store(&self, viewer: &Viewer, file: File) -> Result<ImportPlansResponse, CallFailure> {
        let records = self.pool.records();
        let mut file = BufReader::new(file);
        let mut judged = Judged::default();
        let (_, signer) = read_signed_archive(&mut file, clock::unix_ms(), |record| {
            judged.judge(&record, viewer, (self.planner.as_ref(), &self.limits));
            Ok(())
        })?;
        self.trust.judge(&self.key, signer)?;
        if let Some((record, problem)) = judged.problem {
            return Err(CallFailure::ArchiveRecord { record, problem });
        }
        self.topologies.admit(&judged.topologies)?;
        self.fits(records, &judged)?;
        file.rewind().map_err(crate::store::ArchiveError::from)?;
        let (mut plans_added, mut plans_kept, mut topologies_added) = (0, 0, 0);
        let mut refused = None;
        read_archive(&mut file, clock::unix_ms(), |record| {
            match record.space {
                Space::Topologies => match self.topologies.take_in(record.key, record.record) {
                    Ok(is_new) => topologies_added += u64::from(is_new),
                    Err(error) => refused = refused.take().or(Some(error)),
                },
                Space::Plans if judged.plans.contains(record.key) => {
                    let here = records.summary(record.key)?;
                    plans_added += u64::from(here.is_none());
                    plans_kept += u64::from(here.is_some_and(|here| here.pinned));
                    records.adopt(&record)?;
                }
                _ => {}
            }
            Ok(())
        })?;
        match refused {
            Some(error) => Err(error.into()),
            None => Ok(ImportPlansResponse {
                contents: Some(judged.contents),
                plans_added,
                topologies_added,
                plans_kept,
                plans_skipped: judged.skipped_count,
                skipped: judged.skipped,
            }),
        }
    }

    /// Whether all plans of an archive can be stored beside the pinned ones that it does not replace.
    fn fits(&self, records: &Records, judged: &Judged) -> Result<(), CallFailure> {
        let (mut pinned, limit) = (0_u64, self.plan_bytes_max);
        for_each(records, |summary| {
            if summary.pinned && !judged.plans.contains(&summary.key()) {
                pinned += summary.size_bytes;
            }
            Ok(())
        })?;
        let needed = judged.plan_bytes;
        match pinned.saturating_add(needed) > limit {
            true => Err(StoreError::Full { needed, pinned, limit }.into()),
            false => Ok(()),
        }
    }
}

/// What an archive holds, and the first thing that is wrong with it.
#[derive(Default)]
struct Judged {
    contents: ArchiveContents,
    plans: BTreeSet<PlanKey>,
    plan_bytes: u64,
    topologies: Vec<(PlanKey, u64)>,
    /// Plans that are not taken, and the first of them with the reasons.
    skipped_count: u64,
    skipped: Vec<SkippedPlan>,
    problem: Option<(String, String)>,
}

impl Judged {
    fn judge(
        &mut self,
        archived: &ArchivedRecord<'_>,
        viewer: &Viewer,
        (planner, limits): (&dyn Planner, &TopologyLimits),
    ) {
        if self.problem.is_some() {
            return;
        }
        let size_bytes = archived.record.len() as u64;
        let (name, verdict) = match archived.space {
            Space::Topologies => {
                self.contents.record_bytes += size_bytes;
                self.contents.topologies += 1;
                self.topologies.push((*archived.key, size_bytes));
                (id_of(archived.key), judge_topology(archived.key, archived.record, limits))
            }
            Space::Plans => {
                self.contents.record_bytes += size_bytes;
                self.contents.plans += 1;
                let summary = PlanSummary::decode(archived.key, archived.summary);
                self.contents.pinned_plans += u64::from(summary.is_ok_and(|summary| summary.pinned));
                let id = archived.key.plan_id();
                let verdict = judge_record(archived, viewer, (planner, limits)).map(|verdict| match verdict {
                    Verdict::Sound => {
                        self.plans.insert(*archived.key);
                        self.plan_bytes += size_bytes;
                    }
                    Verdict::Unusable(reason) => self.skip(&id, reason),
                });
                (id, verdict)
            }
            // Jobs and faults of another server are none of this one's.
            _ => return,
        };
        self.problem = verdict.err().map(|problem| (name, problem));
    }

    fn skip(&mut self, id: &str, reason: String) {
        self.skipped_count += 1;
        if self.skipped.len() < SKIPPED_TOLD_MAX {
            self.skipped.push(SkippedPlan { name: id.to_owned(), reason });
        }
    }
}

/// Whether a plan is what it says it is, and answers the request whose key it has, on behalf of this caller.
fn judge_record(
    archived: &ArchivedRecord<'_>,
    viewer: &Viewer,
    (planner, limits): (&dyn Planner, &TopologyLimits),
) -> Result<Verdict, String> {
    let plan = archived.plan().map_err(|damage| damage.to_string())?.plan;
    let request = archived.request().map_err(|damage| damage.to_string())?;
    let tenant = plan.provenance.as_ref().map(|provenance| provenance.tenant.as_str()).unwrap_or_default();
    if !viewer.sees(tenant) {
        let reason = format!("it belongs to tenant {tenant}; import it as that tenant");
        return Ok(Verdict::Unusable(reason));
    }
    judge_plan(&plan, limits)?;
    judge_request(archived.key, &plan, &request, planner, limits)
}

/// What goes into an archive.
struct Selection {
    plans: Vec<PlanKey>,
    contents: ArchiveContents,
    /// Of a backup: everything else.
    beside: Option<Snapshot>,
}

impl Selection {
    /// All topologies go with it.
    fn with_all(mut self, topologies: &TopologyStore) -> Result<Self, CallFailure> {
        let kept = topologies.usage()?;
        self.contents.topologies = kept.count as u64;
        self.contents.record_bytes += kept.bytes;
        Ok(self)
    }
}

impl Archives {
    /// Writes an archive into the stream. Whoever reads it hears of a failure in the stream.
    fn write(&self, selection: &Selection, mut pieces: PieceWriter) {
        match self.write_all(selection, &mut pieces) {
            Ok(found) => pieces.finish(found),
            Err(failure) => pieces.fail(call_status(&failure)),
        }
    }

    fn write_all(&self, selection: &Selection, pieces: &mut PieceWriter) -> Result<ArchiveContents, CallFailure> {
        let Selection { plans, contents, beside } = selection;
        pieces.contents(*contents).map_err(crate::store::ArchiveError::from)?;
        let records = self.pool.records();
        // Uses that are counted in memory travel with their plans.
        records.write_back()?;
        let mut found = ArchiveContents::default();
        let mut archive = match beside {
            None => ArchiveWriter::begin(pieces)?,
            Some(_) => ArchiveWriter::begin_backup(pieces)?,
        };
        for key in plans {
            let summary = records.summary(key)?;
            if archive.plan(self.plans.0.as_ref(), key)? {
                found.pinned_plans += u64::from(summary.as_ref().is_some_and(|summary| summary.pinned));
                found.record_bytes += summary.map_or(0, |summary| summary.size_bytes);
            } else {
                found.damaged_plans += u64::from(summary.is_some());
            }
        }
        let mut entries = Vec::new();
        self.topologies.for_each(|entry| entries.push((entry.key(), entry.size_bytes)))?;
        for (key, size_bytes) in entries {
            if archive.topology(self.topologies.store(), &key)? {
                found.record_bytes += size_bytes;
            }
        }
        if let Some(beside) = beside {
            archive.all_of(Space::Clusters, self.clusters.as_ref())?;
            beside.for_each(|space, key, parts| archive.record(space, key, parts))?;
        }
        let counts = archive.finish(Some(&self.key))?;
        (found.plans, found.topologies, found.clusters) = (counts.plans, counts.topologies, counts.clusters);
        (found.leases, found.faults, found.events) = (counts.leases, counts.faults, counts.replans);
        Ok(found)
    }
}

fn lost(error: &impl ToString) -> CallFailure {
    CallFailure::Broken { what: error.to_string() }
}

fn broken(error: &impl ToString) -> Status {
    call_status(&lost(error))
}
