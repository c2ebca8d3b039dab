#!/bin/sh
# Slurm `Epilog` (root, on every node, once per job): removes the job's plans.
# Ends with status 0 whatever happens: any other one drains the node.

# Slurm sets no search path.
export PATH=/usr/local/bin:/usr/bin:/bin
settings=${CANOPY_SLURM_ENV:-/etc/canopy/slurm.env}
if [ -r "$settings" ]; then
    # shellcheck source=/dev/null
    . "$settings"
fi

release() {
    case ${SLURM_JOB_ID:-} in '' | *[!0-9]*) return ;; esac
    folder=${CANOPY_JOBS_DIR:-/run/canopy-jobs}/$SLURM_JOB_ID
    if [ -d "$folder" ]; then
        canopy release --job "$SLURM_JOB_ID" --dir "$folder" --deadline 2s
    fi
}

release </dev/null >/dev/null 2>&1
exit 0
