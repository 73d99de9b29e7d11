#!/usr/bin/env bash
# Has the hf command read every command of deploy/hf-jobs and deploy/webhook without submitting it. Needs python3 with venv, jq, and
# PyPI.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

if have node; then # the page's function says what a job takes
  rows=$(node .ci/deep/page/prices.mjs)
  while IFS= read -r row; do
    grep -qxF "$row" deploy/hf-jobs/README.md || fail "deploy/hf-jobs/README.md lacks the row $row"
  done <<<"$rows"
fi
hub_client || skip_rest 'huggingface_hub is missing here: the commands of deploy/hf-jobs and deploy/webhook were not read'
have jq || debian jq || skip_rest 'the commands of deploy/hf-jobs: jq is missing here'
mkdir "$work/bin"
export SENT=$work/sent JOB=687f911eaea852de79c4a50a
cat >"$work/hf.py" <<'HF'
# hf, which reads its command line and sends nothing. A detached job gets an id.
import os, sys
from huggingface_hub import HfApi
from huggingface_hub.cli import hf

words, job = sys.argv[1:], os.environ["JOB"]

def sent(line):
    with open(os.environ["SENT"], "a") as f:
        f.write(line + "\n")

def create(self, **given):
    assert given["job_id"] == job and given["secrets"] == {"HF_TOKEN": "hf_rehearsal"}, given
    sent(f"webhook {given['watched']} {given['domains']}")
    os._exit(0)

def wait(self, *args, **given):
    sent("wait")
    os._exit(0)

HfApi.create_webhook = create
if words[:2] == ["jobs", "run"]:
    sent("run " + " ".join(words))
    sys.argv[3:3] = ["--dry-run"]
    if "--detach" in words:
        print(job, flush=True)
        os.dup2(2, 1)
elif words[:2] == ["jobs", "wait"]:
    assert words[2:] == [job] * 4, words
    sent("wait")
    sys.exit()
else:
    assert words[:2] == ["webhooks", "create"], words
sys.argv[0] = "hf"
hf.main()
HF
printf '#!/bin/sh\nexec %s %s "$@"\n' "$client/bin/python" "$work/hf.py" >"$work/bin/hf"
cat >"$work/bin/df11-convert" <<'PROGRAM'
#!/bin/sh
[ "$1 $3 $4 $5" = 'plan --sample-bytes 0 --json' ] && echo '{"commit": "575db8b7a51b6f85eb06eee540738584589f131c"}'
PROGRAM
chmod +x "$work"/bin/*
# shellcheck disable=SC2016 # the backquotes are Markdown's
for page in hf-jobs webhook; do sed -n '/^```sh$/,/^```$/{/^```/d;p}' "deploy/$page/README.md"; done >"$work/commands"
PATH=$work/bin:$PATH HF_HOME=$work HF_TOKEN=hf_rehearsal bash -eu "$work/commands" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
[ "$(grep -c '^run' "$SENT")" = 13 ] || { cat "$work/out"; fail 'not 13 jobs'; }
[ "$(grep -c '^webhook' "$SENT")" = 2 ] || { cat "$SENT"; fail 'not two webhooks'; }
[ "$(grep -c '405B@575db8b7a51b6f85eb06eee540738584589f131c' "$SENT")" = 6 ] || { cat "$SENT"; fail 'not all parts are of one commit'; }
[ "$(grep -n '^wait' "$SENT")" = 6:wait ] || { cat "$SENT"; fail 'the parts are not waited for'; }
echo 'hf-jobs: hf understands all 13 jobs and two webhooks'
