#!/usr/bin/env bash
# Has the alerts fire for real, and clear again: Prometheus scrapes real servers, to which real harm is done.
#
# Usage: deploy/prometheus/live.sh CANOPYD CANOPY [ALERT…]
# With names of alerts, only what raises these is done. Needs root or user namespaces for disks of its own, Python,
# openssl, and a C compiler for a clock that can be set. Takes three minutes: an hour of the rules is a minute.
# PROMETHEUS names the program of that name; otherwise Debian's is downloaded, and not installed.
set -euo pipefail

canopyd=$(realpath "$1")
canopy=$(realpath "$2")
shift 2
cd "$(dirname "$0")"

work=$(mktemp -d "${TMPDIR:-/tmp}/canopy-alerts.XXXXXX")
# Programs of other users, such as the database, run below.
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT

prometheus=${PROMETHEUS:-$(type -P prometheus || true)}
if [ -z "$prometheus" ]; then
    (cd "$work" && apt-get download -qq prometheus 2>download.log && dpkg -x prometheus_*.deb prometheus) || {
        cat "$work/download.log" >&2
        echo "prometheus is missing and cannot be downloaded; install it, or name it by PROMETHEUS" >&2
        exit 1
    }
    prometheus=$work/prometheus/usr/bin/prometheus
fi

# Copies: what runs for minutes must not be overwritten by a build meanwhile.
mkdir "$work/bin"
cp "$canopyd" "$work/bin/canopyd"
cp "$canopy" "$work/bin/canopy"

# Disks of its own, which nothing else sees, and processes that end with it.
user=()
[ "$(id -u)" = 0 ] || user=(--user --map-root-user)
unshare "${user[@]}" --mount --propagation private --pid --fork --kill-child --mount-proc \
    python3 -B live.py "$work" "$prometheus" "$work/bin/canopyd" "$work/bin/canopy" "$@"
