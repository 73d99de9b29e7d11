# shellcheck shell=bash
# What the jobs share; they source it. It sets limits, and run runs the program until it ends or the job's time is nearly up.
set -eu
job=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}

# The work folder has the same name for every try of a task, so the next try on this node goes on with what a killed one left.
# The name depends on a secret of the submission, so others can't guess it and make the folder first.
name=$(printf '%s %s' "${DF11_SECRET:?see README.md}" "$job" | sha256sum)
work=${TMPDIR:-/tmp}/df11-${name:0:32}
mkdir -p -m 700 "$work"
[ ! -L "$work" ] && [ -O "$work" ] || { echo "$work is not ours" >&2; exit 1; }
trap 'rm -rf "$work"' EXIT

limits=(--workers "$SLURM_CPUS_PER_TASK" --work-dir "$work")
if [ "${SLURM_MEM_PER_NODE:-0}" -gt 0 ]; then # 0 is all of the node
  limits+=(--memory "$((SLURM_MEM_PER_NODE * 3 / 4))MiB")
fi

# Five minutes before the time is up the program stops, and the job is queued again; what it has published stays.
again() {
  kill -TERM "$program"
  wait "$program" || true
  rm -rf "$work"
  exec scontrol requeue "$job"
}
run() {
  df11-convert "$@" &
  program=$!
  trap again USR1
  wait "$program"
}
