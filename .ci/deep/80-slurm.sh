#!/usr/bin/env bash
# Runs deploy/slurm on a real Slurm: slurmctld, slurmd and munge of Debian, on this machine alone and without systemd. A job
# array converts a model in parts against hubd; one task is killed and requeued by hand, one is told that its time is up. The
# repo must then be that of a single run.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

have slurmctld slurmd munged sbatch || debian slurmctld slurmd slurm-client munge ||
  skip_rest 'Slurm is not to be had here: deploy/slurm did not run'
converter
export PATH=$work/bin:$PATH HF_HOME=$work/home HF_TOKEN=hf_rehearsal
source=org/tiny target=tester/tiny-DF11

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
SlurmctldPort=16817
SlurmdPort=16818
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

start_hub single -model "$source"
df11-convert "$source" --push --repo-id "$target" --quiet
start_hub parts -model "$source" -up 15000 # slow enough for a task to be killed in the middle
deploy=$PWD/deploy/slurm
cd "$work" # where Slurm writes the output of the jobs
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
small=(--cpus-per-task=1 --mem=512)
array=$(sbatch --parsable "${small[@]}" --array=0-3 "$deploy/part.sbatch" "$source" "$target")
finish=$(sbatch --parsable "${small[@]}" --dependency="afterok:$array" "$deploy/finish.sbatch" "$source" "$target")

task() { scontrol show job --oneliner "${array}_$1"; }
running() {
  local job
  job=$(task "$1" | sed -n 's/^JobId=\([0-9]*\) .*JobState=RUNNING.*/\1/p')
  [ -n "$job" ] && compgen -G "$TMPDIR/df11-$job-*/.df11-convert" >"$TMPDIR/found"
}
restarted() { task "$1" | grep -q ' Restarts=[1-9]'; }
# Slurm lets a requeued job wait for two minutes; this one need not.
now() { ! task "$1" | grep -q 'JobState=PENDING.*Reason=BeginTime' || scontrol update JobId="${array}_$1" StartTime=now; }
eventually 'task 1 at work' running 1
scontrol requeue "${array}_1"
eventually 'task 2 at work' running 2
scancel --batch --signal=USR1 "${array}_2"
eventually 'task 1 queued again' restarted 1
eventually 'task 2 queued again by itself' restarted 2
ended() {
  now 1
  now 2
  scontrol show job --oneliner "$finish" | grep -qE 'JobState=(COMPLETED|FAILED|CANCELLED|TIMEOUT|OUT_OF_MEMORY)'
}
eventually 'the end of the last job' ended
scontrol show job --oneliner "$finish" | grep -q JobState=COMPLETED || { tail -n 20 slurm-*.out; exit 1; }
cat "slurm-$finish.out"
cd "$OLDPWD"

# The repo is that of the single run, byte for byte, but for the word in the manifest that says how each source file was checked
# (docs/manifest.md).
single=$work/single/$target parts=$work/parts/$target manifest=df11-manifest.json
sed 's/"integrity": "streamed"/"integrity": "proof"/' "$single/$manifest" | cmp - "$parts/$manifest"
diff -r --exclude "$manifest" "$single" "$parts"
echo 'slurm: a job array of 4 tasks, one killed and one out of time, gave the repo of a single run'
