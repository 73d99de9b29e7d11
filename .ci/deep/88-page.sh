#!/usr/bin/env bash
# Builds the page and drives it in headless Chromium, against a hub with CORS, sign-in and jobs that run the program (page/main.go).
# Needs node with npm and its registry, and Chromium from PATH or Debian. SCREENSHOTS=FOLDER keeps pictures.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

have node npm || skip_rest 'the page: there is no node with npm'
have chromium || debian chromium || skip_rest 'the page: Chromium is not to be had here'
once "$CI_CACHE/page-24.43.1" npm_install "$CI_CACHE/page-24.43.1" puppeteer-core@24.43.1 axe-core@4.14.1 || skip_rest 'the page: puppeteer-core and axe-core are not to be had here'

lines() { cat "$@" | wc -l; }
[ "$(lines page/*.{html,css,js})" -le 900 ] || fail "the page has $(lines page/*.{html,css,js}) lines, more than 900"
page/build.sh "$work/page"
converter
go build -o "$work/bin/" ./.ci/deep/page
mkdir "$work/data"
cp .ci/deep/page/check.mjs "$work/"
ln -s "$CI_CACHE/page-24.43.1/node_modules" "$work/node_modules"
timeout 1800 node "$work/check.mjs" "$(command -v chromium)" "$work/bin/page" "$work/page" "$work/data" "$DF11_CONVERT"
