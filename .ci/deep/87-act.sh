#!/usr/bin/env bash
# Runs the workflows of .github as GitHub would, in act without containers, against hubd: a list of models that are converted,
# published and verified in jobs of their own, one whose time is up and that resumes, and a request by pull request with
# its comment. GitHub's own services (checkout, artifacts, gh) have stand-ins in act/. Takes two minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/.ci/deep/act version=v0.2.89
. .ci/lib.sh
have jq zip unzip || debian jq zip unzip || skip_rest 'the workflows: jq, zip or unzip is not to be had here'
act=$(tool github.com/nektos/act "$version") || skip_rest "the workflows: act $version is not to be had here"

mkdir -p "$work"/{trees/main,trees/request,artifacts,github,home,config,cache}
GOCACHE=$(go env GOCACHE) GOMODCACHE=$(go env GOMODCACHE)
fail() {
  cat "$work/log"
  printf 'FAILED: %s\n' "$*"
  exit 1
}

# Actions that stand in for others are repositories. The same commit of an action is used in all workflows.
locals=()
for action in checkout setup-go upload-artifact; do
  cp -r "$here/$action" "$work/$action"
  git -C "$work/$action" init -q
  while read -r pin; do
    locals+=(--local-repository "$pin=$work/$action")
  done < <(grep -hoE "actions/$action@[0-9a-f]{40}" action.yml .github/workflows/*.yml | sort -u)
done

# The Hub.
converter
start_hub hub -model org/one -model org/two -model org/late -model org/parts
convert() { HF_TOKEN=secret-of-the-test HF_HOME=$work/home "$DF11_CONVERT" "$@"; }

# The repository, with a list of its own, and a pull request that adds an entry.
git ls-files -co --exclude-standard -z | xargs -0 cp --parents -t "$work/trees/main" 2>/dev/null || true
cat >"$work/trees/main/models.yaml" <<'LIST'
models:
  - {source: org/one, repo-id: me/one}
  - {source: org/two, private: true, like: DFloat11/Llama-3.1-8B-Instruct-DF11}
LIST
cp -r "$work/trees/main/." "$work/trees/request"
echo '  - {source: org/parts, repo-id: me/parts, layout: transformers}' >>"$work/trees/request/models.yaml"
git -C "$work/trees/main" init -q -b main
git -C "$work/trees/main" -c user.name=t -c user.email=t@localhost commit -q --allow-empty -m tree

# run EVENT WORKFLOW EVENT.JSON ARGUMENT…: runs a workflow.
run() {
  local event=$1 workflow=$2 json=$3
  shift 3
  printf '%s\n' "$json" >"$work/event.json"
  printf -- '-- %s on %s\n' "$workflow" "$event"
  if [ "$event" != workflow_run ]; then rm -rf "$work/artifacts" && mkdir "$work/artifacts"; fi # workflow_run reads them
  (cd "$work/trees/main" && env -u GITHUB_ACTIONS HOME="$work/home" XDG_CACHE_HOME="$work/cache" XDG_CONFIG_HOME="$work/config" \
    PATH="$here/bin:$PATH" "$act" "$event" -W ".github/workflows/$workflow" --eventpath "$work/event.json" \
    --no-skip-checkout -P ubuntu-24.04=-self-hosted "${locals[@]}" --env HF_ENDPOINT="$HF_ENDPOINT" --env HF_HOME="$work/home" --env HOME="$work/home" \
    --env GOCACHE="$GOCACHE" --env GOMODCACHE="$GOMODCACHE" --env GOFLAGS=-buildvcs=false --env ACT_TREES="$work/trees" \
    --env ACT_ARTIFACTS="$work/artifacts" --env ACT_GITHUB="$work/github" --concurrent-jobs 2 "$@") >"$work/log" 2>&1
}

has() { grep -qE -- "$1" "$work/log" || fail "the log has no $1"; }
published() { convert verify "$1" --level full --quiet || fail "$1 is not what it should be"; }

# The list: every model is converted in jobs of its own and published, and the report says so.
run push batch.yml '{"ref": "refs/heads/main"}' -s HF_TOKEN=secret-of-the-test || fail 'batch.yml failed'
published me/one
published tester/two-DF11
jq -e '[.models[].state] == ["current", "current"]' "$work/artifacts/report/report.json" >/dev/null || fail 'no report'
grep -q '^| current | org/one ' "$work/artifacts/report/report.md" || fail 'no table'

# dispatch JSON: runs convert.yml by hand with these inputs.
dispatch() { run workflow_dispatch convert.yml "$(jq -c '{ref: "refs/heads/main", inputs: .}' <<<"$1")" -s HF_TOKEN=secret-of-the-test; }

# A part whose time is up is no failure: the workflow asks for itself once more, with the commit that was begun, and resumes.
dispatch '{"source": "org/late", "repo-id": "me/late", "stop-after": "1ms", "runner": "ubuntu-24.04", "job-time": "4h", "runs-left": "5"}' ||
  fail 'convert.yml failed where its time was up'
jq -e '.source | test("^org/late@[0-9a-f]{40}$")' "$work/github/dispatched.json" >/dev/null || fail 'nothing was dispatched'
jq -e '."runs-left" == "4"' "$work/github/dispatched.json" >/dev/null || fail 'the number of runs has no end'
dispatch "$(jq -c '."stop-after" = "1h"' "$work/github/dispatched.json")" || fail 'the run that was dispatched failed'
published me/late

# A request: without a token, only the new entry is planned.
run pull_request request.yml '{"number": 7, "pull_request": {"number": 7, "base": {"sha": "base"}}}' || fail 'request.yml failed'
grep -q '^--- org/parts$' "$work/artifacts/plan/plan/plan.txt" || fail 'the new entry is not planned'
if grep -q 'org/one' "$work/artifacts/plan/plan/plan.txt"; then fail 'an old entry is planned'; fi

# comment HEAD: runs request-comment.yml for the artifact, where the pull request's head is HEAD.
comment() {
  (cd "$work/artifacts/plan/plan" && rm -f "$work/github/plan.zip" "$work/github/comment".* && zip -q "$work/github/plan.zip" ./*)
  echo '{"artifacts": [{"id": 5, "name": "plan", "size_in_bytes": 2000}]}' >"$work/github/artifacts.json"
  jq -n --arg head "$1" '{state: "open", head: {sha: $head}}' >"$work/github/pull.json"
  run workflow_run request-comment.yml \
    '{"workflow_run": {"id": 1, "event": "pull_request", "conclusion": "success", "head_sha": "cafe"}}'
}
comment cafe || fail 'request-comment.yml failed'
grep -q '^    --- org/parts$' "$work/github/comment.md" || fail 'no comment'

# What a stranger puts into the artifact stays text, and goes under no other pull request.
# shellcheck disable=SC2016 # it must not expand
printf '```\n</code></pre>@everyone <img src=x>\n::add-path::/x\n\033[31m$(touch %s)\n' "$work/pwned" >"$work/artifacts/plan/plan/plan.txt"
comment cafe || fail 'a hostile artifact stops the workflow'
[ "$(grep -vc '^    ' "$work/github/comment.md")" = 2 ] || fail 'a line of the artifact is not indented'
[ ! -e "$work/pwned" ] || fail 'the artifact was executed'
if comment beef; then fail 'another pull request got the comment'; fi
[ ! -e "$work/github/comment.md" ] || fail 'another pull request got the comment'
end_hub
echo 'the workflows run'
