#!/usr/bin/env bash
# Proves internal/hubtest against the official clients: huggingface_hub (Python)
# and @huggingface/hub (JavaScript) run whole downloads and uploads against hubd.
# Needs python3 (3.10 or later) with venv, node with npm, and their registries.
# Xet is left out, which 23-xet.sh has.
set -euo pipefail
cd "$(dirname "$0")/../.."
clients=$PWD/internal/hubtest/testdata/clients
. .ci/lib.sh

hub_client
npm_install "$work/js" @huggingface/hub@2.17.5
python_client() { "$client/bin/python" "$clients/client.py" "$HF_ENDPOINT" "$(mktemp -d -p "$work")" "$@"; }

echo "== plain hub, small parts and pages"
start_hub data -model org/tiny -xet-hashes -multipart-from 300000 -chunk-size 250000 -page-size 5
python_client
(cd "$work/js" && node "$clients/client.mjs" "$HF_ENDPOINT")
end_hub

echo "== the commands that hints name"
start_hub hints -model org/tiny
export HF_TOKEN=hf_hints
hf() { HF_HOME="$work/home" HF_HUB_DISABLE_XET=1 "$client/bin/hf" "$@"; }
ours() { "$DF11_CONVERT" org/tiny --push --private --work-dir "$work/hints-work"; }
converter
hf repos create tester/tiny-DF11
if ours 2>"$work/public.txt"; then fail 'a public target took what --private asks for'; fi
grep 'make it private in its settings' "$work/public.txt"
hf repos settings tester/tiny-DF11 --private
ours
hf download tester/tiny-DF11 --local-dir "$work/tiny-DF11"
"$DF11_CONVERT" plan "$work/tiny-DF11" --layout transformers-single
hf repos delete tester/tiny-DF11 --yes
unset HF_TOKEN
end_hub

echo "== the same while the storage host and the uploads stumble"
start_hub stumbling -model org/tiny -xet-hashes -multipart-from 300000 -chunk-size 250000 -fault put-503:2 -fault complete-500:1
python_client
end_hub

for server in git kohakuhub mirror; do
  echo "== the ways of $server"
  start_hub "$server" -model org/tiny -ways "$server" -page-size 5
  python_client read
  end_hub
done

echo "== a trusted publisher, by the Python client's own exchange"
start_hub trusted -model acme/trusted -model acme/other -publisher acme/trusted=me/ci
env -u HF_TOKEN GITHUB_ACTIONS=true ACTIONS_ID_TOKEN_REQUEST_URL="$HF_ENDPOINT/_github/me/ci?api-version=2.0" \
  ACTIONS_ID_TOKEN_REQUEST_TOKEN=github-job-token HF_OIDC_RESOURCE=acme/trusted HF_HOME="$work/home" HF_HUB_DISABLE_XET=1 \
  "$client/bin/python" - <<'END'
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError

api = HfApi()
api.upload_file(path_or_fileobj=b"x", path_in_repo="published.txt", repo_id="acme/trusted")
assert api.file_exists("acme/trusted", "published.txt")
try:
    api.upload_file(path_or_fileobj=b"x", path_in_repo="published.txt", repo_id="acme/other")
except HfHubHTTPError as e:
    assert e.response.status_code == 403, e
else:
    raise SystemExit("a token for one repo wrote to another")
END
end_hub

echo "== a login by browser that ends all the time: the Python client and we renew it in turn, and at once"
start_hub renewals -model acme/model -login "$work/login=3s"
as_login() { env -u HF_TOKEN HF_HOME="$work/login" HF_HUB_DISABLE_XET=1 "$@"; }
python_asks() { as_login "$client/bin/python" -c 'from huggingface_hub import whoami; assert whoami()["name"] == "tester"'; }
we_ask() { as_login "$DF11_CONVERT" acme/model --push --repo-id "tester/renewed-$1" --work-dir "$work/renewed-$1" --quiet; }
for round in 1 2 3; do
  sleep 4
  we_ask "$round"
  sleep 4
  python_asks
done
sleep 4
# In Python, a login that another process writes meanwhile may be none, or an old one: _write_secret in utils/_auth.py of
# huggingface_hub 2.4.0 empties a file first, get_token reads both without the lock, and a token that stored_tokens doesn't
# name at that moment is one that it never renews.
python_asks_at_once() {
  as_login "$client/bin/python" - <<'END'
from huggingface_hub import whoami
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError
from huggingface_hub.utils import _auth

for tries in range(100):
    try:
        assert whoami()["name"] == "tester"
        break
    except LocalTokenNotFoundError:
        print("Python found the token file empty")
    except HfHubHTTPError as e:
        assert e.response.status_code == 401, e
        print("Python took a token that has ended")
        _auth._OAUTH_REFRESH_CACHE = None  # as in a new process
else:
    raise SystemExit("Python finds no token")
END
}
both=()
for i in 1 2 3; do
  python_asks_at_once & both+=($!)
  we_ask "at-once-$i" & both+=($!)
done
for p in "${both[@]}"; do wait "$p"; done
as_login "$client/bin/python" - <<'END'
from huggingface_hub.utils._auth import _get_token_from_file, _read_stored_tokens_full
stored = _read_stored_tokens_full()
assert sorted(stored) == ["other", "tester-oauth"], stored
assert stored["other"] == {"hf_token": "hf_other"}, stored
assert stored["tester-oauth"]["hf_token"] == _get_token_from_file(), stored
END
others=$(find "$work/login" -mindepth 1 -maxdepth 1 ! -name token ! -name stored_tokens ! -name stored_tokens.lock ! -name hub)
[ -z "$others" ] || fail "left next to the token: $others"
end_hub

echo "hub clients: both agree with hubd"
