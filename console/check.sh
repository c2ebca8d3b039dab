#!/usr/bin/env bash
# Fails if the files that canopyd has inside are not those that the sources here make, or if a browser would load too much.
set -euo pipefail
cd "$(dirname "$0")"

# Bytes, compressed.
most=300000
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
./build.sh "$made"
if ! diff --recursive --brief "$made" ../server/assets/console; then
    echo "server/assets/console is out of date: run console/build.sh, and commit what it makes" >&2
    exit 1
fi
size=0
for file in "$made"/*; do
    size=$((size + $(gzip --best --stdout "$file" | wc --bytes)))
done
if [ "$size" -gt "$most" ]; then
    echo "the console has $size bytes compressed, more than $most" >&2
    exit 1
fi
echo "the console is up to date: $size bytes compressed"
