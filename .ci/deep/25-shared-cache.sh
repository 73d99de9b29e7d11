#!/usr/bin/env bash
# Proves that this program reads the shared cache of the official Python client, an old one and the newest: online without
# fetching a weight, and offline. The newest client keeps weights once for all repos of a cache unless you turn that off.
# Needs python3 (3.10 or later) with venv, and PyPI.
set -euo pipefail
cd "$(dirname "$0")/../.."
clients=$PWD/internal/hubtest/testdata/clients
. .ci/lib.sh
converter

{ venv "$work/old" huggingface_hub==0.36.2 && hub_client; } ||
  skip_rest 'the shared cache: huggingface_hub is missing here'
"$work/old/bin/pip" uninstall --quiet --yes hf-xet

export HF_HOME=$work/home HF_TOKEN=hf_test NO_PROXY='*' HF_HUB_DISABLE_PROGRESS_BARS=1 HF_HUB_DISABLE_TELEMETRY=1 \
  HF_HUB_DISABLE_UPDATE_CHECK=1 HF_HUB_VERBOSITY=error

# serve starts hubd with the same repos at the same commits as ever.
serve() { start_hub data -model org/tiny -xet-hashes -log; }

# fetched: whether the storage host was asked for weights.
fetched() { grep -q ' cdn GET .*/repos/' "$work/data.log"; }

# convert OUT: converts org/tiny and compares the result with the first one.
convert() {
  "$DF11_CONVERT" org/tiny -o "$work/$1" --gpu off --quiet >/dev/null
  if [ "$1" != plain ]; then
    diff -r "$work/plain" "$work/$1"
    rm -r "${work:?}/$1"
  fi
}

serve
HF_HUB_CACHE=$work/none convert plain
end_hub
fetched || fail "no request for weights is seen"

# reads CLIENT LAYOUT: fills a cache with the client, and converts from there.
reads() {
  export HF_HUB_CACHE=$work/cache
  rm -rf "$HF_HUB_CACHE"
  serve
  "$1/bin/python" "$clients/cache.py" "$2"
  end_hub
  serve
  convert again
  end_hub
  if fetched; then fail "weights were fetched that the client has downloaded"; fi
  HF_HUB_OFFLINE=1 HF_ENDPOINT=http://127.0.0.1:9 convert again
}

echo "== the old client"
reads "$work/old" own
echo "== the newest, which keeps weights once for all repos"
reads "$client" shared
echo "== the newest, with that turned off"
HF_HUB_DISABLE_SHARED_BLOBS=1 reads "$client" own
echo "== the newest without Xet, as where hf-xet is not installed"
HF_HUB_DISABLE_XET=1 reads "$client" own
echo "shared cache: this program reads what the Python clients wrote"
