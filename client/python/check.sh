#!/usr/bin/env bash
# Generates the client, runs its tests, and asks a real server for plans.
# Usage: check.sh PATH_OF_CANOPYD PATH_OF_CANOPY PATH_OF_PYTHON_WITH_REQUIREMENTS
set -euo pipefail
canopyd=$(realpath "$1")
canopy=$(realpath "$2")
# The link itself, not what it leads to: an environment is known by its own path.
PYTHON=$(realpath --no-symlinks "$3")
export PYTHON
cd "$(dirname "$0")"
export PYTHONPATH=$PWD/src

./generate.sh
"$PYTHON" -m unittest discover --start-directory tests

work=$(mktemp -d)
"$canopyd" --data-dir "$work/data" 2>"$work/log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" || true; rm -rf "$work"' EXIT
until [ -S "$work/data/canopy.sock" ]; do sleep 0.1; done
ask() { "$PYTHON" plan.py "$@" --collective allgather --server "unix:$work/data/canopy.sock"; }

# A file of many pieces, then the same out of the cache.
ask dgx-a100:boxes=2 --format msccl-xml --output "$work/cold.xml" | grep '"cache": "miss"' >/dev/null
ask dgx-a100:boxes=2 --format msccl-xml --output "$work/warm.xml" | grep '"cache": "hit"' >/dev/null
cmp "$work/cold.xml" "$work/warm.xml"
ask torus:8x8 --output "$work/plan.json" >/dev/null
ask ../../examples/two-boxes.yaml --output "$work/boxes.json" >/dev/null
# A plan for other devices is another one, if of the same schedule.
ask ring:2 --placement a:0,b:0 --output "$work/placed.json" | grep '"cache": "miss"' >"$work/placed"
ask ring:2 --placement b:0,a:0 --output "$work/swapped.json" | grep '"cache": "hit"' >"$work/swapped"
plan_of() { grep --only-matching 'plans/[0-9a-f]*' "$1"; }
if [ "$(plan_of "$work/placed")" = "$(plan_of "$work/swapped")" ]; then
    echo "the plan for a and b is also the one for b and a" >&2
    exit 1
fi
for plan in cold.xml plan.json boxes.json placed.json; do "$canopy" verify "$work/$plan" >/dev/null; done

# A server that knows its callers: one without a token is refused, one with a token gets a plan.
: >"$work/access.toml"
chmod 644 "$work/access.toml"
"$canopy" tokens create python --role planner --data-dir "$work/guarded" -o "$work/token" >/dev/null
"$canopyd" --data-dir "$work/guarded" --dev --access "$work/access.toml" --listen 127.0.0.1:0 --log-format json 2>"$work/guarded.log" &
guarded=$!
trap 'kill "$server" "$guarded" 2>/dev/null || true; wait "$server" "$guarded" || true; rm -rf "$work"' EXIT
until address=$(grep --only-matching --perl-regexp '"tcp":"\K[^"]+' "$work/guarded.log"); do sleep 0.1; done
if "$PYTHON" plan.py ring:4 --collective allgather --server "$address" --output "$work/none.json" 2>"$work/said"; then exit 1; fi
grep --quiet 'shows no identity' "$work/said"
CANOPY_TOKEN_FILE=$work/token "$PYTHON" plan.py ring:4 --collective allgather --server "$address" --output "$work/shown.json" >/dev/null
"$canopy" verify "$work/shown.json" >/dev/null

# Refusals have the exit status of `canopy` and leave no file.
refused() {
    local expected=$1 status=0
    ask "$2" --output "$work/none.json" --deadline "$3" 2>/dev/null || status=$?
    [ "$status" = "$expected" ] || { echo "$2: exit status $status where $expected was due" >&2; exit 1; }
}
refused 2 ring:0 30
refused 3 mesh:2x2,down=00-01+00-10 30
refused 5 torus:31x33 0.3
if ask ring:2 --placement a:x --output "$work/none.json" 2>/dev/null; then exit 1; fi
if compgen -G "$work/none*" || compgen -G "$work/tmp*"; then exit 1; fi
# A server that is not there is named within two seconds.
status=0
said=$("$PYTHON" plan.py ring:2 --collective gather --server 127.0.0.1:1 --output "$work/none.json" 2>&1) || status=$?
[ "$status" = 6 ] && [[ $said == *"no server answers at 127.0.0.1:1 within 2 s"* ]]
# Every collective and every format by its name.
for collective in reduce-scatter allreduce broadcast reduce gather scatter all-to-all; do
    "$PYTHON" plan.py ring:4 --collective "$collective" --server "unix:$work/data/canopy.sock" --output "$work/$collective.json" >/dev/null
done
CANOPY_SERVER=unix:$work/data/canopy.sock "$PYTHON" tests/follow.py
# The page of examples, on a port of its own.
"$canopyd" --data-dir "$work/examples" --dev --listen 127.0.0.1:0 --log-format json 2>"$work/examples.log" &
examples=$!
trap 'kill "$server" "$guarded" "$examples" 2>/dev/null || true; wait "$server" "$guarded" "$examples" || true; rm -rf "$work"' EXIT
until address=$(grep --only-matching --perl-regexp '"tcp":"\K[^"]+' "$work/examples.log"); do sleep 0.1; done
"$PYTHON" tests/examples.py ../../docs/guides/api-by-example.md "$address"
echo "python client: ok"
