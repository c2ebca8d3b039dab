#!/bin/sh
# Slurm `TaskProlog` (user, once per task): prints what makes the task use its job's plans.
#
# Reads local files, never the network, and prints nothing but `export` lines, each of which enters the task's
# environment. Ends with status 0 whatever happens: any other one cancels the task.

# The user's search path may lead anywhere.
PATH=/usr/local/bin:/usr/bin:/bin
settings=${CANOPY_SLURM_ENV:-/etc/canopy/slurm.env}
if [ -r "$settings" ]; then
    # shellcheck source=/dev/null
    . "$settings" >/dev/null 2>&1
fi
for canopy in ${CANOPY_COMMAND:+"$CANOPY_COMMAND"} /usr/local/bin/canopy /usr/bin/canopy; do
    [ ! -x "$canopy" ] || break
done

# Slurm logs nothing of a task's prolog. One task of a node is enough.
log() {
    [ "${SLURM_LOCALID:-0}" = 0 ] || return
    printf '%s\n' "$1" | sed "s/^/job $SLURM_JOB_ID: /" | timeout -k 1 1 logger -t canopy-task-prolog
}

# Plans are for ranks that fill one node after another, in one order of nodes. Runtimes do not notice where that is
# not so.
why_not() {
    # Steps inherit the variables of a batch script, and not all of them have its nodes and its order.
    case ${SLURM_STEP_ID:-batch} in batch | 42949672??)
        [ "${SLURM_JOB_NUM_NODES:-1}" = 1 ] || echo "no plans for the batch script itself: its steps have them"
        return
        ;;
    esac
    # The command compares the nodes of the host file with those of the plans.
    case ${SLURM_DISTRIBUTION:-block} in arbitrary*)
        [ -n "${SLURM_HOSTFILE:-}" ] ||
            echo "no plans for step $SLURM_STEP_ID: --distribution=$SLURM_DISTRIBUTION without SLURM_HOSTFILE"
        return
        ;;
    esac
    if [ "${SLURM_STEP_NODELIST:-}" != "${SLURM_JOB_NODELIST:-}" ] && [ -n "${SLURM_STEP_NODELIST:-}" ]; then
        echo "no plans for step $SLURM_STEP_ID: it runs on $SLURM_STEP_NODELIST, not on all nodes of the job"
        return
    fi
    case ${SLURM_DISTRIBUTION:-block} in cyclic* | plane*)
        # With one task a node, turns are blocks, and Slurm has them as the default.
        [ "$SLURM_DISTRIBUTION ${SLURM_STEP_NUM_TASKS:-}" = "cyclic ${SLURM_STEP_NUM_NODES:-none}" ] ||
            echo "no plans for step $SLURM_STEP_ID: --distribution=$SLURM_DISTRIBUTION orders its ranks"
        ;;
    esac
}

# Prints what a task must have to use the plans of a folder, if they are for the ranks of this step. Ranks that have
# plans wait for ever for ranks that have none, so that a node which is busy has long to look.
variables() {
    set -- --format slurm-task-prolog --dir "$1" --deadline 10s
    case ${SLURM_DISTRIBUTION:-block} in arbitrary*) set -- "$@" --nodes-file="$SLURM_HOSTFILE" ;; esac
    timeout -k 1 12 "$canopy" env "$@"
}

exec 3>&1
# Plans that the job has fetched itself may be for an order of its own; they come first.
for folder in ${CANOPY_OWN_PLANS:+"$CANOPY_OWN_PLANS"} "${CANOPY_JOBS_DIR:-/run/canopy-jobs}/${SLURM_JOB_ID:-none}"; do
    if [ ! -r "$folder/manifest.json" ] || [ ! -x "$canopy" ]; then
        continue
    fi
    said=$(why_not)
    if [ -n "$said" ]; then
        log "$said" >/dev/null 2>&1
        break
    fi
    said=$(variables "$folder" 2>&1 >&3)
    [ -n "$said" ] || break
    log "$said" >/dev/null 2>&1
done
exit 0
