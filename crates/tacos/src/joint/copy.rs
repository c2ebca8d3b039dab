//! Copies around what is taken: at every moment each node takes, over each free link into it, what most nodes after it lack.

use std::collections::BTreeSet;

use canopy_optimize::Stop;

use super::Tenant;
use super::view::View;
use crate::bits::{BitRows, count, positions};
use crate::calendar::Calendar;
use crate::chance::Chance;
use crate::copies::CopyError;
use crate::copies::prune::pruned;
use crate::network::TimedNetwork;
use crate::sends::Sent;
use crate::task::CopyTask;

/// Sends in time as seen, none where a sum does not fit between its beginning and its end.
///
/// The rules are those of [`copy_all`](crate::copy_all) without groups and slow links; what is free is asked of the calendar, in which the
/// sends are *not* yet entered. O(moments · links · chunks / 64 + sends · candidates · nodes after a node).
pub(super) fn placed(
    tenant: &Tenant,
    task: &CopyTask,
    calendar: &Calendar,
    view: View,
    seed: u64,
    stop: &dyn Stop,
) -> Result<Option<Vec<Sent>>, CopyError> {
    let network = match view {
        View::Forwards { .. } => &tenant.network,
        View::Backwards { .. } => &tenant.transposed,
    };
    let mut search = CopySearch::new(tenant, network, task, calendar.clone(), view, seed);
    if search.run(stop)? {
        return Ok(Some(pruned(network, task, search.sends).sends));
    }
    match view {
        View::Backwards { .. } => Ok(None),
        View::Forwards { .. } => Err(search.unreachable()),
    }
}

struct CopySearch<'a> {
    tenant: &'a Tenant,
    network: &'a TimedNetwork,
    task: &'a CopyTask,
    view: View,
    calendar: Calendar,
    chance: Chance,
    has: BitRows,
    /// What nodes have or are sent.
    got: BitRows,
    holders: Vec<u32>,
    /// How many chunks members lack that are not even under way.
    missing: u64,
    /// By node, those that its links lead to.
    after: Vec<Vec<u32>>,
    /// What arrives, by time as seen, node and chunk.
    arrivals: BTreeSet<(u64, u32, u32)>,
    moments: BTreeSet<u64>,
    sends: Vec<Sent>,
    row: Vec<u64>,
}

impl<'a> CopySearch<'a> {
    fn new(
        tenant: &'a Tenant,
        network: &'a TimedNetwork,
        task: &'a CopyTask,
        calendar: Calendar,
        view: View,
        seed: u64,
    ) -> Self {
        let (nodes, chunks) = (network.node_count(), task.chunk_count());
        let (mut has, mut got) = (BitRows::new(nodes as usize, chunks), BitRows::new(nodes as usize, chunks));
        let mut missing = u64::from(chunks) * (0..nodes).filter(|&node| task.is_member(node)).count() as u64;
        for (chunk, &owner) in (0..).zip(task.owners()) {
            has.insert(owner, chunk);
            got.insert(owner, chunk);
            missing -= u64::from(task.is_member(owner));
        }
        let after = (0..nodes).map(|node| {
            let to: BTreeSet<u32> = network.outgoing(node).iter().map(|&link| network.link(link).to).collect();
            to.into_iter().collect()
        });
        Self {
            after: after.collect(),
            holders: vec![1; chunks as usize],
            arrivals: BTreeSet::new(),
            moments: BTreeSet::from([0]),
            sends: Vec::new(),
            row: Vec::new(),
            chance: Chance::new(seed),
            tenant,
            network,
            task,
            view,
            calendar,
            has,
            got,
            missing,
        }
    }

    /// Whether everything could be sent.
    fn run(&mut self, stop: &dyn Stop) -> Result<bool, CopyError> {
        let mut nodes: Vec<u32> = (0..self.network.node_count()).collect();
        while self.missing > 0 {
            let Some(now) = self.moments.pop_first() else { return Ok(false) };
            if stop.is_requested() {
                return Err(CopyError::Stopped);
            }
            while let Some(&(time, node, chunk)) = self.arrivals.first().filter(|&&(time, ..)| time <= now) {
                self.arrivals.remove(&(time, node, chunk));
                self.has.insert(node, chunk);
            }
            self.chance.shuffle(&mut nodes);
            for &node in &nodes {
                self.serve(node, now)?;
            }
        }
        Ok(true)
    }

    /// Has each free link into a node bring something, those with least to choose from first.
    fn serve(&mut self, node: u32, now: u64) -> Result<(), CopyError> {
        let mut offers: Vec<(u32, u64, u32)> = Vec::new();
        for &link in self.network.incoming(node) {
            self.look(link);
            let choices = count(&self.row);
            if choices > 0 {
                offers.push((choices, self.chance.next(), link));
            }
        }
        offers.sort_unstable();
        for (.., link) in offers {
            match self.view.first_free(self.tenant, &self.calendar, link, now) {
                Some(free) if free == now => {}
                Some(later) => {
                    self.moments.insert(later);
                    continue;
                }
                None => continue,
            }
            self.look(link);
            let Some(chunk) = self.pick(node) else { continue };
            self.view.take(self.tenant, &mut self.calendar, link, now);
            let arrival = now.checked_add(self.network.link(link).latency).ok_or(CopyError::TooLong)?;
            self.got.insert(node, chunk);
            self.holders[chunk as usize] += 1;
            self.missing -= u64::from(self.task.is_member(node));
            self.arrivals.insert((arrival, node, chunk));
            self.moments.insert(arrival);
            let occupied = self.network.link(link).occupancy;
            self.moments.insert(now.checked_add(occupied).ok_or(CopyError::TooLong)?);
            self.sends.push(Sent { start: now, link, chunk });
        }
        Ok(())
    }

    /// What a link could bring its receiver.
    fn look(&mut self, link: u32) {
        let timed = self.network.link(link);
        self.row.clear();
        let pairs = self.has.row(timed.from).iter().zip(self.got.row(timed.to));
        self.row.extend(pairs.map(|(has, got)| has & !got));
    }

    /// Of what could be brought to a node, what most nodes after it lack; then what fewest have.
    fn pick(&mut self, node: u32) -> Option<u32> {
        let mut best: Option<(u32, u32, u64, u32)> = None;
        for chunk in positions(&self.row, 0) {
            let after = &self.after[node as usize];
            let known = after.iter().filter(|&&next| self.got.contains(next, chunk)).count();
            let known = u32::try_from(known).unwrap_or(u32::MAX);
            let found = (known, self.holders[chunk as usize], self.chance.next(), chunk);
            best = Some(best.map_or(found, |best| best.min(found)));
        }
        best.map(|(.., chunk)| chunk)
    }

    /// Which member lacks what when nothing moves any more.
    fn unreachable(&self) -> CopyError {
        let members = (0..self.network.node_count()).filter(|&node| self.task.is_member(node));
        let mut lacked = members.flat_map(|node| (0..self.task.chunk_count()).map(move |chunk| (node, chunk)));
        let found = lacked.find(|&(node, chunk)| !self.got.contains(node, chunk));
        found.map_or(CopyError::TooLong, |(node, chunk)| CopyError::Unreachable {
            node,
            chunk,
            owner: self.task.owners()[chunk as usize],
        })
    }
}
