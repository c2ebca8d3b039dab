#!/bin/sh
# After files have left. Only a purge removes data. The user stays: other files may belong to it.
set -e

case "$1" in
remove)
    if [ -d /run/systemd/system ]; then
        systemctl --system daemon-reload >/dev/null || true
    fi
    ;;
purge)
    if [ -d /var/lib/canopy ]; then
        find /var/lib/canopy -xdev -mindepth 1 -delete || true
        # It stays where a file system is mounted on it.
        rmdir /var/lib/canopy 2>/dev/null || true
    fi
    ;;
esac
