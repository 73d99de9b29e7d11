#!/usr/bin/env bash
# Converts a generated model whose one layer is a unit of 2 GB and wants the peak of the resident set within 64 MiB, with
# two workers and no budget, and with --memory 64MiB. plan must not promise less than the first takes. Linux only; takes
# 6 GB of disk.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh
converter
go build -o "$work/" ./.ci/deep/measure
mkdir "$work/model" "$work/out"
"$work/measure" -model layer -out "$work/model"

planned=$("$DF11_CONVERT" plan "$work/model" --workers 2 --json | sed -n 's/.*"memory_bytes": \([0-9]*\).*/\1/p')
[ -n "$planned" ] || fail 'plan names no memory'
[ $((planned >> 20)) -ge 64 ] || fail "plan says that two workers take at most $planned bytes"
convert="$DF11_CONVERT $work/model -o {out} --quiet"
"$work/measure" -limit-mib 64 -weights 1.04e9 -rounds 1 -reads "$work/model" -out "$work/out" "two=$convert --workers 2" \
  "two-64MiB=$convert --workers 2 --memory 64MiB" "one-64MiB=$convert --workers 1 --memory 64MiB"
for budget in two-64MiB one-64MiB; do diff -r "$work/out/two" "$work/out/$budget"; done
