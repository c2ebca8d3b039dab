#!/usr/bin/env bash
# Packs a release build for operators: as a Debian package, a tarball and an OCI image.
#
#     deploy/package.sh [deb|tar|oci|all] [FOLDER]     builds, and writes into FOLDER [default: all, target/package]
#
# deb  canopy_VERSION-1_ARCH.deb. Needs dpkg-deb, without which `all` leaves it out.
# tar  canopy-VERSION-ARCH.tar.gz, the same files for every Linux with glibc; its INSTALL.md says how to install them.
# oci  canopy-VERSION-ARCH.oci.tar, an image of the service for podman, skopeo, containerd and Docker.
#
# Beside each file lies its digest, FILE.sha256.
#
# The package and the tarball hold the two programs, the libraries for Open MPI and MPICH, completions for bash, zsh and fish,
# manual pages, the systemd unit, the configuration with every key, hooks of Slurm, alerts, licences and, with cargo-cyclonedx,
# the components of each program (SBOM). Needs cargo, python3 and binutils.
#
# The same programs give the same bytes. Files bear the time SOURCE_DATE_EPOCH [default: the time of the commit].
# CANOPY_BUILT names a folder with the programs and libraries of an earlier build, which is packed instead of a new one.
#
# Of dpkg-deb and cargo-deb this takes the first: it is on every Debian already, writes what the tarball has, too, and needs
# no second list of files in Cargo.toml.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C

kind=all
case ${1-} in
deb | tar | oci | all) kind=$1 && shift ;;
esac
case $#-${1-} in
0-* | 1-[!-]*) ;;
*)
    echo "usage: deploy/package.sh [deb|tar|oci|all] [FOLDER]" >&2
    exit 2
    ;;
esac
wanted() { [ "$kind" = all ] || [ "$kind" = "$1" ]; }
fail() { echo "deploy/package.sh: $1" >&2 && exit 1; }
if wanted deb && ! command -v dpkg-deb >/dev/null 2>&1; then
    [ "$kind" = all ] || fail "no dpkg-deb here: install dpkg, or take the tarball"
    echo "dpkg-deb is not installed: no Debian package" >&2
    wanted() { [ "$1" != deb ]; }
fi
out=$(realpath --canonicalize-missing "${1:-target/package}")

if [ -n "${CANOPY_BUILT-}" ]; then
    built=$(realpath "$CANOPY_BUILT")
else
    # The command with everything in it, the server as it has it inside, and the libraries of MPI: asked for at once, so that
    # what they share is compiled once.
    cargo build --locked --release --package canopy-server --bin canopyd --package canopy-cli --bin canopy \
        --package canopy-mpi-openmpi --package canopy-mpi-mpich --lib --features canopy-cli/tools,canopy-cli/embedded
    built=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")/release
fi
about=$("$built/canopy" version --json)
field() { grep --only-matching "\"$1\":\"[^\"]*" <<<"$about" | cut -d '"' -f 4; }
version=$(field version)
revision=$(field commit)
arch=$(uname -m)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

mkdir -p "$out"
tree=$(mktemp -d)
remove() {
    rm -rf "$tree"
    find . -name canopy-sbom.json -not -path './target/*' -delete
}
trap remove EXIT
root=$tree/canopy-$version-$arch
share=$root/usr/share
documents=$share/doc/canopy

# What all three have. Programs need no symbols: messages of panics name lines of the source.
install -D --strip --target-directory="$root/usr/bin" "$built/canopy" "$built/canopyd"
install -d "$documents"
install --mode=0644 LICENSE README.md CHANGELOG.md "$documents"
python3 deploy/package/licences.py canopy-cli canopy-server canopy-mpi-openmpi canopy-mpi-mpich |
    gzip --best --no-name >"$documents/third-party-licences.txt.gz"

# What the programs and libraries are built of, for scanners (CycloneDX). The tool writes beside every manifest.
if command -v cargo-cyclonedx >/dev/null 2>&1; then
    cargo-cyclonedx cyclonedx -qq --format json --spec-version 1.5 --override-filename canopy-sbom
    for package in cli server executors/mpi/open-mpi executors/mpi/mpich; do
        sed "s|file://$PWD|file:///canopy|g" "$package/canopy-sbom.json" >"$tree/sbom.json"
        install -D --mode=0644 "$tree/sbom.json" "$documents/sbom/$(basename "$package").cdx.json"
    done
else
    echo "the packages have no list of components: cargo install --locked cargo-cyclonedx" >&2
fi

made=()
if wanted oci; then
    made+=("canopy-$version-$arch.oci.tar")
    python3 deploy/package/image.py "$root/usr/bin" "$documents" "$version" "$revision" "$out/${made[-1]}"
fi

install -D --strip --mode=0644 --target-directory="$root/usr/lib/canopy" \
    "$built/libcanopy_mpi_openmpi.so" "$built/libcanopy_mpi_mpich.so"
install -d "$share/bash-completion/completions" "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d" \
    "$share/man/man1" "$share/man/man8"
"$built/canopy" completions bash >"$share/bash-completion/completions/canopy"
"$built/canopy" completions zsh >"$share/zsh/vendor-completions/_canopy"
"$built/canopy" completions fish >"$share/fish/vendor_completions.d/canopy.fish"
"$built/canopy" man -o "$share/man/man1"
python3 deploy/package/manual.py "$built/canopyd" "$version" >"$share/man/man8/canopyd.8"
gzip --best --no-name "$share"/man/man?/*
install -D --mode=0644 deploy/systemd/canopyd.service "$root/usr/lib/systemd/system/canopyd.service"
install -D --mode=0644 deploy/systemd/canopy.sysusers "$root/usr/lib/sysusers.d/canopy.conf"
# The folder of the unit, so that `canopyd --config …` works on the data of the unit's server.
install -d "$root/etc/canopy"
sed 's|^# data_dir = "/var/lib/canopy"$|data_dir = "/var/lib/canopy"|' deploy/canopyd.toml >"$root/etc/canopy/canopyd.toml"
grep --quiet '^data_dir = ' "$root/etc/canopy/canopyd.toml" || fail "deploy/canopyd.toml has no data_dir to set"

# Hooks of Slurm, alerts and the dashboard, to be copied where they belong.
for hook in deploy/slurm/*log*.sh; do
    install -D --target-directory="$documents/examples/slurm" "$hook"
done
install -D --mode=0644 --target-directory="$documents/examples" deploy/prometheus/alerts.yaml deploy/grafana/canopy.json

if wanted tar; then
    made+=("canopy-$version-$arch.tar.gz")
    install --mode=0644 deploy/package/INSTALL.md "$root"
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$tree" -c "canopy-$version-$arch" |
        gzip --no-name >"$out/${made[-1]}"
    rm "$root/INSTALL.md"
fi

# The oldest libraries of Debian that programs run with, by the versions of symbols that they ask for.
depends() {
    local said versions
    said=$(objdump --private-headers "$@")
    awk '$1 == "NEEDED" { print $2 }' <<<"$said" | sort -u | while read -r library; do
        case $library in
        libc.so.6 | libm.so.6 | ld-linux-*.so.*) ;;
        libgcc_s.so.1) ;;
        *) fail "of which package is $library? deploy/package.sh does not know" ;;
        esac
    done
    # What glibc calls an ABI came with a release, too.
    versions=$(awk '$NF ~ /^(GLIBC|GCC)_/ { print $NF }' <<<"$said" | sed 's/^GLIBC_ABI_DT_RELR$/GLIBC_2.36/' | sort -u)
    ! grep '^GLIBC_ABI' <<<"$versions" >&2 || fail "since which release has glibc these?"
    newest() { sed -n "s/^$1_//p" <<<"$versions" | sort -V | tail -n 1; }
    echo "libc6 (>= $(newest GLIBC)), libgcc-s1 (>= $(newest GCC))"
}

if wanted deb; then
    # A hyphen would begin the revision of the package, and sort 1.0-rc after 1.0.
    debian=${version/-/\~}-1
    architecture=$(dpkg --print-architecture)
    made+=("canopy_${debian}_$architecture.deb")
    rm "$documents/LICENSE"
    install --mode=0644 deploy/package/copyright "$documents"
    install -D --mode=0644 deploy/package/lintian-overrides "$share/lintian/overrides/canopy"
    gzip --best --no-name --stdout "$documents/CHANGELOG.md" >"$documents/changelog.gz" && rm "$documents/CHANGELOG.md"
    maintainer="canopy maintainers <maintainers@canopy.invalid>"
    gzip --best --no-name >"$documents/changelog.Debian.gz" <<EOF
canopy ($debian) unstable; urgency=medium

  * Release $version. Its changes are in changelog.gz.

 -- $maintainer  $(date --utc --date="@$SOURCE_DATE_EPOCH" --rfc-email)
EOF
    control=$root/DEBIAN
    install -d "$control"
    for script in postinst prerm postrm; do
        install "deploy/package/$script.sh" "$control/$script"
    done
    echo /etc/canopy/canopyd.toml >"$control/conffiles"
    (cd "$root" && find usr etc -type f -print0 | sort -z | xargs -0 md5sum) >"$control/md5sums"
    # In KiB, each file rounded up, and one for each folder.
    size=$(cd "$root" && find usr etc -type f -printf '%s\n' -o -printf '1\n' |
        awk '{ kib += int(($1 + 1023) / 1024) } END { print kib }')
    cat >"$control/control" <<EOF
Package: canopy
Version: $debian
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $size
Depends: $(depends "$root"/usr/bin/* "$root"/usr/lib/canopy/*.so), passwd
Section: net
Priority: optional
Description: plans of collective communication for the network at hand
 canopy server plans allgather, reduce-scatter, allreduce and other collectives at the
 best throughput that a network allows, and proves it. Plans are files for
 MSCCL, MSCCL++, oneCCL and MPI.
 .
 The package has the command canopy and the gRPC service canopyd, which does not
 start by itself: systemctl enable --now canopyd.
EOF
    find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    # A level that takes 4 s; the highest takes 50 and saves a seventh.
    dpkg-deb --root-owner-group -Zxz -z1 --build "$root" "$out/${made[-1]}" >/dev/null
fi

for file in "${made[@]}"; do
    (cd "$out" && sha256sum "$file" >"$file.sha256")
    echo "$out/$file"
done
