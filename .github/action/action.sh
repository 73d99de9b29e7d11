#!/usr/bin/env bash
# The steps of action.yml: download, build, convert. All input comes from environment variables. Names from a model or a server are
# only data: they reach the log between stop-commands, and annotations and the summary through jq's escapes. Nothing about a private
# model reaches what strangers can read.
# .ci/deep/85-action.sh runs this against a Hub of our own.
set -euo pipefail

dir=$RUNNER_TEMP/df11-convert
program=$dir/df11-convert
hidden='' changed='' # hidden is set where nothing may be said of the model
case ${RUNNER_OS-} in Windows) program+=.exe ;; esac

# output NAME VALUE: sets an output of the step, whatever the value holds.
output() {
  local mark
  mark=end-$RANDOM$RANDOM$RANDOM
  printf '%s<<%s\n%s\n%s\n' "$1" "$mark" "$2" "$mark" >>"$GITHUB_OUTPUT"
}

# On Windows jq ends lines with CR LF. Removing the CRs changes no text, because jq escapes a CR inside one.
jq() { command jq "$@" | tr -d '\r'; }

# --- download --------------------------------------------------------------------------------------------------------

# download fetches the released program into $program, and checks its checksum and GitHub's attestation, or asks for a build. If
# the action is pinned to a commit, you get the program of that commit, whatever version says.
download() {
  local version=${INPUT_VERSION-} pinned='' commit='' base archive system machine
  version=${version#v}
  mkdir -p "$dir"
  if [[ ${ACTION_REF-} =~ ^[0-9a-f]{40}$ ]]; then
    commit=$ACTION_REF
    can_attest || version='' # then only a build can be of that commit
  fi
  if [[ -z $version && ${ACTION_REF-} =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]]; then
    version=${ACTION_REF#v} pinned=1
  fi
  if [ -z "$version" ]; then
    output build true
    return
  fi
  [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.-]*$ ]] || stop "$version is no version"
  case $RUNNER_OS in macOS) system=darwin ;; Windows) system=windows ;; *) system=linux ;; esac
  case $RUNNER_ARCH in ARM64) machine=arm64 ;; *) machine=amd64 ;; esac
  archive=df11-convert_${system}_$machine.tar.gz
  [ "$system" != windows ] || archive=${archive%.tar.gz}.zip
  repository=${ACTION_REPOSITORY:-df11-convert/df11-convert}
  base=$GITHUB_SERVER_URL/$repository/releases/download/v$version
  if ! fetch "$base/checksums.txt" "$dir/checksums.txt"; then
    if [ -n "$pinned" ]; then # a tag whose release is still being made
      output build true
      return
    fi
    stop "there is no release $version at $base"
  fi
  fetch "$base/$archive" "$dir/$archive" || stop "release $version has no $archive"
  check "$archive"
  attested "$dir/$archive" --source-ref "refs/tags/v$version" ${commit:+--source-digest "$commit"}
  case $archive in
  *.zip) unzip -q -o -d "$dir" "$dir/$archive" df11-convert.exe ;;
  *) tar -xzf "$dir/$archive" -C "$dir" df11-convert ;;
  esac
  output build false
  "$program" --version
}

# fetch gets a file by the protocol of its address, redirects included.
fetch() { curl --proto "=${1%%:*}" --fail --silent --show-error --location --retry 5 --output "$2" "$1"; }

# check compares the archive with its line in checksums.txt.
check() {
  local want have
  want=$(awk -v name="$1" '$2 == name { print $1 }' "$dir/checksums.txt")
  if command -v sha256sum >/dev/null; then have=$(sha256sum <"$dir/$1"); else have=$(shasum -a 256 <"$dir/$1"); fi
  [ "${have%% *}" = "$want" ] || stop "$1 is not the released file: sha256 ${have%% *}, released is ${want:-nothing of this name}"
}

can_attest() { gh attestation verify --help >/dev/null 2>&1; }

# attested FILE FLAG…: stops unless the release workflow of the action's repository has built a file.
attested() {
  if ! can_attest; then
    echo '::notice title=df11-convert::There is no gh here: GitHub was not asked who has built the program'
    return
  fi
  gh attestation verify "$1" --repo "$repository" --signer-workflow "$repository/.github/workflows/release.yml" \
    --deny-self-hosted-runners "${@:2}" >"$dir/attested" 2>&1 ||
    stop "${1##*/} was not built by the release workflow of $repository, says GitHub: $(tail -n 1 "$dir/attested")"
}

# stop TEXT: ends the step with an annotation.
stop() {
  printf '::error title=df11-convert::%s\n' "$(jq -rn --arg text "$1" "$escapes"' $text | data')"
  exit 1
}

# --- build -----------------------------------------------------------------------------------------------------------

build() {
  echo '::group::Build df11-convert'
  CGO_ENABLED=0 go build -C "$GITHUB_ACTION_PATH" -trimpath -o "$program" ./cmd/df11-convert
  echo '::endgroup::'
}

# --- convert ---------------------------------------------------------------------------------------------------------

# escapes of workflow commands and of cells in Markdown, numbers and words as the program itself prints them, and its flags as inputs.
# shellcheck disable=SC2016 # it is jq's language
escapes='
  def data: gsub("%"; "%25") | gsub("\r"; "%0D") | gsub("\n"; "%0A");
  def property: data | gsub(":"; "%3A") | gsub(","; "%2C");
  def cell: tostring | gsub("[\r\n]+"; " ") | gsub("(?<c>[\\\\`*_\\[\\]<>|!#&~@$])"; "\\\(.c)");
  def fixed($digits): . * pow(10; $digits) | round | tostring | if $digits > 0 then "\(.[:-$digits]).\(.[-$digits:])" else . end;
  def bytes: . as $n | first(range(5) | ($n / pow(1000; .)) as $x | select(. == 4 or $x < 999.5) as $i |
    ($x | fixed(if . >= 100 or . == floor then 0 elif . >= 10 then 1 else 2 end)) + " " + ["B", "kB", "MB", "GB", "TB"][$i]);
  def grouped: tostring | if length > 3 then (.[:-3] | grouped) + "," + .[-3:] else . end;
  def size: .sizes | "\(.df11_bytes | bytes) (\(.ratio * 100 | fixed(1))%)";
  def changed: .ok and if .target.part then .made.files_made > 0 else .verified.by_this_run end;
  def state:
    if changed then if .target.part then .target | "\(.part) of \(.repo) is published" else "\(.target.repo) is published and verified: \(size)" end
    elif .target.part then .target | "up to date: \(.repo) has all files of \(.part)"
    else "up to date: the manifest says that \(.target.repo) was verified when it was made" end;
  def as_inputs: if contains("hf auth login") then "set the input token to a secret that holds an access token"
    elif contains("df11-convert ") then . else gsub("(?<before>^|[^-\\w])--(?<flag>[a-z][a-z0-9-]*)";
    .before + "`" + (if .flag == "public" then "private: false" elif .flag | IN("repo-id", "private", "memory", "disk", "shard") then .flag
      else "extra-args: --" + .flag end) + "`") end;
'

# everyone_reads: whether strangers can read log, summary, and artifacts.
everyone_reads() {
  case ${REPOSITORY_VISIBILITY-} in private | internal) return 1 ;; esac
}

# hidden: whether everybody can read what is said here, and not the model or its target: it's private, or the Hub doesn't show it
# without a token. If the program can't find out who sees the target, the code is 2, and $dir/audience.json says why.
hidden() {
  [ -x "$program" ] || stop "there is no program at $program" >&2
  everyone_reads || return 1
  [ "${INPUT_PRIVATE-}" != true ] || return 0
  [ ! -e "${INPUT_SOURCE}" ] || [ "${INPUT_PRIVATE-}" = false ] || return 0 # a folder is private unless you say otherwise
  local repo
  if [ ! -e "${INPUT_SOURCE}" ]; then
    repo=$("$program" address --json -- "$INPUT_SOURCE" | jq -r '.repo // empty') || return 0 # by the program's own parser
    # without a token
    curl --fail --silent --globoff --output /dev/null "${HF_ENDPOINT:-https://huggingface.co}/api/models/$repo" || return 0
  fi
  hidden_target
}

# hidden_target: whether strangers don't see the target that the program would publish to, by its own reading of all flags.
hidden_target() {
  local args=()
  arguments audience
  mkdir -p "$dir"
  "$program" "${args[@]}" >"$dir/audience.json" 2>/dev/null || return 2
  [ "$(jq .hidden "$dir/audience.json")" != false ]
}

# hidden_models FILE: a JSON array with hidden for each model of what status --json has printed. In doubt, it's true.
hidden_models() {
  local source private target said
  [ "$(jq .schema_version "$1")" = 1 ] || stop 'status has not finished' >&2
  jq -r '.models // [] | .[] | "\(.entry.source) \(.entry.private | if . == null then "-" else . end) \(.target // .entry["repo-id"] // "")"' "$1" |
    while read -r source private target; do
      said=0
      INPUT_SOURCE=$source INPUT_PRIVATE=${private#-} INPUT_REPO_ID=$target hidden || said=$?
      if [ "$said" = 1 ]; then echo false; else echo true; fi
    done | jq -cs .
}

# arguments COMMAND: sets args for a command with the flags of convert.
arguments() {
  local extra=()
  read -r -d '' -a extra <<<"${INPUT_EXTRA_ARGS-}" || true
  args=("$1" ${extra[@]+"${extra[@]}"} --json --push) # what comes later wins: no extra flag changes what an input has set
  [ -z "${INPUT_REPO_ID-}" ] || args+=(--repo-id="$INPUT_REPO_ID")
  [ -z "${INPUT_MEMORY-}" ] || args+=(--memory="$INPUT_MEMORY")
  [ -z "${INPUT_DISK-}" ] || args+=(--disk="$INPUT_DISK")
  [ -z "${INPUT_SHARD-}" ] || args+=(--shard="$INPUT_SHARD")
  # A word that is neither would publish for all to see what was meant to be private.
  case ${INPUT_PRIVATE-} in
  true) args+=(--private) ;;
  false) args+=(--public) ;;
  '') ;;
  *) stop "private is $INPUT_PRIVATE: write true, false, or leave it empty" ;;
  esac
  args+=(-- "$INPUT_SOURCE")
}

convert() {
  local args=() code=0 asked='' line kind
  while IFS= read -r line; do
    [ -z "$line" ] || echo "::add-mask::$line"
  done <<<"${HF_TOKEN-}"
  arguments convert
  case ${INPUT_ATTEST-} in
  true | false | '') ;; # a later step of action.yml attests
  *) stop "attest is $INPUT_ATTEST: write true or false" ;;
  esac

  mkdir -p "$dir"
  hidden || code=$?
  case $code in
  0)
    hidden=true
    echo '::notice title=df11-convert::Without a token the Hub does not show this model or its target: it is private, or there is none. Everybody can read this page, so log, summary and artifact are empty'
    ;;
  2) asked=$code ;;
  esac
  if [ -n "$asked" ]; then # the conversion would end there, too
    jq '.command = "convert" | (.error.hint | strings) |= gsub("df11-convert audience"; "df11-convert convert")' "$dir/audience.json" \
      >"$dir/result.json" || true
    code=$(get .exit_code)
    code=${code:-1}
  else
    code=0
    run 'df11-convert' "$dir/result.json" "$program" "${args[@]}" || code=$?
  fi
  if [ "$(jq .schema_version "$dir/result.json" 2>/dev/null)" != 1 ]; then # killed, for example by a lack of memory
    [ "$code" != 0 ] || code=1
    jq -n --argjson code "$code" '{schema_version: 1, command: "convert", ok: false, exit_code: $code,
      error: {kind: "error", message: "df11-convert ended with exit code \($code) and without a result"}}' >"$dir/result.json"
  fi
  recheck || code=$?
  # A target that this run has made may be private by the account's own setting.
  if [ -z "$hidden$asked" ] && everyone_reads; then
    hidden_target || asked=$?
    [ "$asked" = 1 ] || hidden=true
  fi
  changed=$(jq "$escapes"' if .ok then changed else empty end' "$dir/result.json")
  [ -z "$hidden" ] || conceal
  outputs
  if [ -n "$hidden" ]; then
    kind=$(get .error.kind)
    rm "$dir/result.json" # so that the artifact is empty
    [ -z "$kind" ] || printf '::error title=df11-convert::%s\n' "$kind"
  else
    annotate
    report
    summary >>"$GITHUB_STEP_SUMMARY"
  fi
  return "$code"
}

# conceal keeps only what later steps need from the result, and nothing about the model.
conceal() {
  jq 'def known: with_entries(select(.value != null));
    {schema_version, command, ok, exit_code, target: (.target // {} | {url, repo, commit, manifest_sha256} | known),
      sizes: (.sizes // {} | {ratio} | known), error: (.error | if . then {kind} else null end)} | known' "$dir/result.json" >"$dir/concealed"
  mv "$dir/concealed" "$dir/result.json"
}

# recheck verifies a finished model that this job found and didn't make, before GitHub signs that the job published it.
recheck() {
  local code=0 source=$INPUT_SOURCE
  [ "${INPUT_ATTEST-}" = true ] && [ -n "$(get .target.manifest_sha256)" ] && [ -z "$(get .verified.by_this_run)" ] || return 0
  [ ! -e "$source" ] || source=$(realpath -- "$source") # org/name alone is a repo
  run 'Verify' "$dir/verified.json" "$program" verify --json --against "$source" -- \
    "$(get .target.repo)@$(get .target.commit)" || code=$?
  [ "$code" = 0 ] || mv "$dir/verified.json" "$dir/result.json"
  return "$code"
}

# run TITLE FILE PROGRAM…: runs a program in a group of the log, its stdout into a file. Names that a model's author has chosen
# are in the log; no line of it is taken for a command.
run() {
  local title=$1 file=$2 code=0 mark=resume-$RANDOM$RANDOM$RANDOM
  shift 2
  printf '::group::%s\n::stop-commands::%s\n' "$title" "$mark"
  ([ -z "$hidden" ] || exec 2>/dev/null; exec "$@") >"$file" || code=$?
  printf '::%s::\n::endgroup::\n' "$mark"
  return "$code"
}

# get FILTER: a member of the result, empty if there is none.
get() { jq -r "$1 // empty" "$dir/result.json"; }

outputs() {
  output changed "$changed"
  output url "$(get .target.url)"
  output repo "$(get .target.repo)"
  output commit "$(get .target.commit)"
  output ratio "$(get .sizes.ratio)"
  output manifest-sha256 "$(get .target.manifest_sha256)"
  output json "$(jq -c . "$dir/result.json")"
}

annotate() {
  jq -r "$escapes"'
    def say(level; title): "::\(level) title=\(title | property)::\(data)";
    if .ok then
      (.made.warnings // [] | .[] | say("warning"; "df11-convert")),
      (state | say("notice"; "df11-convert"))
    else
      .error | "df11-convert: \(.kind)" as $title | .message + (.hint // "" | split("\n") | map("\n" + as_inputs) | add // "") | say("error"; $title)
    end' "$dir/result.json"
}

# report describes what was published on a page; that it could not be written fails nothing.
report() {
  local commit
  rm -f "$dir/report.html"
  commit=$(get .target.commit)
  [ -n "$commit" ] || return 0
  run 'Report' /dev/null "$program" inspect "$(get .target.repo)@$commit" --html "$dir/report.html" --quiet ||
    echo '::warning title=df11-convert::the report could not be written'
}

summary() {
  jq -r "$escapes"'
    def row(name; value): if value == null or value == "" then empty else "| \(name) | \(value | cell) |" end;
    if .ok then
      "### \(.target.repo | cell)\n", (state | cell), "", "| | |", "| --- | --- |",
      row("source"; .source | "\(.name)\(if .commit then " at " + .commit[:12] else "" end)"),
      row("BF16"; .sizes.bf16_bytes | bytes), row("DF11"; size), row("note"; .note),
      row("compressed"; .sizes | "\(.units) module\(if .units == 1 then "" else "s" end) (\(.weights | grouped) weights)"),
      row("verified"; if .verified.by_this_run then "all 16 bits of every weight: 0 differ" else null end),
      row("commit"; .target.commit), row("manifest sha256"; .target.manifest_sha256),
      row("time"; if changed then "\(.made.seconds | round) s" else null end),
      "", (.target.url // empty | "[\(cell)](\(.))"),
      (if .target.commit then "\n[Plot](\(.target.url)/blob/\(.target.commit)/df11.png); the report is in the artifacts of this run." else empty end),
      (if .made.warnings then "\n" + (.made.warnings | map("- " + cell) | join("\n")) else empty end)
    else
      "### Not converted\n", (.error | "**\(.kind | cell)**: \(.message | cell)\n", (.hint // empty | split("\n")[] | "- " + (cell | as_inputs)))
    end, ""' "$dir/result.json"
}

case ${1-} in
download | build | convert) "$1" ;;
hidden)
  code=0
  hidden || code=$?
  case $code in
  0) echo true ;;
  1) echo false ;;
  *)
    mv "$dir/audience.json" "$dir/result.json"
    annotate >&2
    exit 1
    ;;
  esac
  ;;
hidden-models) hidden_models "$2" ;;
*)
  echo 'usage: action.sh download|build|convert|hidden|hidden-models FILE' >&2
  exit 2
  ;;
esac
