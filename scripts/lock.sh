#!/bin/sh
# Writes the hashed locks anew from the *.in files: scripts/lock.sh [--upgrade]
# Universal: one lock for every platform and Python that the project supports. No host names are written.
set -eu
cd "$(dirname "$0")/.."
[ -x .venv/bin/uv ] || scripts/bootstrap.sh
for name in scripts/uv requirements requirements-build requirements-dev; do
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --custom-compile-command "scripts/lock.sh" "$@" --output-file "$name.txt" "$name.in"
done
