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

prefetch() {
    [ -n "${CANOPY_SERVER:-}" ] || return
    case ${SLURM_JOB_ID:-} in '' | *[!0-9]*) return ;; esac
    case ${SLURM_JOB_PARTITION:-} in '' | .* | *[!A-Za-z0-9._-]*) return ;; esac
    case ${SLURM_JOB_NUM_NODES:-} in '' | *[!0-9]*) return ;; esac
    topology=${CANOPY_TOPOLOGY_DIR:-/etc/canopy/topologies}/$SLURM_JOB_PARTITION-$SLURM_JOB_NUM_NODES.yaml
    [ -r "$topology" ] || return
    set -- "$topology" --job "$SLURM_JOB_ID" --collective "${CANOPY_COLLECTIVES:-allreduce}"
    if [ -n "${SLURM_JOB_NODELIST:-}" ]; then
        set -- "$@" --nodes "$SLURM_JOB_NODELIST"
    fi
    if [ -n "${CANOPY_PROFILE:-}" ]; then
        set -- "$@" --profile "$CANOPY_PROFILE"
    fi
    canopy prefetch "$@" --server "$CANOPY_SERVER" --deadline 2s
}

prefetch </dev/null >/dev/null 2>&1
exit 0
