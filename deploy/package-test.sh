#!/usr/bin/env bash
# Uses the packages as an operator does: in a clean Debian without systemd, in one that systemd boots, and as an image.
#
#     deploy/package-test.sh [--suite SUITE] [--cache FOLDER] [FOLDER]
#
# FOLDER has what `deploy/package.sh` wrote [default: target/package]; SUITE is a release of Debian [default: stable].
# `--cache` keeps the empty systems as archives in a folder, and starts from them the next time. If CANOPY_BUILT names the
# folder of the programs, everything is packed again, and the bytes are compared.
#
# Needs root, debootstrap, python3, and Debian's packages over the network or in the cache. The unit needs systemd-nspawn, and
# the image skopeo: where one is missing its part is skipped, but with CANOPY_REQUIRE_ALL=1 it fails. No service manager, no
# container engine and no cgroup controller is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8

fail() { echo "deploy/package-test.sh: $1" >&2 && exit 1; }
say() { echo "package: $1"; }

suite=stable cache='' folder=''
while [ $# -gt 0 ]; do
    case $1 in
    --suite | --cache)
        [ $# -ge 2 ] || fail "$1 needs a value"
        if [ "$1" = --suite ]; then suite=$2; else cache=$(realpath --canonicalize-missing "$2"); fi
        shift
        ;;
    -*) fail "unknown option $1; usage: deploy/package-test.sh [--suite SUITE] [--cache FOLDER] [FOLDER]" ;;
    *) folder=$1 ;;
    esac
    shift
done
folder=$(realpath --canonicalize-missing "${folder:-target/package}")

# Trees of control groups: one on most systems, several where version 1 is in use.
control_groups() { ls -d /sys/fs/cgroup/{,unified/,systemd/}cgroup.procs 2>/dev/null || true; }

# Everything happens in namespaces of its own, so that no process and no mount outlives the test.
if [ -z "${CANOPY_PACKAGE_TEST-}" ]; then
    [ "$(id -u)" = 0 ] || fail "needs root, to install packages into a root of its own"
    command -v debootstrap >/dev/null || fail "needs debootstrap: apt-get install debootstrap"
    work=$(mktemp -d "${TMPDIR:-/tmp}/canopy-package.XXXXXX")
    # shellcheck disable=SC2317 # the trap calls it
    remove() {
        rm -rf --one-file-system "$work"
        for procs in $(control_groups); do
            find "$(dirname "$procs")/$(basename "$work")" -depth -type d -exec rmdir {} ';' 2>/dev/null || true
        done
    }
    trap remove EXIT
    CANOPY_PACKAGE_TEST=$work unshare --mount --pid --fork --kill-child --mount-proc --propagation private \
        deploy/package-test.sh --suite "$suite" ${cache:+--cache "$cache"} "$folder"
    exit
fi
work=$CANOPY_PACKAGE_TEST

one() {
    local found
    mapfile -t found < <(compgen -G "$folder/$1")
    [ ${#found[@]} = 1 ] || fail "$folder has ${#found[@]} files $1, expected one: run deploy/package.sh all $folder"
    echo "${found[0]}"
}
deb=$(one 'canopy_*.deb')
tarball=$(one 'canopy-*.tar.gz')
image=$(one 'canopy-*.oci.tar')
(cd "$folder" && sha256sum --quiet --check ./*.sha256) || fail "a file in $folder does not have the digest beside it"

# Whether a program that one part needs is missing.
misses() {
    ! command -v "$1" >/dev/null || return 1
    [ "${CANOPY_REQUIRE_ALL:-0}" != 1 ] || fail "$2 cannot be tested without $1, and CANOPY_REQUIRE_ALL=1 is set"
    say "skipped: $2, because $1 is not installed"
}

# An empty Debian with some packages beside the smallest set: its folder, a name for the cache, packages.
debian() {
    local archive=${cache:+$cache/debian-$suite-$2.tar}
    mkdir "$1"
    if [ -n "$archive" ] && [ -e "$archive" ]; then
        tar --numeric-owner -xpf "$archive" -C "$1"
        return
    fi
    mkdir -p "$work/debs"
    debootstrap --variant=minbase --cache-dir="$work/debs" ${3:+--include="$3"} "$suite" "$1" >"$work/debootstrap.log" 2>&1 ||
        fail "debootstrap failed: $(tail -n 3 "$work/debootstrap.log")"
    rm -f "$1"/var/cache/apt/archives/*.deb
    [ -n "$archive" ] || return 0
    mkdir -p "$cache"
    tar --numeric-owner -C "$1" -cf "$archive.new" . && mv "$archive.new" "$archive"
}

environment=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive)
socket=/var/lib/canopy/canopy.sock
plan=(dgx-a100:boxes=2 --collective allreduce --format msccl-xml)

# Runs dpkg in the root at hand: what that is for, its arguments.
debian_package() {
    inside dpkg "${@:2}" >"$work/dpkg.log" 2>&1 || fail "$1 failed, dpkg ${*:2}: $(tail -n 5 "$work/dpkg.log")"
}

# Waits until a command succeeds, up to a minute.
until_true() {
    local what=$1 tries=600
    shift
    until "$@" >"$work/waited.log" 2>&1; do
        ((tries -= 1)) || fail "waited a minute in vain: $what: $(tail -n 3 "$work/waited.log")"
        sleep 0.1
    done
}

# ---- without systemd

root=$work/minbase
debian "$root" minbase ''
mount -t proc proc "$root/proc"
inside() { chroot "$root" "${environment[@]}" "$@"; }
# All files but those that dpkg, apt and useradd keep for themselves.
files() {
    (cd "$root" && find . -xdev -path ./proc -prune -o -path ./canopy -prune -o -print) |
        grep -Ev '^\./(var/lib/dpkg|var/cache|var/log|etc/[a-z]+-$|etc/\.pwd\.lock$)' | sort
}
# Files that are there beyond those of the empty system, and whose path does not match a pattern.
left() { files | comm -13 "$work/before" - | grep -Ev "$1" || true; }
as_canopy() { inside setpriv --reuid=canopy --regid=canopy --init-groups --no-new-privs "$@"; }
start_server() {
    inside sh -c 'echo $$ >/canopy/pid && exec setpriv --reuid=canopy --regid=canopy --init-groups --no-new-privs \
        canopyd --config /etc/canopy/canopyd.toml' 2>"$work/canopyd.log" &
    server=$!
    local tries=300
    until [ -S "$root$socket" ]; do
        kill -0 "$server" 2>/dev/null || fail "canopyd did not start: $(cat "$work/canopyd.log")"
        ((tries -= 1)) || fail "canopyd made no socket within 30 s: $(cat "$work/canopyd.log")"
        sleep 0.1
    done
}
stop_server() {
    local status=0
    kill -TERM "$(cat "$root/canopy/pid")"
    wait "$server" || status=$?
    [ "$status" = 0 ] || fail "canopyd ended with status $status after SIGTERM: $(tail -n 3 "$work/canopyd.log")"
}
first_plan() { inside canopy plan "${plan[@]}" --server "unix:$socket" -o /canopy/plan.xml 2>&1; }

mkdir "$root/canopy"
cp "$deb" "$root/canopy/canopy.deb"
files >"$work/before"
begin=${EPOCHREALTIME/[.,]/}
if ! inside dpkg -i /canopy/canopy.deb >"$work/dpkg.log" 2>&1; then
    # Only what the package depends on may be missing. apt removes a package whose dependencies it cannot install.
    inside apt-get install -y -qq --fix-broken >>"$work/dpkg.log" 2>&1 || true
    [ "$(inside dpkg-query --show --showformat="\${db:Status-Status}" canopy)" = installed ] ||
        fail "the package cannot be installed: $(tail -n 5 "$work/dpkg.log")"
fi
installed=${EPOCHREALTIME/[.,]/}
start_server
said=$(first_plan) || fail "the first plan failed: $said"
planned=${EPOCHREALTIME/[.,]/}
seconds() { printf '%d.%02d s' $(($1 / 1000000)) $(($1 % 1000000 / 10000)); }
say "from dpkg -i to the first plan: $(seconds $((planned - begin))) (installed after $(seconds $((installed - begin))))"
[ $((planned - begin)) -le 60000000 ] || fail "the first plan took more than 60 s after dpkg -i"
inside canopy verify /canopy/plan.xml >/dev/null || fail "canopy verify refuses the first plan"

[ "$(inside stat --format='%U:%G %a' /var/lib/canopy)" = 'canopy:canopy 700' ] ||
    fail "/var/lib/canopy does not belong to canopy, or others may read it"
inside dpkg --verify canopy | grep . && fail "dpkg --verify finds the files above changed"
as_canopy canopyd --config /etc/canopy/canopyd.toml check-config >/dev/null ||
    fail "canopyd refuses the configuration that was installed"
grep --quiet --line-regexp 'data_dir = "/var/lib/canopy"' "$root/etc/canopy/canopyd.toml" ||
    fail "/etc/canopy/canopyd.toml does not name the data directory of the unit"
# The pages of what a command's help lists.
pages_of() {
    inside canopy "$@" --help | sed -n "/^Options:/q; s/^  \([a-z][a-z-]*\) .*/$(printf '%s-' canopy "$@")\1.1/p" |
        grep --invert-match -e '-help\.1$'
}
mapfile -t pages < <(pages_of && for family in network faults job server tools; do pages_of "$family"; done)
[ "${#pages[@]}" -gt 60 ] || fail "canopy --help and those of its families list only ${#pages[@]} commands"
for page in canopyd.8 canopy.1 "${pages[@]}"; do
    file=$root/usr/share/man/man${page##*.}/$page.gz
    grep --quiet '^\.TH canopy' < <(zcat "$file" 2>/dev/null) || fail "the package has no manual page $page"
done
say "$(find "$root/usr/share/man" -name 'canopy*' | wc -l) manual pages"
share=$root/usr/share
bash -c 'source "$1" && complete -p canopy' bash "$share/bash-completion/completions/canopy" >/dev/null ||
    fail "bash does not complete canopy with the installed file"
[ "$(head -n 1 "$share/zsh/vendor-completions/_canopy")" = '#compdef canopy' ] ||
    fail "the completions for zsh do not name canopy"
grep --quiet '^complete -c canopy' "$share/fish/vendor_completions.d/canopy.fish" ||
    fail "the completions for fish do not name canopy"
for file in copyright changelog.gz changelog.Debian.gz third-party-licences.txt.gz; do
    [ -s "$share/doc/canopy/$file" ] || fail "the package has no /usr/share/doc/canopy/$file"
done
if command -v lintian >/dev/null; then
    lintian --allow-root --fail-on error,warning "$deb" || fail "lintian refuses the package"
    say "lintian finds no error and no warning"
fi

stop_server
config=$root/etc/canopy/canopyd.toml
sed -i 's/^queue_length = 1024$/queue_length = 512/' "$config"
kept() {
    grep --quiet --line-regexp 'queue_length = 512' "$config" || fail "$1 changed the configuration that had been edited"
    start_server
    said=$(first_plan) || fail "no plan after $1: $said"
    grep --quiet 'cache hit' <<<"$said" || fail "$1 lost the stored plan: $said"
    stop_server
}
debian_package "an upgrade to the same version" -i /canopy/canopy.deb
kept "an upgrade to the same version"
# A newer version, whose configuration differs.
dpkg-deb --raw-extract "$deb" "$work/newer"
sed -i 's/^Version: .*/&.1/' "$work/newer/DEBIAN/control"
echo '# A key that came with this version.' >>"$work/newer/etc/canopy/canopyd.toml"
dpkg-deb --root-owner-group -Znone --build "$work/newer" "$root/canopy/newer.deb" >/dev/null
debian_package "an upgrade to a newer version" --force-confold -i /canopy/newer.deb
[ -e "$config.dpkg-dist" ] || fail "an upgrade does not leave the newer configuration beside the edited one"
kept "an upgrade to a newer version"
say "upgrades keep the edited configuration and the plans"

debian_package "removal" -r canopy
rest=$(left '^\./(etc|var/lib)/canopy(/|$)')
[ -z "$rest" ] || fail "dpkg -r leaves files that are neither configuration nor data: $rest"
[ -e "$config" ] || fail "dpkg -r removed the configuration"
[ -n "$(ls -A "$root/var/lib/canopy")" ] || fail "dpkg -r removed the data"
debian_package "purge" -P canopy
rest=$(left '^$')
[ -z "$rest" ] || fail "dpkg -P leaves files: $rest"
inside getent passwd canopy >/dev/null || fail "dpkg -P removed the user, to whom other files may belong"
say "dpkg -r leaves /etc/canopy and /var/lib/canopy; dpkg -P leaves the user canopy and no file"

# ---- the tarball runs from any folder

tar -xzf "$tarball" -C "$root/canopy"
unpacked=$(basename "$tarball" .tar.gz)
inside sh -c "cd /canopy/$unpacked && usr/bin/canopy plan ${plan[*]} -o /canopy/plan.xml &&
    usr/bin/canopy verify /canopy/plan.xml && usr/bin/canopyd --config etc/canopy/canopyd.toml check-config" >"$work/tarball.log" 2>&1 ||
    fail "the programs of the tarball do not run from their folder: $(tail -n 5 "$work/tarball.log")"
say "the tarball runs from its folder"
umount "$root/proc" && rm -rf "$root" "$work/newer"

# ---- the image

container() {
    local index=$work/layout
    mkdir "$index" "$work/image"
    tar -xf "$image" -C "$index"
    # Prints the layer, and the words of the configuration as a shell reads them.
    python3 - "$index" >"$work/image.sh" <<'PYTHON' || fail "the image has no valid index"
import hashlib, json, shlex, sys
from pathlib import Path

folder = Path(sys.argv[1])


def blob(described):
    content = folder.joinpath("blobs", *described["digest"].split(":")).read_bytes()
    assert len(content) == described["size"] and hashlib.sha256(content).hexdigest() == described["digest"].split(":")[1]
    return content


(manifest,) = json.loads((folder / "index.json").read_text())["manifests"]
manifest = json.loads(blob(manifest))
(layer,) = manifest["layers"]
blob(layer)
config = json.loads(blob(manifest["config"]))["config"]
print("layer=" + shlex.quote(str(folder.joinpath("blobs", *layer["digest"].split(":")))))
print("user=" + shlex.quote(config["User"]))
print(f"variables=({shlex.join(config['Env'])})\nentrypoint=({shlex.join(config['Entrypoint'])})")
(volume,) = config["Volumes"]
print("volume=" + shlex.quote(volume))
PYTHON
    local layer user volume
    local -a variables entrypoint
    # shellcheck source=/dev/null
    source "$work/image.sh"
    tar --numeric-owner -xpzf "$layer" -C "$work/image"
    if ! misses skopeo "the image as other tools read it"; then
        skopeo inspect --raw "oci-archive:$image" >/dev/null || fail "skopeo cannot read the image"
        skopeo copy --quiet "oci-archive:$image" "oci:$work/copied:test" || fail "skopeo cannot copy the image"
        skopeo copy --quiet "docker-archive:$image" "dir:$work/docker" || fail "skopeo cannot read the image as docker load does"
    fi
    # As a container with a root that is read-only, and a volume.
    mount --bind "$work/image" "$work/image" && mount -o remount,bind,ro "$work/image"
    mount -t tmpfs -o "mode=700,uid=${user%:*},gid=${user#*:}" tmpfs "$work/image$volume"
    mount -t proc proc "$work/image/proc"
    mount --bind /dev "$work/image/dev"
    # `chroot` by its path: the variables are those of the image.
    in_image() { env -i "${variables[@]}" "$(type -P chroot)" --userspec="$user" --groups='' "$work/image" "$@"; }
    in_image "${entrypoint[@]}" 2>"$work/image.log" &
    until_true "canopyd in the image" in_image canopy server stats --server "unix:$volume/canopy.sock"
    said=$(in_image canopy plan "${plan[@]}" --server "unix:$volume/canopy.sock" -o "$volume/plan.xml" 2>&1) ||
        fail "the image makes no plan: $said"
    in_image canopy server drain --server "unix:$volume/canopy.sock" >/dev/null 2>&1 || fail "the image cannot be drained"
    wait "$!" || fail "canopyd in the image ended with status $?: $(tail -n 3 "$work/image.log")"
    umount --recursive "$work/image"
    say "the image makes a plan on a read-only root as user $user, $(du -sm --apparent-size "$work/image" | cut -f 1) MB unpacked"
    rm -rf "$work/image" "$work/layout" "$work/copied" "$work/docker"
}
container

# ---- under systemd

booted() {
    root=$work/systemd
    debian "$root" systemd systemd
    mkdir "$root/canopy"
    cp "$deb" "$root/canopy/canopy.deb"
    tar -xzf "$tarball" -C "$root/canopy"
    rm -f "$root/etc/machine-id"
    (
        for procs in $(control_groups); do
            group=$(dirname "$procs")/$(basename "$work")
            mkdir "$group" && echo "$BASHPID" >"$group/cgroup.procs"
        done
        # The layout of control groups that systemd wants, whichever the machine has.
        export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
        exec systemd-nspawn --quiet --register=no --keep-unit --boot --console=pipe --directory="$root"
    ) </dev/null >"$work/boot.log" 2>&1 &
    local nspawn=$! leader unit=canopyd.service
    until_true "the start of systemd" pgrep --parent "$nspawn" --exact systemd
    leader=$(pgrep --parent "$nspawn" --exact systemd)
    inside() { nsenter --target "$leader" --mount --uts --ipc --pid --cgroup -- "${environment[@]}" "$@"; }
    property() { inside systemctl show --value --property="$1" "$unit"; }
    state() { echo "$(property ActiveState) $(property SubState) $(property ExecMainStatus)"; }
    journal() { inside journalctl --quiet --output=cat --unit="$unit" "$@"; }
    expect() { [ "$(state)" = "$1" ] || fail "$2: the unit is $(state), expected $1: $(journal --lines=3)"; }
    rests() { [[ "$(property ActiveState)" != *activating ]]; }
    runs_anew() { [ "$(property ActiveState)" = active ] && [ "$(property MainPID)" != "$1" ]; }
    signal() { inside sh -c "kill -$1 $2"; }
    operator() { inside env CANOPY_SERVER="unix:$socket" canopy "$@"; }
    until_true "the boot of systemd" inside systemctl is-active multi-user.target

    debian_package "installation under systemd" -i /canopy/canopy.deb
    [ "$(inside systemctl is-enabled "$unit" || true)" = disabled ] || fail "the package enables the unit by itself"
    expect "inactive dead 0" "after dpkg -i"

    # A call that the filter refuses ends the process here, where it gets EPERM otherwise.
    mkdir -p "$root/etc/systemd/system/$unit.d"
    printf '[Service]\nSystemCallErrorNumber=kill\n' >"$root/etc/systemd/system/$unit.d/test.conf"
    inside systemctl daemon-reload
    begin=${EPOCHREALTIME/[.,]/}
    inside systemctl enable --quiet --now "$unit" || fail "the unit does not start: $(journal --lines=5)"
    said=$(operator plan "${plan[@]}" -o /canopy/plan.xml 2>&1) || fail "the unit makes no plan: $said"
    planned=${EPOCHREALTIME/[.,]/}
    say "from systemctl enable --now to the first plan: $(seconds $((planned - begin)))"
    operator plan torus:4x4x4 --collective all-to-all -o /canopy/plan.json >/dev/null 2>&1 || fail "the unit makes no second plan"
    operator topology generate dgx-a100:boxes=2 -o /canopy/network.yaml >/dev/null
    operator topology put /canopy/network.yaml >/dev/null || fail "the unit stores no topology"
    operator backup /canopy/all.canopy >/dev/null || fail "the unit makes no backup"
    operator plans import /canopy/all.canopy >/dev/null || fail "the unit refuses its own backup"
    operator fsck --deadline 1m >/dev/null || fail "fsck finds damage under the unit"
    inside systemctl reload "$unit" || fail "the unit cannot be reloaded"
    operator stats >/dev/null
    expect "active running 0" "with its filter of calls"
    local pid threads
    pid=$(property MainPID)
    [ "$(inside sed -n 's/^Seccomp:\t//p' "/proc/$pid/status")" = 2 ] || fail "the unit runs without its filter of calls"
    # The nice value is field 19; the name before it may hold blanks.
    threads=$(inside sh -c "sed 's/^[0-9]* (\(.*\)) \(.*\)/\1 \2/' /proc/$pid/task/*/stat" |
        awk '/^canopy-planner/ { print $18 }' | sort | uniq -c)
    [ "$(awk '{ print $2 }' <<<"$threads")" = 10 ] || fail "planning threads do not run at nice 10, but (count, nice): $threads"
    ! journal | grep '"level":"\(WARN\|ERROR\)"' || fail "canopyd complains under the unit"
    say "planning threads run at nice 10 under the filter of calls, which refuses none"

    signal KILL "$pid"
    until_true "a start after a crash" runs_anew "$pid"
    [ "$(property NRestarts)" = 1 ] || fail "the unit does not count the restart"
    operator drain >/dev/null 2>&1 || fail "the unit cannot be drained"
    until_true "the end of a drain" rests
    expect "inactive dead 0" "after canopy server drain"
    inside systemctl start "$unit"
    signal TERM "$(property MainPID)"
    until_true "the end after SIGTERM" rests
    expect "inactive dead 0" "after SIGTERM"
    inside systemctl start "$unit"
    pid=$(property MainPID)
    operator plan dgx-a100:boxes=512 --collective allgather --algorithm forest -o /dev/null >/dev/null 2>&1 &
    until_true "a running job" eval 'operator jobs list --json | grep -i running'
    signal TERM "$pid"
    until_true "a drain" eval "journal _PID=$pid | grep draining"
    signal TERM "$pid"
    until_true "the end after two signals" rests
    expect "failed failed 130" "after a drain that was cut short"
    config=$root/etc/canopy/canopyd.toml
    cp "$config" "$work/canopyd.toml" && echo 'nonsense = 1' >>"$config"
    inside systemctl start "$unit" 2>/dev/null && fail "the unit starts with an invalid configuration"
    until_true "the end with an invalid configuration" rests
    expect "failed failed 2" "with an invalid configuration"
    cat "$work/canopyd.toml" >"$config"
    say "the unit restarts after a crash, and stays down after a drain and with an invalid configuration"

    inside systemctl start "$unit"
    pid=$(property MainPID)
    debian_package "an upgrade of a server that runs" -i /canopy/canopy.deb
    runs_anew "$pid" || fail "an upgrade does not restart the server: the unit is $(state)"
    said=$(operator plan "${plan[@]}" -o /canopy/plan.xml 2>&1) || fail "no plan after an upgrade under systemd: $said"
    grep --quiet 'cache hit' <<<"$said" || fail "an upgrade lost the plan: $said"
    inside systemctl stop "$unit"
    debian_package "an upgrade of a server that is down" -i /canopy/canopy.deb
    expect "inactive dead 0" "after an upgrade of a server that was down"
    inside systemctl start "$unit"
    rm -r "$root/etc/systemd/system/$unit.d"
    debian_package "removal under systemd" -r canopy
    [ "$(property ActiveState) $(property LoadState)" = "inactive not-found" ] || fail "after dpkg -r the unit is $(state)"
    rest=$(find "$root/etc/systemd" -name '*canopy*')
    [ -z "$rest" ] || fail "dpkg -r leaves $rest"
    debian_package "purge under systemd" -P canopy
    [ ! -e "$root/var/lib/canopy" ] || fail "dpkg -P leaves the data"
    say "an upgrade restarts a server that runs, and only that; dpkg -r stops it"

    # The blocks of INSTALL.md, as they are and in order.
    awk '/^```sh$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$root/canopy/$unpacked/INSTALL.md" \
        >"$root/canopy/install.sh"
    inside sh -c "cd /canopy/$unpacked && PATH=/usr/local/bin:\$PATH && set -ex && . /canopy/install.sh" \
        >"$work/install.log" 2>&1 ||
        fail "the commands of INSTALL.md fail: $(tail -n 5 "$work/install.log")"
    rest=$(find "$root/etc" "$root/usr/local" -name '*canopy*')
    [ -z "$rest" ] || fail "after INSTALL.md's section Remove there are $rest"
    say "the tarball is installed, used and removed by the commands of its INSTALL.md"
}
if ! misses systemd-nspawn "the unit"; then
    booted
fi

# ---- the same bytes again

if [ -n "${CANOPY_BUILT-}" ]; then
    (umask 077 && TZ=Asia/Tokyo deploy/package.sh all "$work/again" >"$work/again.log" 2>&1) ||
        fail "packing again failed: $(tail -n 5 "$work/again.log")"
    for file in "$deb" "$tarball" "$image"; do
        cmp "$file" "$work/again/$(basename "$file")" || fail "packed again, $(basename "$file") has other bytes"
    done
    say "packed again, all have the same bytes"
fi
size() { du --block-size=MB --apparent-size "$1" | cut -f 1; }
say "ok: package $(size "$deb"), tarball $(size "$tarball"), image $(size "$image"), tested in $SECONDS s"
