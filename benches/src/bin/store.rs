//! What the store takes on the disk after many overwrites, and how long it takes to open with many plans.
//!
//! `cargo run --release -p canopy-benches --bin store -- [OVERWRITES] [PLANS] [LIVE]`

use std::error::Error;
use std::path::Path;

use canopy_benches::{disk_bytes, print_table, timed};
use canopy_proto::v1::{Artifact, Plan};
use canopy_server::{PlanKey, StoredPlan};
use canopy_store::{Records, Space, open_store};

/// Bytes of a plan that is overwritten.
const LARGE_BYTES: usize = 2_000_000;
/// Bytes of one of many plans.
const SMALL_BYTES: usize = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let overwrites = arguments.next().transpose()?.unwrap_or(10_000);
    let plans = arguments.next().transpose()?.unwrap_or(100_000);
    // Plans that live while they are overwritten.
    let live = arguments.next().transpose()?.unwrap_or(100).max(1);
    let folder = tempfile::tempdir()?;
    let (disk, writing) = overwritten(folder.path(), overwrites, live)?;
    let ratio = disk as f64 / (live * LARGE_BYTES as u64) as f64;
    let folder = tempfile::tempdir()?;
    let (open, first) = opened(folder.path(), plans)?;
    let row = [
        format!("{:.1} MB", disk as f64 / 1e6),
        format!("{ratio:.2}"),
        format!("{:.2} ms", writing.as_secs_f64() * 1e3 / overwrites.max(1) as f64),
        format!("{:.0} ms", open.as_secs_f64() * 1e3),
        format!("{:.0} ms", first.as_secs_f64() * 1e3),
    ];
    let disk = format!("disk after {overwrites} writes of 2 MB to {live} plans");
    let open = format!("open with {plans} plans");
    print_table([&disk, "÷ live data", "per write", &open, "usage known after"], &[row]);
    Ok(())
}

/// Overwrites a few large plans many times; what the disk holds when it is closed, and how long the writes took.
fn overwritten(folder: &Path, overwrites: u64, live: u64) -> Result<(u64, std::time::Duration), Box<dyn Error>> {
    let (result, writing) = timed(|| -> Result<(), Box<dyn Error>> {
        let records = Records::new(open_store(folder)?.into_space(Space::Plans));
        for round in 0..overwrites {
            let key = key(round % live);
            records.put(&key, &plan(&key, round, LARGE_BYTES))?;
        }
        Ok(())
    });
    result?;
    Ok((disk_bytes(folder), writing))
}

/// Fills a store, closes it, and opens it again: the time to open, and the time to know how full it is.
fn opened(folder: &Path, plans: u64) -> Result<(std::time::Duration, std::time::Duration), Box<dyn Error>> {
    let records = Records::new(open_store(folder)?.into_space(Space::Plans));
    for number in 0..plans {
        let key = key(number);
        records.put(&key, &plan(&key, number, SMALL_BYTES))?;
    }
    drop(records);
    let (opened, open) = timed(|| open_store(folder));
    let records = Records::new(opened?.into_space(Space::Plans));
    let (usage, first) = timed(|| records.usage());
    if usage?.records as u64 != plans {
        return Err("the store does not hold what was put into it".into());
    }
    Ok((open, first))
}

fn key(number: u64) -> PlanKey {
    let mut bytes = [0; 32];
    // Spread, as digests are.
    bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    PlanKey::from_bytes(bytes)
}

/// A plan whose file no compression shortens.
fn plan(key: &PlanKey, seed: u64, size: usize) -> StoredPlan {
    let mut state = seed;
    let content: Vec<u8> = (0..size.div_ceil(8))
        .flat_map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_le_bytes()
        })
        .collect();
    let artifact = Artifact { size_bytes: content.len() as u64, content: Some(content.into()), ..Artifact::default() };
    let text = key.to_string();
    let id = format!("plans/{text:.32}");
    let plan = Plan { name: id, content_key: text, artifacts: vec![artifact], ..Plan::default() };
    StoredPlan::new(plan, Vec::new())
}
