#!/usr/bin/env bash
# Proves the shared cache against the official Python client, an old one and the newest: what it has downloaded this
# program reads, online without fetching a weight and offline; what this program keeps with --cache it reads, offline too,
# and fetches no weight for the rest. The newest client keeps weights once for all repos of a cache unless told not to.
# Needs python3 (3.10 or later) with venv, and PyPI. HF_HUB_OLD and HF_HUB_NEW name other versions, as pip writes them.
set -euo pipefail
cd "$(dirname "$0")/../.."
clients=$PWD/internal/hubtest/testdata/clients
. .ci/lib.sh
converter

{ venv "$work/old" "${HF_HUB_OLD:-huggingface_hub==0.36.2}" && venv "$work/new" "${HF_HUB_NEW:-huggingface_hub==2.4.0}" hf-xet; } ||
  skip_rest 'the shared cache: huggingface_hub is not to be had here'
"$work/old/bin/pip" uninstall --quiet --yes hf-xet

export HF_HOME=$work/home HF_TOKEN=hf_test NO_PROXY='*' HF_HUB_DISABLE_PROGRESS_BARS=1 HF_HUB_DISABLE_TELEMETRY=1 \
  HF_HUB_DISABLE_UPDATE_CHECK=1 HF_HUB_VERBOSITY=error

# serve starts hubd with the same repos at the same commits as ever.
serve() { start_hub data -model org/tiny -xet-hashes -log; }

# fetched TEXT: whether the storage host was asked for bytes at an address with the text in it.
fetched() { grep -q " cdn GET .*$1" "$work/data.log"; }

python() { "$work/$1/bin/python" "$clients/cache.py" "${@:2}"; }

# convert OUT FLAGS…: converts org/tiny and compares the result with the first one.
convert() {
  "$DF11_CONVERT" org/tiny -o "$work/$1" --gpu off --quiet "${@:2}" >/dev/null
  if [ "$1" != plain ]; then
    diff -r "$work/plain" "$work/$1"
    rm -r "${work:?}/$1"
  fi
}

offline() { HF_HUB_OFFLINE=1 HF_ENDPOINT=http://127.0.0.1:9 "$@"; }

serve
HF_HUB_CACHE=$work/none convert plain
end_hub
fetched /repos/ || fail "no request for weights is seen"

# both CLIENT LAYOUT: a cache that the client begins, and one that this program begins.
both() {
  export HF_HUB_CACHE=$work/cache
  rm -rf "$HF_HUB_CACHE"
  serve
  python "$1" download "$2"
  end_hub
  serve
  convert again
  end_hub
  if fetched /repos/; then fail "weights were fetched that the client has downloaded"; fi
  offline convert again

  rm -rf "$HF_HUB_CACHE"
  serve
  convert again --cache
  end_hub
  kept=$(ls "$HF_HUB_CACHE/models--org--tiny/blobs")
  offline python "$1" weights
  serve
  python "$1" download "$3"
  end_hub
  for etag in $kept; do
    if fetched "$etag"; then fail "the client fetched $etag, which this program has kept"; fi
  done
  offline python "$1" weights
  offline convert again
}

echo "== the old client"
both old own own
echo "== the newest, which keeps weights once for all repos"
both new shared own
echo "== the newest, told not to"
HF_HUB_DISABLE_SHARED_BLOBS=1 both new own own
echo "== the newest without Xet, as where hf-xet is not installed"
HF_HUB_DISABLE_XET=1 both new own own
echo "shared cache: this program and the Python clients read what the others wrote"
