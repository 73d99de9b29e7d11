#!/usr/bin/env bash
# Opens the pages of inspect --html and status --html in headless Chromium, light, dark, and in forced colors, from 360 to 1280 pixels wide: no console message, no
# request, nothing over the right edge, nothing that axe finds. Needs node with npm and its registry, and Chromium from PATH or Debian.
# SCREENSHOTS=FOLDER keeps pictures.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

browser 'the report'
converter

"$DF11_CONVERT" demo -o "$work/demo" >/dev/null 2>&1
"$DF11_CONVERT" inspect "$work/demo" --html "$work/report.html" >/dev/null

start_hub hub -model org/tiny -model org/other
export HF_TOKEN=hf_test HF_HOME=$work/home
printf '%s\n' 'models:' '- org/tiny' '- org/other' '- org/missing' >"$work/models.yaml"
"$DF11_CONVERT" org/tiny --push --gpu off --quiet >/dev/null
! "$DF11_CONVERT" status "$work/models.yaml" --html "$work/status.html" --badges "$work/badges" >/dev/null ||
  fail 'status says that nothing needs work'
end_hub
[ "$(grep -ho '<title>[^<]*' "$work"/badges/*.svg | wc -l)" = 3 ] || fail 'a badge is missing'

cp .ci/deep/report/check.mjs "$work/"
timeout 400 node "$work/check.mjs" "$(command -v chromium)" "$work/report.html" "$work/status.html"
