#!/usr/bin/env bash
# Builds the kustomizations of deploy/kubernetes and checks every object strictly against the schemas of the Kubernetes API. Needs
# python3 with venv, PyPI and Go's module proxy, no cluster.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

kustomize=$(tool sigs.k8s.io/kustomize/kustomize/v5 v5.7.1) ||
  skip_rest 'kustomize is missing here: deploy/kubernetes was not checked'
venv "$work/venv" kubernetes-validate==1.34.1 ||
  skip_rest 'kubernetes-validate is missing here: deploy/kubernetes was not checked'
# build FOLDER: makes $work/objects.yaml and checks it. What the schemas don't see: every $(NAME) has a value.
build() {
  local names name
  "$kustomize" build "$1" >"$work/objects.yaml"
  "$work/venv/bin/kubernetes-validate" --strict "$work/objects.yaml"
  # shellcheck disable=SC2016 # they are for Kubernetes to expand
  names=$(grep -o '\$([A-Z]*)' "$work/objects.yaml" | tr -d '$()' | sort -u)
  for name in $names; do grep -q "^  $name: " "$work/objects.yaml" || fail "\$($name) stands for nothing"; done
}
# pods NAME: the number of parts or slices must be that of pods.
pods() {
  local n
  n=$(sed -n "s/^  $1: \"\(.*\)\"\$/\1/p" "$work/objects.yaml")
  [ "$(grep -cE "^  (completions|parallelism): $n\$" "$work/objects.yaml")" = 2 ] || fail "the Job has other pods than $1"
}
build deploy/kubernetes
pods PARTS
build deploy/kubernetes/list
pods SLICES
grep -q '^  models.yaml: ' "$work/objects.yaml" || fail 'the list is not there'

# wait.sh ends when a Job is complete, and when it has failed; before it waits.
mkdir "$work/bin"
cat >"$work/bin/kubectl" <<'END'
#!/bin/sh
case $* in
"get job/"*) [ -e "$STATE" ] ;;
"wait --for=condition=Complete --timeout=0 job/"*) echo asked >>"$STATE.asked"; grep -q Complete "$STATE" ;;
"wait --for=condition=Failed --timeout=0 job/"*) grep -q Failed "$STATE" || { echo Complete >"$STATE"; false; } ;;
*) exit 9 ;;
esac
END
chmod +x "$work/bin/kubectl"
export STATE=$work/state WAIT_SECONDS=0
waits() { PATH=$work/bin:$PATH sh deploy/kubernetes/wait.sh df11-parts; }
if waits; then fail 'it waits for a Job that is not there'; fi
echo Failed >"$STATE"
if waits; then fail 'a failed Job is called complete'; fi
echo Running >"$STATE"
waits || fail 'it does not see the end of a Job'
[ "$(wc -l <"$STATE.asked")" = 3 ] || fail 'it has not waited'
echo 'kubernetes: the Jobs are as the API has them'
