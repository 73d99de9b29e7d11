#!/usr/bin/env bash
# Opens the pages of inspect --html in headless Chromium, light and dark, from 390 to 1280 pixels wide: no console message, no
# request, nothing over the right edge, no labels that touch; taps and sorting work. Needs node, python3, and Chromium
# from PATH or Debian. SCREENSHOTS=FOLDER keeps pictures.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

have node || skip_rest 'report pages: there is no node'
have chromium || debian chromium || skip_rest 'report pages: Chromium is not to be had here'
converter

"$DF11_CONVERT" demo -o "$work/demo" >/dev/null 2>&1
"$DF11_CONVERT" decode "$work/demo/tiny-llama-DF11" -o "$work/bf16" --quiet >/dev/null
# zeros N FOLDER: a copy of the model in which every Nth weight is zero.
zeros() {
  cp -r "$work/bf16" "$work/$2"
  python3 - "$1" "$work/$2"/*.safetensors <<'PYTHON'
import struct, sys
every = int(sys.argv[1])
for path in sys.argv[2:]:
    data = bytearray(open(path, "rb").read())
    first = 8 + struct.unpack("<Q", data[:8])[0]
    for i in range(first, len(data) - 1, 2 * every):
        data[i:i + 2] = b"\0\0"
    open(path, "wb").write(data)
PYTHON
}
zeros 1000003 few-zeros
zeros 10 many-zeros
page() { "$DF11_CONVERT" inspect "$1" --html "$work/$2.html" "${@:3}" >/dev/null 2>&1; }
page "$work/demo/tiny-llama-DF11" df11
page "$work/few-zeros" few-zeros
page "$work/many-zeros" many-zeros
page "$work/demo/tiny-llama-DF11" unread --sample-bytes 0

timeout 240 node .ci/deep/report/check.mjs chromium "$work/profile" "$work"/*.html
