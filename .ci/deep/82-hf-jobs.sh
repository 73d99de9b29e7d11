#!/usr/bin/env bash
# Has the hf command read every command of deploy/hf-jobs/README.md without submitting it. Needs python3 with venv, and PyPI.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

hub_client || skip_rest 'huggingface_hub is not to be had here: the commands of deploy/hf-jobs were not read'
mkdir "$work/bin"
cat >"$work/bin/hf" <<HF
#!/usr/bin/env bash
[ "\$1 \$2" = 'jobs run' ] || exit 1
shift 2
exec "$client/bin/hf" jobs run --dry-run "\$@"
HF
chmod +x "$work/bin/hf"
# shellcheck disable=SC2016 # the backquotes are Markdown's
sed -n '/^```sh$/,/^```$/{/^```/d;p}' deploy/hf-jobs/README.md >"$work/commands"
PATH=$work/bin:$PATH HF_HOME=$work HF_TOKEN=hf_rehearsal bash -eu "$work/commands" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
n=$(grep -c '(dry run) Job not submitted' "$work/out") || { cat "$work/out"; exit 1; }
[ "$n" = 7 ] || { echo "$n jobs in place of 7"; cat "$work/out"; exit 1; }
echo "hf-jobs: hf understands all $n jobs"
