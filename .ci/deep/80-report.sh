#!/usr/bin/env bash
# Opens the page of inspect --html in headless Chromium, light, dark, and in forced colors, from 360 to 1280 pixels wide: no console message, no
# request, nothing over the right edge, nothing that axe finds. Needs node with npm and its registry, and Chromium from PATH or Debian.
# SCREENSHOTS=FOLDER keeps pictures.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

browser 'the report'
converter

"$DF11_CONVERT" demo -o "$work/demo" >/dev/null 2>&1
"$DF11_CONVERT" inspect "$work/demo" --html "$work/report.html" >/dev/null
cp .ci/deep/report/check.mjs "$work/"
timeout 240 node "$work/check.mjs" "$(command -v chromium)" "$work/report.html"
