#!/bin/sh
# Slurm `Prolog` (root, on every node, once per job): brings the job's plans into the job's folder.
# Ends with status 0 whatever happens: any other one drains the node and requeues the job.

# Slurm sets no search path.
export PATH=/usr/local/bin:/usr/bin:/bin
settings=${CANOPY_SLURM_ENV:-/etc/canopy/slurm.env}
if [ -r "$settings" ]; then
    # shellcheck source=/dev/null
    . "$settings"
fi
# What the command shows to the server.
export CANOPY_CA CANOPY_CERT CANOPY_KEY CANOPY_TOKEN_FILE

# Slurm drops what a hook prints. The limit is for a log service that does not answer.
log() {
    printf '%s\n' "$1" | sed "s/^/job $SLURM_JOB_ID: /" | timeout -k 1 1 logger -t canopy-prolog
}

# Whether this is the first node of the job: `n1` of `n[1-4,7]`.
is_first() {
    first=${1%%,*}
    case $first in
    *\[*)
        range=${first#*\[}
        first=${first%%\[*}${range%%[]-]*}
        ;;
    esac
    [ "$first" = "${SLURMD_NODENAME:-}" ]
}

fetch() {
    # Without a server, `canopy` would run one in every node's prolog.
    [ -n "${CANOPY_SERVER:-}" ] || return
    # Digits only: the id names a folder.
    case ${SLURM_JOB_ID:-} in '' | *[!0-9]*) return ;; esac
    # Slurm 22.05 gives a prolog the list under its old name.
    nodes=${SLURM_JOB_NODELIST:-${SLURM_NODELIST:-}}
    if [ -n "${CANOPY_CLUSTER:-}" ]; then
        # Its machines are the nodes: without their names, all of them would be planned.
        [ -n "$nodes" ] || return
        network=clusters/$CANOPY_CLUSTER
    else
        case ${SLURM_JOB_PARTITION:-} in '' | .* | *[!A-Za-z0-9._-]*) return ;; esac
        case ${SLURM_JOB_NUM_NODES:-} in '' | *[!0-9]*) return ;; esac
        # A partition and size without a file have no plans.
        network=${CANOPY_TOPOLOGY_DIR:-/etc/canopy/topologies}/$SLURM_JOB_PARTITION-$SLURM_JOB_NUM_NODES.yaml
        [ -r "$network" ] || return
    fi
    umask 022
    jobs=${CANOPY_JOBS_DIR:-/run/canopy-jobs}
    mkdir -p "$jobs" || return
    set -- "$network" --job "$SLURM_JOB_ID" --collective "${CANOPY_COLLECTIVES:-allreduce}"
    if [ -n "$nodes" ]; then
        set -- "$@" --nodes "$nodes"
    fi
    if [ -n "${CANOPY_PROFILE:-}" ]; then
        set -- "$@" --profile "$CANOPY_PROFILE"
    fi
    # Nodes share a lease; one of them is enough to ask for it. The epilog that finds the file ends it.
    if [ -n "${CANOPY_LEASE:-}" ] && is_first "$nodes" && : >"$jobs/$SLURM_JOB_ID.lease"; then
        set -- "$@" --lease "$CANOPY_LEASE"
    fi
    # If no server listens, the tries bridge a restart of it. The command keeps to its deadline; the outer limit is for
    # a machine that is out of memory or of disks.
    said=$(timeout -k 1 8 canopy job fetch "$@" --server "$CANOPY_SERVER" --out "$jobs/$SLURM_JOB_ID" \
        --retry-connect "${CANOPY_RETRY_CONNECT:-800ms}" --deadline 5s --on-miss fallback 2>&1) ||
        said="$said
canopy job fetch ended with status $?"
    log "$said"
}

fetch </dev/null >/dev/null 2>&1
exit 0
