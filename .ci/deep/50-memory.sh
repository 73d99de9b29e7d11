#!/usr/bin/env bash
# Converts a generated model whose one layer is a unit of 2 GB and wants the peak of the resident set within 64 MiB, with
# two workers and no budget, and with --memory 64MiB. plan must not promise less than the first takes. Linux only; takes 4 GB of disk.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh
converter
go build -o "$work/memory" ./.ci/deep/memory

mkdir "$work/model"
"$work/memory" -model "$work/model"

# check LIMIT_MIB FLAG…: converts under the limit; every run must give the same bytes.
check() {
  local limit=$1
  shift
  rm -rf "$work/out"
  "$work/memory" -limit-mib "$limit" "$DF11_CONVERT" "$work/model" -o "$work/out" --quiet "$@" >"$work/log" || {
    cat "$work/log"
    return 1
  }
  printf '%-16s %s\n' "${*:-default}" "$(tail -n 1 "$work/log")"
  (cd "$work/out" && find . -type f ! -path './.*/*' -print0 | sort -z | xargs -0 sha256sum) >"$work/sums"
  [ ! -f "$work/sums.first" ] || cmp "$work/sums" "$work/sums.first"
  cp "$work/sums" "$work/sums.first"
}

planned=$("$DF11_CONVERT" plan "$work/model" --workers 2 --json | sed -n 's/.*"memory_bytes": \([0-9]*\).*/\1/p')
[ -n "$planned" ] || fail 'plan names no memory'
[ $((planned >> 20)) -ge 64 ] || fail "plan says that two workers take at most $planned bytes"
check 64 --workers 2
check 64 --workers 2 --memory 64MiB
check 64 --workers 1 --memory 64MiB
