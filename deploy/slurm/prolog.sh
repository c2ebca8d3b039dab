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

fetch() {
    # Without a server, `canopy` would run one in every node's prolog.
    [ -n "${CANOPY_SERVER:-}" ] || return
    # Digits only: the id names a folder.
    case ${SLURM_JOB_ID:-} in '' | *[!0-9]*) return ;; esac
    case ${SLURM_JOB_PARTITION:-} in '' | .* | *[!A-Za-z0-9._-]*) return ;; esac
    case ${SLURM_JOB_NUM_NODES:-} in '' | *[!0-9]*) return ;; esac
    # A partition and size without a file have no plans.
    topology=${CANOPY_TOPOLOGY_DIR:-/etc/canopy/topologies}/$SLURM_JOB_PARTITION-$SLURM_JOB_NUM_NODES.yaml
    [ -r "$topology" ] || return
    umask 022
    jobs=${CANOPY_JOBS_DIR:-/run/canopy-jobs}
    mkdir -p "$jobs" || return
    set -- "$topology" --job "$SLURM_JOB_ID" --collective "${CANOPY_COLLECTIVES:-allreduce}"
    # Not every version of Slurm tells a prolog on a node which nodes there are.
    if [ -n "${SLURM_JOB_NODELIST:-}" ]; then
        set -- "$@" --nodes "$SLURM_JOB_NODELIST"
    fi
    if [ -n "${CANOPY_PROFILE:-}" ]; then
        set -- "$@" --profile "$CANOPY_PROFILE"
    fi
    canopy fetch "$@" --server "$CANOPY_SERVER" --out "$jobs/$SLURM_JOB_ID" --deadline 5s --on-miss fallback
}

fetch </dev/null >/dev/null 2>&1
exit 0
