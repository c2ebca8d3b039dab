#!/usr/bin/env bash
# Checks types, builds the wheel, and runs the tests on it with plans that canopy makes.
# Usage: check.sh PATH_OF_CANOPY PATH_OF_PYTHON_WITH_REQUIREMENTS
# Beside canopy there must be its canopyd.
set -euo pipefail
canopy=$(realpath "$1")
# The link itself, not what it leads to: an environment is known by its own path.
python=$(realpath --no-symlinks "$2")
cd "$(dirname "$0")"
root=$(realpath ../..)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# None of the caller's, such as a server that is asked.
for name in $(compgen -e CANOPY_ || true); do unset "$name"; done
export CANOPY_DATA_DIR=$work/data TORCH_CPP_LOG_LEVEL=ERROR PYTHONDONTWRITEBYTECODE=1

"$python" -m mypy --cache-dir "$work/mypy"

# From a copy: builds leave files behind.
cp -r pyproject.toml README.md src "$work"
"$python" -m pip wheel --quiet --no-deps --no-build-isolation --disable-pip-version-check --wheel-dir "$work" "$work"
"$python" -m pip install --quiet --no-deps --disable-pip-version-check --target "$work/site" "$work"/canopy_torch-*.whl

mkdir -p "$work/client/python"
cp -r "$root/proto" "$work"
cp -r "$root/client/python/generate.sh" "$root/client/python/stubs.py" "$root/client/python/src" "$work/client/python"
PYTHON=$python "$work/client/python/generate.sh"
export PYTHONPATH=$work/site:$work/client/python/src

plans=$work/plans
mkdir -p "$plans/torus8" "$plans/in4" "$plans/more" "$plans/both"
all=allreduce,allgather,reduce-scatter,broadcast,reduce,gather,scatter,all-to-all
plan() { "$canopy" plan "$@" --format oneccl-xml --quiet; }
for pair in ring2=ring:2 ring4=ring:4; do
    plan "${pair#*=}" --collective $all --sizes 1B..64MiB --output "$plans/${pair%=*}"
done
plan ring:4 --collective allreduce --sizes 1MiB..4MiB --placement 'gpu-7.example:0-1,gpu-8:4-5' --output "$plans/placed4"
cp "$plans"/ring[24]/plans/*-allreduce-*.xml "$plans/both"
for collective in ${all//,/ }; do
    plan torus:2x4 --collective "$collective" --output "$plans/torus8/$collective.xml"
done
for collective in allreduce allgather reduce-scatter broadcast reduce gather scatter; do
    plan torus:2x2 --collective $collective --in-place --output "$plans/in4/$collective.xml"
done
plan mesh:3x3,down=00-01 --collective allreduce --output "$plans/more/mesh.xml"
plan torus:3x3 --collective allgather --algorithm tacos --output "$plans/more/tacos.xml"
plan torus:3x3 --collective allreduce --algorithm tacos --output "$plans/more/sums.xml"
plan dgx-a100:boxes=2 --collective allreduce --output "$plans/more/boxes.xml"
plan ring:5 --collective allreduce --output "$plans/more/ring5.xml"
"$canopy" fetch ring:4 --job job --collective allreduce --format oneccl-xml --out "$plans/fetched4" --quiet >/dev/null

export CANOPY_TEST_PLANS=$plans CANOPY_TEST_PROGRAM=$canopy CANOPY_TEST_SERVER=${canopy%/*}/canopyd
for part in reader programs entry_point agreement server failures training collectives moving moving_server; do
    echo "-- $part"
    (cd tests && "$python" -m unittest "test_$part") >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
    grep --extended-regexp '^Ran |checks|runs$' "$work/log"
done

# The ratio tells what a change costs; it is not judged, because other programs use the processors, too.
"$python" bench.py "$plans/ring4" --ranks 4 --megabytes 64 --rounds 5
echo "torch backend: ok"
