#!/usr/bin/env bash
# Runs the hooks as Slurm would, without Slurm, against a real server and without one.
# Usage: test.sh PATH_OF_CANOPYD PATH_OF_CANOPY
set -euo pipefail
canopyd=$(realpath "$1")
canopy=$(realpath "$2")
cd "$(dirname "$0")"
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; wait; rm -rf "$work"' EXIT
fail() { echo "slurm hooks: $1" >&2; exit 1; }

mkdir "$work/topologies"
"$canopy" topology generate dgx-a100:boxes=2 -o "$work/topologies/gpu-2.yaml" >/dev/null
cat >"$work/slurm.env" <<SETTINGS
PATH=$(dirname "$canopy"):\$PATH
CANOPY_COMMAND=$canopy
CANOPY_SERVER=unix:$work/data/canopy.sock
CANOPY_TOPOLOGY_DIR=$work/topologies
CANOPY_JOBS_DIR=$work/jobs
CANOPY_COLLECTIVES=allgather,reduce-scatter
SETTINGS

# With few variables and no search path, as Slurm runs its prologs and epilogs.
hook() {
    local script=$1
    shift
    /usr/bin/env -i CANOPY_SLURM_ENV="$work/slurm.env" SLURM_JOB_ID=42 SLURM_JOB_PARTITION=gpu SLURM_JOB_NUM_NODES=2 \
        "$@" /bin/sh "./$script" || fail "$script failed with $*"
}
folder=$work/jobs/42

hook prolog-slurmctld.sh
hook prolog.sh
[ -z "$(hook task-prolog.sh)" ] || fail "the task prolog names a plan where no server ever ran"
hook epilog.sh
[ ! -e "$folder" ] || fail "the epilog left the folder of a job without plans"

"$canopyd" --data-dir "$work/data" 2>"$work/log" &
server=$!
until [ -S "$work/data/canopy.sock" ]; do
    kill -0 "$server" || fail "the server did not start: $(cat "$work/log")"
    # Takes a moment, so that the loop is not a busy one.
    "$canopy" bound ring:2 --collective allgather >/dev/null
done

hook prolog-slurmctld.sh SLURM_JOB_NODELIST='gpu[1-2]'
hook prolog.sh
line=$(hook task-prolog.sh)
[[ $line == "export MSCCL_XML_FILES=$folder/"* ]] || fail "the task prolog does not name the plans: $line"
IFS=: read -ra plans <<<"${line#*=}"
[ "${#plans[@]}" = 2 ] || fail "there are not two plans: $line"
for plan in "${plans[@]}"; do "$canopy" verify "$plan" >/dev/null || fail "$plan is wrong"; done
[ -z "$(hook task-prolog.sh MSCCL_XML_FILES=mine.xml)" ] || fail "the task prolog overrides the user"
hook epilog.sh
[ ! -e "$folder" ] || fail "the epilog left the folder"

for hostile in SLURM_JOB_ID=../42 SLURM_JOB_ID= SLURM_JOB_PARTITION=../gpu SLURM_JOB_PARTITION=cpu \
    SLURM_JOB_NUM_NODES=x 'SLURM_JOB_NODELIST=gpu[1-3]'; do
    for script in prolog-slurmctld.sh prolog.sh task-prolog.sh; do
        [ -z "$(hook "$script" "$hostile")" ] || fail "$script prints something with $hostile"
    done
    [ -z "$(find "$work/jobs" -name '*.xml')" ] || fail "the prolog made plans with $hostile"
    hook epilog.sh "$hostile"
done
[ -r "$work/topologies/gpu-2.yaml" ] || fail "the epilog removed what is not a job's"
echo "slurm hooks: ok"
