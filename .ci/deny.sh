#!/usr/bin/env bash
# Holds what we depend on against deny.toml, and deny.toml against what it must refuse.
# Usage: deny.sh PATH_OF_CARGO_DENY
#
# Advisories need their database, which comes from the network: where it cannot be had, they are not asked.
set -euo pipefail
deny=$(realpath "$1")
cd "$(dirname "$0")/.."
rules=$PWD/deny.toml

"$deny" --log-level error --locked check --hide-inclusion-graph bans licenses sources

if timeout 120 "$deny" --log-level off fetch db >/dev/null 2>&1; then
    "$deny" --log-level error --locked check --hide-inclusion-graph --disable-fetch advisories
else
    echo "deny: skipped advisories: their database cannot be fetched"
fi

# Each violation is planted in a workspace of its own: what these rules do not refuse would pass above, too.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null

# A package of this name, under this licence, in a folder of its own.
package() {
    mkdir -p "$work/$1/src"
    : >"$work/$1/src/lib.rs"
    cp "$rules" "$work/$1/deny.toml"
    printf '[package]\nname = "%s"\nversion = "1.0.0"\nedition = "2024"\nlicense = "%s"\npublish = false\n' \
        "$2" "$3" >"$work/$1/Cargo.toml"
}
depends() { printf '[dependencies]\n%s\n' "$2" >>"$work/$1/Cargo.toml"; }
check() { "$deny" --color never --manifest-path "$work/$1/Cargo.toml" check "$2" 2>&1; }
refused() {
    local said status=0
    said=$(check "$1" "$2") || status=$?
    if [ "$status" = 0 ] || ! grep --quiet --fixed-strings "$3" <<<"$said"; then
        printf 'deny.toml lets a planted violation pass: %s\n%s\n' "$1" "$said" >&2
        exit 1
    fi
}

package sound sound Apache-2.0
for rule in bans licenses sources; do check sound "$rule" >/dev/null; done

package system-library/inner openssl-sys MIT
package system-library user Apache-2.0
depends system-library 'openssl-sys = { path = "inner" }'
refused system-library bans "crate 'openssl-sys = 1.0.0' is explicitly banned"

package copyleft/inner copyleft GPL-3.0-only
package copyleft user Apache-2.0
depends copyleft 'copyleft = { path = "inner" }'
refused copyleft licenses "license is not explicitly allowed"

package elsewhere/inner elsewhere MIT
git -C "$work/elsewhere/inner" init --quiet
git -C "$work/elsewhere/inner" add .
git -C "$work/elsewhere/inner" -c user.name=canopy -c user.email=canopy@localhost commit --quiet --message elsewhere
package git-source user Apache-2.0
depends git-source "elsewhere = { git = \"file://$work/elsewhere/inner\" }"
refused git-source sources "source-not-allowed"
echo "deny: ok"
