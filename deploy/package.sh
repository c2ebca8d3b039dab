#!/usr/bin/env bash
# Packs a release build: canopy-VERSION-ARCH.tar.gz, and a Debian package where dpkg-deb is installed.
#
#     deploy/package.sh [FOLDER]      builds, and writes into FOLDER [default: target/package]
#
# Both hold the two programs, the libraries for Open MPI and MPICH, completions for bash, zsh and fish, manual pages, the
# systemd unit, the example configuration and, with cargo-cyclonedx, the components of each (SBOM).
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(realpath --canonicalize-missing "${1:-target/package}")
# The server as the command has it inside, so that it is compiled once for both.
cargo build --locked --release --package canopy-server --bin canopyd --package canopy-cli --bin canopy \
    --no-default-features --features canopy-cli/default,canopy-server/redb
cargo build --locked --release --package canopy-mpi-openmpi --package canopy-mpi-mpich
built=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")/release
version=$("$built/canopy" version --json | sed 's/.*"version":"\([^"]*\)".*/\1/')
arch=$(uname -m)

mkdir -p "$out"
tree=$(mktemp -d)
remove() {
    rm -rf "$tree"
    find . -name canopy-sbom.json -not -path './target/*' -delete
}
trap remove EXIT
root=$tree/canopy-$version-$arch
share=$root/usr/share

install -D --target-directory="$root/usr/bin" "$built/canopy" "$built/canopyd"
install -D --mode=0644 --target-directory="$root/usr/lib/canopy" \
    "$built/libcanopy_mpi_openmpi.so" "$built/libcanopy_mpi_mpich.so"
install -d "$share/bash-completion/completions" "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d" \
    "$share/man/man1"
"$built/canopy" completions bash >"$share/bash-completion/completions/canopy"
"$built/canopy" completions zsh >"$share/zsh/vendor-completions/_canopy"
"$built/canopy" completions fish >"$share/fish/vendor_completions.d/canopy.fish"
"$built/canopy" man -o "$share/man/man1"
gzip --best --no-name "$share"/man/man1/*.1
install -D --mode=0644 --target-directory="$share/doc/canopy" LICENSE README.md CHANGELOG.md deploy/canopyd.toml
install -D --mode=0644 deploy/systemd/canopyd.service "$root/usr/lib/systemd/system/canopyd.service"
install -D --mode=0644 deploy/systemd/canopy.sysusers "$root/usr/lib/sysusers.d/canopy.conf"

# What the programs and libraries are built of, for scanners (CycloneDX). The tool writes beside every manifest.
if command -v cargo-cyclonedx >/dev/null 2>&1; then
    SOURCE_DATE_EPOCH=0 cargo-cyclonedx cyclonedx -qq --format json --spec-version 1.5 --override-filename canopy-sbom
    for package in cli server executors/mpi/open-mpi executors/mpi/mpich; do
        sed "s|file://$PWD|file:///canopy|g" "$package/canopy-sbom.json" >"$tree/sbom.json"
        install -D --mode=0644 "$tree/sbom.json" "$share/doc/canopy/sbom/$(basename "$package").cdx.json"
    done
else
    echo "the package has no list of components: cargo install --locked cargo-cyclonedx" >&2
fi

# The same files give the same archive.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime='@0' -C "$tree" -c "canopy-$version-$arch" |
    gzip --best --no-name >"$out/canopy-$version-$arch.tar.gz"
echo "$out/canopy-$version-$arch.tar.gz"

if command -v dpkg-deb >/dev/null 2>&1; then
    install -d "$root/DEBIAN"
    cat >"$root/DEBIAN/control" <<EOF
Package: canopy
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: canopy maintainers <maintainers@canopy.invalid>
Depends: libc6, libgcc-s1
Section: net
Priority: optional
Description: plans of collective communication, optimal for the network at hand
 canopy is the command, canopyd the gRPC service.
EOF
    dpkg-deb --root-owner-group --build "$root" "$out/canopy_${version}_$(dpkg --print-architecture).deb" >/dev/null
    echo "$out/canopy_${version}_$(dpkg --print-architecture).deb"
fi
