#!/bin/sh
# Before files leave: stops the server, and takes it out of the start of the machine.
set -e

case "$1" in
remove)
    if [ -d /run/systemd/system ]; then
        deb-systemd-invoke stop canopyd.service || true
    fi
    if command -v systemctl >/dev/null 2>&1; then
        systemctl --quiet disable canopyd.service || true
    fi
    ;;
esac
