#!/usr/bin/env bash
# Builds the kustomization of deploy/kubernetes for a small model, decodes it strictly into the types of the Kubernetes API, and
# runs the command line of every container with the environment that Kubernetes would set, against hubd. The repo must then
# be that of a single run. No cluster is needed, and none is shown to accept the Jobs.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/deep/engines/common.sh

(cd deploy/kubernetes/check && go build -o "$work/bin/check" .) || {
  [ ! -d "$(go env GOMODCACHE)/k8s.io/api@v0.34.1" ] || exit 1
  skip_rest 'the types of the Kubernetes API are not to be had here: deploy/kubernetes did not run'
}
cp -r deploy/kubernetes "$work/kubernetes"
sed -i "s|SOURCE=.*|SOURCE=$source|; s|TARGET=.*|TARGET=$target|; s|PARTS=.*|PARTS=3|" "$work/kubernetes/kustomization.yaml"
check "$work/kubernetes" | sed "s|'/work'|'$work/pod'|" >"$work/commands"
[ "$(grep -c ^JOB_COMPLETION_INDEX= "$work/commands")" = 3 ] || { cat "$work/commands"; exit 1; }

single
start_hub parts -model "$source"
while read -r line; do
  echo "$line"
  bash -euc "$line" </dev/null
  rm -rf "$work/pod"
done <"$work/commands"
same parts
echo 'kubernetes: an Indexed Job of 3 parts and the Job that finishes gave the repo of a single run'
