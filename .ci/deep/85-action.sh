#!/usr/bin/env bash
# Runs what action.yml runs, with the environment that a runner sets, against a Hub of our own: a build, a release that is served
# here, success, failure, a part, and a model that tries to give commands to the runner. Needs jq, curl and Python.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh
converter
one_tensor "$work/hub/org/wide" F32 256
start_hub hub -model org/tiny

# Stands in for gh: writes down what it is asked, and says what $gh says: yes, no, or that it is too old.
mkdir "$work/gh"
cat >"$work/gh/gh" <<'END'
#!/bin/sh
case "$GH_SAYS $*" in
old*) exit 1 ;;
*--help) ;;
*) echo "$*" >>"$GH_ASKED"; echo 'no attestation fits'; [ "$GH_SAYS" = yes ] ;;
esac
END
chmod +x "$work/gh/gh"

# step NAME COMMAND [CODE]: runs one step as a runner would, with fresh files, and leaves log, outputs and summary in $work/NAME. It
# must end with the code, 0 if none is given.
step() {
  local name=$1 command=$2 code=0
  mkdir -p "$work/$name"
  : >"$work/$name/output"
  : >"$work/$name/summary"
  env -u CI PATH="$work/gh:$PATH" GH_SAYS="${gh-yes}" GH_ASKED="$work/$name/asked" REPOSITORY_VISIBILITY="${visibility-private}" \
    RUNNER_TEMP="$work/temp" RUNNER_OS=Linux RUNNER_ARCH="$arch" GITHUB_ACTION_PATH="$PWD" GITHUB_SERVER_URL="${server-}" \
    GITHUB_OUTPUT="$work/$name/output" GITHUB_STEP_SUMMARY="$work/$name/summary" HF_ENDPOINT="$HF_ENDPOINT" HF_HOME="$work/home" \
    XDG_CACHE_HOME="$work/cache" HF_TOKEN="${token-hf_very_secret}" "${inputs[@]}" .github/action/action.sh "$command" \
    >"$work/$name/log" 2>&1 || code=$?
  [ "$code" = "${3-0}" ] || { cat "$work/$name/log"; fail "$name: exit code $code, not ${3-0}"; }
}

# has STEP FILE TEXT, lacks STEP FILE TEXT
has() { grep -qF -- "$3" "$work/$1/$2" || { cat "$work/$1/$2"; fail "$1: $2 lacks: $3"; }; }
lacks() { ! grep -qF -- "$3" "$work/$1/$2" || { cat "$work/$1/$2"; fail "$1: $2 holds: $3"; }; }

# sets STEP NAME VALUE: the step must have set an output to this value.
sets() {
  [ "$(out "$1" "$2")" = "$3" ] || { cat "$work/$1/log"; fail "$1: output $2 is '$(out "$1" "$2")', not '$3'"; }
}

# out STEP NAME: an output, read as the runner does.
out() {
  python3 - "$work/$1/output" "$2" <<'END'
import sys
lines = iter(open(sys.argv[1]).read().splitlines())
for line in lines:
    name, mark = line.split("<<", 1)
    value = []
    for line in lines:
        if line == mark:
            break
        value.append(line)
    if name == sys.argv[2]:
        print("\n".join(value))
END
}

case $(uname -m) in aarch64) arch=ARM64 go_arch=arm64 ;; *) arch=X64 go_arch=amd64 ;; esac

echo '== no input becomes part of a program'
if grep -nE 'run:.*\$\{\{' action.yml; then fail 'action.yml puts an expression into a script'; fi
if grep -nE '^\s*(- )?uses:' action.yml | grep -vE '@[0-9a-f]{40} # v'; then fail 'action.yml uses what is not pinned by commit'; fi

echo '== download: no version asks for a build'
inputs=(INPUT_VERSION='' ACTION_REF=main ACTION_REPOSITORY=me/fork)
step unpinned download
sets unpinned build true

echo '== download: a release, checked'
release=$work/www/df11-convert/df11-convert/releases/download/v9.8.7
archive=df11-convert_linux_$go_arch.tar.gz
mkdir -p "$release" "$work/stuff"
cp "$DF11_CONVERT" "$work/stuff/df11-convert"
tar -czf "$release/$archive" -C "$work/stuff" df11-convert
(cd "$release" && sha256sum "$archive" >checksums.txt)
serve_files "$work/www"
inputs=(INPUT_VERSION=v9.8.7 ACTION_REF=main ACTION_REPOSITORY='')
step release download
sets release build false
has release asked "/$archive --repo df11-convert/df11-convert --signer-workflow df11-convert/df11-convert/.github/workflows/release.yml"
has release asked ' --source-ref refs/tags/v9.8.7'
lacks release asked --source-digest
gh=no step forged download 1
has forged log "::error title=df11-convert::$archive was not built by the release workflow of df11-convert/df11-convert, says GitHub: no attestation fits"
gh=old step old download
sets old build false
has old log '::notice title=df11-convert::There is no gh here'
pin=0123456789012345678901234567890123456789
inputs=(INPUT_VERSION=9.8.7 ACTION_REF="$pin" ACTION_REPOSITORY='')
step commit download
sets commit build false
has commit asked " --source-digest $pin"
gh=no step another download 1
gh=old step unsure download
sets unsure build true
"$work/temp/df11-convert/df11-convert" --version
inputs=(INPUT_VERSION='' ACTION_REF=v9.8.7 ACTION_REPOSITORY=df11-convert/df11-convert)
step pinned download
sets pinned build false
inputs=(INPUT_VERSION='' ACTION_REF=v9.8.8 ACTION_REPOSITORY='')
step unreleased download
sets unreleased build true
inputs=(INPUT_VERSION=9.8.8)
step missing download 1
has missing log '::error title=df11-convert::there is no release 9.8.8'
inputs=(INPUT_VERSION=../../evil)
step evil download 1
printf x >>"$release/$archive"
inputs=(INPUT_VERSION=9.8.7)
step damaged download 1
has damaged log 'is not the released file'

echo '== build: from the checkout of the action'
rm -rf "$work/temp"
mkdir "$work/temp"
inputs=(A=B)
step build build
"$work/temp/df11-convert/df11-convert" --version

echo '== addresses: passed on as they are, and read by the program'
real=$work/temp/df11-convert/df11-convert
mv "$real" "$real.real"
cat >"$real" <<END
#!/bin/sh
[ "\$1" != address ] || exec "$real.real" "\$@"
for last; do :; done
printf '%s' "\$last" >"$work/given"
exit 1
END
chmod +x "$real"
n=0
while IFS= read -r row; do
  text=$(jq -j .text <<<"$row" && printf x)
  text=${text%x}
  inputs=(INPUT_SOURCE="$text")
  visibility=public step address convert 1
  [ "$(cat "$work/given" && printf x)" = "${text}x" ] || fail "the program gets another source than '$text'"
  wanted=$(jq -c '[.repo // "", .revision // "", .file // ""]' <<<"$row")
  case $(jq -r '.repo // ""' <<<"$row") in '' | ./* | *\\*) continue ;; esac # an error, or a path
  case $text in *mirror:*) continue ;; esac # a Hub of the environment
  named=$("$real" address --json -- "$text" | jq -c '[.repo, .revision // "", .file // ""]')
  [ "$named" = "$wanted" ] || fail "'$text' names $named, not $wanted"
  n=$((n + 1))
done < <(jq -c '.[]' cmd/df11-convert/testdata/addresses.json)
[ "$n" -gt 50 ] || fail "$n addresses"
mv "$real.real" "$real"

echo '== convert: success'
inputs=(INPUT_SOURCE=org/tiny INPUT_REPO_ID=tester/tiny-DF11 INPUT_PRIVATE=true INPUT_MEMORY=256MiB INPUT_DISK=1GB INPUT_EXTRA_ARGS=$'--workers 1\n --limit-rate 1GB')
step whole convert
sets whole repo tester/tiny-DF11
sets whole url "$HF_ENDPOINT/tester/tiny-DF11"
[[ $(out whole commit) =~ ^[0-9a-f]{40}$ ]] || fail "commit: $(out whole commit)"
[[ $(out whole ratio) =~ ^0\.[0-9]+$ ]] || fail "ratio: $(out whole ratio)"
published=$(curl -sfL -H 'Authorization: Bearer x' "$HF_ENDPOINT/tester/tiny-DF11/resolve/$(out whole commit)/df11-manifest.json" | sha256sum)
sets whole manifest-sha256 "${published%% *}"
[ "$(out whole json | jq -r .ok)" = true ] || fail 'json is no document'
[ "$(out whole json | wc -l)" = 1 ] || fail 'json has several lines'
has whole log '::add-mask::hf_very_secret'
token=$'hf_first\nhf_second' step masked convert
[ "$(grep -c '^::add-mask::hf_' "$work/masked/log")" = 2 ] || fail 'a line of a token is not masked'
has masked log '::notice title=df11-convert::up to date: the manifest says that tester/tiny-DF11 was verified when it was made'
has masked summary 'up to date: the manifest says that tester/tiny-DF11 was verified when it was made'
lacks masked summary '| time |'
sets masked changed false
sets whole changed true
has whole log '::notice title=df11-convert::tester/tiny-DF11 is published and verified: '
has whole summary '| verified | all 16 bits of every weight: 0 differ |'
has whole summary "/blob/$(out whole commit)/df11.png"
grep -q '<html' "$work/temp/df11-convert/report.html" || fail 'no report'
jq -e .ok "$work/temp/df11-convert/result.json" >/dev/null || fail 'no result.json'

echo '== convert: what is found up to date is verified before it is signed'
lacks masked log '::group::Verify'
inputs+=(INPUT_ATTEST=true)
step found convert
has found log '::group::Verify'
sets found manifest-sha256 "${published%% *}"
mv "$work/temp/df11-convert/df11-convert" "$work/before"
cat >"$work/temp/df11-convert/df11-convert" <<'END'
#!/bin/sh
[ "$1" = verify ] || exec echo '{"schema_version": 1, "ok": true, "target": {"repo": "a/b", "manifest_sha256": "0"}, "sizes": {"df11_bytes": 1, "ratio": 1}, "verified": {"by_this_run": false}}'
echo '{"schema_version": 1, "ok": false, "exit_code": 3, "error": {"kind": "mismatch", "message": "it differs"}}'
exit 3
END
chmod +x "$work/temp/df11-convert/df11-convert"
step forgery convert 3
has forgery log '::error title=df11-convert%3A mismatch::it differs'
sets forgery manifest-sha256 '' # so nothing is attested
mv "$work/before" "$work/temp/df11-convert/df11-convert"

echo '== convert: of a private model, a public repository says nothing'
inputs=(INPUT_SOURCE=org/tiny INPUT_REPO_ID=tester/quiet-DF11 INPUT_PRIVATE=true)
visibility=public step quiet convert
has quiet log 'Everybody can read this page'
sets quiet changed true
for word in quiet-DF11 model_layers lm_head verified bytes; do lacks quiet log "$word"; done
[ ! -s "$work/quiet/summary" ] || fail "the summary says: $(cat "$work/quiet/summary")"
[ -z "$(find "$work/temp" -name 'result.json' -o -name report.html)" ] || fail 'there is something for the artifact'
[ "$(out quiet json | jq -r 'has("made") or (.sizes | has("bf16_bytes"))')" = false ] || fail "json: $(out quiet json)"
[ -n "$(out quiet manifest-sha256)" ] || fail 'later steps lack the manifest'
inputs=(INPUT_SOURCE=org/secret INPUT_REPO_ID=tester/quiet-DF11)
visibility='' step unseen convert 1
has unseen log '::error title=df11-convert::not_found'
lacks unseen log 'hint'
for extra in --private '--license mit --private=true'; do
  inputs=(INPUT_SOURCE=org/tiny INPUT_REPO_ID=tester/quiet-DF11 INPUT_EXTRA_ARGS="$extra")
  visibility=public step asked convert
  for file in log summary; do lacks asked $file quiet-DF11; done
  [ -z "$(find "$work/temp" -name 'result.json' -o -name report.html)" ] || fail "with $extra there is something for the artifact"
done
curl -sf -o "$work/made" -H 'Authorization: Bearer x' -H 'Content-Type: application/json' \
  -d '{"name": "shut-DF11", "organization": "tester", "type": "model", "private": true}' "$HF_ENDPOINT/api/repos/create"
inputs=(INPUT_SOURCE=org/tiny INPUT_REPO_ID=tester/shut-DF11) # a private target of a public source, without a flag
visibility=public step shut convert
for file in log summary; do lacks shut $file shut-DF11; done
[ -z "$(find "$work/temp" -name 'result.json' -o -name report.html)" ] || fail 'of a private target there is something for the artifact'
inputs=(INPUT_SOURCE=org/tiny INPUT_REPO_ID=tester/loud-DF11 INPUT_EXTRA_ARGS=--bogus)
visibility=public step bogus convert 2
has bogus log '::error title=df11-convert%3A usage::unknown flag: --bogus%0Asee df11-convert convert --help'
inputs=(INPUT_SOURCE=org/tiny INPUT_REPO_ID=tester/loud-DF11)
visibility=public step loud convert
has loud log '::notice title=df11-convert::tester/loud-DF11 is published and verified'

echo '== convert: no extra flag changes what an input has set'
inputs=(INPUT_SOURCE=org/tiny INPUT_REPO_ID=tester/mine-DF11 INPUT_PRIVATE=true
  INPUT_EXTRA_ARGS="--json=false --push=false --repo-id=tester/other-DF11 --private=false")
step extra convert
sets extra repo tester/mine-DF11
if [ -e "$work/hub/tester/other-DF11" ]; then fail 'an extra flag won over an input'; fi

echo '== convert: a part'
inputs=(INPUT_SOURCE=org/tiny INPUT_REPO_ID=tester/parts-DF11 INPUT_SHARD=1/2 INPUT_ATTEST=true)
step part convert
sets part manifest-sha256 '' # so nothing is attested
sets part commit ''
has part log 'part-1-of-2 of tester/parts-DF11 is published'
sets part changed true
step again convert
has again log 'up to date: tester/parts-DF11 has all files of part-1-of-2'
sets again changed false

echo '== convert: failures are printed, escaped, and fail the step'
inputs=(INPUT_SOURCE=$'org/no,such:repo%\n::error::injected' INPUT_REPO_ID=tester/x)
step refused convert 2
has refused log '::error title=df11-convert%3A usage::org/no,such:repo%25\n::error::injected'
if grep '^::error::injected' "$work/refused/log"; then fail 'a source gave a command to the runner'; fi
mkdir "$work/crlf"
printf '#!/bin/sh\n%q "$@" | sed "s/$/\\r/"\n' "$(command -v jq)" >"$work/crlf/jq" # jq as it is on Windows
chmod +x "$work/crlf/jq"
inputs=(PATH="$work/crlf:$PATH" "${inputs[@]}")
step lines convert 2
for file in log output summary; do lacks lines "$file" $'\r'; done
[ "$(out lines json)" = "$(out refused json)" ] || fail 'the result has other bytes on Windows'
for word in True yes 1 private; do
  inputs=(INPUT_SOURCE=org/tiny INPUT_REPO_ID=tester/open-DF11 INPUT_PRIVATE="$word")
  step word convert 1
  has word log "::error title=df11-convert::private is $word"
done
[ ! -e "$work/hub/tester/open-DF11" ] || fail 'a word that is not understood made a repo public'
inputs=(INPUT_SOURCE=org/tiny INPUT_REPO_ID=tester/open-DF11 INPUT_ATTEST=yes)
step attest convert 1
has attest log '::error title=df11-convert::attest is yes'
inputs=(INPUT_SOURCE=org/missing INPUT_REPO_ID=tester/x)
step gone convert 1
[ "$(out gone json | jq -r .error.kind)" = not_found ] || fail "json: $(out gone json)"
has gone log '::error title=df11-convert%3A not_found::'
has gone log '%0A'
has gone summary '### Not converted'
lacks gone log 'Report'
inputs=(INPUT_SOURCE=org/wide INPUT_REPO_ID=tester/x)
step wide convert 5
for file in log summary; do has wide "$file" "add \`extra-args: --exact-f32\`"; done
inputs=(INPUT_SOURCE=--help INPUT_REPO_ID=tester/x)
step flag convert 2
for last in --output -o --layout --workers --memory; do
  inputs=(INPUT_SOURCE=org/tiny INPUT_REPO_ID=tester/open-DF11 INPUT_PRIVATE=true INPUT_EXTRA_ARGS="--limit-rate 1GB $last")
  step open convert 2
  has open log '::error title=df11-convert%3A usage::'
done
[ ! -e "$work/hub/tester/open-DF11" ] || fail 'an extra flag took the next one for its value'

echo '== convert: no line of the program is a command, and a killed program is an error'
cat >"$work/temp/df11-convert/df11-convert" <<'END'
#!/bin/sh
echo '::set-env name=EVIL::1' >&2
kill -9 $$
END
inputs=(INPUT_SOURCE=org/tiny INPUT_REPO_ID=tester/x)
step killed convert 137
has killed log 'ended with exit code 137 and without a result'
python3 - "$work/killed/log" <<'END'
import re, sys
mark = None
for line in open(sys.argv[1]):
    line = line.rstrip("\n")
    if m := re.fullmatch("::stop-commands::(.+)", line):
        mark = m[1]
    elif mark and line == f"::{mark}::":
        mark = None
    elif line.startswith("::set-env") and not mark:
        sys.exit("the runner would have taken a line of the program for a command")
END
end_hub
echo 'action: download, build and convert do what action.yml says'
