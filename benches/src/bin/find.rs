//! How long the search for the best networks takes, and which it finds.
//!
//! `cargo run --release -p canopy-benches --bin find`
//!
//! First the best bandwidth-optimal network of degree 4 for each number of nodes from 5 to 12, as table 3.5 of the dissertation
//! lists them: T_L is that of an allreduce. Then the time of single questions, and of all numbers of nodes up to 2,000 together
//! for the degrees 2, 4, 8 and 16 on two threads, processor time beside it.

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use canopy_benches::{print_table, timed, timed_on_processors};
use canopy_design::finder::{Candidate, Finder, Links, Query};
use canopy_optimize::Never;

const NODES_MAX: u32 = 2000;
const DEGREES: [u32; 4] = [2, 4, 8, 16];
const THREADS: usize = 2;
const SINGLE: [(u32, u32); 5] = [(12, 4), (1024, 4), (2000, 16), (16_384, 4), (16_384, 32)];

fn main() -> Result<(), Box<dyn Error>> {
    let mut rows = Vec::new();
    for nodes in 5..=12 {
        let found = Finder::new().find(Query { nodes, degree: 4, links: Links::Any }, &Never)?;
        let least = found.bounds.ok_or("all nodes can be connected")?.bandwidth;
        let is_optimal = |candidate: &&Candidate| {
            let prediction = candidate.known.prediction;
            prediction.allgather.cost.bandwidth == least && prediction.reduce_scatter.cost.bandwidth == least
        };
        let best = found.candidates.iter().find(is_optimal).ok_or("some circulant is bandwidth-optimal")?;
        let steps = 2 * best.known.prediction.allgather.cost.steps;
        rows.push([nodes.to_string(), format!("`{}`", best.construction), steps.to_string(), least.to_string()]);
    }
    print_table(["nodes", "best bandwidth-optimal network", "T_L of an allreduce", "T_B of an allgather"], &rows);

    let mut rows = Vec::new();
    for (nodes, degree) in SINGLE {
        let query = Query { nodes, degree, links: Links::Any };
        let (found, time) = timed_on_processors(|| Finder::new().find(query, &Never));
        let count = found?.candidates.len();
        rows.push([
            nodes.to_string(),
            degree.to_string(),
            count.to_string(),
            format!("{:.1}", time.as_secs_f64() * 1e3),
        ]);
    }
    print_table(["nodes", "degree", "networks", "time (ms)"], &rows);

    let (((), processor), wall) = timed(|| timed_on_processors(sweep));
    let row = [format!("2 to {NODES_MAX}"), "2, 4, 8, 16".to_owned(), seconds(wall), seconds(processor)];
    print_table(["nodes", "degrees", "two threads (s)", "processor time (s)"], &[row]);
    Ok(())
}

fn seconds(time: std::time::Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}

/// Asks for every network, on two threads.
fn sweep() {
    let (finder, next) = (Finder::new(), AtomicU32::new(0));
    let per_degree = NODES_MAX - 1;
    let ask = |number: u32| {
        let degree = DEGREES[(number / per_degree) as usize];
        let query = Query { nodes: NODES_MAX - number % per_degree, degree, links: Links::Any };
        finder.find(query, &Never).map(|found| found.candidates.len())
    };
    let work = || {
        std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed))
            .take_while(|&number| number < 4 * per_degree)
            .for_each(|number| {
                ask(number).expect("numbers within the limits");
            });
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
}
