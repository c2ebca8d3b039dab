//! What is known of an item while its plans are made, and what is said of it.

use canopy_bundle::{ByteRange, Indivisible, Ladder, Runtime};
use canopy_proto::v1;
use canopy_schedule::CollectiveKind;

use super::candidates::{self, Candidate};
use super::compare::Comparison;
use super::folder::MadeFile;
use super::network::Party;
use super::seats::Places;

/// Where an item stands.
pub(super) struct Item {
    pub(super) reply: v1::BundleItem,
    /// The request that all its plans share, without the placement.
    pub(super) base: v1::PlanSpec,
    /// Where the ranks are that the request is for, before faults.
    pub(super) places: Option<Places>,
    pub(super) party: usize,
    pub(super) kind: CollectiveKind,
    pub(super) candidates: Vec<Candidate>,
    /// By candidate that has a plan: which it is, and what is known of its times.
    pub(super) compared: Option<Comparison>,
    /// Files in the order of their sizes.
    pub(super) files: Vec<MadeFile>,
}

impl Item {
    /// Whether it is to have files of its own.
    pub(super) fn is_own(&self) -> bool {
        self.reply.served_by.is_empty() && self.reply.error.is_none()
    }

    /// What all requests for its plans have in common.
    pub(super) fn request(&self) -> v1::PlanSpec {
        v1::PlanSpec { placement: self.places.as_ref().map(Places::on_the_wire), ..self.base.clone() }
    }

    pub(super) fn ladder(&self) -> Option<&Ladder> {
        self.compared.as_ref().filter(|_| self.is_own()).map(|compared| &compared.ladder)
    }

    pub(super) fn warn(&mut self, code: &str, text: String) {
        self.reply.warnings.push(v1::Warning { code: code.to_owned(), text });
    }

    /// Says which calls fail where a runtime picks a file before it divides the message.
    pub(super) fn warn_of_failing(&mut self, runtime: Runtime) {
        if runtime.rules().is_none_or(|rules| rules.indivisible != Indivisible::Fails) {
            return;
        }
        let of_file = |file: &MadeFile| {
            let unit = file.plan.valid_for.as_ref().map_or(1, |valid| valid.alignment_elements);
            format!("{} by {unit}", file.range)
        };
        let ranges: Vec<String> = self.files.iter().map(of_file).collect();
        if !ranges.is_empty() {
            let ranges = ranges.join(", ");
            let text = format!(
                "{runtime} fails for messages that are not multiples of the chosen file's alignment, in bytes: {ranges}"
            );
            self.warn("RUNTIME_ADVICE", text);
        }
    }

    /// Takes the file of a plan for as many of these sizes as it is made for.
    pub(super) fn keep(&mut self, candidate: &Candidate, range: ByteRange, reply: v1::PlanResponse) {
        let v1::PlanResponse { plan, warnings, .. } = reply;
        for warning in warnings {
            // The request itself numbers the ranks of communicators, and faults are said once for all.
            let is_said = matches!(warning.code.as_str(), "RANKS_RENUMBERED" | "FAULTS_APPLIED" | "FAULTS_OUTDATED");
            if !is_said && !self.reply.warnings.contains(&warning) {
                self.reply.warnings.push(warning);
            }
        }
        let Some(plan) = plan else { return };
        let last = plan.valid_for.as_ref().map_or(0, |valid| valid.size_bytes_max);
        let unit = plan.valid_for.as_ref().map_or(1, |valid| valid.alignment_elements).max(1);
        let usable = ByteRange::new(range.first(), range.end().min(last.saturating_add(1)));
        let Some(usable) = usable.filter(|usable| usable.last() / unit * unit >= usable.first()) else {
            let text = format!("no message of sizes {range} is a multiple of the {unit} chunks of {}", candidate.name);
            self.warn("RANGES_TRIMMED", text);
            return;
        };
        let times = self.compared.as_ref().map(|compared| compared.times_of(candidate.name, &self.candidates, usable));
        self.files.push(MadeFile {
            // These are filled in where all files come together.
            item: 0,
            ranks_per_node: 0,
            rank_map: None,
            ranks: self.reply.ranks,
            collective: self.kind,
            in_place: self.reply.in_place,
            range: usable,
            candidate: candidate.name,
            plan,
            times: times.unwrap_or_default(),
        });
    }
}

/// The warning about operators that no file serves, if any item combines elements.
pub(super) fn unserved_operators(items: &[Item]) -> Option<v1::Warning> {
    let text = "averages and user-defined operators match no file: the runtime's own algorithms serve them";
    let code = "REDUCTION_NOT_SUPPORTED_BY_RUNTIME";
    let warning = || v1::Warning { code: code.to_owned(), text: text.to_owned() };
    items.iter().any(|item| candidates::reduces(&item.reply)).then(warning)
}

/// Says once for all items that it is not known where ranks are.
pub(super) fn gather_assumed(items: &mut [Item], warnings: &mut Vec<v1::Warning>) {
    let is_assumed = |warning: &mut v1::Warning| warning.code == "RANK_MAP_ASSUMED";
    let found: Vec<_> = items.iter_mut().flat_map(|item| item.reply.warnings.extract_if(.., is_assumed)).collect();
    warnings.extend(found.into_iter().next());
}

/// Says where the ranks are of each item that has files, its own or those of another.
pub(super) fn state_rank_maps(items: &mut [Item], parties: &[Party]) {
    for item in items.iter_mut().filter(|item| item.reply.error.is_none()) {
        let places = parties.get(item.party).and_then(|party| party.places.as_ref());
        item.reply.rank_map = places.map(Places::on_the_wire);
    }
}
