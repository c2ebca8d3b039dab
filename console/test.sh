#!/usr/bin/env bash
# Tests the console in a browser, against a server of its own.
# Usage: console/test.sh CANOPYD CANOPY [FOLDER]   FOLDER: where to put screenshots for the documents
set -euo pipefail
canopyd=$(realpath "$1")
canopy=$(realpath "$2")
pictures=${3:+$(realpath "$3")}
cd "$(dirname "$0")"

if ! cmp --silent package-lock.json node_modules/.installed; then
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/.installed
fi
exec node test.mjs "$canopyd" "$canopy" ${pictures:+"$pictures"}
