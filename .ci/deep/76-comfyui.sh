#!/usr/bin/env bash
# Converts tiny models of diffusers' classes into ComfyUI files, once from the model and once from its DF11 folder, decodes the
# units with decode.c, and runs diffusers' own converters over them: every bit must be the model's. decode must restore the
# model's file. Needs what 70-readers.sh needs.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh
. .ci/deep/readers/environment.sh
converter
PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -W ignore .ci/deep/readers/comfynames.py "$DF11_CONVERT" "$work" 2>"$work/log" || {
  tail -n 40 "$work/log"
  exit 1
}
