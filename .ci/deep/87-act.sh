#!/usr/bin/env bash
# Runs the workflows that docs/ci.md shows as GitHub would, copied into a repository of their own, in act without containers,
# against hubd: a model every week; a model in parts that run out of time and resume; a list with a model that can't be converted and
# a private model. GitHub's own services (checkout, artifacts) have stand-ins in act/. Takes three minutes. Needs
# jq, zip, unzip and Python.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/.ci/deep/act version=v0.2.89
. .ci/lib.sh
have jq || debian jq || skip_rest 'the workflows: jq is missing here'
act=$(tool github.com/nektos/act "$version") || skip_rest "the workflows: act $version is missing here"

mkdir -p "$work"/{program,caller/.github/workflows,artifacts,github,home,config,cache}
GOCACHE=$(go env GOCACHE) GOMODCACHE=$(go env GOMODCACHE)
fail() {
  cat "$work/log" "$work/$hub.log"
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

# The repository of the program, in a commit of its own, and a repository that calls it by that commit. act looks for what batch.yml calls
# in the wrong one of the two.
pin=0123456789012345678901234567890123456789
git ls-files -co --exclude-standard -z | xargs -0 cp --parents -t "$work/program" 2>/dev/null || true
locals+=(--local-repository "df11-convert/df11-convert@$pin=$work/program")
awk -v to="$work/caller/.github/workflows" '/^name: / { file = to "/" $2 ".yml" } /^```$/ { file = "" } file { print >file }' docs/ci.md
sed -i "s/@vX\.Y\.Z/@$pin/" "$work"/caller/.github/workflows/*.yml
cp .github/workflows/convert.yml "$work/caller/.github/workflows"
cat >"$work/caller/models.yaml" <<'LIST'
models:
  - {source: org/one, repo-id: me/one}
  - {source: org/two, private: yes, like: DFloat11/Llama-3.1-8B-Instruct-DF11, <<: {private: false}} # yq reads false
  - {source: org/half, repo-id: me/half}
LIST
for tree in program caller; do
  git -C "$work/$tree" init -q -b main
  git -C "$work/$tree" -c user.name=t -c user.email=t@localhost commit -q --allow-empty -m tree
done

# run EVENT WORKFLOW [EVENT.JSON]: runs a workflow of the repository that calls.
run() {
  printf '%s\n' "${3-{\}}" >"$work/event.json"
  printf -- '-- %s on %s\n' "$2" "$1"
  rm -rf "$work/artifacts" && mkdir "$work/artifacts"
  (cd "$work/caller" && env -u GITHUB_ACTIONS HOME="$work/home" XDG_CACHE_HOME="$work/cache" XDG_CONFIG_HOME="$work/config" \
    "$act" "$1" -W ".github/workflows/$2.yml" --eventpath "$work/event.json" -s HF_TOKEN=secret-of-the-test \
    --no-skip-checkout -P ubuntu-24.04=-self-hosted "${locals[@]}" --env HF_ENDPOINT="$HF_ENDPOINT" --env HF_HOME="$work/home" --env HOME="$work/home" \
    --env GOCACHE="$GOCACHE" --env GOMODCACHE="$GOMODCACHE" --env GOFLAGS=-buildvcs=false --env ACT_TREES="$work" \
    --env ACT_ARTIFACTS="$work/artifacts" --env ACT_GITHUB="$work/github" --concurrent-jobs 2) >"$work/log" 2>&1
}

# amend WORKFLOW TEXT: adds lines to what a workflow passes on.
amend() { sed -i "s/^    with:\$/&\n$2/" "$work/caller/.github/workflows/$1.yml"; }

# published REPO: what the hub has equals its source.
converter
published() {
  HF_TOKEN=secret-of-the-test HF_HOME=$work/home "$DF11_CONVERT" verify "$1" --level full --quiet || fail "$1 is not what it should be"
}

# A model every week: the second time nothing is done.
start_hub weekly -model Qwen/Qwen3-8B
run schedule df11 '{"schedule": "17 3 * * 1"}' || fail 'the weekly workflow failed'
published tester/Qwen3-8B-DF11
run schedule df11 '{"schedule": "17 3 * * 1"}' || fail 'the weekly workflow failed the second time'
jq -e '.ok and .verified.by_this_run == false' "$work/artifacts/df11-convert/result.json" >/dev/null || fail 'the second run converted again'
end_hub

# A model in three parts. The line is so slow that their time is up before their first file is there, and once more in the jobs that
# go on: the run fails, and what the repo has looks like no model.
event='{"ref": "refs/heads/main", "inputs": {"source": "org/parts", "repo-id": "me/parts"}}'
start_hub parts -model org/parts -up 4000
amend df11-model '      parts: "3"\n      stop-after: 5s'
if run workflow_dispatch df11-model "$event"; then fail 'a model whose time was up twice is said to be finished'; fi
[ "$(grep -c 'Success - Main Distinguish a job whose time was up' "$work/log")" = 6 ] || fail 'the time was not up twice in three parts'
grep -q 'Failure - Main Fail if the time was up once more' "$work/log" || fail 'the run failed by something else'
[ ! -e "$work/parts/me/parts/config.json" ] || fail 'a model without its weights looks finished'
end_hub

# The same again resumes, finishes the repo and verifies it; each job leaves its artifact.
start_hub parts -model org/parts
sed -i 's/stop-after: 5s/stop-after: 1h/' "$work/caller/.github/workflows/df11-model.yml"
run workflow_dispatch df11-model "$event" || fail 'the second run failed'
published me/parts
for job in part-1 part-2 part-3 finish; do
  jq -e .ok "$work/artifacts/me-parts-$job/result.json" >/dev/null || fail "no result of job $job"
done
[ -s "$work/artifacts/me-parts-finish/report.html" ] || fail 'no report'
jq -e '.equal and .level == "proof"' "$work/artifacts/me-parts-verification/verification.json" >/dev/null || fail 'nothing was verified'
end_hub

# The list: every model is converted in jobs of its own, and attested. One cannot be, which stops no other; the run fails.
one_tensor "$work/hub/org/half" F16 128
start_hub hub -model org/one -model org/two
sed -i 's/^    uses: .*batch.yml@.*/&\n    with:\n      attest: "true"/' "$work/caller/.github/workflows/df11-list.yml"
if run push df11-list '{"ref": "refs/heads/main"}'; then :; fi # the report fails, where act gets that far
published me/one
published tester/two-DF11
for model in me/one tester/two-DF11; do
  manifest=$(curl -sfL -H 'Authorization: Bearer x' "$HF_ENDPOINT/$model/resolve/main/df11-manifest.json" | sha256sum)
  grep -qx "df11-manifest.json sha256:${manifest%% *}" "$work/github/attested.txt" || fail "the manifest of $model is not attested"
done
# The second is private, and nothing says that the repository is: its jobs leave nothing behind, and are not named after it.
if curl -sf -o "$work/two.json" "$HF_ENDPOINT/api/models/tester/two-DF11"; then fail 'strangers see the private model'; fi
jq -e .ok "$work/artifacts/me-one-part-1/result.json" >/dev/null || fail 'no result of the first model'
jq -e .equal "$work/artifacts/me-one-verification/verification.json" >/dev/null || fail 'the first model was not verified'
[ -z "$(find "$work/artifacts/" -path '*two*' -type f)" ] || fail "of a private model there is $(find "$work/artifacts/" -path '*two*' -type f)"
if grep -qE 'two.*model_layers|^\[org/two' "$work/log"; then fail 'the log names a private model'; fi
grep -qF '[model 2-' "$work/log" || fail 'the private model has no jobs'
if grep -qF '[org/half' "$work/log"; then fail 'a job was started for a model that cannot be converted'; fi
# act ends where a called workflow fails, GitHub goes on: the report runs in a second try, without the jobs between.
sed '/^  convert:$/,/^  # What the Hub says/d; s/needs: \[list, convert\]/needs: list/' .github/workflows/batch.yml \
  >"$work/program/.github/workflows/report.yml"
sed -i 's/batch.yml@/report.yml@/' "$work/caller/.github/workflows/df11-list.yml"
for visibility in public private; do
  event=$(printf '{"ref": "refs/heads/main", "repository": {"visibility": "%s"}}' "$visibility")
  if run push df11-list "$event"; then fail 'the report did not fail'; fi
  jq -e --arg visibility "$visibility" '.ok == false and ([.models[] | [.source, .state]] == ([["org/one", "current"],
    ["org/two", "current"], ["org/half", "not_convertible"]] | if $visibility == "public" then del(.[1]) else . end)) and
    .private_models == if $visibility == "public" then 1 else null end' "$work/artifacts/report/report.json" >/dev/null || fail "no $visibility report"
  grep -q '::error title=df11-convert::org/half: model.embed_tokens.weight is F16' "$work/log" || fail 'no annotation says why'
  for row in '| current | org/one ' '| not\_convertible: model.embed' ' current, 1 not\_convertible'; do
    grep -qF "$row" "$work/artifacts/report/report.md" || fail "the table lacks $row"
  done
  if grep -rq two "$work/artifacts/report"; then [ -e "$work/artifacts/report/report.html" ] && [ "$visibility" = private ]; else [ "$visibility" = public ]; fi ||
    fail "the $visibility report: $(cat "$work/artifacts/report/report.md")"
done
end_hub
echo 'the workflows run'
