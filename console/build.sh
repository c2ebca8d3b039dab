#!/usr/bin/env bash
# Makes the files of the console that canopyd has inside, server/assets/console, from the sources here.
# Usage: console/build.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")"

out=$(realpath --canonicalize-missing "${1:-../server/assets/console}")
# What is installed is what the lock file says; nothing runs while it is installed.
if ! cmp --silent package-lock.json node_modules/.installed; then
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/.installed
fi
node messages.mjs
node settings.mjs
npx --no-install tsc --noEmit
CONSOLE_OUT=$out npx --no-install vite build --logLevel=warn
# What the licences of the packages inside ask for.
{
    printf 'The console contains these packages.\n\nPreact\n------\n\n'
    cat node_modules/preact/LICENSE
    printf '\n@bufbuild/protobuf\n------------------\n\n'
    sed -n '/^\/\//!q; s/^\/\/ \?//p' node_modules/@bufbuild/protobuf/dist/esm/create.js
    printf '\nand, in parts\n\n'
    sed -n '/^\/\//!q; s/^\/\/ \?//p' node_modules/@bufbuild/protobuf/dist/esm/wire/varint.js
} >"$out/licenses.txt"
