#!/usr/bin/env bash
# Reads and converts through someone else's read-only mirror: olah from PyPI, in front of hubd. What comes through it must
# equal what comes directly, and a push must end with words that help. Needs python3 with venv, and PyPI.
set -euo pipefail
cd "$(dirname "$0")/../.."
olah=0.5.4
. .ci/lib.sh

once "$CI_CACHE/olah-$olah" venv "$CI_CACHE/olah-$olah" "olah==$olah" || skip_rest 'olah is missing here: nothing was read through a mirror'
have jq || debian jq
converter
export HF_TOKEN=hf_test HF_HOME=$work/home
# The generated model without its oddest name: olah asks the Hub for all that is before a "#".
start_hub seed -model org/tiny
"$DF11_CONVERT" org/tiny --push --repo-id me/tiny-DF11 --quiet
"$DF11_CONVERT" decode me/tiny-DF11 -o "$work/hub/org/tiny" --quiet
end_hub
find "$work/hub/org/tiny" -name '*#*' -delete

start_hub hub
direct=$HF_ENDPOINT
"$DF11_CONVERT" org/tiny -o "$work/direct" --quiet
"$DF11_CONVERT" org/tiny --push --repo-id me/tiny-DF11 --quiet

mkdir "$work/mirror"
mirror() {
  cd "$work/mirror"
  exec "$CI_CACHE/olah-$olah/bin/olah-cli" --host 127.0.0.1 --port "$1" --hf-scheme http --hf-netloc "${direct#http://}" \
    --hf-lfs-netloc "${direct#http://}" --mirror-scheme http --mirror-netloc "127.0.0.1:$1" --mirror-lfs-netloc "127.0.0.1:$1" \
    --repos-path "$work/mirror/repos" --log-path "$work/mirror/logs"
}
on_port api/models/org/tiny "$work/mirror.log" mirror
export HF_ENDPOINT=http://127.0.0.1:$port

"$DF11_CONVERT" plan org/tiny --json | jq -e '.ok and .estimate' >/dev/null || fail 'no plan'
"$DF11_CONVERT" org/tiny -o "$work/through" --quiet
diff -r "$work/direct" "$work/through" || fail 'what was converted through the mirror differs'
"$DF11_CONVERT" verify "$work/through" --level full --quiet
"$DF11_CONVERT" verify me/tiny-DF11 --level proof --quiet
"$DF11_CONVERT" decode me/tiny-DF11 -o "$work/decoded" --quiet
for f in "$work"/hub/org/tiny/*.safetensors; do cmp "$f" "$work/decoded/${f##*/}"; done
printf 'models:\n  - {source: org/tiny, repo-id: me/tiny-DF11}\n' >"$work/models.yaml"
"$DF11_CONVERT" status "$work/models.yaml"
"$DF11_CONVERT" org/tiny --push --repo-id me/tiny-DF11 --quiet # up to date: nothing has to be written

code=0
"$DF11_CONVERT" org/tiny --push --repo-id me/new-DF11 --json >"$work/refused.json" || code=$?
jq -e --argjson code "$code" '$code == 1 and (.error.message | contains("405 Method Not Allowed")) and
  (.error.hint | contains("a read-only mirror, set DF11_PUSH_ENDPOINT"))' "$work/refused.json" >/dev/null ||
  fail "a push to the mirror ended with $code: $(cat "$work/refused.json")"
DF11_PUSH_ENDPOINT=$direct "$DF11_CONVERT" org/tiny --push --repo-id me/new-DF11 --quiet # reads there, publishes here
HF_ENDPOINT=$direct "$DF11_CONVERT" verify me/new-DF11 --level proof --quiet
end_hub
echo 'olah: what is read through a mirror is what is read from the hub'
