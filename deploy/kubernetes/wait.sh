#!/bin/sh
# wait.sh JOB: waits until a Job is complete, or ends with an error if it has failed.
is() { kubectl wait --for="condition=$2" --timeout=0 "job/$1" >/dev/null 2>&1; }
kubectl get "job/$1" >/dev/null || exit
until is "$1" Complete; do
  if is "$1" Failed; then
    echo "job $1 failed: kubectl logs job/$1" >&2
    exit 1
  fi
  sleep "${WAIT_SECONDS:-20}"
done
