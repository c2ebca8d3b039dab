//! Schedules for the few graphs that have a better one than any breadth-first broadcast.

mod tables;

use canopy_optimize::Fraction;

use crate::cost::Cost;
use crate::digraph::Digraph;
use crate::transfer::Transfer;

/// A stored schedule.
struct Table {
    degree: usize,
    rows: &'static [&'static str],
}

/// A stored schedule of a graph.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) cost: Cost,
    pub(crate) chunks: u64,
    /// As of [`Side::extends_exactly`](crate::Side::extends_exactly).
    pub(crate) extends_exactly: bool,
    pub(crate) transfers: Vec<Transfer>,
}

/// The stored schedule of exactly this graph, edges by its numbers; verified. Next to nothing where there is none.
pub(crate) fn given(graph: &Digraph) -> Option<Given> {
    tables::TABLES.iter().find_map(|table| table.read(graph))
}

impl Table {
    /// The schedule, if it is one of this graph: every letter names an in-link whose tail has the chunk by then.
    fn read(&self, graph: &Digraph) -> Option<Given> {
        let order = self.rows.len();
        if graph.order() as usize != order || graph.edge_count() as usize != order * self.degree {
            return None;
        }
        // By node: the edges that enter it, by increasing tail.
        let mut entering = vec![Vec::new(); order];
        for ((tail, head), edge) in graph.edges().zip(0_u32..) {
            entering[head as usize].push((tail, edge));
        }
        let chunks = self.rows.first()?.split(' ').count();
        let mut transfers = Vec::with_capacity(order * order * chunks);
        // A row for each source, a word for each chunk, a letter for each node: O(nodes² · chunks).
        for (row, source) in self.rows.iter().zip(0_u32..) {
            for (word, chunk) in row.split(' ').zip(0_u64..) {
                // By node: when it has the chunk; from the next step on it may send it.
                let arrivals: Vec<Option<(usize, usize)>> = word.bytes().map(|letter| self.arrival(letter)).collect();
                for (node, &arrival) in arrivals.iter().enumerate() {
                    let Some((step, link)) = arrival else {
                        if node == source as usize { continue } else { return None }
                    };
                    let &(tail, edge) = entering[node].get(link)?;
                    let is_there = match arrivals.get(tail as usize)? {
                        Some((before, _)) => *before < step,
                        None => tail == source,
                    };
                    if !is_there || node == source as usize {
                        return None;
                    }
                    let step = u32::try_from(step).ok()?;
                    transfers.push(Transfer { step, source, edge, chunks: chunk..chunk + 1 });
                }
            }
        }
        let chunks = chunks as u64;
        let steps = transfers.iter().map(|transfer| transfer.step + 1).max()?;
        let loads = Loads::of(graph, steps, &transfers);
        let sum: u128 = (0..steps).map(|step| u128::from(loads.most(step))).sum();
        let bandwidth = Fraction::new(sum * self.degree as u128, order as u128 * u128::from(chunks))?;
        let extends_exactly = (0..steps).all(|step| loads.has_endless_walk(graph, step));
        Some(Given { cost: Cost { steps, bandwidth }, chunks, extends_exactly, transfers })
    }

    /// Step and in-link of a letter.
    fn arrival(&self, letter: u8) -> Option<(usize, usize)> {
        let number = usize::from(letter.checked_sub(b'a')?);
        Some((number / self.degree, number % self.degree))
    }
}

/// What every edge carries in every step: whose shares, and how many chunks.
struct Loads {
    edges: usize,
    /// By step, then edge.
    sources: Vec<Vec<u32>>,
    chunks: Vec<u64>,
}

impl Loads {
    fn of(graph: &Digraph, steps: u32, transfers: &[Transfer]) -> Self {
        let edges = graph.edge_count() as usize;
        let mut loads =
            Self { edges, sources: vec![Vec::new(); edges * steps as usize], chunks: vec![0; edges * steps as usize] };
        for transfer in transfers {
            let at = transfer.step as usize * edges + transfer.edge as usize;
            loads.sources[at].push(transfer.source);
            loads.chunks[at] += transfer.chunks.end - transfer.chunks.start;
        }
        loads
    }

    fn most(&self, step: u32) -> u64 {
        self.chunks[step as usize * self.edges..][..self.edges].iter().copied().max().unwrap_or(0)
    }

    /// Whether some edge of greatest load leads to the beginning of an endless walk through nodes whose shares it does not
    /// carry: a walk, after its head, for which each fold of the line graph finds a link of its greatest load.
    fn has_endless_walk(&self, graph: &Digraph, step: u32) -> bool {
        let most = self.most(step);
        (0..graph.edge_count()).any(|edge| {
            let at = step as usize * self.edges + edge as usize;
            if self.chunks[at] < most {
                return false;
            }
            let mut is_open = vec![true; graph.order() as usize];
            self.sources[at].iter().for_each(|&source| is_open[source as usize] = false);
            let goes_on = |node: u32, is_open: &[bool]| {
                graph.out(node).iter().any(|&head| head != node && is_open[head as usize])
            };
            // What leads nowhere is closed until nothing changes: at most once for each node.
            while let Some(node) = (0..graph.order()).find(|&node| is_open[node as usize] && !goes_on(node, &is_open)) {
                is_open[node as usize] = false;
            }
            goes_on(graph.head(edge), &is_open)
        })
    }
}
