#!/usr/bin/env bash
# Runs deploy/slurm on a real Slurm: slurmctld, slurmd and munge of Debian, on this machine alone and without systemd. A job
# array converts a model in parts against hubd; one task is killed by SIGKILL, one is requeued, and one runs out of time. Another
# array converts a list in slices. The repos must then be those of single runs.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

have slurmctld slurmd munged sbatch || debian slurmctld slurmd slurm-client munge ||
  skip_rest 'Slurm is missing here: deploy/slurm did not run'
converter
export PATH=$work/bin:$PATH HF_HOME=$work/home HF_TOKEN=hf_rehearsal
source=org/tiny target=tester/tiny-DF11
models=(-model "$source" -model org/second -model org/third)

# --- a cluster of one machine ----------------------------------------------------------------------------------------

head -c 128 /dev/urandom >"$work/munge.key"
chmod 600 "$work/munge.key"
munged --force --foreground --socket="$work/munge.socket" --key-file="$work/munge.key" --pid-file="$work/munge.pid" \
  --log-file="$work/munge.log" --seed-file="$work/munge.seed" >/dev/null 2>&1 &
pids[$!]=$!
mkdir "$work/state" "$work/spool"
host=$(hostname -s)
export SLURM_CONF=$work/slurm.conf
cat >"$SLURM_CONF" <<CONF
ClusterName=rehearsal
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthInfo=socket=$work/munge.socket
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MpiDefault=none
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 RealMemory=8192
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
slurmctld -D >"$work/slurmctld.log" 2>&1 &
pids[$!]=$!
slurmd -D >"$work/slurmd.log" 2>&1 &
pids[$!]=$!

# eventually WHAT COMMAND…: waits until a command succeeds.
eventually() {
  local what=$1 end=$((SECONDS + 120))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "waited two minutes for this: $what"; tail -n 20 "$work"/*.log "$work"/slurm-*.out; exit 1; }
    sleep 0.2
  done
}
idle() { [ "$(sinfo -h -o %t)" = idle ]; }
eventually 'an idle node' idle

# --- the conversion --------------------------------------------------------------------------------------------------

printf 'models: [%s, org/second, org/third]\n' "$source" >"$work/models.yaml"
start_hub single "${models[@]}"
df11-convert batch "$work/models.yaml" --push --quiet
start_hub parts "${models[@]}" -up 15000 # slow enough for a task to be killed in the middle
export DF11_RECIPE=$PWD/deploy/slurm TMPDIR=$work/tmp
# shellcheck disable=SC2016 # the backquotes are Markdown's
sed -n '/^```sh$/,/^```$/{/^```/d;p}' deploy/slurm/README.md >"$work/shown"
eval "$(grep DF11_SECRET= "$work/shown")"
cd "$work" # where Slurm writes the output of the jobs
mkdir "$TMPDIR"
sbatch() { command sbatch --cpus-per-task=1 --mem=512 "$@"; }
commit=$(df11-convert plan "$source" --sample-bytes 0 --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["commit"])')
pinned=$source@$commit
array=$(sbatch --parsable --array=0-3 "$DF11_RECIPE/part.sbatch" "$pinned" "$target")

# folder TASK: its work folder, whatever try it is.
folder() {
  local name
  name=$(printf '%s %s' "$DF11_SECRET" "${array}_$1" | sha256sum)
  printf '%s\n' "$TMPDIR/df11-${name:0:32}"
}
task() { scontrol show job --oneliner "${array}_$1"; }
id() { task "$1" | sed -n 's/^JobId=\([0-9]*\) .*/\1/p'; }
running() { task "$1" | grep -q JobState=RUNNING && find "$(folder "$1")" -name .df11-convert | grep -q .; }
failed() { task "$1" | grep -q JobState=FAILED; }
restarted() { task "$1" | grep -q ' Restarts=[1-9]'; }
# Slurm lets a requeued job wait for two minutes; this one need not.
now() { ! task "$1" | grep -q 'JobState=PENDING.*Reason=BeginTime' || scontrol update JobId="${array}_$1" StartTime=now; }
finish=$(sbatch --parsable --dependency="afterok:$array" "$DF11_RECIPE/finish.sbatch" "$pinned" "$target")
eventually 'task 1 at work' running 1
scontrol requeue "${array}_1"
eventually 'task 2 at work' running 2
scancel --batch --signal=USR1 "${array}_2"
eventually 'task 1 queued again' restarted 1
eventually 'task 2 queued again by itself' restarted 2

# completed JOB: waits for its end, which must be a good one.
ended() {
  for task in 0 1 2; do now "$task"; done
  ! scontrol show job --oneliner "$1" | grep -qE 'JobState=(PENDING|RUNNING|COMPLETING|REQUEUED)'
}
completed() {
  eventually "the end of job $1" ended "$1"
  ! scontrol show job --oneliner "$1" | grep -qv JobState=COMPLETED || { scontrol show job --oneliner; tail -n 20 "$work"/slurm-*.out; exit 1; }
}
completed "$finish"
cat "slurm-$finish.out"

# The list; a task of it is killed in a way that runs no trap, and goes on in the same folder.
start_hub slices "${models[@]}" -up 15000
array=$(sbatch --parsable --array=0-1 "$DF11_RECIPE/part.sbatch" batch "$PWD/models.yaml")
eventually 'slice 0 at work' running 0
scontrol listpids "$(id 0)" | awk 'NR > 1 && $1 > 0 { print $1 }' | xargs kill -KILL
eventually 'the end of slice 0' failed 0
[ -d "$(folder 0)" ] || { echo 'SIGKILL left no folder to go on with'; exit 1; }
scontrol requeue "${array}_0"
completed "$array"
[ -z "$(ls "$TMPDIR")" ] || { echo "left behind: $(ls "$TMPDIR")"; exit 1; }
cd "$OLDPWD"

# The repo is that of the single run, byte for byte, but for the word in the manifest that says how each source file was checked
# (docs/manifest.md).
diff -r "$work/single/tester" "$work/slices/tester"
single=$work/single/$target parts=$work/parts/$target manifest=df11-manifest.json
sed 's/"integrity": "streamed"/"integrity": "proof"/' "$single/$manifest" | cmp - "$parts/$manifest"
diff -r --exclude "$manifest" "$single" "$parts"
echo 'slurm: arrays of parts and of slices, with tasks killed, requeued and out of time, gave the repos of single runs'
