#!/usr/bin/env bash
# Proves and measures GPU decoding on a machine with an NVIDIA GPU: bash verify/testdata/gpu-run.sh [OUT]
#
#   OUT               folder for all output (gpu-results); OUT/results.md sums it up on one page, for docs/measured.md
#   VERIFY_TEST       a test binary built elsewhere: CGO_ENABLED=0 go test -c -o verify.test ./verify. Without it you need Go
#   DF11_CONVERT      the program, built elsewhere: CGO_ENABLED=0 go build ./cmd/df11-convert. Without it you need Go
#   DF11_PYTHON       a Python with torch, transformers, accelerate, the wheel of df11-convert and, to compare with it, dfloat11[cuda12];
#                     without it, no model runs. gpu-loaders.py takes 64 GB of disk and a quarter of an hour
#   DF11_GPU_WEIGHTS  weights of the unit whose verification is measured (1 GiB of BF16 without it)
#   DF11_GPU_DRIVER   another driver library, such as the tests' stand-in; then the results say that no GPU was used
#
# Made for an hour on a rented machine that has only the driver, this folder, and what the variables name. First it checks
# whether the weights are right, then how fast, then a whole conversion, then models in loaders, and last the sanitizers, for at most
# 20 minutes each. Every step runs, or a line "NOT RUN" says why not. The exit status is that of the first step that failed, or 1 if
# nothing could run.
set -uo pipefail

# --- where things are: paths are relative to the caller ------------------------------------------------------------------

out=${1:-gpu-results}
mkdir -p "$out" || exit 1
out=$(realpath "$out")
for name in VERIFY_TEST DF11_CONVERT DF11_PYTHON DF11_GPU_DRIVER; do
  if [ -n "${!name-}" ]; then declare -x "$name=$(realpath -ms "${!name}")"; fi # a link to Python finds its packages
done
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
status=0
steps=()
for name in machine not-run build driver golden decode mismatch rates demo loaders sanitizer-{memcheck,racecheck,synccheck,initcheck}; do
  rm -f "$out/$name.txt"
done
rm -f "$out/results.md"
touch "$out/not-run.txt"

# --- helpers ----------------------------------------------------------------------------------------------------------

# missing WHAT…: reports a step that doesn't run, and why.
missing() { printf 'NOT RUN: %s\n' "$*" | tee -a "$out/not-run.txt"; }

fail() { if [ "$status" = 0 ]; then status=$1; fi; }

# step NAME COMMAND…: runs the command, keeps its output, and goes on if it fails; "$rc" is its exit status.
step() {
  local name=$1
  shift
  steps+=("$name")
  {
    printf '== %s: %s\n' "$name" "$*"
    (cd verify && exec "$@") 2>&1
    rc=$?
    printf '== %s: exit status %d\n' "$name" "$rc"
    echo "$rc" >"$scratch/rc"
  } | tee "$out/$name.txt"
  rc=$(cat "$scratch/rc")
}

# hardware NAME TEST: runs one of the hardware tests.
hardware() {
  step "$1" "$VERIFY_TEST" -test.v -test.timeout 30m -test.run "^$2\$"
  fail "$rc"
}

# reason FILE: prints the last line of an output that says what went wrong.
reason() { grep -E 'DF11_GPU=1, but|[Ee]rror|cannot|no such|not found|refus' "$1" | tail -1 | sed -E 's/^[ =]*//; s/^[a-z_]+\.go:[0-9]+: //; s/^DF11_GPU=1, but: //'; }

# --- the pieces -------------------------------------------------------------------------------------------------------

# describe_machine prints what this machine is.
describe_machine() {
  local changes
  date -u +'date: %Y-%m-%d %H:%M UTC'
  if git rev-parse HEAD >"$scratch/commit" 2>/dev/null; then
    changes=$(git status --porcelain 2>/dev/null | grep -vc '^??')
    printf 'commit: %s, %d changed files\n' "$(cat "$scratch/commit")" "$changes"
  else
    echo 'commit: unknown to git'
  fi
  printf 'system: %s, %s processors\n' "$(uname -srm)" "$(nproc)"
  grep -E '^(MemTotal|MemAvailable)' /proc/meminfo
  if [ -n "${DF11_GPU_DRIVER-}" ]; then
    printf 'SIMULATED: the driver is %s. If that is the stand-in of the tests, no GPU was used for anything here.\n' "$DF11_GPU_DRIVER"
  elif ! nvidia-smi 2>"$scratch/smi"; then
    echo "no nvidia-smi: $(head -1 "$scratch/smi")"
    cat /proc/driver/nvidia/version 2>/dev/null || echo 'no /proc/driver/nvidia/version: the driver is not loaded here'
  fi
}

# find_driver helps the loader find a driver in a folder that only containers know.
find_driver() {
  local folder
  for folder in /usr/local/nvidia/lib64 /usr/lib/wsl/lib /usr/lib64-nvidia; do
    if [ -e "$folder/libcuda.so.1" ]; then export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; fi
  done
}

# find_tests builds the test binary, unless there is one.
find_tests() {
  if [ -n "${VERIFY_TEST-}" ]; then
    [ -x "$VERIFY_TEST" ] || { missing "everything: VERIFY_TEST, $VERIFY_TEST, is not an executable file"; return 1; }
    return
  fi
  VERIFY_TEST=$scratch/verify.test
  if ! command -v go >/dev/null; then
    missing 'everything: there is no Go here, and VERIFY_TEST names no test binary made elsewhere'
    return 1
  fi
  if ! CGO_ENABLED=0 go test -c -o "$VERIFY_TEST" ./verify 2>&1 | tee "$out/build.txt"; then
    missing "everything: the tests do not compile: $(tail -1 "$out/build.txt")"
    return 1
  fi
}

# demonstrate converts a model and proves it, also on the GPU, with the released program.
demonstrate() {
  if [ -n "${DF11_GPU_DRIVER-}" ]; then
    missing 'the demo: the program takes no other driver than the system'\''s'
    return
  elif [ -n "${DF11_CONVERT-}" ]; then
    [ -x "$DF11_CONVERT" ] || { missing "the demo: DF11_CONVERT, $DF11_CONVERT, is not an executable file"; return; }
  elif ! command -v go >/dev/null; then
    missing 'the demo: there is no Go here, and DF11_CONVERT names no program made elsewhere'
    return
  else
    DF11_CONVERT=$scratch/df11-convert
    if ! CGO_ENABLED=0 go build -o "$DF11_CONVERT" ./cmd/df11-convert 2>"$scratch/go"; then
      missing "the demo: the program does not compile: $(tail -1 "$scratch/go")"
      return
    fi
  fi
  step demo timeout -k 30s 10m "$DF11_CONVERT" demo --gpu require
  fail "$rc"
}

# run_loaders generates text with models in BF16, in the official loader, and in df11.
run_loaders() {
  if [ -z "${DF11_PYTHON-}" ]; then
    missing 'the loaders: DF11_PYTHON names no Python with torch and the wheel of df11-convert'
  elif [ ! -x "${DF11_CONVERT-}" ]; then
    missing 'the loaders: there is no program that makes their models'
  else
    step loaders timeout -k 30s 20m "$DF11_PYTHON" testdata/gpu-loaders.py "$DF11_CONVERT" "$scratch"
    fail "$rc"
    { grep '^NOT MEASURED' "$out/loaders.txt" || true; } | while read -r line; do missing "${line#NOT MEASURED: }"; done
  fi
}

# sanitize runs the golden units under compute-sanitizer. A run without a summary has checked nothing.
sanitize() {
  local sanitizer candidate tool
  sanitizer=$(command -v compute-sanitizer)
  for candidate in /usr/local/cuda*/bin/compute-sanitizer /opt/cuda/bin/compute-sanitizer; do
    if [ -z "$sanitizer" ] && [ -x "$candidate" ]; then sanitizer=$candidate; fi
  done
  if [ -z "$sanitizer" ]; then
    missing 'the sanitizer steps: there is no compute-sanitizer on this machine'
    return
  fi
  for tool in memcheck racecheck synccheck initcheck; do
    step "sanitizer-$tool" timeout -k 30s 20m "$sanitizer" --tool "$tool" --error-exitcode 9 "$VERIFY_TEST" -test.timeout 60m -test.run '^TestHardwareGolden$'
    if grep -q 'SUMMARY' "$out/sanitizer-$tool.txt"; then
      fail "$rc"
    else
      missing "sanitizer-$tool: it ended with $rc and no summary: $(reason "$out/sanitizer-$tool.txt")"
    fi
  done
}

# run_steps runs everything that needs the GPU.
run_steps() {
  export DF11_GPU=1
  hardware driver TestHardwareDriver
  if [ "$status" != 0 ]; then
    missing "golden, decode, mismatch, rates, demo, loaders, sanitizer: no GPU can be used: $(reason "$out/driver.txt")"
    return
  fi
  hardware golden TestHardwareGolden
  hardware decode TestHardwareDecode
  hardware mismatch TestHardwareMismatch
  step rates "$VERIFY_TEST" -test.v -test.timeout 30m -test.run '^$' -test.bench '^BenchmarkHardware$' -test.benchtime 1x
  fail "$rc"
  demonstrate
  run_loaders
  sanitize
}

# lines PATTERN: prints what the tests logged after file and line.
lines() { cat "$out"/driver.txt "$out"/rates.txt "$out"/loaders.txt 2>/dev/null | grep -oE "$1" || echo 'none'; }

# page prints everything as one page for docs/measured.md.
page() {
  local name
  echo '# GPU results'
  if [ -n "${DF11_GPU_DRIVER-}" ] || grep -qs 'DEVICE Stub' "$out/driver.txt"; then
    printf '\n**SIMULATED. No GPU was used: not a result, and not to be published as one.**\n'
  elif ! grep -qs 'DEVICE ' "$out/driver.txt"; then
    printf '\n**No GPU run has been made.** Nothing below was decoded by a GPU.\n'
  fi
  printf '\n## Machine\n\n```\n' && cat "$out/machine.txt" && lines 'DEVICE .*' && printf '```\n'
  printf '\n## Steps\n\n| step | exit status |\n| --- | --- |\n'
  for name in "${steps[@]}"; do
    printf '| %s | %s |\n' "$name" "$(sed -n 's/^== .*: exit status //p' "$out/$name.txt" | tail -1)"
  done
  printf '\n## Not run\n\n' && { sed 's/^NOT RUN: /* /' "$out/not-run.txt" | grep . || echo 'Everything was run.'; }
  printf '\n## Rates and goals\n\n```\n' && lines '(RATE|GOAL) .*' && printf '```\n'
  printf '\n## Raw output\n'
  for name in "${steps[@]}"; do
    printf '\n### %s\n\n```\n' "$name" && cat "$out/$name.txt" && printf '```\n'
  done
}

# --- run --------------------------------------------------------------------------------------------------------------

describe_machine | tee "$out/machine.txt"
find_driver
if find_tests; then
  run_steps
else
  status=1
fi
page >"$out/results.md"
printf '\n== not run:\n' && { grep . "$out/not-run.txt" || echo 'nothing was left out'; }
printf '== exit status %d; %s is the page for docs/measured.md\n' "$status" "$out/results.md"
exit "$status"
