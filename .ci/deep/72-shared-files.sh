#!/usr/bin/env bash
# Loads a tiny model with more than 1,000 modules, whose layers share files (docs/format.md §10), in the official loader on a CPU,
# and wants equal logits. Takes some minutes, because that loader looks up each of its tensors in a list of all. Needs what
# 70-readers.sh needs.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh
. .ci/deep/readers/environment.sh
converter
PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -W ignore .ci/deep/readers/shared.py "$DF11_CONVERT" "$work" 2>"$work/log" || {
  tail -n 40 "$work/log"
  exit 1
}
