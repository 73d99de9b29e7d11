#!/usr/bin/env bash
# Opens the pages of inspect --html in headless Chromium, light and dark, from 360 to 1280 pixels wide: no console message, no
# request, nothing over the right edge, nothing that axe finds. Needs node with npm and its registry, and Chromium from PATH or Debian.
# SCREENSHOTS=FOLDER keeps pictures.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

browser 'report pages'
converter

"$DF11_CONVERT" demo -o "$work/demo" >/dev/null 2>&1
"$DF11_CONVERT" decode "$work/demo/tiny-llama-DF11" -o "$work/bf16" --quiet >/dev/null
# Every tenth weight is zero.
python3 - "$work/bf16"/*.safetensors <<'PYTHON'
import struct, sys
for path in sys.argv[1:]:
    data = bytearray(open(path, "rb").read())
    first = 8 + struct.unpack("<Q", data[:8])[0]
    for i in range(first, len(data) - 1, 20):
        data[i:i + 2] = b"\0\0"
    open(path, "wb").write(data)
PYTHON
"$DF11_CONVERT" "$work/bf16" -o "$work/zeros" --like llama-untied --quiet
for model in demo/tiny-llama-DF11 zeros; do
  "$DF11_CONVERT" inspect "$work/$model" --html "$work/$(basename "$model").html" >/dev/null
done
cp .ci/deep/report/check.mjs "$work/"
timeout 240 node "$work/check.mjs" "$(command -v chromium)" "$work"/*.html
