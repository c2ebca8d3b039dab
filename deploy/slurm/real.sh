#!/usr/bin/env bash
# Runs the hooks in a real Slurm: a controller and eight nodes on this machine, in namespaces of their own, where they
# find no other Slurm and leave nothing behind. Needs root, and Debian's munge, slurmctld, slurmd and slurm-client.
# Usage: real.sh PATH_OF_CANOPYD PATH_OF_CANOPY
set -euo pipefail

skip() {
    echo "slurm: $1" >&2
    [ "${CANOPY_REQUIRE_ALL:-0}" != 1 ] || exit 1
    echo "slurm: skipped" >&2
    exit 0
}
fail() {
    echo "slurm: $1" >&2
    if [ -n "${work:-}" ]; then
        echo "-- the hooks' log, its end" >&2
        tail -n 20 "$work/syslog" >&2 || true
        echo "-- the controller's log, its end" >&2
        tail -n 20 "$work/slurmctld.log" >&2 || true
    fi
    exit 1
}

canopyd=$(realpath "$1")
canopy=$(realpath "$2")
hooks=$(realpath "$(dirname "$0")")
if [ -z "${CANOPY_SLURM_WORK:-}" ]; then
    for program in munged pgrep slurmctld slurmd srun sbatch scontrol sinfo unshare setpriv logger ip; do
        [ -n "$(PATH=$PATH:/usr/sbin:/sbin type -P "$program")" ] || skip "no $program on this machine"
    done
    [ "$(id -u)" = 0 ] || skip "only root can start nodes that run jobs of users"
    CANOPY_SLURM_WORK=$(mktemp -d)
    export CANOPY_SLURM_WORK
    # The first process of the namespace takes all others with it, whatever they have become.
    unshare --mount --net --pid --fork --kill-child --mount-proc "$0" "$canopyd" "$canopy" &
    inside=$!
    trap 'kill "$inside" 2>/dev/null || true; wait; rm -rf "$CANOPY_SLURM_WORK"' EXIT
    trap 'exit 1' INT TERM
    wait "$inside"
    exit
fi

work=$CANOPY_SLURM_WORK
export PATH=$PATH:/usr/sbin:/sbin
nodes=8
# What a job may wait for canopy: the deadlines of the controller's hook (2 s) and of the nodes' (5 s).
limit_ms=7000
# What it may wait if no server listens, and what half of all jobs may wait in their hooks then.
away_limit_ms=5000
away_hooks_ms=2000
unset CANOPY_SERVER CANOPY_DATA_DIR
ip link set lo up
# A resolver that finds no address but 127.0.0.1 on the machine does not even resolve that one.
ip address add 10.255.0.1/32 dev lo

# What the hooks need. Users must get at the command, the settings and the files of their jobs.
chmod 755 "$work"
mkdir "$work"/{bin,out,jobs,munge,spool,state,out/plans,hooks}
chmod 777 "$work/out" "$work/out/plans"
cp "$canopy" "$work/bin/canopy"
for hook in prolog-slurmctld prolog task-prolog epilog; do
    sed "s|/etc/canopy/slurm.env|$work/slurm.env|" "$hooks/$hook.sh" >"$work/hooks/$hook.sh"
    chmod 755 "$work/hooks/$hook.sh"
done
# How long those take that a job waits for, by what is tried.
for hook in prolog-slurmctld prolog; do
    cat >"$work/hooks/timed-$hook.sh" <<HOOK
#!/bin/bash
begun=\${EPOCHREALTIME/./}
$work/hooks/$hook.sh
status=\$?
echo \$(((\${EPOCHREALTIME/./} - begun) / 1000)) >>"$work/took.\$(cat "$work/phase").$hook"
exit \$status
HOOK
    chmod 755 "$work/hooks/timed-$hook.sh"
done
echo batch >"$work/phase"
# The log of the system, in a file.
install -m 666 /dev/null "$work/syslog"
printf '#!/bin/sh\nexec /usr/bin/logger --rfc3164 --server 127.0.0.1 --udp --no-act --stderr "$@" 2>>%s\n' "$work/syslog" >"$work/bin/logger"
chmod 755 "$work/bin/logger"
address=127.0.0.1:7423
# Each node has a folder of its own for jobs, as on a machine of its own.
cat >"$work/slurm.env" <<SETTINGS
PATH=$work/bin:/usr/bin:/bin
CANOPY_COMMAND=$work/bin/canopy
CANOPY_SERVER=$address
CANOPY_CLUSTER=lab
CANOPY_JOBS_DIR=$work/jobs/\${SLURMD_NODENAME:-controller}
CANOPY_COLLECTIVES=allgather,reduce-scatter
CANOPY_LEASE=30m
SETTINGS

# A cluster. Names go back and forth between the leaves, so that an order by name is not the best one.
cat >"$work/topology.conf" <<'FABRIC'
SwitchName=leaf1 Nodes=n[1,3,5,7]
SwitchName=leaf2 Nodes=n[2,4,6,8]
SwitchName=spine Switches=leaf[1-2]
FABRIC
# Four GPUs and two NICs: four ranks.
host=$hooks/../../crates/import/tests/data/four-gpus.xml
server=
ask() { "$work/bin/canopy" "$@" --server "$address"; }
start_server() {
    "$canopyd" --dev --listen "$address" --data-dir "$work/data" 2>>"$work/canopyd.log" &
    server=$!
    until ask stats >/dev/null 2>&1; do
        kill -0 "$server" 2>/dev/null || fail "canopyd did not start: $(cat "$work/canopyd.log")"
        sleep 0.1
    done
}
start_server
ask cluster put lab --host "$host" --fabric "$work/topology.conf" --rates nic=400Gb/s,leaf-spine=800Gb/s >"$work/cluster" 2>&1 ||
    fail "the server did not take the cluster: $(cat "$work/cluster")"

# Slurm.
head -c 128 /dev/urandom >"$work/munge/key"
chmod 600 "$work/munge/key"
munged --key-file="$work/munge/key" --socket="$work/munge/socket" --log-file="$work/munge/log" \
    --pid-file="$work/munge/pid" --seed-file="$work/munge/seed" --num-threads=2 || fail "munged did not start"
name=$(hostname -s)
export SLURM_CONF=$work/slurm.conf
# Writes slurm.conf with these lines at its end.
configure() {
    cat - >"$SLURM_CONF.part" <<CONF
ClusterName=test
SlurmctldHost=$name(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=0
NodeName=n[1-$nodes] NodeHostname=$name NodeAddr=127.0.0.1 Port=[27001-$((27000 + nodes))] CPUs=4 RealMemory=100 State=UNKNOWN
PartitionName=gpu Nodes=n[1-$nodes] Default=YES State=UP MaxTime=10
CONF
    printf '%s\n' "$@" >>"$SLURM_CONF.part"
    mv "$SLURM_CONF.part" "$SLURM_CONF"
}
with_hooks=("PrologSlurmctld=$work/hooks/timed-prolog-slurmctld.sh" "Prolog=$work/hooks/timed-prolog.sh" "PrologFlags=Alloc"
    "TaskProlog=$work/hooks/task-prolog.sh" "Epilog=$work/hooks/epilog.sh")
configure "${with_hooks[@]}"
slurmctld -L "$work/slurmctld.log" || fail "slurmctld did not start"
for ((node = 1; node <= nodes; node++)); do
    slurmd -N "n$node" -L "$work/n$node.log" || fail "slurmd of n$node did not start: $(tail -n 5 "$work/n$node.log")"
done

# Waits until no job is left and all nodes are idle: their epilogs have ended.
settle() {
    local end=$((SECONDS + 30)) states=
    until states=$(sinfo --noheader --format=%T 2>>"$work/client.log" | sort -u) && [ "$states" = idle ] && [ -z "$(squeue --noheader 2>>"$work/client.log")" ]; do
        case $states in *drain* | *down*) fail "a node is lost: $(sinfo --noheader --Node --format='%N %T %E' | sort -u)" ;; esac
        [ "$SECONDS" -lt "$end" ] || fail "the nodes did not become idle: $states $(tail -n 3 "$work/client.log")"
        sleep 0.1
    done
    [ -z "$(find "$work/jobs" -mindepth 2 -print -quit)" ] || fail "epilogs left $(find "$work/jobs" -mindepth 2 | head -n 5)"
}
as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups --reset-env env SLURM_CONF="$SLURM_CONF" CANOPY_SERVER="$address" "$@"; }
cd "$work/out"
settle

# A job. A line for each rank: rank, node, microseconds, files that it can read, files.
cat >"$work/task.sh" <<'TASK'
#!/bin/sh
now=$(date +%s%6N)
readable=0
IFS=:
for file in ${MSCCL_XML_FILES:-}; do [ ! -r "$file" ] || readable=$((readable + 1)); done
echo "$SLURM_PROCID $SLURMD_NODENAME $now $readable ${MSCCL_XML_FILES:-none}"
TASK
chmod 755 "$work/task.sh"
started=0
# Starts a job on K nodes and notes how long its last rank took to start: `start KIND K FILES`, FILES for each rank.
start() {
    local kind=$1 count=$2 expected=$3 begun=${EPOCHREALTIME/./} said
    said=$(as_user srun --quiet --nodes="$count" --ntasks-per-node=4 "$work/task.sh" 2>&1) || fail "$kind: a job failed: $said"
    awk -v begun="$begun" -v ranks="$((count * 4))" -v expected="$expected" '
        $4 != expected && expected != "any" { wrong = wrong "\n" $0 }
        $3 > last { last = $3 }
        END {
            if (NR != ranks || wrong) { print "ranks " NR " of " ranks wrong; exit 1 }
            printf "%d\n", (last - begun) / 1000
        }' <<<"$said" >>"$work/delays.$kind" ||
        fail "$kind: not each of the ranks has $expected files: $(tail -n 12 "$work/delays.$kind")"
}
# `starts KIND TIMES K FILES`: one after another.
starts() {
    echo "$1" >"$work/phase"
    for ((time = 0; time < $2; time++)); do start "$1" "$3" "$4"; done
    started=$((started + $2))
}
# The same, all at once.
burst() {
    local running=()
    echo "$1" >"$work/phase"
    for ((time = 0; time < $2; time++)); do
        start "$1" "$3" "$4" &
        running+=($!)
    done
    # One by one: `wait` with several tells the status of the last.
    for job in "${running[@]}"; do wait "$job" || exit 1; done
    started=$((started + $2))
}
# `share FILE P`: the number that P percent of those in a file do not exceed.
share() { sort -n "$1" | awk -v part="$2" '{ all[NR] = $1 } END { at = int((part * NR + 99) / 100); print all[at < 1 ? 1 : at] + 0 }'; }
worst() { share "$work/delays.$1" 100; }
# Fails unless the greatest delay of this kind is within the limit.
within() {
    local worst
    worst=$(worst "$1")
    [ "$worst" -le "$2" ] || fail "$1: a job waited $worst ms, and $2 are the limit"
}
# What the hooks logged has this.
logged() { grep --quiet -- "$1" "$work/syslog" || fail "the log does not say \`$1\`"; }
leases() { ask leases list --json "$@" | sed -n 's/.*"total":\([0-9]*\).*/\1/p'; }

# One job, step by step.
cat >"$work/batch.sh" <<BATCH
#!/bin/bash
set -eu
export PATH=$work/bin:\$PATH
echo "\${MSCCL_XML_FILES:-none}" >itself
srun $work/task.sh >ranks
canopy tools order clusters/lab --nodes "\$SLURM_JOB_NODELIST" --to slurm -o hosts
SLURM_HOSTFILE=hosts srun --distribution=arbitrary $work/task.sh >ordered.without
canopy job fetch clusters/lab --nodes-file hosts -c allgather,reduce-scatter --job "\$SLURM_JOB_ID" --out "\$PWD/ordered" --deadline 30s
cp ordered/manifest.json ordered.json
(. ordered/env && SLURM_HOSTFILE=hosts srun --distribution=arbitrary $work/task.sh >ordered.with)
export CANOPY_OWN_PLANS=\$PWD/ordered
SLURM_HOSTFILE=hosts srun --distribution=arbitrary $work/task.sh >ordered.prolog
srun $work/task.sh >block
sort hosts >sorted
SLURM_HOSTFILE=sorted srun --distribution=arbitrary $work/task.sh >sorted.prolog
awk 'NR % 4 == 1' hosts >turns && awk 'NR % 4 != 1' hosts >>turns
SLURM_HOSTFILE=turns srun --distribution=arbitrary $work/task.sh >turns.prolog
unset CANOPY_OWN_PLANS
canopy job release --job "\$SLURM_JOB_ID" --dir "\$PWD/ordered"
srun $work/lease.sh >leases 2>&1
canopy job leases list --filter "job=\"\$SLURM_JOB_ID\"" --json >held
srun --nodes=4 --ntasks=16 $work/task.sh >some
srun --distribution=cyclic $work/task.sh >cyclic
BATCH
# Each task fetches the plans with a lease, as the hook of the first node has done.
cat >"$work/lease.sh" <<'TASK'
#!/bin/sh
exec canopy job fetch clusters/lab --nodes "$SLURM_JOB_NODELIST" -c allgather,reduce-scatter --job "$SLURM_JOB_ID" \
    --out "$PWD/leased.$SLURM_PROCID" --lease 30m --deadline 30s
TASK
chmod 755 "$work/lease.sh"
as_user sbatch --quiet --wait --nodes="$nodes" --ntasks-per-node=4 --output=batch.out "$work/batch.sh" || fail "the batch job failed: $(cat batch.out)"
started=$((started + 1))
ranks=$((nodes * 4))
files_of() { awk '{ print $4 }' "$1" | sort -u; }
[ "$(cat itself)" = none ] || fail "the batch script has plans, which steps in another order inherit"
[ "$(wc -l <ranks) $(files_of ranks)" = "$ranks 2" ] || fail "not all ranks have their plans: $(cat ranks)"
[ "$(sort -n ranks | awk '{ print $2 }' | uniq | xargs)" = "n1 n2 n3 n4 n5 n6 n7 n8" ] || fail "ranks are in another order: $(cat ranks)"
[ "$(wc -l <hosts)" = "$ranks" ] || fail "the host file has not a line for each rank: $(cat hosts)"
[ "$(uniq hosts | xargs)" = "n1 n3 n5 n7 n2 n4 n6 n8" ] || fail "\`canopy tools order\` did not put one leaf after another: $(uniq hosts)"
for step in ordered.without ordered.with ordered.prolog; do
    sort -n "$step" | awk '{ print $2 }' | cmp --quiet - hosts || fail "Slurm did not place the ranks as \`canopy tools order\` says: $(sort -n $step)"
done
[ "$(files_of ordered.without)" = 0 ] || fail "ranks in an order of their own have plans for another: $(cat ordered.without)"
[ "$(files_of ordered.with)" = 2 ] || fail "ordered ranks do not have their plans: $(cat ordered.with)"
[ "$(grep -o '"n[1-8]"' ordered.json | tr -d '"' | xargs)" = "n1 n3 n5 n7 n2 n4 n6 n8" ] || fail "the plans are for other ranks: $(cat ordered.json)"
folder_of() { awk '{ print $5 }' "$1" | sort -u | grep -c "$2" || true; }
[ "$(files_of ordered.prolog) $(folder_of ordered.prolog "^$PWD/ordered/")" = "2 1" ] ||
    fail "the task prolog did not find the plans for the host file: $(cat ordered.prolog)"
[ "$(files_of block) $(folder_of block "^$PWD/ordered/")" = "2 0" ] || fail "ranks in the usual order have other plans: $(cat block)"
[ "$(files_of sorted.prolog) $(folder_of sorted.prolog "^$PWD/ordered/")" = "2 0" ] ||
    fail "a host file in the order of the job does not have its plans: $(cat sorted.prolog)"
[ "$(files_of turns.prolog)" = 0 ] || fail "ranks in turns have plans for blocks: $(cat turns.prolog)"
held=$(sed -n 's/.*"total":\([0-9]*\).*/\1/p' held)
[ "$(grep -c '^leases/' leases) $(grep -o '^leases/[0-9a-f]*' leases | sort -u | wc -l) $held" = "$ranks 1 1" ] ||
    fail "the job holds $held leases, and its tasks have $(grep -o '^leases/[0-9a-f]*' leases | sort | uniq -c)"
[ "$(files_of some)" = 0 ] || fail "a step on some nodes has the plans of all"
[ "$(files_of cyclic)" = 0 ] || fail "a step with ranks in turns has plans for blocks"
settle
logged 'canopy-prolog-slurmctld: job [0-9]*: allgather: operations/'
logged 'canopy-prolog: job [0-9]*: 2 of 2 plans'
logged 'canopy-task-prolog: job [0-9]*: error: the plans are for other nodes than those of --nodes-file, or for another order'
logged 'canopy-task-prolog: job [0-9]*: .*ranks of n[0-9] are in several places'
[ "$(leases)" = 0 ] || fail "the job ended, and its lease did not"
echo "slurm: $ranks ranks with plans; $ranks ranks in the order of \`canopy tools order\`; one lease for all"

# A fault while a job runs: its lease gets a plan around it, the next job starts with one, the epilog ends the lease.
nic=node:n1.nic-0000.13.00.0
cat >"$work/faulty.sh" <<BATCH
#!/bin/bash
set -eu
export PATH=$work/bin:\$PATH
canopy job leases watch --job "\$SLURM_JOB_ID" --out "\$PWD/plans" --count 1 --json >seen &
touch watching
until [ -e go ]; do sleep 0.1; done
wait
BATCH
job=$(as_user sbatch --parsable --nodes=2 --ntasks-per-node=4 --output=faulty.out "$work/faulty.sh") || fail "sbatch failed"
for ((patience = 300; ; patience--)); do
    [ ! -e watching ] || [ "$(leases --filter "job=\"$job\"")" != 1 ] || break
    [ "$patience" -gt 0 ] || fail "the job holds no lease: $(ask leases list)"
    sleep 0.1
done
# Events from here on: a watch that is not there yet would miss one that is already over.
sleep 0.5
ask faults report clusters/lab "$nic" >/dev/null || fail "the server did not take the fault"
for ((patience = 300; ; patience--)); do
    [ "$(leases --filter 'replanned=true')" != 1 ] || break
    [ "$patience" -gt 0 ] || fail "the lease has its old plan after the fault: $(ask leases list)"
    sleep 0.1
done
start faulty 2 2
touch go
settle
started=$((started + 2))
grep --quiet superseded seen || fail "the job did not see its new plan: $(cat seen faulty.out)"
[ -n "$(ls plans)" ] || fail "the job saw a new plan and has no file of it"
ask faults report clusters/lab "$nic" --cleared >/dev/null
[ "$(leases)" = 0 ] || fail "the job ended, and its lease did not"
echo "slurm: a fault while a job ran: new plan in the job, lease ended with it"

# Jobs one after another, with the hooks and without.
configure
scontrol reconfigure
settle
starts without 30 2 0
settle
configure "${with_hooks[@]}"
scontrol reconfigure
settle
starts healthy 60 2 2
settle
# Four at a time, on all nodes.
for ((round = 0; round < 20; round++)); do burst burst 4 2 2; done
settle
within healthy 5000
[ "$(leases)" = 0 ] || fail "jobs ended, and their leases did not: $(ask leases list)"
# What Slurm, the processes of the hooks and this machine take besides. srun looks only once a second, after some time,
# whether its nodes are ready.
limit_ms=$((limit_ms + $(worst burst) + 1000))

# A server that gets a tenth of the time.
(while :; do
    kill -STOP "$server"
    sleep 0.18
    kill -CONT "$server"
    sleep 0.02
done) &
brake=$!
starts slow 8 2 any
kill "$brake"
wait "$brake" 2>/dev/null || true
kill -CONT "$server"
settle
within slow "$limit_ms"

# A server that does not answer.
kill -STOP "$server"
burst hung 4 2 0
settle
burst hung 4 2 0
settle
kill -CONT "$server"
within hung "$limit_ms"
logged 'canopy-prolog: job [0-9]*: 0 of 2 plans'

# No server.
kill "$server"
wait "$server" || true
starts down 10 2 0
settle
for ((round = 0; round < 3; round++)); do burst down 4 2 0; done
settle
within down "$away_limit_ms"
hooks_ms=$(($(share "$work/took.down.prolog-slurmctld" 50) + $(share "$work/took.down.prolog" 50)))
[ "$hooks_ms" -le "$away_hooks_ms" ] || fail "without a server, the hooks of a job take $hooks_ms ms, and $away_hooks_ms are the limit"
logged 'canopy-prolog-slurmctld: job [0-9]*: error: cannot reach the server'
start_server
# A lease whose epilog found no server in time lasts until it expires.
held=$(leases)
starts back 10 2 2
settle
[ "$(leases)" = "$held" ] || fail "jobs ended, and their leases did not: $(ask leases list)"
within back 5000

# Nothing else was wrong.
! grep -E 'requeue|drain|[Pp]rolog.*(fail|error)|launch failure' "$work/slurmctld.log" >&2 || fail "the controller had trouble"
for program in canopy logger timeout; do
    ! pgrep -x -a "$program" >&2 || fail "hooks left processes"
done
[ "$started" -ge 200 ] || fail "only $started jobs were started"
echo "slurm: $started jobs started, none failed, no node drained, nothing left; from srun to the last of 8 ranks, in ms"
printf '%-9s %5s %6s %6s %6s  %s\n' hooks jobs p50 p99 max 'time in the hooks: controller p50 and max, node p50 and max'
for kind in without healthy burst faulty slow hung down back; do
    all=$work/delays.$kind
    printf '%-9s %5d %6d %6d %6d' "$kind" "$(wc -l <"$all")" "$(share "$all" 50)" "$(share "$all" 99)" "$(share "$all" 100)"
    for hook in prolog-slurmctld prolog; do
        took=$work/took.$kind.$hook
        [ ! -e "$took" ] || printf ' %6d %6d' "$(share "$took" 50)" "$(share "$took" 100)"
    done
    echo
done
