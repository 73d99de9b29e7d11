#!/usr/bin/env bash
# Converts a generated model whose one layer is a unit of 2 GB and wants the peak of the resident set within the budget:
# 256 MiB by default with two workers, and 64 MiB with --memory 64MiB. Linux only; takes 4 GB of disk.
set -euo pipefail
cd "$(dirname "$0")/../.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [ -z "${DF11_CONVERT-}" ]; then
  DF11_CONVERT=$scratch/df11-convert
  CGO_ENABLED=0 go build -o "$DF11_CONVERT" ./cmd/df11-convert
fi
CGO_ENABLED=0 go build -o "$scratch/memory" ./.ci/deep/memory

mkdir "$scratch/model"
"$scratch/memory" -model "$scratch/model"

# check LIMIT_MIB FLAG…: converts under the limit; every run must give the same bytes.
check() {
  local limit=$1
  shift
  rm -rf "$scratch/out"
  "$scratch/memory" -limit-mib "$limit" "$DF11_CONVERT" "$scratch/model" -o "$scratch/out" --quiet "$@" >"$scratch/log" || {
    cat "$scratch/log"
    return 1
  }
  printf '%-16s %s\n' "${*:-default}" "$(tail -n 1 "$scratch/log")"
  (cd "$scratch/out" && find . -type f ! -path './.*/*' -print0 | sort -z | xargs -0 sha256sum) >"$scratch/sums"
  [ ! -f "$scratch/sums.first" ] || cmp "$scratch/sums" "$scratch/sums.first"
  cp "$scratch/sums" "$scratch/sums.first"
}

check 256 --workers 2
check 64 --workers 2 --memory 64MiB
check 64 --workers 1 --memory 64MiB
