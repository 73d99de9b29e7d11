#!/usr/bin/env bash
# Prints how fast whole conversions are on this machine; judges nothing, since that is only worth something on an idle one.
# docs/performance.md tells what the figures mean. Linux only; takes 12 GB of disk and about 4 minutes.
#
#   .ci/speed.sh [ROUNDS]
#   OTHER=/path/to/another/df11-convert .ci/speed.sh    also runs that one, in turns with this one
#
# df11pack (PyPI), another compressor of this format, runs beside it where it can be installed.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-3}

scratch=$(mktemp -d)
hub=
trap '[ -z "$hub" ] || kill "$hub" 2>/dev/null || true; rm -rf "$scratch"' EXIT
export CGO_ENABLED=0
if [ -z "${DF11_CONVERT-}" ]; then
  DF11_CONVERT=$scratch/df11-convert
  go build -o "$DF11_CONVERT" ./cmd/df11-convert
fi
go build -o "$scratch/" ./.ci/deep/speed ./.ci/deep/memory ./internal/hubtest/hubd
mkdir -p "$scratch"/{data/org/qwen,one,out}
qwen=$scratch/data/org/qwen
"$scratch/speed" -model "$qwen"
"$scratch/memory" -model "$scratch/one"

# both MODEL: our conversion of a folder to a folder, and that of OTHER.
both() {
  printf '%s\n' "df11-convert=$DF11_CONVERT $1 -o {out} --quiet"
  [ -z "${OTHER-}" ] || printf '%s\n' "other=$OTHER $1 -o {out} --quiet"
}

# same: what two programs made is the same, byte for byte.
same() { [ -z "${OTHER-}" ] || diff -r "$scratch/out/df11-convert" "$scratch/out/other"; }

mapfile -t programs < <(both "$qwen")
if python3 -m venv "$scratch/venv" && "$scratch/venv/bin/pip" install -q --disable-pip-version-check df11pack==0.1.1 2>/dev/null; then
  pack=$scratch/venv/bin/df11pack
  arch=$("$pack" architectures | grep -io 'qwen3[-_]0\.6b' | head -n 1 || true)
  [ -n "$arch" ] || arch=$("$pack" architectures | grep -io 'qwen3[-_a-z0-9.]*' | head -n 1)
  programs+=("df11pack=$pack compress $qwen --arch $arch -o {out}" "df11pack-safe=$pack compress $qwen --arch $arch -o {out} --safe")
else
  echo '!! SKIPPED: df11pack 0.1.1 cannot be installed here'
fi

echo
echo 'Qwen3-0.6B-shaped, 28 units and an embedding, 596 M weights in one file, folder to folder'
"$scratch/speed" -reads "$qwen" -out "$scratch/out" -rounds "$rounds" -weights 596e6 "${programs[@]}"
same
result=$(du -sb "$scratch/out/df11-convert" | cut -f 1)

echo
echo 'one unit of 1.02 G weights in one file, folder to folder'
mapfile -t programs < <(both "$scratch/one")
"$scratch/speed" -reads "$scratch/one" -out "$scratch/out" -rounds "$rounds" -weights 1.04e9 "${programs[@]}"
same
rm -rf "$scratch/one" "$scratch/out"/*

"$scratch/hubd" -data "$scratch/data" >"$scratch/hub.log" 2>&1 &
hub=$!
url=
for _ in $(seq 600); do
  url=$(sed -n 's/^READY //p' "$scratch/hub.log")
  [ -z "$url" ] || break
  sleep 0.1
done
export HF_ENDPOINT=$url HF_TOKEN=token HF_HOME=$scratch/hf
gb() { awk -v n="$1" 'BEGIN { printf "%.3f", n / 1e9 }'; }

echo
echo 'the same model from a hub in another process: what fetching costs more than a local folder, for each GB of the source'
"$scratch/speed" -reads "$qwen" -out "$scratch/out" -rounds "$rounds" -weights 596e6 -gb "$(gb "$(du -sb "$qwen" | cut -f 1)")" \
  "folder=$DF11_CONVERT $qwen -o {out} --quiet" "hub=$DF11_CONVERT org/qwen -o {out} --quiet"

echo
echo 'and to that hub: what uploading costs more, for each GB of the result'
"$scratch/speed" -reads "$qwen" -out "$scratch/out" -rounds "$rounds" -weights 596e6 -gb "$(gb "$result")" \
  "hub=$DF11_CONVERT org/qwen -o {out} --quiet" "hub-to-hub=$DF11_CONVERT org/qwen --push --repo-id tester/out-{run} --work-dir {out} --quiet"
