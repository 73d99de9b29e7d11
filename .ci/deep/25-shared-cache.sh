#!/usr/bin/env bash
# Proves the shared cache against the official Python client, an old one and the newest: what it has downloaded this
# program reads, online without fetching a weight and offline; what this program keeps with --cache it reads, offline too,
# and fetches no weight for the rest. The newest client keeps weights once for all repos of a cache unless told not to.
# Needs python3 (3.10 or later) with venv, and PyPI. HF_HUB_OLD and HF_HUB_NEW name other versions, as pip writes them.
set -euo pipefail
cd "$(dirname "$0")/../.."
clients=$PWD/internal/hubtest/testdata/clients
work=$(mktemp -d)
pid=
stop() {
	if [ -n "$pid" ]; then kill -TERM "$pid" 2>/dev/null || true; fi
	chmod -R u+w "$work" && rm -rf "$work"
}
trap stop EXIT

# client NAME PACKAGE…: a virtual environment with a client.
client() {
	python3 -m venv "$work/$1"
	if ! "$work/$1/bin/pip" install --quiet --disable-pip-version-check "${@:2}"; then
		echo "!! SKIPPED: ${*:2} cannot be had here"
		exit 0
	fi
}
client old "${HF_HUB_OLD:-huggingface_hub==0.36.2}"
"$work/old/bin/pip" uninstall --quiet --yes hf-xet
client new "${HF_HUB_NEW:-huggingface_hub==2.4.0}" hf-xet

go build -o "$work/hubd" ./internal/hubtest/hubd
go build -o "$work/df11-convert" ./cmd/df11-convert
export HF_HOME=$work/home HF_TOKEN=hf_test NO_PROXY='*' HF_HUB_DISABLE_PROGRESS_BARS=1 HF_HUB_DISABLE_TELEMETRY=1 \
	HF_HUB_DISABLE_UPDATE_CHECK=1 HF_HUB_VERBOSITY=error

# serve starts hubd with the same repos at the same commits as ever.
serve() {
	: >"$work/out"
	"$work/hubd" -data "$work/data" -model org/tiny -xet-hashes -log >"$work/out" 2>"$work/log" &
	pid=$!
	for _ in $(seq 100); do
		HF_ENDPOINT=$(sed -n 's/^READY //p' "$work/out")
		export HF_ENDPOINT
		if [ -n "$HF_ENDPOINT" ]; then return; fi
		sleep 0.1
	done
	echo "hubd did not start" >&2
	exit 1
}

# finish: ends hubd, which must exit with 0 and have seen no token on the storage host.
finish() {
	kill -TERM "$pid"
	wait "$pid"
	pid=
	if grep -A9 '^violations' "$work/log"; then exit 1; fi
}

# fetched TEXT: whether the storage host was asked for bytes at an address with the text in it.
fetched() { grep -q " cdn GET .*$1" "$work/log"; }

fail() {
	echo "FAIL $*" >&2
	exit 1
}

python() { "$work/$1/bin/python" "$clients/cache.py" "${@:2}"; }

# convert OUT FLAGS…: converts org/tiny and compares the result with the first one.
convert() {
	"$work/df11-convert" org/tiny -o "$work/$1" --gpu off --quiet "${@:2}" >/dev/null
	if [ "$1" != plain ]; then
		diff -r "$work/plain" "$work/$1"
		rm -r "${work:?}/$1"
	fi
}

offline() { HF_HUB_OFFLINE=1 HF_ENDPOINT=http://127.0.0.1:9 "$@"; }

serve
HF_HUB_CACHE=$work/none convert plain
finish
fetched /repos/ || fail "no request for weights is seen"

# both CLIENT LAYOUT: a cache that the client begins, and one that this program begins.
both() {
	export HF_HUB_CACHE=$work/cache
	rm -rf "$HF_HUB_CACHE"
	serve
	python "$1" download "$2"
	finish
	serve
	convert again
	finish
	if fetched /repos/; then fail "weights were fetched that the client has downloaded"; fi
	offline convert again

	rm -rf "$HF_HUB_CACHE"
	serve
	convert again --cache
	finish
	kept=$(ls "$HF_HUB_CACHE/models--org--tiny/blobs")
	offline python "$1" weights
	serve
	python "$1" download "$3"
	finish
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
