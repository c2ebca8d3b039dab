//! Bundles: the plans of a job for its communicators, collectives and sizes.
//!
//! | step | where |
//! |---|---|
//! | what is asked for | `request` |
//! | which ranks communicators have, and on which devices | `seats` |
//! | the communicators' networks, and which of them the runtime cannot tell apart | `network` |
//! | why items have no file | `refusals` |
//! | several plans for each item, and at which sizes each is fastest | `candidates`, `compare` |
//! | an item on its way | `item` |
//! | as many files as the runtime reads, each a plan of its own | here |
//! | the finished folder, run through the rules of its runtime | `folder` |
//! | plans that run at the same time, which are another kind of bundle | `joint` |
//! | who makes the plans: this process, or a server for one of its calls | `maker`, `here` |
//!
//! An item that fails does not keep the others back, and none takes the time that those after it need.

mod advice;
mod candidates;
mod compare;
mod folder;
mod here;
mod item;
mod joint;
mod maker;
mod network;
mod refusals;
mod request;
mod seats;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use canopy_bundle::{Ladder, PlanRange, Runtime, Standing, fit, standings};
use canopy_planner::Request;
use canopy_proto::v1;
use canopy_store::clock;
use canopy_wire as wire;
use canopy_wire::{Code, RequestError};

pub use self::here::{Bundled, Contents};
pub use self::maker::{PlanMaker, Work};

use self::compare::Comparison;
use self::folder::{MadeFile, audited, env};
use self::item::{Item, gather_assumed, state_rank_maps, unserved_operators};
use self::joint::JointWanted;
use self::network::{Party, parties};
use self::refusals::{ambiguous, broken, inherit, mixed_sizes, unnamed};
use self::request::Wanted;
use self::seats::{Seat, seats};
use crate::error::ServiceError;
use crate::network::read_punctured;

/// Bytes that comparing plans takes for each byte of their files, roughly.
const COMPARED_FACTOR: u64 = 32;
/// Each search but the first has at most this part of an item's time.
const OTHERS_PART: u32 = 16;
/// Shortest time of a search; with less, none begins.
pub const SEARCH_MIN: Duration = Duration::from_millis(5);
/// Longest text of a refusal that is passed on: there may be hundreds of them.
const REFUSAL_CHARACTERS_MAX: usize = 300;

/// Answers a request for a bundle of either kind.
///
/// # Errors
/// The request is wrong whatever is planned, its network cannot be read, or the answer is not ready in time. Failures of
/// single items are in the answer.
pub async fn plan_bundle<M: PlanMaker>(
    maker: &M,
    request: v1::PlanBundleRequest,
) -> Result<v1::PlanBundleResponse, M::Failure> {
    if request.joint.is_some() {
        return joint::answer(maker, JointWanted::read(request).map_err(ServiceError::from)?).await;
    }
    Bundle { maker }.answer(Wanted::read(request).map_err(ServiceError::from)?).await
}

/// Reads a request that has all that those of a bundle's plans have, but for the network.
fn read_probe(request: v1::PlanSpec) -> Result<Request, RequestError> {
    wire::fault_policy(request.fault_policy)?;
    wire::plan_request(request)
}

/// A refusal within a reply.
fn refusal(code: Code, reason: &str, message: String) -> v1::ErrorStatus {
    wire::error_status(code.into(), reason, message)
}

/// A bundle that is being made.
struct Bundle<'a, M> {
    maker: &'a M,
}

impl<M: PlanMaker> Bundle<'_, M> {
    async fn answer(&self, mut wanted: Wanted) -> Result<v1::PlanBundleResponse, M::Failure> {
        let all = v1::PlanSpec {
            topology: wanted.topology.take(),
            fault_policy: wanted.fault_policy,
            placement: wanted.placement.take(),
            ..v1::PlanSpec::default()
        };
        // Once for all, so that every plan is of the same network, whatever becomes of a stored one and of faults
        // meanwhile.
        let (all, known) = self.maker.complete(all).await?;
        let (communicators, limits) = (wanted.communicators.clone(), self.maker.limits().searched());
        let read = self.maker.compute(self.maker.left(), move |work| {
            let slots = all.placement.as_ref().map(wire::slots).transpose()?;
            let source = all.topology;
            let (topology, faults) = read_punctured(source.clone(), &limits, &|| work.is_over())?;
            let seats = seats(&topology, &communicators, slots.as_deref())?;
            let parties = parties(&topology, &faults, &seats, &|| work.is_over())?;
            Ok((source, seats, parties))
        });
        let (source, seats, parties) = read.await?;
        let mut reply = v1::PlanBundleResponse {
            profile: wanted.runtime.name().to_owned(),
            model: Some(wanted.model().on_the_wire()),
            ..v1::PlanBundleResponse::default()
        };
        reply.warnings.extend(known);
        let mut items = self.items(&wanted, (&seats, &parties), &source, &mut reply.warnings);
        if wanted.runtime == Runtime::Nccl {
            advice::advise(&parties, wanted.sizes, items, &mut reply);
            return Ok(reply);
        }
        self.compare_all(&wanted, &mut items).await;
        let ladders: Vec<Ladder> = items.iter().map(|item| item.ladder().cloned().unwrap_or_default()).collect();
        let files_max = wanted.runtime.rules().map_or(0, |rules| rules.files_max);
        let steps = fit(&ladders, files_max);
        for (position, step) in steps.into_iter().enumerate() {
            self.make_files(&wanted, &mut items, position, step, files_max).await;
        }
        self.hand_over(&wanted, &parties, &mut items).await?;
        inherit(&mut items);
        gather_assumed(&mut items, &mut reply.warnings);
        state_rank_maps(&mut items, &parties);
        let paths: Vec<String> =
            items.iter().flat_map(|item| &item.reply.files).map(|file| file.path.clone()).collect();
        if !paths.is_empty() {
            reply.env = env(wanted.runtime, &paths);
        }
        reply.items = items.into_iter().map(|item| item.reply).collect();
        Ok(reply)
    }

    /// The items of a request, with what is known of them before anything is planned.
    fn items(
        &self,
        wanted: &Wanted,
        (seats, parties): (&[Seat], &[Party]),
        source: &Option<v1::TopologySource>,
        warnings: &mut Vec<v1::Warning>,
    ) -> Vec<Item> {
        let known: Vec<_> = parties.iter().map(Party::communicator).collect();
        let standings = standings(wanted.runtime, &known);
        let mixed = mixed_sizes(wanted.runtime, parties);
        let mut items = Vec::new();
        for (party, (standing, communicator)) in standings.iter().zip(&wanted.communicators).enumerate() {
            let name_of = |other: usize| wanted.communicators.get(other).map_or("", |other| other.name.as_str());
            let mut served_by = String::new();
            let mut failure = mixed.clone();
            match *standing {
                _ if failure.is_some() => {}
                Standing::Own { is_contested } if is_contested && wanted.strict => {
                    let text = format!(
                        "{} also gives the files of `{}` to communicators on other wiring",
                        wanted.runtime, communicator.name
                    );
                    failure = Some(ambiguous(text));
                }
                Standing::Own { .. } => {}
                Standing::Shared { with } => name_of(with).clone_into(&mut served_by),
                Standing::Ambiguous { with } => {
                    let text = format!(
                        "{} cannot tell `{}` from `{}`, which is on other wiring: its files are correct there, but made for the other",
                        wanted.runtime,
                        communicator.name,
                        name_of(with)
                    );
                    if wanted.strict {
                        failure = Some(ambiguous(text));
                    } else {
                        name_of(with).clone_into(&mut served_by);
                        warnings.push(v1::Warning { code: "AMBIGUOUS_BUNDLE".to_owned(), text });
                    }
                }
            }
            let lost = parties.get(party).and_then(|party| party.failure.clone());
            let seat = seats.get(party);
            let ranks = seat.filter(|_| !communicator.ranks.is_empty()).map_or(&[][..], |seat| &seat.members);
            for (kind, base) in wanted.requests(ranks, source) {
                let (collective, in_place) = (base.collective, base.in_place.unwrap_or_default());
                let reply = v1::BundleItem {
                    communicator: communicator.name.clone(),
                    collective,
                    ranks: parties.get(party).map_or(0, |party| party.ranks),
                    in_place,
                    served_by: served_by.clone(),
                    error: failure.clone().or_else(|| lost.clone()).or_else(|| unnamed(wanted.runtime, kind)),
                    ranks_per_node: parties.get(party).and_then(|party| party.ranks_per_node),
                    ..v1::BundleItem::default()
                };
                let candidates = match wanted.runtime {
                    Runtime::Nccl => Vec::new(),
                    _ => candidates::of(kind, parties.get(party).map_or(&[], |party| party.family)),
                };
                let places = seat.and_then(|seat| seat.places.clone());
                items.push(Item { reply, base, places, party, kind, candidates, compared: None, files: Vec::new() });
            }
        }
        warnings.extend(unserved_operators(&items));
        items
    }

    /// Has the plans of all items made and compared, each within its share of the first two thirds of the time.
    async fn compare_all(&self, wanted: &Wanted, items: &mut [Item]) {
        let mut open = items.iter().filter(|item| item.is_own()).count();
        let end = clock::now() + self.maker.left() * 2 / 3;
        for item in items.iter_mut().filter(|item| item.is_own()) {
            let left = end.saturating_duration_since(clock::now());
            self.compare(wanted, item, left / u32::try_from(open).unwrap_or(u32::MAX).max(1)).await;
            open -= 1;
        }
    }

    /// Has the plans of one item made and compared.
    async fn compare(&self, wanted: &Wanted, item: &mut Item, limit: Duration) {
        let end = clock::now() + limit;
        let left = || end.saturating_duration_since(clock::now());
        let mut plans: Vec<(usize, Bytes)> = Vec::new();
        let mut is_cut = false;
        for (position, candidate) in item.candidates.iter().enumerate() {
            let mut described = v1::BundleCandidate { name: candidate.name.to_owned(), ..Default::default() };
            let json = v1::OutputSpec { format: v1::OutputFormat::Json.into(), ..Default::default() };
            // What is compared must be what the runtime has room for.
            let outputs = vec![json, wanted.output.clone()];
            let request = candidate.on(v1::PlanSpec { outputs, ..item.request() });
            // The first search may take half of what there is, each other one a little: the simulation needs its part.
            let search = if position == 0 { left() / 2 } else { (left() / 2).min(limit / OTHERS_PART) };
            match self.plan(request, search).await {
                Ok(v1::PlanResponse { plan: Some(plan), .. }) => {
                    described.algorithm = plan.algorithm;
                    plans.extend(plan.artifacts.into_iter().next().and_then(|file| Some((position, file.content?))));
                }
                Ok(_) => described.error = Some(broken("the reply has no plan")),
                Err(error) => {
                    is_cut |= error.code == i32::from(Code::DeadlineExceeded);
                    described.error = Some(error);
                }
            }
            item.reply.candidates.push(described);
        }
        if plans.is_empty() {
            let first = item.reply.candidates.iter().find_map(|candidate| candidate.error.clone());
            item.reply.error = first.or_else(|| Some(broken("no plan was requested")));
            return;
        }
        let (model, sizes) = (wanted.model(), wanted.sizes);
        let contents = plans.clone();
        let compared = self.maker.compute(left(), move |work| {
            let bytes: u64 = contents.iter().map(|(_, content)| content.len() as u64).sum();
            work.take_memory(bytes.saturating_mul(COMPARED_FACTOR))?;
            Ok(compare::compare(&contents, sizes, model, &|| work.is_over()))
        });
        let compared = match compared.await {
            Ok(Ok(compared)) => compared,
            Ok(Err(problem)) => {
                item.reply.error = Some(broken(&problem));
                return;
            }
            // One plan for all sizes is right, too.
            Err(_) => {
                is_cut = true;
                Comparison::alone(&plans, sizes)
            }
        };
        for &(later, earlier) in &compared.copies {
            let name = item.candidates.get(earlier).map_or("", |candidate| candidate.name);
            item.reply.candidates.iter_mut().skip(later).take(1).for_each(|copy| name.clone_into(&mut copy.same_as));
        }
        if is_cut || compared.is_cut {
            item.warn("CANDIDATES_CUT", "the deadline came before all plans were compared".to_owned());
        }
        item.compared = Some(compared);
    }

    /// Makes the files of one item, this many steps down its ladder; `None`: it gets none.
    async fn make_files(
        &self,
        wanted: &Wanted,
        items: &mut [Item],
        position: usize,
        step: Option<usize>,
        files_max: usize,
    ) {
        let open = items.iter().skip(position).filter(|item| item.is_own()).count();
        let Some(item) = items.get_mut(position).filter(|item| item.is_own()) else { return };
        let Some(step) = step else {
            let text = format!("{} reads at most {files_max} files, all taken by earlier items", wanted.runtime);
            item.reply.error = Some(refusal(Code::FailedPrecondition, "FILE_COUNT_LIMIT", text.clone()));
            item.warn("FILE_COUNT_LIMIT", text);
            return;
        };
        let Some(ladder) = item.ladder() else { return };
        let (ranges, all) = (ladder.at(step).to_vec(), ladder.at(0).len());
        if ranges.len() < all {
            let text = format!(
                "{} of {all} ranges have a file because {} reads at most {files_max}",
                ranges.len(),
                wanted.runtime
            );
            item.warn("RANGES_TRIMMED", text);
        }
        // An eighth is for the folder as a whole.
        let end = clock::now() + self.maker.left() * 7 / 8 / u32::try_from(open).unwrap_or(u32::MAX).max(1);
        for PlanRange { candidate, range } in ranges {
            let found = item.reply.candidates.get(candidate).map_or("", |described| described.algorithm.as_str());
            let Some(candidate) = item.candidates.get(candidate).copied() else { continue };
            let request = candidate.found_by(found).on(v1::PlanSpec {
                outputs: vec![wanted.output.clone()],
                size_bytes_min: Some(range.first()),
                size_bytes_max: Some(range.last()),
                ..item.request()
            });
            match self.plan(request, end.saturating_duration_since(clock::now())).await {
                Ok(reply) => item.keep(&candidate, range, reply),
                Err(error) => {
                    let text = format!("sizes {range} have no file: {}", error.message);
                    item.warn("RANGES_TRIMMED", text);
                    item.reply.error.get_or_insert(error);
                }
            }
        }
        if !item.files.is_empty() {
            item.reply.error = None;
        }
        item.warn_of_failing(wanted.runtime);
    }

    /// Makes a plan within this time, with a refusal that is one of many.
    async fn plan(&self, request: v1::PlanSpec, limit: Duration) -> Result<v1::PlanResponse, v1::ErrorStatus> {
        if limit < SEARCH_MIN {
            let text = "the deadline left no time for this plan; allow more time".to_owned();
            return Err(refusal(Code::DeadlineExceeded, "SOLVER_TIME_LIMIT", text));
        }
        let made = self.maker.plan(request, limit).await;
        made.map_err(|failure| {
            let error = M::refusal(&failure);
            v1::ErrorStatus { message: error.message.chars().take(REFUSAL_CHARACTERS_MAX).collect(), ..error }
        })
    }

    /// Reads all files back and asks the rules of the runtime about each of them.
    async fn hand_over(&self, wanted: &Wanted, parties: &[Party], items: &mut [Item]) -> Result<(), M::Failure> {
        let mut files = Vec::new();
        for (position, item) in items.iter_mut().enumerate() {
            let (party, ranks) = (parties.get(item.party), item.reply.ranks);
            let ranks_per_node = party.and_then(|party| party.ranks_per_node).unwrap_or(0);
            let places = party.and_then(|party| party.places.as_ref()).filter(|_| !item.files.is_empty());
            let rank_map: Option<Arc<str>> = places.map(|places| places.text().into());
            let made = std::mem::take(&mut item.files).into_iter();
            let placed = |file| MadeFile { item: position, ranks, ranks_per_node, rank_map: rank_map.clone(), ..file };
            files.extend(made.map(placed));
        }
        if files.is_empty() {
            return Ok(());
        }
        let (runtime, output) = (wanted.runtime, wanted.read_output());
        let described =
            self.maker.compute(self.maker.left(), move |work| Ok(audited(runtime, output, files, &|| work.is_over())));
        let described = described.await?;
        let described = described.map_err(|what| ServiceError::Broken { what })?;
        for (item, file, content) in described {
            self.maker.keep(&file.plan, file.artifact.as_ref(), content);
            if let Some(item) = items.get_mut(item) {
                item.reply.files.push(file);
            }
        }
        Ok(())
    }
}
