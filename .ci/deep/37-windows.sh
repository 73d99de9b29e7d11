#!/usr/bin/env bash
# Runs the Windows program: Wine refuses, as Windows does, what Unix allows with files that are open. The demo, a folder, the
# Hub, a repo that is published, verified and decoded again, and kills: each result must be what Linux makes.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh
[ "$(uname -m)" = x86_64 ] || skip_rest 'the Windows program: Wine needs an x86-64 machine'
have jq || debian jq
have wine || debian wine wine64 || skip_rest 'the Windows program: Wine is missing here'
converter

# Wine cannot remove a file as only Windows 10 can, and Go doesn't notice, so its own switch turns that off.
at=$(go env GOROOT)/src/internal/syscall/windows/at_windows.go
sed 's/^var TestDeleteatFallback bool$/var TestDeleteatFallback = true/' "$at" >"$work/at.go"
if cmp -s "$at" "$work/at.go"; then fail 'Go has another name for its switch: look into at_windows.go'; fi
jq -n --arg from "$at" --arg to "$work/at.go" '{Replace: {($from): $to}}' >"$work/overlay.json"
GOOS=windows go build -overlay "$work/overlay.json" -o "$work/bin/" ./cmd/df11-convert
export WINEPREFIX=$work/wine WINEDEBUG=-all HF_HOME=$work/home HF_TOKEN=hf_test
wine wineboot --init >/dev/null 2>&1

# Go asks this library for random numbers; Wine has it from version 8.8 on.
library=$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll
if [ ! -e "$library" ]; then
  have x86_64-w64-mingw32-gcc || debian gcc-mingw-w64-x86-64-win32 || skip_rest 'the Windows program: mingw is missing here'
  x86_64-w64-mingw32-gcc -shared -o "$library" -x c - -ladvapi32 <<'END'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE to, SIZE_T n) { return SystemFunction036(to, (ULONG)n); }
END
fi
windows() { wine "$work/bin/df11-convert.exe" "$@"; }

# A test's output goes to a file, because go test waits for everyone who has the pipe, and Wine's services may start with it.
cat >"$work/bin/run-test" <<'END'
#!/usr/bin/env bash
out=$(mktemp)
status=0
wine "$@" >"$out" 2>&1 || status=$?
cat "$out"
rm "$out"
exit "$status"
END
chmod +x "$work/bin/run-test"

echo '== tests of what handles files'
GOOS=windows go test -overlay "$work/overlay.json" -exec "$work/bin/run-test" ./internal/{disk,forward/fetch,forward/spool,ledger,publish}
GOOS=windows go test -overlay "$work/overlay.json" -exec "$work/bin/run-test" -run Witness ./hub

echo '== demo'
windows demo | tee "$work/demo"
grep -q ': 0 differ' "$work/demo"

echo '== from the Hub'
start_hub data -model org/tiny
cd "$work" # Windows paths are relative to it
"$DF11_CONVERT" org/tiny -o linux --quiet
windows org/tiny -o windows --quiet
diff -r linux windows

echo '== from a folder'
windows decode windows -o original --quiet
"$DF11_CONVERT" original -o linux-local --quiet
windows original -o windows-local --quiet
diff -r linux-local windows-local

echo '== to the Hub, killed'
kills=0
for s in 0.3 0.4 0.5 0.6 0.7 0.8; do
  for to in '--repo-id tester/tiny-DF11 --push' '-o killed'; do
    # shellcheck disable=SC2086
    timeout -s KILL "$s" wine "$work/bin/df11-convert.exe" org/tiny $to --limit-rate 200KB --quiet >/dev/null ||
      { [ $? = 137 ] && kills=$((kills + 1)); }
  done
done 2>"$work/killed.log" || { cat "$work/killed.log"; fail 'a run ended otherwise than by its kill'; }
echo "$kills of 12 runs did not come to their end"
windows org/tiny --repo-id tester/tiny-DF11 --push --quiet
windows verify tester/tiny-DF11
windows org/tiny -o killed --quiet
diff -r linux killed
cd - >/dev/null
wineserver -k || true # it would go on writing to $WINEPREFIX
echo 'Windows: the program makes there what it makes on Linux'
