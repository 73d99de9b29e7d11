#!/usr/bin/env bash
# Proves and measures GPU decoding on a machine that has an NVIDIA GPU: bash verify/testdata/gpu-run.sh [OUT]
#
# Needs Go, or a test binary made elsewhere: CGO_ENABLED=0 go test -c -o verify.test ./verify, named by VERIFY_TEST.
# DF11_KERNEL names the official decode.ptx (pip download --no-deps dfloat11==0.5.0, a zip file); without it pip is
# asked, and without pip the official kernel is left out, which the output then says.
# All output goes to OUT (default: gpu-results) as well. The exit status is that of the first step that failed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
out=${1:-gpu-results}
mkdir -p "$out"
out=$(cd "$out" && pwd)
status=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# step NAME COMMAND…: runs it, keeps its output, goes on when it fails.
step() {
  local name=$1 rc
  shift
  printf '== %s: %s\n' "$name" "$*"
  (cd verify && "$@") 2>&1 | tee "$out/$name.txt"
  rc=${PIPESTATUS[0]}
  printf '== %s: exit status %d\n' "$name" "$rc"
  if [ "$status" = 0 ]; then status=$rc; fi
}

missing() { printf '!! NOT RUN: %s\n' "$*" | tee -a "$out/not-run.txt"; }

# The driver may lie where only containers look.
for library in /usr/local/nvidia/lib64 /usr/lib/wsl/lib /usr/lib64-nvidia; do
  if [ -e "$library/libcuda.so.1" ]; then export LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; fi
done

rm -f "$out/not-run.txt"
{
  date -u +'%Y-%m-%d %H:%M UTC'
  git rev-parse HEAD 2>/dev/null
  uname -srm
  nvidia-smi 2>/dev/null || echo 'no nvidia-smi'
} | tee "$out/machine.txt"

if [ -z "${VERIFY_TEST-}" ]; then
  VERIFY_TEST=$scratch/verify.test
  CGO_ENABLED=0 go test -c -o "$VERIFY_TEST" ./verify || exit 1
fi
VERIFY_TEST=$(realpath "$VERIFY_TEST")

if [ -z "${DF11_KERNEL-}" ] && python3 -m pip download -q --no-deps -d "$scratch" dfloat11==0.5.0; then
  python3 -m zipfile -e "$scratch"/dfloat11-*.whl "$scratch/dfloat11"
  DF11_KERNEL=$scratch/dfloat11/dfloat11/decode.ptx
fi
if [ -n "${DF11_KERNEL-}" ]; then
  DF11_KERNEL=$(realpath "$DF11_KERNEL")
  export DF11_KERNEL
  sha256sum "$DF11_KERNEL" | tee -a "$out/machine.txt"
else
  missing 'the official kernel: no DF11_KERNEL, and pip cannot get it'
fi

export DF11_GPU=1
step golden "$VERIFY_TEST" -test.v -test.run '^TestHardwareGolden$'
step decode "$VERIFY_TEST" -test.v -test.run '^TestHardwareDecode$'
step mismatch "$VERIFY_TEST" -test.v -test.run '^TestHardwareMismatch$'

sanitizer=$(command -v compute-sanitizer)
for candidate in /usr/local/cuda*/bin/compute-sanitizer; do
  if [ -z "$sanitizer" ] && [ -x "$candidate" ]; then sanitizer=$candidate; fi
done
if [ -n "$sanitizer" ]; then
  for tool in memcheck racecheck synccheck initcheck; do
    step "sanitizer-$tool" "$sanitizer" --tool "$tool" --error-exitcode 9 "$VERIFY_TEST" -test.run '^TestHardwareGolden$'
  done
else
  missing 'compute-sanitizer: not on this machine'
fi

step rates "$VERIFY_TEST" -test.v -test.run '^TestHardwareRates$'
echo "== results are in $out"
exit "$status"
