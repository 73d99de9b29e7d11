#!/usr/bin/env bash
# Proves the GPU kernel as far as possible without a GPU:
#   1. compiles decode.cu again and wants the committed PTX, byte for byte;
#   2. assembles our PTX and the official decode.ptx (from the dfloat11 0.5.0 wheel) with NVIDIA's own ptxas, that of CUDA 12.9
#      and the newest 13.x, for every target that they know: no errors, no spilled registers but a few on Volta, and few of them in decode_tiles;
#   3. runs the PTX of both in the interpreter, on golden and on thousands of random and corrupt units.
# No step here uses a GPU: verify/testdata/gpu-run.sh is for that.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

# The compiler's version decides the bytes, see verify/kernel/generate.sh.
wanted=19.1.7
if ! have clang-19 && ! debian clang-19; then
  skip "clang-19 is missing here: decode.ptx was not generated again"
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

# --- assembling -------------------------------------------------------------------------------------------------------

# tools FOLDER PACKAGE…: gets NVIDIA's programs and prints where ptxas is; they are used here, never passed on.
tools() {
  once "$1" wheels "$@" || return
  find "$1" -path '*/bin/*' -type f -exec chmod +x {} +
  find "$1" -name ptxas -path '*/bin/*'
}

# The registers of a thread of decode_tiles, and decode_picked, with which as many blocks of 512 threads run at once as a multiprocessor of 65536
# registers has threads for: 4 on A100, H100 and B200, 3 on RTX cards, 2 on T4.
declare -A registers=([sm_75]=64 [sm_80]=32 [sm_86]=40 [sm_89]=40 [sm_90]=32 [sm_100]=32 [sm_120]=40)

# assemble PTXAS PTX: has ptxas assemble a text for every target that both know.
assemble() {
  local least target log entry used
  least=$(sed -n 's/^\.target sm_\([0-9]*\).*/\1/p' "$2")
  for target in $("$1" --help | grep -oE "'sm_[0-9]+'" | tr -d "'" | sort -uV); do
    [ "${target#sm_}" -ge "$least" ] || continue
    log=$("$1" -v -arch "$target" -o "$work/kernel.cubin" "$2" 2>&1) || fail "ptxas for $target: $log"
    spilled='no spilled registers'
    if grep -qE '[1-9][0-9]* bytes spill' <<<"$log"; then # on Volta, ptxas 12.9 spills 16 bytes of decode_picked: right, but slower
      if [[ $target != sm_7[02] ]] || grep -E '[3-9][0-9] bytes spill|[0-9]{3,} bytes spill' <<<"$log"; then fail "registers spill on $target"; fi
      spilled='a few spilled registers'
    fi
    for entry in decode_tiles decode_picked; do
      used=$(sed -n "/function '$entry'/,\$ s/.*Used \([0-9]*\) registers.*/\1/p" <<<"$log" | head -1)
      [ "${used:-0}" -le "${registers[$target]:-255}" ] || fail "$entry uses $used registers on $target"
    done
    echo "$(basename "$2") for $target: $spilled${used:+, $used in decode_picked}"
  done
}

if ! old=$(tools "$CI_CACHE/ptxas-12.9" nvidia-cuda-nvcc-cu12==12.9.86) || ! new=$(tools "$CI_CACHE/ptxas-13" 'nvidia-cuda-nvcc>=13,<14'); then
  skip 'the wheels with ptxas are missing here: nothing was assembled'
else
  for ptxas in "$old" "$new"; do
    assemble "$ptxas" verify/kernel/decode.ptx
    assemble "$ptxas" "$official"
  done
fi

# --- PTX --------------------------------------------------------------------------------------------------------------

DF11_CI=1 DF11_DEEP=1 DF11_OFFICIAL_PTX=$official go test -count=1 -timeout 40m ./verify/kernel
