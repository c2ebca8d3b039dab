//! The C header, compiled and asked at every bound.

use std::fmt::Write as _;
use std::process::{Command, Output};

use canopy_prerequisites::program;
use canopy_stock::advice::{CollConfig, TUNED, coll_config_header, coll_configs};
use canopy_stock::nccl::{Machine, Stock, Version};

/// Asks for each line of standard input, and prints the row.
const DRIVER: &str = r#"
#include <inttypes.h>
#include <stdio.h>
#include "advice.h"

static const struct { const char *collective; int ranks; int nodes; uint64_t bytes; } calls[] = {
@CALLS@
};

int main(void) {
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const struct canopy_coll_advice *row =
            canopy_coll_advice(calls[i].collective, calls[i].ranks, calls[i].nodes, calls[i].bytes);
        if (row == NULL) {
            puts("none");
        } else {
            printf("%s %d\n", row->alg_selection, row->max_ctas);
        }
    }
    return 0;
}
"#;

fn meant(configs: &[CollConfig], call: (&str, u64, u32, u64)) -> String {
    let (collective, ranks, nodes, bytes) = call;
    let row = configs.iter().find(|config| {
        (config.collective, config.ranks, config.nodes) == (collective, ranks, nodes)
            && config.first_bytes <= bytes
            && config.last_bytes.is_none_or(|last| bytes <= last)
    });
    row.map_or("none".to_owned(), |row| format!("{} {}", row.selection, row.max_ctas))
}

#[track_caller]
fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_header_answers_every_bound() {
    if program("cc").is_none() {
        return;
    }
    let whole = Stock::nccl(Version::Nccl2_31, Machine::DGX_H100, 4);
    let configs = coll_configs(&TUNED, &[whole.on(1), whole]);
    let bounds = configs.iter().flat_map(|config| [config.first_bytes, config.last_bytes.unwrap_or(u64::MAX)]);
    let mut sizes: Vec<u64> = bounds.flat_map(|size| [size.saturating_sub(1), size, size.saturating_add(1)]).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let (mut calls, mut expected) = (String::new(), String::new());
    for collective in ["allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall"] {
        for (ranks, nodes) in [(8, 1), (32, 4), (32, 8), (16, 2)] {
            for &bytes in &sizes {
                writeln!(calls, "{{\"{collective}\", {ranks}, {nodes}, UINT64_C({bytes})}},").unwrap();
                writeln!(expected, "{}", meant(&configs, (collective, ranks, nodes, bytes))).unwrap();
            }
        }
    }
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("advice-header");
    std::fs::create_dir_all(&folder).unwrap();
    let [header, driver, run] = ["advice.h", "driver.c", "driver"].map(|name| folder.join(name));
    std::fs::write(&header, coll_config_header(&configs, Version::Nccl2_31)).unwrap();
    std::fs::write(&driver, DRIVER.replace("@CALLS@", &calls)).unwrap();
    let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"];
    succeeded(&Command::new("cc").args(flags).arg(&run).arg(&driver).output().unwrap());
    let output = Command::new(&run).output().unwrap();
    succeeded(&output);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}
