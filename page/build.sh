#!/usr/bin/env bash
# Builds the page into a folder that any web server can serve: page/build.sh FOLDER
# VERSION is the release that it names; HUB another hub than huggingface.co, STORAGE the origins to which that one redirects; OAUTH
# the client id of a public OAuth app, where the page is no Space, which brings its own.
set -euo pipefail
[ $# = 1 ] || { echo 'usage: page/build.sh FOLDER' >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

GOOS=js GOARCH=wasm CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION-}" -o "$out/plan.wasm" ./cmd/df11-convert
gzip -9nf "$out/plan.wasm"
size=$(wc -c <"$out/plan.wasm.gz")
[ "$size" -le 4000000 ] || { echo "plan.wasm.gz has $size bytes, more than 4 MB" >&2; exit 1; }
cp "$(go env GOROOT)/lib/wasm/wasm_exec.js" page/{app.js,worker.js,style.css,README.md} LICENSE "$out"
sed -e "s|<meta name=\"version\" content=\"dev\">|<meta name=\"version\" content=\"${VERSION:-dev}\">|" \
  -e "s|<meta name=\"oauth-client\" content=\"\">|<meta name=\"oauth-client\" content=\"${OAUTH-}\">|" \
  ${HUB:+-e "s|https://huggingface.co https://\*.huggingface.co https://\*.hf.co|$HUB ${STORAGE-}|; s|<meta name=\"hub\" content=\"[^\"]*\">|<meta name=\"hub\" content=\"$HUB\">|"} \
  page/index.html >"$out/index.html"
