#!/usr/bin/env bash
# Runs fuzz targets: fuzz/run.sh [SECONDS] [TARGET...]
# Each target runs for SECONDS (600 if not given), all of them if none is named; FUZZ_JOBS of them at once (1).
# Exits with 1 if there is a finding: a panic, a contradiction, an input that takes over 10 s or over 2 GiB.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-600}
case $seconds in
'' | *[!0-9]*)
    echo "usage: fuzz/run.sh [SECONDS] [TARGET...]; SECONDS is a whole number, not '$seconds'" >&2
    exit 2
    ;;
esac
jobs=${FUZZ_JOBS:-1}
all=$(sed -n 's/^name = "\(.*\)"$/\1/p' Cargo.toml | grep --invert-match --line-regexp canopy-fuzz)
read -r -d '' -a targets <<<"${*:2}" || true
[ ${#targets[@]} -gt 0 ] || mapfile -t targets <<<"$all"
for target in "${targets[@]}"; do
    grep --quiet --line-regexp --fixed-strings "$target" <<<"$all" ||
        { printf 'unknown target %s; these exist:\n%s\n' "$target" "$all" >&2 && exit 2; }
done

# All that is written goes below the folder of builds, which may be kept.
built=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-../target}")/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
# The flags of `cargo fuzz build --sanitizer none`, which the stable compiler takes. No address sanitizer: there is no
# unsafe code here. The triple keeps them from build scripts.
coverage="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0"
env --unset=CARGO_ENCODED_RUSTFLAGS RUSTFLAGS="$coverage" CARGO_TARGET_DIR="$built" \
    cargo build --locked --release --target "$host" --bins

# The words of the formats that a target reads.
dictionary() {
    case $1 in
    *_xml | import_graphml | import_hwloc | import_simgrid) echo dictionaries/xml.dict ;;
    plan_json | mscclpp_json | store_record) echo dictionaries/plan.dict ;;
    topology_* | cluster_request | import | import_slurm_yaml | import_topograph | import_kubernetes | import_astra)
        echo dictionaries/topology.dict ;;
    *) echo dictionaries/words.dict ;;
    esac
}

# Runs a target. What it finds on the way is kept beside the build, and the committed corpus is only read.
one() {
    local program=$built/$host/release/$1 log=$built/logs/$1 found=$built/findings/$1- new=$built/corpus/$1 status=0
    mkdir -p "$built/logs" "$built/findings" "$new"
    "$program" "$new" "corpus/$1" -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -dict="$(dictionary "$1")" -artifact_prefix="$found" >"$log" 2>&1 || status=$?
    local runs reached
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
    reached=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    printf '%-22s %12s executions %8s edges\n' "$1" "${runs:-?}" "${reached:-?}"
    [ "$status" = 0 ] && return
    tail -n 30 "$log" >&2
    cat >&2 <<END
$1 has a finding. The input is $(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1).
    reproduce  $program INPUT
    shorten    $program -minimize_crash=1 -max_total_time=60 INPUT
Then fix the parser, give its crate a test, and put the input into fuzz/corpus/$1 under a name that says what was wrong.
END
    return 1
}

running=0 failed=0
for target in "${targets[@]}"; do
    if [ "$running" -ge "$jobs" ]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
    one "$target" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
exit "$failed"
