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
# The log of the system.
mkdir "$work/bin"
printf '#!/bin/sh\nexec sed "s/^/%s: /" >>%s\n' "\$2" "$work/syslog" >"$work/bin/logger"
chmod 755 "$work/bin/logger"
cat >"$work/slurm.env" <<SETTINGS
PATH=$work/bin:$(dirname "$canopy"):\$PATH
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
        SLURM_STEP_ID=0 \
        "$@" /bin/sh "./$script" || fail "$script failed with $*"
}
folder=$work/jobs/42

# No server listens: one that starts within a moment would be found, and the job does not wait for more.
best=99999
for _ in 1 2 3; do
    begun=${EPOCHREALTIME/./}
    hook prolog-slurmctld.sh
    hook prolog.sh
    took=$(((${EPOCHREALTIME/./} - begun) / 1000))
    [ "$took" -ge "$best" ] || best=$took
done
[ "$best" -le 2000 ] || fail "a job waits $best ms for a server that is not there"
begun=${EPOCHREALTIME/./}
hook prolog.sh CANOPY_RETRY_CONNECT=0
[ $(((${EPOCHREALTIME/./} - begun) / 1000)) -lt 5000 ] || fail "one try takes 5 s"
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

logged() { grep --quiet --line-regexp "$1" "$work/syslog" || fail "the log does not say \`$1\`: $(cat "$work/syslog")"; }
logged 'canopy-prolog: job 42: without a plan: allgather: cannot reach the server.*'
hook prolog-slurmctld.sh SLURM_JOB_NODELIST='gpu[1-2]'
hook prolog.sh
logged 'canopy-prolog: job 42: 2 of 2 plans for job 42 in .*'
line=$(hook task-prolog.sh)
[[ $line == "export MSCCL_XML_FILES=$folder/"* ]] || fail "the task prolog does not name the plans: $line"
IFS=: read -ra plans <<<"${line#*=}"
[ "${#plans[@]}" = 2 ] || fail "there are not two plans: $line"
for plan in "${plans[@]}"; do "$canopy" verify "$plan" >/dev/null || fail "$plan is wrong"; done
[ -z "$(hook task-prolog.sh MSCCL_XML_FILES=mine.xml)" ] || fail "the task prolog overrides the user"
# Ranks in an order of their own, on some of the nodes, or of steps that inherit the variables of a batch script.
for other in SLURM_DISTRIBUTION=arbitrary SLURM_DISTRIBUTION=cyclic:block SLURM_DISTRIBUTION=plane=4 \
    SLURM_STEP_NODELIST=gpu1 SLURM_STEP_ID=4294967291; do
    [ -z "$(hook task-prolog.sh "$other" SLURM_JOB_NODELIST='gpu[1-2]')" ] || fail "a task with $other has plans for other ranks"
done
[ -n "$(hook task-prolog.sh SLURM_DISTRIBUTION=cyclic SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2)" ] ||
    fail "with one task a node, turns are blocks"
[ -n "$(hook task-prolog.sh SLURM_STEP_ID=4294967291 SLURM_JOB_NUM_NODES=1)" ] || fail "a batch script on one node has no plans"
hook epilog.sh
[ ! -e "$folder" ] || fail "the epilog left the folder"

# One configuration for all partitions: the nodes are a part of a cluster. The first of them holds the lease of the job.
"$canopy" cluster put lab --network dgx-a100:boxes=4 --server "unix:$work/data/canopy.sock" >/dev/null 2>&1
printf 'CANOPY_CLUSTER=lab\nCANOPY_LEASE=1h\n' >>"$work/slurm.env"
leases() { "$canopy" leases list --json --server "unix:$work/data/canopy.sock" | grep -o '"total":[0-9]*'; }
hook prolog.sh SLURM_NODELIST='b[1,3]' SLURMD_NODENAME=b3
[ "$(leases)" = '"total":0' ] || fail "a node holds a lease that the first node of its job should hold"
hook prolog.sh SLURM_NODELIST='b[1,3]' SLURMD_NODENAME=b1
[ "$(leases)" = '"total":1' ] || fail "the first node holds no lease: $(cat "$work/syslog")"
for node in b1 b3; do
    said=$("$canopy" fetch clusters/lab --job 42 --nodes 'b[1,3]' -c allgather,reduce-scatter --lease 1h --out "$work/$node" \
        --server "unix:$work/data/canopy.sock" 2>&1)
    [ "$(leases)" = '"total":1' ] || fail "another node of the job holds a lease of its own: $said"
done
[[ $(hook task-prolog.sh SLURM_JOB_NODELIST='b[1,3]') == "export MSCCL_XML_FILES=$folder/"* ]] || fail "no plans of a part of the cluster"
[ -z "$(hook task-prolog.sh SLURM_JOB_NODELIST='b[1,2]')" ] || fail "the plans of other nodes are used"
# Ranks in the order of a host file: of the job's nodes, another one, that of plans which the job has fetched, and turns.
lines() { for name; do for _ in 1 2 3 4 5 6 7 8; do echo "$name"; done; done; }
lines b1 b3 >"$work/as-listed"
lines b3 b1 >"$work/reversed"
paste -d '\n' <(lines b1) <(lines b3) >"$work/turns"
arbitrary() { hook task-prolog.sh SLURM_JOB_NODELIST='b[1,3]' SLURM_DISTRIBUTION=arbitrary "SLURM_HOSTFILE=$work/$1" "${@:2}"; }
[[ $(arbitrary as-listed) == "export MSCCL_XML_FILES=$folder/"* ]] || fail "no plans for ranks in the order of the job's nodes"
[ -z "$(arbitrary reversed)$(arbitrary turns)$(arbitrary missing)" ] || fail "ranks in another order have plans"
own=$work/own
"$canopy" fetch clusters/lab --job 42 --nodes-file "$work/reversed" -c allgather --out "$own" --server "unix:$work/data/canopy.sock" 2>/dev/null
[[ $(arbitrary reversed CANOPY_OWN_PLANS="$own") == "export MSCCL_XML_FILES=$own/"* ]] || fail "no plans for ranks in the order of a host file"
[[ $(arbitrary as-listed CANOPY_OWN_PLANS="$own") == "export MSCCL_XML_FILES=$folder/"* ]] || fail "the job's own plans hide those of the hook"
[ -z "$(arbitrary turns CANOPY_OWN_PLANS="$own")" ] || fail "ranks in turns have plans"
hook epilog.sh
[ "$(leases)" = '"total":0' ] || fail "the epilog left the lease"
[ -z "$(ls -A "$work/jobs")" ] || fail "the epilog left $(ls -A "$work/jobs")"
hook prolog.sh
[ ! -e "$folder" ] || fail "the prolog planned a whole cluster for a job whose nodes it does not know"
sed -i '/CANOPY_CLUSTER\|CANOPY_LEASE/d' "$work/slurm.env"

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
