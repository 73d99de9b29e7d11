#!/usr/bin/env bash
# Runs the workflows of .github as GitHub would, in act without containers, against hubd: a model in parts whose time is up and
# that resumes in the next run; a list of models, one of which cannot be converted.
# GitHub's own services (checkout, artifacts, gh) have stand-ins in act/. Takes three minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/.ci/deep/act version=v0.2.89
. .ci/lib.sh
have jq || debian jq || skip_rest 'the workflows: jq is not to be had here'
yq=$(tool github.com/mikefarah/yq/v4 v4.47.1) || skip_rest 'the workflows: yq is not to be had here'
act=$(tool github.com/nektos/act "$version") || skip_rest "the workflows: act $version is not to be had here"

mkdir -p "$work"/{tree,artifacts,github,home,config,cache}
GOCACHE=$(go env GOCACHE) GOMODCACHE=$(go env GOMODCACHE)
fail() {
  cat "$work/log"
  printf 'FAILED: %s\n' "$*"
  exit 1
}

# Actions that stand in for others are repositories. The same commit of an action is used in all workflows.
locals=()
for action in checkout setup-go upload-artifact attest; do
  cp -r "$here/$action" "$work/$action"
  git -C "$work/$action" init -q
  while read -r pin; do
    locals+=(--local-repository "$pin=$work/$action")
  done < <(grep -hoE "actions/$action@[0-9a-f]{40}" action.yml .github/workflows/*.yml | sort -u)
done

# The repository, with a list of its own.
git ls-files -co --exclude-standard -z | xargs -0 cp --parents -t "$work/tree" 2>/dev/null || true
cat >"$work/tree/models.yaml" <<'LIST'
models:
  - {source: org/one, repo-id: me/one}
  - {source: org/two, private: true, like: DFloat11/Llama-3.1-8B-Instruct-DF11}
  - {source: org/half, repo-id: me/half}
LIST
git -C "$work/tree" init -q -b main
git -C "$work/tree" -c user.name=t -c user.email=t@localhost commit -q --allow-empty -m tree

# run EVENT WORKFLOW EVENT.JSON ARGUMENT…: runs a workflow.
run() {
  local event=$1 workflow=$2 json=$3
  shift 3
  printf '%s\n' "$json" >"$work/event.json"
  printf -- '-- %s on %s\n' "$workflow" "$event"
  rm -rf "$work/artifacts" && mkdir "$work/artifacts"
  (cd "$work/tree" && env -u GITHUB_ACTIONS HOME="$work/home" XDG_CACHE_HOME="$work/cache" XDG_CONFIG_HOME="$work/config" \
    PATH="$here/bin:${yq%/*}:$PATH" "$act" "$event" -W ".github/workflows/$workflow" --eventpath "$work/event.json" \
    --no-skip-checkout -P ubuntu-24.04=-self-hosted "${locals[@]}" --env HF_ENDPOINT="$HF_ENDPOINT" --env HF_HOME="$work/home" --env HOME="$work/home" \
    --env GOCACHE="$GOCACHE" --env GOMODCACHE="$GOMODCACHE" --env GOFLAGS=-buildvcs=false --env ACT_TREE="$work/tree" \
    --env ACT_ARTIFACTS="$work/artifacts" --env ACT_GITHUB="$work/github" --concurrent-jobs 2 "$@") >"$work/log" 2>&1
}

# dispatch JSON: runs convert.yml by hand with these inputs.
dispatch() { run workflow_dispatch convert.yml "$(jq -c '{ref: "refs/heads/main", inputs: .}' <<<"$1")" -s HF_TOKEN=secret-of-the-test; }

# published REPO: what the hub has equals its source.
converter
published() {
  HF_TOKEN=secret-of-the-test HF_HOME=$work/home "$DF11_CONVERT" verify "$1" --level full --quiet || fail "$1 is not what it should be"
}

# A model in three parts. The line is so slow that their time is up before their first file is there: that is no failure, and the
# workflow asks for itself once more, with the commit that was begun.
start_hub parts -model org/parts -up 4000
dispatch '{"source": "org/parts", "repo-id": "me/parts", "stop-after": "5s", "runner": "ubuntu-24.04", "parts": "3", "runs-left": "5"}' ||
  fail 'convert.yml failed where its time was up'
[ "$(grep -c 'The time was up' "$work/log")" = 3 ] || fail 'the time was not up in three parts'
jq -e '.source | test("^org/parts@[0-9a-f]{40}$")' "$work/github/dispatched.json" >/dev/null || fail 'nothing was dispatched'
jq -e '."runs-left" == "4"' "$work/github/dispatched.json" >/dev/null || fail 'the number of runs has no end'
[ ! -e "$work/parts/me/parts/config.json" ] || fail 'a model without its weights looks finished'
end_hub

# The run that was asked for resumes, finishes the repo and verifies it; each job leaves its artifact.
start_hub parts -model org/parts
dispatch "$(jq -c '."stop-after" = "1h"' "$work/github/dispatched.json")" || fail 'the run that was dispatched failed'
published me/parts
for job in part-1 part-2 part-3 finish; do
  jq -e .ok "$work/artifacts/me-parts-$job/result.json" >/dev/null || fail "no result of job $job"
done
[ -s "$work/artifacts/me-parts-finish/report.html" ] || fail 'no report'
jq -e '.equal and .level == "proof"' "$work/artifacts/me-parts-verification/verification.json" >/dev/null || fail 'nothing was verified'
end_hub

# The list: every model is converted in jobs of its own, and attested. One cannot be, which stops no other; the run fails, and its report
# says which.
mkdir -p "$work/hub/org/half"
python3 - "$work/hub/org/half" <<'END'
import json, struct, sys
header = json.dumps({"model.embed_tokens.weight": {"dtype": "F16", "shape": [8, 8], "data_offsets": [0, 128]}}).encode()
open(sys.argv[1] + "/model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + bytes(128))
open(sys.argv[1] + "/config.json", "w").write('{"architectures": ["LlamaForCausalLM"], "model_type": "llama"}')
END
start_hub hub -model org/one -model org/two
if run push batch.yml '{"ref": "refs/heads/main"}' -s HF_TOKEN=secret-of-the-test --var DF11_ATTEST=true; then fail 'batch.yml did not fail'; fi
published me/one
published tester/two-DF11
for model in me/one tester/two-DF11; do
  manifest=$(curl -sfL -H 'Authorization: Bearer x' "$HF_ENDPOINT/$model/resolve/main/df11-manifest.json" | sha256sum)
  grep -qx "df11-manifest.json sha256:${manifest%% *}" "$work/github/attested.txt" || fail "the manifest of $model is not attested"
done
# The second is private, and nothing says that the repository is: its jobs leave nothing behind.
jq -e .ok "$work/artifacts/me-one-part-1/result.json" >/dev/null || fail 'no result of the first model'
jq -e .equal "$work/artifacts/me-one-verification/verification.json" >/dev/null || fail 'the first model was not verified'
[ -z "$(find "$work/artifacts/" -path '*two*' -type f)" ] || fail "of a private model there is $(find "$work/artifacts/" -path '*two*' -type f)"
if grep -q 'two.*model_layers' "$work/log"; then fail 'the log tells of a private model'; fi
grep -q '::error title=df11-convert::plan org/half: model.embed_tokens.weight is F16' "$work/log" || fail 'no annotation says why'
# act ends where a called workflow fails, GitHub goes on: the last job runs in a second try, without the jobs between.
sed '/^  convert:$/,/^  # What the Hub says/d; s/needs: \[list, convert\]/needs: list/' "$work/tree/.github/workflows/batch.yml" \
  >"$work/tree/.github/workflows/report.yml"
if run push report.yml '{"ref": "refs/heads/main"}' -s HF_TOKEN=secret-of-the-test; then fail 'the report did not fail'; fi
jq -e '.ok == false and ([.models[] | [.source, .state]] ==
  [["org/one", "current"], ["org/two", "current"], ["org/half", null]])' "$work/artifacts/report/report.json" >/dev/null || fail 'no report'
for row in '| current | org/one ' '| current | org/two ' '| plan org/half: model.embed'; do
  grep -qF "$row" "$work/artifacts/report/report.md" || fail "the table lacks $row"
done
end_hub
echo 'the workflows run'
