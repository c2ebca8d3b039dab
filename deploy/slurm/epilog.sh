#!/bin/sh
# Slurm `Epilog` (root, on every node, once per job): removes the job's plans and ends its lease.
# Ends with status 0 whatever happens: any other one drains the node.

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
    printf '%s\n' "$1" | sed "s/^/job $SLURM_JOB_ID: /" | timeout -k 1 1 logger -t canopy-epilog
}

release() {
    case ${SLURM_JOB_ID:-} in '' | *[!0-9]*) return ;; esac
    jobs=${CANOPY_JOBS_DIR:-/run/canopy-jobs}
    set -- --job "$SLURM_JOB_ID" --dir "$jobs/$SLURM_JOB_ID"
    if [ -e "$jobs/$SLURM_JOB_ID.lease" ]; then
        rm -f "$jobs/$SLURM_JOB_ID.lease"
        # A lease whose server does not answer ends by itself.
        [ -z "${CANOPY_SERVER:-}" ] || set -- "$@" --lease --server "$CANOPY_SERVER"
    elif [ ! -d "$jobs/$SLURM_JOB_ID" ]; then
        return
    fi
    said=$(timeout -k 1 4 canopy job release "$@" --deadline 2s 2>&1) ||
        said="$said
canopy job release ended with status $?"
    [ -z "$said" ] || log "$said"
}

release </dev/null >/dev/null 2>&1
exit 0
