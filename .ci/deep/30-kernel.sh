#!/usr/bin/env bash
# Proves the GPU kernel as far as that goes without a GPU:
#   1. compiles decode.cu again and wants the committed PTX, byte for byte;
#   2. assembles our PTX and the official decode.ptx (from the dfloat11 0.5.0 wheel) with NVIDIA's own ptxas, that of CUDA 12.9
#      and the newest 13.x, for every target that they know: no errors, no spilled registers;
#   3. runs that machine code in an emulator, on golden units, and ours on corrupt ones and with instructions spoiled;
#   4. runs the PTX of both in the interpreter, on golden and on thousands of random and corrupt units.
# No step here uses a GPU: verify/testdata/gpu-run.sh is for that.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

# The compiler's version decides the bytes, see verify/kernel/generate.sh.
wanted=19.1.7
if ! have clang-19 && ! debian clang-19; then
  skip "clang-19 is not to be had here: decode.ptx was not generated again"
elif ! clang-19 --version | grep -q "version $wanted\b"; then
  skip "clang-19 is $(clang-19 --version | head -1), not $wanted: decode.ptx was not generated again"
else
  verify/kernel/generate.sh >"$work/decode.ptx"
  cmp "$work/decode.ptx" verify/kernel/decode.ptx
  echo 'decode.ptx is what clang-19 makes of decode.cu'
fi

# The official kernel, never kept in the tree.
once "$CI_CACHE/official-kernel-0.5.0" wheels "$CI_CACHE/official-kernel-0.5.0" dfloat11==0.5.0
official=$CI_CACHE/official-kernel-0.5.0/dfloat11/decode.ptx
echo "cc9b78f6a14c9118abf46a733390f14ef66a9c2eb4db04ded9b74183a02665cf  $official" | sha256sum --check --quiet

# --- machine code -----------------------------------------------------------------------------------------------------

# tools FOLDER PACKAGE…: gets NVIDIA's programs and prints where ptxas is; they are used here, never passed on.
tools() {
  once "$1" wheels "$@" || return
  find "$1" -path '*/bin/*' -type f -exec chmod +x {} +
  find "$1" -name ptxas -path '*/bin/*'
}

if ! old=$(tools "$CI_CACHE/ptxas-12.9" nvidia-cuda-nvcc-cu12==12.9.86) || ! new=$(tools "$CI_CACHE/ptxas-13" 'nvidia-cuda-nvcc>=13,<14' 'nvidia-cuda-nvdisasm>=13,<14'); then
  skip 'the wheels with ptxas are not to be had here: nothing was assembled, no machine code was run'
else
  for ptxas in "$old" "$new"; do
    DF11_PTXAS=$ptxas DF11_NVDISASM=$(dirname "$new")/nvdisasm DF11_OFFICIAL_PTX=$official DF11_CI=1 DF11_DEEP=1 \
      go test -count=1 -timeout 20m -v -run '^TestMachine' ./verify/kernel | grep -E '^ *--- |lane slots|NOT TESTED|FAIL|^ok'
  done
fi

# --- PTX --------------------------------------------------------------------------------------------------------------

DF11_CI=1 DF11_DEEP=1 DF11_OFFICIAL_PTX=$official go test -count=1 -timeout 40m ./verify/kernel
