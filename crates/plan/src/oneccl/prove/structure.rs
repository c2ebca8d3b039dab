//! Ranks, steps, peers, chunk counts and ranges, and that messages of one step do not get in each other's way.

use std::collections::BTreeMap;
use std::ops::Range;

use super::place::{Findings, Place};
use super::{ByRank, number};
use crate::oneccl::memory::{Memory, expected_chunks};
use crate::oneccl::parse::is_label;
use crate::oneccl::program::{Local, Program, RankProgram, Route, Span, Step};
use crate::oneccl::rank_map;

/// Most chunks of all ranks' buffers that are followed: 4 bytes each.
const CELLS_MAX: u64 = 1 << 25;

/// The ranks in order, where nothing is wrong.
pub(super) fn check<'p>(program: &'p Program, findings: &mut Findings<'_>) -> ByRank<'p> {
    check_head(program, findings);
    let ranks = findings.by_rank(program.rank_count, &program.ranks, |rank| rank.rank);
    if findings.has_problem() {
        return Vec::new();
    }
    let routes = check_routes(program, findings);
    let mut cells = 0_u64;
    for (rank, own) in (0..).zip(&ranks) {
        let memory = Memory::new(program, own);
        cells = cells.saturating_add(memory.cell_count());
        check_rank(program, rank, own, findings);
        for (step, position) in own.steps.iter().zip(0..) {
            let check =
                StepCheck { program, routes: &routes, memory: &memory, rank, place: Place::step(rank, position) };
            check.run(step, position, number(own.steps.len()), findings);
            let locals = step.completion.as_ref().map_or(0, |completion| completion.locals.len());
            if findings.must_stop((1 + step.sends.len() + step.receives.len() + locals) as u64) {
                return Vec::new();
            }
        }
    }
    if cells > CELLS_MAX {
        let text = format!("the buffers of all ranks have {cells} chunks, over the limit of {CELLS_MAX} for a proof");
        findings.problem(Place::FILE, text);
    }
    ranks
}

fn check_head(program: &Program, findings: &mut Findings<'_>) {
    let (ranks, chunks) = (program.rank_count, program.chunk_count);
    if !is_label(&program.name) {
        findings.problem(Place::FILE, "the name is not valid; use 1 to 63 letters, digits, `_`, `-` and `.`");
    }
    if !(2..=65535).contains(&ranks) {
        findings.problem(Place::FILE, format!("nranks is {ranks}; use 2 to 65535"));
    }
    if chunks == 0 {
        findings.problem(Place::FILE, "nchunks is 0; use at least 1");
    }
    if !(1..=64).contains(&program.instances) {
        findings.problem(Place::FILE, format!("instances is {}; use 1 to 64", program.instances));
    }
    if program.collective.kind().has_shares() && ranks > 0 && !chunks.is_multiple_of(ranks) {
        findings.problem(Place::FILE, format!("nchunks {chunks} cannot be shared equally by {ranks} ranks"));
    }
    if let Some(most) = program.bytes_max.filter(|most| *most < program.bytes_min) {
        let text = format!("no message is from minbytes {} up to maxbytes {most}", program.bytes_min);
        findings.problem(Place::FILE, text);
    }
    let mut keys: Vec<&str> = program.meta.iter().map(|meta| meta.key.as_str()).collect();
    keys.sort_unstable();
    if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
        findings.problem(Place::FILE, format!("<meta> has the key {} twice; keep one", pair[0]));
    }
    if program.rank_map().is_some_and(|devices| !rank_map::is_for(devices, ranks)) {
        let text = format!(
            "<meta> rank_map does not name a device for each of {ranks} ranks; write host:index for each, with commas between"
        );
        findings.problem(Place::FILE, text);
    }
}

/// Routes by their ids.
fn check_routes<'p>(program: &'p Program, findings: &mut Findings<'_>) -> BTreeMap<u32, &'p Route> {
    let mut routes = BTreeMap::new();
    for route in &program.routes {
        let Route { id, source, destination, hops, .. } = route;
        if routes.insert(*id, route).is_some() {
            findings.problem(Place::FILE, format!("<route> has the id {id} twice; give each route its own id"));
        }
        if *source >= program.rank_count || *destination >= program.rank_count || source == destination {
            findings.problem(Place::FILE, format!("route {id} must lead from one rank to another"));
        }
        let mut seen = hops.clone();
        seen.sort_unstable();
        seen.dedup();
        if hops.len() < 2
            || hops.first() != Some(source)
            || hops.last() != Some(destination)
            || seen.len() != hops.len()
        {
            let text =
                format!("the hops of route {id} must lead from {source} to {destination} and pass no node twice");
            findings.problem(Place::FILE, text);
        }
    }
    routes
}

fn check_rank(program: &Program, rank: u32, own: &RankProgram, findings: &mut Findings<'_>) {
    let (input, output) = expected_chunks(program, rank);
    for (name, found, expected) in [("i_chunks", own.input_chunks, input), ("o_chunks", own.output_chunks, output)] {
        if found != expected {
            let text = format!("{name} is {found}, but the collective gives this rank {expected}");
            findings.problem(Place::rank(rank), text);
        }
    }
}

struct StepCheck<'c> {
    program: &'c Program,
    routes: &'c BTreeMap<u32, &'c Route>,
    memory: &'c Memory,
    rank: u32,
    place: Place,
}

impl StepCheck<'_> {
    fn run(&self, step: &Step, position: u32, count: u32, findings: &mut Findings<'_>) {
        if step.index != position {
            let text = format!("has t=\"{}\"; number steps 0, 1, 2, … without gaps", step.index);
            findings.problem(self.place, text);
        }
        if step.completion.is_none() && position + 1 < count {
            findings.problem(self.place, "has no <sync>, which every step but the last needs");
        }
        let mut is_sound = true;
        for send in &step.sends {
            is_sound &= self.span("sends", send.span, findings) & self.peer("sends to", send.peer, findings);
            let Some(id) = send.route else { continue };
            match self.routes.get(&id) {
                None => findings.problem(self.place, format!("sends on route {id}, which does not exist")),
                Some(route) if (route.source, route.destination) != (self.rank, send.peer) => {
                    let text = format!("sends to rank {} on route {id}, which leads elsewhere", send.peer);
                    findings.problem(self.place, text);
                }
                Some(_) => {}
            }
        }
        for receive in &step.receives {
            is_sound &= self.target("receives", receive.span, findings);
            is_sound &= self.peer("receives from", receive.peer, findings);
        }
        if is_sound {
            self.overlaps(step, findings);
        }
        for local in step.completion.iter().flat_map(|completion| &completion.locals) {
            self.local(*local, findings);
        }
    }

    fn peer(&self, does: &str, peer: u32, findings: &mut Findings<'_>) -> bool {
        let is_other = peer < self.program.rank_count && peer != self.rank;
        if !is_other {
            findings.problem(self.place, format!("{does} rank {peer}, which is not another rank of the plan"));
        }
        is_other
    }

    fn span(&self, does: &str, span: Span, findings: &mut Findings<'_>) -> bool {
        if span.count == 0 {
            findings.problem(self.place, format!("{does} no chunks; cnt must be at least 1"));
        } else if !self.memory.has(span) {
            let chunks = self.memory.chunks(span.buffer);
            let text = format!("{does} {span}, but `{}` has {chunks} chunks", span.buffer.letter());
            findings.problem(self.place, text);
        } else {
            return true;
        }
        false
    }

    fn target(&self, does: &str, span: Span, findings: &mut Findings<'_>) -> bool {
        if !self.memory.is_free(span.buffer) {
            findings.problem(self.place, format!("{does} {span}, and must not write the caller's input"));
            return false;
        }
        self.span(does, span, findings)
    }

    fn local(&self, local: Local, findings: &mut Findings<'_>) {
        let does = if local.is_reduction { "reduces" } else { "copies" };
        let is_sound =
            self.span(does, local.source, findings) & self.target(&format!("{does} to"), local.destination, findings);
        let (from, to) = (self.memory.cells(local.source), self.memory.cells(local.destination));
        if is_sound && from.start < to.end && to.start < from.end {
            let (source, destination) = (local.source, local.destination);
            findings.problem(self.place, format!("{does} {source} to {destination}, which overlap"));
        }
    }

    /// What receives write is written once, and not read by sends.
    fn overlaps(&self, step: &Step, findings: &mut Findings<'_>) {
        let mut written: Vec<(Range<u64>, Span)> =
            step.receives.iter().map(|receive| (self.memory.cells(receive.span), receive.span)).collect();
        written.sort_unstable_by_key(|(cells, _)| (cells.start, cells.end));
        for pair in written.windows(2) {
            if pair[1].0.start < pair[0].0.end {
                let text = format!("receives {} and {}, which overlap", pair[0].1, pair[1].1);
                return findings.problem(self.place, text);
            }
        }
        for send in &step.sends {
            let read = self.memory.cells(send.span);
            // They are disjoint, so that their ends are in order, too.
            let after = written.partition_point(|(cells, _)| cells.end <= read.start);
            if let Some((_, span)) = written.get(after).filter(|(cells, _)| cells.start < read.end) {
                let text = format!("sends {} while it receives {span}, which overlap", send.span);
                findings.problem(self.place, text);
            }
        }
    }
}
