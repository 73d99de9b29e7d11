#!/usr/bin/env bash
# Builds the kustomization of deploy/kubernetes and checks every object strictly against the schemas of the Kubernetes API. Needs
# python3 with venv, PyPI and Go's module proxy, no cluster.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

kustomize=$(tool sigs.k8s.io/kustomize/kustomize/v5 v5.7.1) ||
  skip_rest 'kustomize is not to be had here: deploy/kubernetes was not checked'
venv "$work/venv" kubernetes-validate==1.34.1 ||
  skip_rest 'kubernetes-validate is not to be had here: deploy/kubernetes was not checked'
"$kustomize" build deploy/kubernetes >"$work/objects.yaml"
"$work/venv/bin/kubernetes-validate" --strict "$work/objects.yaml"

# What the schemas do not see: every $(NAME) has a value, and the number of parts is that of pods.
# shellcheck disable=SC2016 # they are for Kubernetes to expand
names=$(grep -o '\$([A-Z]*)' "$work/objects.yaml" | tr -d '$()' | sort -u)
for name in $names; do grep -q "^  $name: " "$work/objects.yaml" || fail "\$($name) stands for nothing"; done
parts=$(sed -n 's/^  PARTS: "\(.*\)"$/\1/p' "$work/objects.yaml")
[ "$(grep -cE "^  (completions|parallelism): $parts\$" "$work/objects.yaml")" = 2 ] ||
  fail 'the Job has not as many pods as there are parts'
echo 'kubernetes: the Jobs are as the API has them'
