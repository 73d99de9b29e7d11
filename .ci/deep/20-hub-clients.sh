#!/usr/bin/env bash
# Proves internal/hubtest against the official clients: huggingface_hub (Python)
# and @huggingface/hub (JavaScript) run whole downloads and uploads against hubd.
# Needs python3 (3.10 or later) with venv, node with npm, and their registries.
# HF_HUB_PYTHON and HF_HUB_JS name other versions, as pip and npm write them.
# Xet is left out: hf_xet is removed and HF_HUB_DISABLE_XET is set.
set -euo pipefail
cd "$(dirname "$0")/../.."
clients=$PWD/internal/hubtest/testdata/clients
work=$(mktemp -d)
pid=
stop() {
	if [ -n "$pid" ]; then kill -TERM "$pid" 2>/dev/null || true; fi
	rm -rf "$work"
}
trap stop EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check "${HF_HUB_PYTHON:-huggingface_hub==2.4.0}"
"$work/venv/bin/pip" uninstall --quiet --yes hf-xet
mkdir "$work/js"
(cd "$work/js" && npm init --yes >/dev/null && npm install --silent --no-fund --no-audit "${HF_HUB_JS:-@huggingface/hub@2.17.5}")

go build -o "$work/hubd" ./internal/hubtest/hubd

# serve FLAGS…: starts hubd and sets $url.
serve() {
	: >"$work/out"
	"$work/hubd" -data "$work/data" -model org/tiny -xet-hashes "$@" >"$work/out" 2>"$work/err" &
	pid=$!
	for _ in $(seq 100); do
		url=$(sed -n 's/^READY //p' "$work/out")
		if [ -n "$url" ]; then return; fi
		sleep 0.1
	done
	echo "hubd did not start" >&2
	cat "$work/err" >&2
	exit 1
}

# finish: ends hubd, which must exit with 0 and have seen no token on the
# storage host.
finish() {
	kill -TERM "$pid"
	wait "$pid"
	pid=
	if grep -A9 '^violations' "$work/err"; then exit 1; fi
}

run_clients() {
	rm -rf "$work/scratch" && mkdir "$work/scratch"
	"$work/venv/bin/python" "$clients/client.py" "$url" "$work/scratch"
	(cd "$work/js" && node "$clients/client.mjs" "$url")
}

echo "== plain hub, small parts and pages"
serve -multipart-from 300000 -chunk-size 250000 -page-size 5
run_clients
finish

echo "== the same while the storage host and the uploads stumble"
serve -multipart-from 300000 -chunk-size 250000 -fault put-503:2 -fault complete-500:1
rm -rf "$work/scratch" && mkdir "$work/scratch"
"$work/venv/bin/python" "$clients/client.py" "$url" "$work/scratch"
finish

echo "hub clients: both agree with hubd"
