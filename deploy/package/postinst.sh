#!/bin/sh
# After unpacking: makes the server's user and folder. A server that runs goes on with the new program.
set -e

case "$1" in
configure)
    # systemd-sysusers reads what the package says about the user. Without systemd, useradd makes the same one.
    if command -v systemd-sysusers >/dev/null 2>&1; then
        systemd-sysusers canopy.conf
    elif ! getent passwd canopy >/dev/null; then
        useradd --system --user-group --home-dir /var/lib/canopy --no-create-home --shell /usr/sbin/nologin \
            --comment "canopy planner" canopy
    fi
    # As the unit makes it, for a server that is started by other means.
    if [ ! -e /var/lib/canopy ]; then
        install -d -o canopy -g canopy -m 0700 /var/lib/canopy
    fi
    if [ -d /run/systemd/system ]; then
        systemctl --system daemon-reload >/dev/null || true
        # Only an upgrade finds one that runs: the package starts none.
        if [ -n "$2" ]; then
            deb-systemd-invoke try-restart canopyd.service || true
        fi
    fi
    ;;
esac
