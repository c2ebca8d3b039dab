#!/bin/sh
# Slurm `PrologSlurmctld` (SlurmUser, on the controller, once per job): has the job's plans made while its nodes get
# ready. Ends with status 0 whatever happens: any other one requeues the job.

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
    printf '%s\n' "$1" | sed "s/^/job $SLURM_JOB_ID: /" | timeout -k 1 1 logger -t canopy-prolog-slurmctld
}

prefetch() {
    [ -n "${CANOPY_SERVER:-}" ] || return
    case ${SLURM_JOB_ID:-} in '' | *[!0-9]*) return ;; esac
    nodes=${SLURM_JOB_NODELIST:-}
    if [ -n "${CANOPY_CLUSTER:-}" ]; then
        # Its machines are the nodes: without their names, all of them would be planned.
        [ -n "$nodes" ] || return
        network=clusters/$CANOPY_CLUSTER
    else
        case ${SLURM_JOB_PARTITION:-} in '' | .* | *[!A-Za-z0-9._-]*) return ;; esac
        case ${SLURM_JOB_NUM_NODES:-} in '' | *[!0-9]*) return ;; esac
        network=${CANOPY_TOPOLOGY_DIR:-/etc/canopy/topologies}/$SLURM_JOB_PARTITION-$SLURM_JOB_NUM_NODES.yaml
        [ -r "$network" ] || return
    fi
    set -- "$network" --job "$SLURM_JOB_ID" --collective "${CANOPY_COLLECTIVES:-allreduce}"
    if [ -n "$nodes" ]; then
        set -- "$@" --nodes "$nodes"
    fi
    if [ -n "${CANOPY_PROFILE:-}" ]; then
        set -- "$@" --profile "$CANOPY_PROFILE"
    fi
    # One try: if no server listens, the nodes ask again. The command keeps to its deadline; the outer limit is for a
    # machine that is out of memory or of disks.
    said=$(timeout -k 1 4 canopy job prefetch "$@" --server "$CANOPY_SERVER" --retry-connect 0 --deadline 2s 2>&1) ||
        said="$said
canopy job prefetch ended with status $?"
    log "$said"
}

prefetch </dev/null >/dev/null 2>&1
exit 0
