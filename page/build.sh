#!/usr/bin/env bash
# Builds the page into a folder that any web server can serve: page/build.sh FOLDER
# VERSION is the release that it names, IMAGE that release's image by digest, without which the page starts no jobs. EXAMPLES are models
# whose plans the start page shows; they are read from HF_ENDPOINT. HUB is another hub than huggingface.co, STORAGE the origins to
# which that one redirects; OAUTH the client id of a public OAuth app, where the page is no Space, which brings its own.
set -euo pipefail
[ $# = 1 ] || { echo 'usage: page/build.sh FOLDER' >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

GOOS=js GOARCH=wasm CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION-}" -o "$work/plan.wasm" ./cmd/df11-convert
gzip -9n "$work/plan.wasm"
chmod 644 "$work/plan.wasm.gz"

cp "$(go env GOROOT)/lib/wasm/wasm_exec.js" page/*.js "$work"
cat internal/charts/bars.css page/style.css >"$work/style.css"
for model in ${EXAMPLES-}; do
  go run ./cmd/df11-convert plan --json --sample-bytes 0 -- "$model" >"$work/plan.json"
  node --input-type=module -e 'import { readFileSync } from "node:fs"; const { brief } = await import(process.argv[1]);
    console.log(JSON.stringify(brief(JSON.parse(readFileSync(process.argv[2])), process.argv[3])))' "$work/planner.js" "$work/plan.json" "$model"
done >"$work/examples"
rm -f "$work/plan.json"
{ echo '['; sed '$!s/$/,/' "$work/examples"; echo ']'; } >"$work/examples.json"
rm "$work/examples"

# What belongs together lies in a folder named by its content, so that no old script meets a new planner.
folder=$(cat "$work"/* | sha256sum | cut -c 1-12)
rm -rf "${out:?}/$folder"
mv "$work" "$out/$folder"
chmod 755 "$out/$folder"
cp page/icon.svg page/README.md LICENSE "$out"
sed -e "s|<meta name=\"version\" content=\"dev\">|<meta name=\"version\" content=\"${VERSION:-dev}\">|" \
  -e "s|<meta name=\"image\" content=\"\">|<meta name=\"image\" content=\"${IMAGE-}\">|" \
  -e "s|<meta name=\"oauth-client\" content=\"\">|<meta name=\"oauth-client\" content=\"${OAUTH-}\">|" \
  -e "s|\"style.css\"|\"$folder/style.css\"|; s|\"view.js\"|\"$folder/view.js\"|" \
  ${HUB:+-e "s|https://huggingface.co https://\*.huggingface.co https://\*.hf.co|$HUB ${STORAGE-}|; s|<meta name=\"hub\" content=\"[^\"]*\">|<meta name=\"hub\" content=\"$HUB\">|"} \
  page/index.html >"$out/index.html"
