#!/usr/bin/env bash
# Builds the page and drives it in headless Chromium, and the straight road in Firefox, against a hub with CORS, sign-in and jobs that
# run the program (page/main.go) behind a script that plays what goes wrong (page/check.mjs, page/cases.mjs). Needs node with npm and
# its registry, and the browsers from PATH or Debian. SCREENSHOTS=FOLDER keeps pictures; CASES=TEXT runs the cases whose names hold it.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

browser 'the page'

converter
go build -o "$work/bin/" ./.ci/deep/page
mkdir "$work/data"
cp .ci/deep/page/*.mjs "$work/"
firefox=$(command -v firefox-esr firefox || true)
if [ -z "$firefox" ] && debian firefox-esr; then firefox=$(command -v firefox-esr || true); fi
[ -n "$firefox" ] || skip 'the page in Firefox: it cannot be installed here'
timeout 2400 node "$work/check.mjs" "$(command -v chromium)" "$work/bin/page" "$work/page" "$work/data" "$DF11_CONVERT" "${firefox%%$'\n'*}"
