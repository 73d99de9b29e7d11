#!/usr/bin/env bash
# Rehearses verify/testdata/gpu-run.sh, as on a rented machine: a bare PATH without Go, Git and Python, a test binary and the
# program made elsewhere, and stand-ins for what belongs to the machine: the driver's library (verify/testdata/stub, found as the
# real one is), nvidia-smi and compute-sanitizer. Steps fail, hang and cannot be run; the page has to say so.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh
have gcc || skip_rest 'there is no gcc for the stand-in of the driver: gpu-run.sh was not rehearsed'

converter
go test -c -o "$work/verify.test" ./verify
mkdir "$work"/{driver,box}
gcc -shared -fPIC -O2 -pthread -DDIR="\"$work/driver\"" -o "$work/driver/libcuda.so.1" verify/testdata/stub/stub.c

for name in bash cat date dirname env grep head mkdir mktemp nproc realpath rm sed sha256sum sleep sort tail tee touch tr uname; do
  ln -s "$(command -v $name)" "$work/box/$name"
done
printf '#!/bin/bash\necho "Stub 0, as nvidia-smi shows it"\n' >"$work/box/nvidia-smi"
# What hangs does so for seconds here.
cat >"$work/box/timeout" <<TIMEOUT
#!/bin/bash
if [ "\${SANITIZER-}" = hangs ]; then shift 3; set -- -k 1s 2s "\$@"; fi
exec $(command -v timeout) "\$@"
TIMEOUT
# compute-sanitizer as the real one: what the program prints, then a summary, and 9 where it found errors.
cat >"$work/box/compute-sanitizer" <<'SANITIZER'
#!/bin/bash
[ "$1 $3 $4" = '--tool --error-exitcode 9' ] || exit 2
tool=$2
shift 4
echo '========= COMPUTE-SANITIZER'
case ${SANITIZER-}/$tool in
  dies/*) echo '========= Error: Target application terminated before first instrumented API call'; exit 1 ;;
  hangs/racecheck) trap '' TERM; while :; do sleep 1; done ;;
esac
"$@" || exit
case ${SANITIZER-}/$tool in
  finds/memcheck) echo '========= ERROR SUMMARY: 3 errors'; exit 9 ;;
  *) echo '========= ERROR SUMMARY: 0 errors' ;;
esac
SANITIZER
# The rest of the rehearsals take this for the test binary: STEPS says which one fails.
cat >"$work/quick.test" <<'TESTS'
#!/bin/bash
case "$*" in
  *Driver*) [ "${STEPS-}" = driver ] && { echo 'gpu_hardware_test.go:44: DF11_GPU=1, but: no NVIDIA driver'; exit 1; }; echo 'DEVICE Stub 0' ;;
  *Decode*) [ "${STEPS-}" = decode ] && { echo 'weight 7 is wrong'; exit 3; } ;;
esac
echo PASS
TESTS
# The Python of the loaders, of which only gpu-loaders.py with small shapes is run here (74-wheel.sh).
cat >"$work/python" <<'PYTHON'
#!/bin/bash
[ "$1" = testdata/gpu-loaders.py ] && [ -f "$1" ] && [ -x "$2" ] && [ -d "$3" ] || exit 2
case ${LOADERS-} in
  differ) echo 'RATE dense, df11, 8 sequences: 9 tokens/s, tokens DIFFER'; exit 1 ;;
  alone) echo 'NOT MEASURED: dfloat11: no module' ;;
esac
echo 'RATE dense, df11, 1 sequences: 9 tokens/s, tokens equal'
PYTHON
chmod +x "$work/python"
printf '#!/bin/bash\necho "demo: no room"\nexit 4\n' >"$work/fails"
chmod +x "$work"/box/{nvidia-smi,timeout,compute-sanitizer} "$work"/{quick.test,fails}

# rehearse NAME STATUS [VARIABLE=VALUE…]: gpu-run.sh must end with that status; $page is what it wrote.
rehearse() {
  local name=$1 want=$2 status=0
  shift 2
  page=$work/$name/results.md
  env -i HOME="$work" TMPDIR="$work" PATH="$work/box" LD_LIBRARY_PATH="$work/driver" DF11_GPU_WEIGHTS=100000 VERIFY_TEST="$work/quick.test" \
    DF11_CONVERT="$work/box/nvidia-smi" DF11_PYTHON="$work/python" "$@" \
    bash verify/testdata/gpu-run.sh "$work/$name" >"$work/$name.log" 2>&1 || status=$?
  [ "$status" = "$want" ] || { tail -60 "$work/$name.log"; fail "$name: gpu-run.sh ended with $status, not $want"; }
  echo "rehearsed: $name"
}

# says TEXT…: each is on the page.
says() {
  local text
  for text in "$@"; do grep -qF -- "$text" "$page" || { cat "$page"; fail "${page#"$work/"} does not say: $text"; }; done
}

: >"$work/driver/faults"
rehearse well 0 VERIFY_TEST="$work/verify.test" DF11_CONVERT="$DF11_CONVERT"
says SIMULATED 'DEVICE Stub 0' 'as nvidia-smi shows it' '| rates | 0 |' '| demo | 0 |' '| loaders | 0 |' 'RATE dense, df11' 'GOAL ' 'Everything was run.'
for tool in memcheck racecheck synccheck initcheck; do says "| sanitizer-$tool | 0 |"; done
if grep -q VIOLATION "$work/driver/log"; then fail 'the driver was misused'; fi

echo 'flip 1 5' >"$work/driver/faults" # one bit of the first decoding is wrong
rehearse 'broken GPU' 1 VERIFY_TEST="$work/verify.test"
says '| golden | 1 |'
: >"$work/driver/faults"

rehearse 'wrong weights' 3 STEPS=decode
says '| decode | 3 |' 'weight 7 is wrong' '| rates | 0 |' '| sanitizer-initcheck | 0 |'
rehearse 'other tokens' 1 LOADERS=differ
says '| loaders | 1 |' 'tokens DIFFER' '| sanitizer-memcheck | 0 |'
rehearse 'one loader alone' 0 LOADERS=alone
says '* dfloat11: no module'
rehearse 'errors that a sanitizer finds' 9 SANITIZER=finds
says '| sanitizer-memcheck | 9 |' 'ERROR SUMMARY: 3 errors' '| sanitizer-initcheck | 0 |'
rehearse 'a sanitizer that cannot run Go' 0 SANITIZER=dies
says '* sanitizer-memcheck: it ended with 1 and no summary: Error: Target application terminated' '* sanitizer-initcheck: it ended with 1'
rehearse 'a sanitizer that hangs' 0 SANITIZER=hangs
says '* sanitizer-racecheck: it ended with 137 and no summary' '| sanitizer-synccheck | 0 |'
rehearse 'a demo that fails' 4 DF11_CONVERT="$work/fails"
says '| demo | 4 |' '| sanitizer-initcheck | 0 |'
rehearse 'no driver' 1 STEPS=driver
says 'No GPU run has been made.' 'demo, loaders, sanitizer: no GPU can be used: no NVIDIA driver'
rehearse 'nothing but the script' 1 VERIFY_TEST= DF11_CONVERT=
says 'No GPU run has been made.' '* everything: there is no Go here, and VERIFY_TEST names no test binary'
rm "$work/box/compute-sanitizer" "$work/box/nvidia-smi"
rehearse 'no tools and no program' 0 DF11_CONVERT= DF11_PYTHON=
says 'no nvidia-smi' '* the loaders: DF11_PYTHON names no Python' '* the demo: there is no Go here' '* the sanitizer steps: there is no compute-sanitizer'
