#!/usr/bin/env bash
# Proves the GPU kernel as far as that goes without a GPU: compiles decode.cu again and wants the committed PTX, byte
# for byte; then runs our PTX and the official decode.ptx (from the dfloat11 0.5.0 wheel) in the interpreter, on golden
# and on thousands of random and corrupt units. With ptxas (PATH or DF11_PTXAS) our PTX is assembled as well.
# No step here uses a GPU: verify/testdata/gpu-run.sh is for that.
set -euo pipefail
cd "$(dirname "$0")/../.."

cache=${CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/df11-ci}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
skip() { printf '!! SKIPPED: %s\n' "$*"; }

# The compiler's version decides the bytes, see verify/kernel/generate.sh.
wanted=19.1.7
if ! command -v clang-19 >/dev/null && command -v apt-get >/dev/null; then
  echo 'install clang-19'
  apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends clang-19 >/dev/null || true
fi
if ! command -v clang-19 >/dev/null; then
  skip "clang-19 is not to be had here: decode.ptx was not generated again"
elif ! clang-19 --version | grep -q "version $wanted\b"; then
  skip "clang-19 is $(clang-19 --version | head -1), not $wanted: decode.ptx was not generated again"
else
  verify/kernel/generate.sh >"$scratch/decode.ptx"
  cmp "$scratch/decode.ptx" verify/kernel/decode.ptx
  echo 'decode.ptx is what clang-19 makes of decode.cu'
fi

ptxas=${DF11_PTXAS:-$(command -v ptxas || true)}
if [ -n "$ptxas" ]; then
  for arch in sm_70 sm_75 sm_80 sm_86 sm_89 sm_90; do
    "$ptxas" -arch "$arch" -v -o "$scratch/decode.cubin" verify/kernel/decode.ptx >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
    if grep 'spill' "$scratch/log" | grep -v ' 0 bytes spill stores, 0 bytes spill loads'; then
      echo "registers spill on $arch"
      exit 1
    fi
  done
  echo 'ptxas takes decode.ptx for sm_70 to sm_90, without spills'
else
  skip 'ptxas is not here: decode.ptx was not assembled'
fi

# The official kernel: read from the wheel, never kept in the tree.
official=$cache/official-kernel-0.5.0/decode.ptx
if [ ! -f "$official" ]; then
  echo 'fetch the official decode.ptx'
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: -d "$scratch" dfloat11==0.5.0
  mkdir -p "$(dirname "$official")"
  python3 - "$scratch"/dfloat11-0.5.0-*.whl "$official.part" <<'PYTHON'
import sys, zipfile
open(sys.argv[2], "wb").write(zipfile.ZipFile(sys.argv[1]).read("dfloat11/decode.ptx"))
PYTHON
  mv "$official.part" "$official"
fi
echo "cc9b78f6a14c9118abf46a733390f14ef66a9c2eb4db04ded9b74183a02665cf  $official" | sha256sum --check --quiet

DF11_CI=1 DF11_DEEP=1 DF11_OFFICIAL_PTX=$official go test -count=1 -timeout 40m ./verify/kernel
