#!/bin/sh
# Writes the API's TypeScript types from the server's own description; with --check says only whether they are up to date.
set -eu
cd "$(dirname "$0")/.."
types=frontend/src/api/schema.d.ts
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
.venv/bin/python manage.py spectacular --validate --fail-on-warn --format openapi-json --file "$folder/schema.json"
(cd frontend && ../scripts/node node_modules/openapi-typescript/bin/cli.js "$folder/schema.json" --output "$folder/schema.d.ts" >/dev/null)
if [ "${1:-}" = --check ]; then
    diff -u "$types" "$folder/schema.d.ts" || { echo "$types is out of date: run scripts/api-types.sh" >&2; exit 1; }
else
    cp "$folder/schema.d.ts" "$types"
fi
