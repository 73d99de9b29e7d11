#!/usr/bin/env bash
# Prints how fast whole conversions are on this machine; judges nothing, because only an idle machine gives useful numbers.
# docs/measured.md explains the figures. Linux only; takes 12 GB of disk and about 4 minutes.
#
#   .ci/speed.sh [ROUNDS]
#   OTHER=/path/to/another/df11-convert .ci/speed.sh    also runs that one, in turns with this one
#
# If there's a program df11pack, another compressor of this format, it runs too.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-3}

. .ci/lib.sh
converter
go build -o "$work/" ./.ci/deep/measure
mkdir -p "$work"/{data/org/qwen,one,out}
qwen=$work/data/org/qwen
"$work/measure" -model qwen -out "$qwen"
"$work/measure" -model layer -out "$work/one"

# both MODEL: our conversion of a folder to a folder, and that of OTHER.
both() {
  printf '%s\n' "df11-convert=$DF11_CONVERT $1 -o {out} --quiet"
  [ -z "${OTHER-}" ] || printf '%s\n' "other=$OTHER $1 -o {out} --quiet"
}

# same: what two programs made is the same, byte for byte.
same() { [ -z "${OTHER-}" ] || diff -r "$work/out/df11-convert" "$work/out/other"; }

mapfile -t programs < <(both "$qwen")
if have df11pack; then
  arch=$(df11pack architectures | grep -io 'qwen3[-_a-z0-9.]*' | head -n 1)
  programs+=("df11pack=df11pack compress $qwen --arch $arch -o {out}" "df11pack-safe=df11pack compress $qwen --arch $arch -o {out} --safe")
fi

echo
echo 'Qwen3-0.6B-shaped, 28 units and an embedding, 596 M weights in one file, folder to folder'
"$work/measure" -reads "$qwen" -out "$work/out" -rounds "$rounds" -weights 596e6 "${programs[@]}"
same
result=$(du -sb "$work/out/df11-convert" | cut -f 1)

echo
echo 'one unit of 1.02 G weights in one file, folder to folder'
mapfile -t programs < <(both "$work/one")
"$work/measure" -reads "$work/one" -out "$work/out" -rounds "$rounds" -weights 1.04e9 "${programs[@]}"
same
rm -rf "$work/one" "$work/out"/*

start_hub data
export HF_TOKEN=token HF_HOME=$work/hf
gb() { awk -v n="$1" 'BEGIN { printf "%.3f", n / 1e9 }'; }

echo
echo 'the same model from a hub in another process: what fetching costs more than a local folder, for each GB of the source'
"$work/measure" -reads "$qwen" -out "$work/out" -rounds "$rounds" -weights 596e6 -gb "$(gb "$(du -sb "$qwen" | cut -f 1)")" \
  "folder=$DF11_CONVERT $qwen -o {out} --quiet" "hub=$DF11_CONVERT org/qwen -o {out} --quiet"

echo
echo 'and to that hub: what uploading costs more, for each GB of the result'
"$work/measure" -reads "$qwen" -out "$work/out" -rounds "$rounds" -weights 596e6 -gb "$(gb "$result")" \
  "hub=$DF11_CONVERT org/qwen -o {out} --quiet" "hub-to-hub=$DF11_CONVERT org/qwen --push --repo-id tester/out-{run} --work-dir {out} --quiet"
