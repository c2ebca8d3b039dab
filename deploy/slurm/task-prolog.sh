#!/bin/sh
# Slurm `TaskProlog` (user, once per task): prints what makes the task use its job's plans.
#
# Reads local files, never the network, and prints nothing but `export` lines, each of which enters the task's
# environment. Ends with status 0 whatever happens: any other one cancels the task.

settings=${CANOPY_SLURM_ENV:-/etc/canopy/slurm.env}
if [ -r "$settings" ]; then
    # shellcheck source=/dev/null
    . "$settings" >/dev/null 2>&1
fi
canopy=${CANOPY_COMMAND:-/usr/local/bin/canopy}
folder=${CANOPY_JOBS_DIR:-/run/canopy-jobs}/${SLURM_JOB_ID:-none}
if [ -d "$folder" ] && [ -x "$canopy" ]; then
    "$canopy" env --format slurm-task-prolog --dir "$folder" 2>/dev/null
fi
exit 0
