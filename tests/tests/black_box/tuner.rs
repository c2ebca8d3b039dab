//! `tuner.csv` in the hands of a tuner plugin of NCCL, compiled and asked as NCCL would.
//!
//! `NCCL_TUNER_EXAMPLE` may name `plugin.c` of NVIDIA's example: it is then built with our header and asked the same.

#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use canopy_prerequisites::program;
use canopy_tests::{Bench, workspace};

const COLLECTIVES: [&str; 5] = ["broadcast", "reduce", "allgather", "reducescatter", "allreduce"];
const ALGORITHMS: [&str; 7] = ["tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"];
const PROTOCOLS: [&str; 3] = ["ll", "ll128", "simple"];

fn compiled(sources: &[&Path], more: &[&str], output: PathBuf) -> PathBuf {
    let run = Command::new("cc")
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(workspace().join("deploy/nccl"))
        .args(more)
        .arg("-o")
        .arg(&output)
        .args(sources)
        .arg("-ldl")
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    output
}

/// A row of the table: words, and first and last size.
struct Row {
    words: Vec<String>,
    first: u64,
    last: u64,
}

impl Row {
    fn is_for(&self, column: usize, number: u32) -> bool {
        self.words[column] == "-1" || self.words[column] == number.to_string()
    }
}

fn rows(csv: &str) -> Vec<Row> {
    let rows = csv.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let words: Vec<String> = line.split(',').map(str::to_owned).collect();
        Row { first: words[1].parse().unwrap(), last: words[2].parse().unwrap(), words }
    });
    rows.collect()
}

/// A call: collective, size, and whether switches add up.
type Call = (usize, u64, bool);

/// The answer that the table intends for a call of a communicator.
fn meant(rows: &[Row], (collective, bytes, has_nvls): Call, ranks: u32, nodes: u32) -> [i32; 3] {
    let place =
        |list: &[&str], word: &str| i32::try_from(list.iter().position(|&known| known == word).unwrap()).unwrap();
    let is_there = |row: &Row| match row.words[3].as_str() {
        "ring" => true,
        "tree" => COLLECTIVES[collective] == "allreduce",
        word => has_nvls && word.starts_with("nvls") && row.words[4] == "simple",
    };
    let row = rows.iter().find(|row| {
        row.words[0] == COLLECTIVES[collective]
            && (row.first..=row.last).contains(&bytes)
            && row.is_for(6, nodes)
            && row.is_for(7, ranks)
            && is_there(row)
    });
    let row = row.unwrap();
    [place(&ALGORITHMS, &row.words[3]), place(&PROTOCOLS, &row.words[4]), row.words[5].parse().unwrap()]
}

/// The answers of a plugin.
fn asked(driver: &Path, plugin: &Path, version: u32, calls: &[Call], size: (u32, u32), csv: &Path) -> Vec<[i32; 3]> {
    let mut child = Command::new(driver)
        .arg(plugin)
        .args([version.to_string(), size.0.to_string(), size.1.to_string()])
        .env("NCCL_TUNER_CONFIG_FILE", csv)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String =
        calls.iter().map(|(kind, bytes, nvls)| format!("{kind} {bytes} {}\n", u8::from(*nvls))).collect();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{plugin:?} v{version}: {:?}", output.status);
    let numbers = |line: &str| {
        let numbers: Vec<i32> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        [numbers[0], numbers[1], numbers[2]]
    };
    String::from_utf8(output.stdout).unwrap().lines().map(numbers).collect()
}

/// Every boundary of every row, just below and just above, for the communicator of the plan and two others.
#[test]
fn plugins_answer_every_boundary_as_intended() {
    if program("cc").is_none() {
        return;
    }
    let bench = Bench::default();
    let (deploy, own) = (workspace().join("deploy/nccl"), workspace().join("tests/tests/black_box/tuner"));
    let driver = compiled(&[&own.join("driver.c")], &[], bench.file("driver"));
    let shared = ["-shared", "-fPIC"];
    let plugin = compiled(&[&deploy.join("canopy_tuner.c")], &shared, bench.file("libcanopy.so"));
    let mut plugins = vec![(plugin.clone(), 4), (plugin.clone(), 5), (plugin.clone(), 6)];
    if let Some(source) = std::env::var_os("NCCL_TUNER_EXAMPLE") {
        plugins.push((compiled(&[Path::new(&source)], &shared, bench.file("libexample.so")), 5));
    }
    for (network, ranks, nodes) in [("dgx-h100:boxes=2", 16, 2), ("dgx-a100:boxes=2", 16, 2), ("dgx-h100", 8, 1)] {
        let plan = ["plan", network, "-c", "allgather,allreduce", "--sizes", "1KiB..1GiB", "--profile", "nccl"];
        bench.canopy(&[&plan[..], &["-o", "tuner"]].concat()).exits(0);
        let csv = bench.file("tuner").join("tuner.csv");
        let rows = rows(&std::fs::read_to_string(&csv).unwrap());
        assert!(rows.len() > 10);
        let mut sizes: Vec<u64> = rows
            .iter()
            .flat_map(|row| [row.first.saturating_sub(1), row.first, row.last, row.last.saturating_add(1)])
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        let calls: Vec<Call> = (0..COLLECTIVES.len())
            .flat_map(|kind| sizes.iter().flat_map(move |&bytes| [(kind, bytes, false), (kind, bytes, true)]))
            .collect();
        for size in [(ranks, nodes), (2 * ranks, 2 * nodes), (4, 1)] {
            let intended: Vec<[i32; 3]> = calls.iter().map(|&call| meant(&rows, call, size.0, size.1)).collect();
            for (plugin, version) in &plugins {
                assert_eq!(asked(&driver, plugin, *version, &calls, size, &csv), intended, "{network} {version}");
            }
        }
        std::fs::remove_dir_all(bench.file("tuner")).unwrap();
    }
    // What is no row is left out, and what no row is for is left to NCCL.
    let csv = bench.file("few.csv");
    std::fs::write(
        &csv,
        "allreduce,0,99,rung,simple,4,-1,-1\nallreduce,0,9x,ring,simple,4,-1,-1\nallreduce,,9,ring,simple,4,-1,-1\n\
         allreduce,-1,9,ring,simple,4,-1,-1\n , ,\n\r\nallreduce, 0 ,99, ring ,ll,-1,-1,-1,-1,-1\r\nallgather,7,9,ring,ll,3,-1,-1",
    )
    .unwrap();
    let calls = [(4, 99, false), (4, 100, false), (2, 6, false), (2, 7, false), (2, 9, false), (0, 0, false)];
    let nothing = [-1, -1, 0];
    let expected = [[1, 0, 0], nothing, nothing, [1, 0, 3], [1, 0, 3], nothing];
    assert_eq!(asked(&driver, &plugin, 5, &calls, (8, 1), &csv), expected);
    assert_eq!(asked(&driver, &plugin, 4, &calls, (8, 1), &bench.file("none.csv")), [nothing; 6]);
}
