#!/usr/bin/env bash
# The clients of today as they move files with the real Hub: huggingface_hub with hf_xet, and @huggingface/hub, upload a model by Xet,
# df11-convert converts and publishes it by HTTP and LFS, and the client downloads the result by Xet. The storage is xet-core's own
# test server, which xet/bridge.py puts behind the tokens and links of hubd. Needs python3 with venv, node with npm, cargo, and their
# registries; the first run builds the server for some minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
xet=1.8.0
here=$PWD/.ci/deep/xet
. .ci/lib.sh

have cargo || PATH=$PATH:$HOME/.cargo/bin
have cargo || debian cargo || skip_rest 'Xet: there is no cargo to build its test server'
once "$CI_CACHE/xet-client-$xet" nice cargo install -q xet-client --version "$xet" --features simulation --bin local_cas_server \
  --root "$CI_CACHE/xet-client-$xet" --target-dir "$work/target" || skip_rest "Xet: its test server, crate xet-client $xet, is missing here"
hub_client || skip_rest 'Xet: huggingface_hub is missing here'
npm_install "$work/js" @huggingface/hub@2.17.5
have jq || debian jq
converter

# requests PATTERN COMMAND…: runs a client with a cache of its own; one of its requests must fit the pattern.
requests() {
  local from asked
  from=$(wc -l <"$work/bridge.log")
  (cd "$work/js" && HF_HOME=$(mktemp -d -p "$work") "${@:2}") >"$work/client.log" 2>&1 || { cat "$work/client.log" "$work/bridge.log"; fail "$*"; }
  asked=$(tail -n "+$((from + 1))" "$work/bridge.log")
  grep -qE "$1" <<<"$asked" || fail "no request was $1: $asked"
}

# status URL CURL-FLAG…: the status of an answer.
status() { curl -s -o /dev/null -w '%{http_code}' "${@:2}" "$1"; }

export HF_TOKEN=hf_test HF_HOME=$work/home
start_hub hub -model org/tiny
HF_HUB_DISABLE_XET=1 "$client/bin/python" "$here/client.py" download org/tiny "$work/tiny" 2>"$work/client.log" || fail "$(cat "$work/client.log")"
on_port health "$work/cas.log" "$CI_CACHE/xet-client-$xet/bin/local_cas_server" -d "$work/cas" -p
"$client/bin/python" "$here/bridge.py" "$HF_ENDPOINT" "http://127.0.0.1:$port" >"$work/bridge.url" 2>"$work/bridge.log" &
pids[$!]=$!
announced $! "$work/bridge.url" '^READY \(.*\)' || { cat "$work/bridge.log"; fail 'the bridge did not start'; }
HF_ENDPOINT=$said

echo '== clients upload by Xet'
requests '200 POST /cas/v[12]/shards' "$client/bin/python" "$here/client.py" upload "$work/tiny" me/tiny
if grep 'objects/batch' "$work/bridge.log"; then fail 'the client used LFS'; fi
requests '200 POST /cas/v[12]/shards' node "$here/client.mjs" "$HF_ENDPOINT" me/tiny
[ "$(status "$HF_ENDPOINT/api/models/me/tiny/xet-write-token/main")" = 401 ] || fail 'everybody gets a token to write'
token=$(curl -sf "$HF_ENDPOINT/api/models/me/tiny/xet-read-token/main" | jq -r .accessToken)
[ "$(status "$HF_ENDPOINT/cas/v1/shards" -X POST -d x -H "Authorization: Bearer $token")" = 401 ] || fail 'who may read may write'

echo '== df11-convert converts that by HTTP, and publishes by LFS'
"$DF11_CONVERT" me/tiny --push --repo-id me/tiny-DF11 --quiet
"$DF11_CONVERT" verify me/tiny-DF11 --against org/tiny --level proof --quiet

echo '== the client downloads the result by Xet'
requests '200 GET /cas/v[12]/reconstructions/' "$client/bin/python" "$here/client.py" download me/tiny-DF11 "$work/result"
(cd "$work/result" && find . -type f ! -path './.cache/*' -exec sha256sum {} +) | sort >"$work/downloaded"
(cd "$work/hub/me/tiny-DF11" && find . -type f -exec sha256sum {} +) | sort | diff - "$work/downloaded" || fail 'the client has other bytes than the Hub'
"$DF11_CONVERT" verify "$work/result" --against org/tiny --level full --quiet
if grep -E '^5[0-9][0-9] ' "$work/bridge.log"; then fail 'the bridge failed'; fi
end_hub
echo 'xet: clients of today read and write through our Hub as through the real one'
