#!/usr/bin/env bash
# Builds the page and drives it in headless Chromium, against a hub with CORS, sign-in and jobs that run the program (page/main.go).
# Needs node with npm and its registry, and Chromium from PATH or Debian. SCREENSHOTS=FOLDER keeps pictures.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

browser 'the page'

lines() { cat "$@" | wc -l; }
[ "$(lines page/*.{html,css,js})" -le 900 ] || fail "the page has $(lines page/*.{html,css,js}) lines, more than 900"
page/build.sh "$work/page"
converter
go build -o "$work/bin/" ./.ci/deep/page
mkdir "$work/data"
cp .ci/deep/page/check.mjs "$work/"
timeout 1800 node "$work/check.mjs" "$(command -v chromium)" "$work/bin/page" "$work/page" "$work/data" "$DF11_CONVERT"
