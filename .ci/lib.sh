# shellcheck shell=bash
# Functions for the scripts of .ci, which source this file in the repo's root. It makes the folder $work. When the script ends, it
# removes the folder and ends every process whose id is in pids.
CI_CACHE=${CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/df11-ci}
export CGO_ENABLED=0
work=$(mktemp -d)
pids=()
stop() {
  [ ${#pids[@]} -eq 0 ] || { kill "${pids[@]}" && wait "${pids[@]}"; } 2>/dev/null || true
  chmod -R u+w "$work" 2>/dev/null || true # Go's module cache is read-only
  rm -rf "$work"
}
trap stop EXIT

# fail TEXT…: ends the script with an error.
fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# skip TEXT…: says what isn't checked here, and why; .ci/run repeats it at its end. skip_rest also ends the script.
skip() {
  printf '!! SKIPPED: %s\n' "$*"
  [ -z "${CI_SKIPPED-}" ] || printf '%s\n' "$*" >>"$CI_SKIPPED"
}
skip_rest() {
  skip "$@"
  exit 0
}

# tool MODULE/PATH VERSION: builds a Go program once for each version and prints where it is.
tool() {
  local name=${1%/v[0-9]} dir
  name=${name##*/}
  dir=$CI_CACHE/bin/$name-$2
  [ -x "$dir/$name" ] || GOBIN=$dir go install "$1@$2" >&2 || return
  printf '%s\n' "$dir/$name"
}

# debian PACKAGE…: installs Debian packages; fails where there is no apt or no such package.
debian() {
  command -v apt-get >/dev/null || return 1
  [ -n "${apt_updated-}" ] || { apt-get update -q && apt_updated=1; } >/dev/null || return
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >/dev/null
}

# have COMMAND…: reports whether all of these commands exist.
have() {
  local command
  for command in "$@"; do command -v "$command" >/dev/null || return; done
}

# once FOLDER COMMAND…: runs a command that makes a folder of the cache, unless the folder exists. Of two runs on one machine, the
# second waits for the first.
once() {
  if [ -f "$1/complete" ]; then return; fi
  local lock status=0
  mkdir -p "${1%/*}"
  exec {lock}>"$1.lock"
  flock "$lock"
  if [ ! -f "$1/complete" ]; then
    echo "make $1" >&2
    rm -rf "$1"
    if "${@:2}"; then touch "$1/complete"; else status=$?; fi
  fi
  exec {lock}>&-
  return "$status"
}

# wheels FOLDER PACKAGE…: unpacks wheels of PyPI, without what they depend on; fails if they aren't available.
wheels() {
  local wheel packed=$work/wheels-${1##*/}
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: -d "$packed" "${@:2}" || return
  for wheel in "$packed"/*.whl; do python3 -m zipfile -e "$wheel" "$1" || return; done
}

# venv FOLDER PACKAGE…: makes a Python environment with packages of PyPI; fails if they aren't available.
venv() { python3 -m venv "$1" && "$1/bin/pip" install -q --disable-pip-version-check "${@:2}"; }

# hub_client makes $client, a Python environment with the Hub's official client and its Xet; fails if they aren't available.
client=$CI_CACHE/huggingface_hub-2.4.0
hub_client() { once "$client" venv "$client" "huggingface_hub==${client##*-}" hf-xet; }

# npm_install FOLDER PACKAGE…: installs packages of npm into a folder; fails if they aren't available.
npm_install() {
  mkdir -p "$1"
  (cd "$1" && npm init --yes >/dev/null && npm install --silent --no-fund --no-audit "${@:2}")
}

# free_port prints a port that no program listens on.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# on_port PATH LOG COMMAND…: runs a server as COMMAND PORT with a free port, and waits until http://127.0.0.1:$port/PATH is there.
# If another program takes the port first, it tries another one.
on_port() {
  local server
  for _ in 1 2 3; do
    port=$(free_port)
    "${@:3}" "$port" >"$2" 2>&1 &
    server=$!
    pids[server]=$server
    until curl -sf -o "$work/answer" "http://127.0.0.1:$port/$1"; do
      kill -0 "$server" 2>/dev/null || { unset "pids[$server]" && continue 2; }
      sleep 0.1
    done
    return
  done
  fail "no server on a free port: $(cat "$2")"
}

# announced PID FILE PATTERN: waits until a program has written a line that fits, and sets $said to the pattern's group. It fails if
# the program ends first.
announced() {
  until said=$(sed -n "s/$3/\1/p" "$2") && [ -n "$said" ]; do
    kill -0 "$1" 2>/dev/null || return
    sleep 0.1
  done
}

# browser TEXT: puts puppeteer-core and axe-core, which drive Chromium, next to the scripts in $work. If something isn't available,
# it ends the script; TEXT says what isn't checked then.
browser() {
  local cache=$CI_CACHE/page-24.43.1
  have node npm || skip_rest "$1: there is no node with npm"
  have chromium || debian chromium || skip_rest "$1: Chromium is missing here"
  once "$cache" npm_install "$cache" puppeteer-core@24.43.1 axe-core@4.14.1 || skip_rest "$1: puppeteer-core and axe-core are missing here"
  ln -s "$cache/node_modules" "$work/node_modules"
}

# converter puts the program into $work/bin: the file in DF11_CONVERT, or a build of this tree.
converter() {
  mkdir -p "$work/bin"
  if [ -n "${DF11_CONVERT-}" ]; then cp "$DF11_CONVERT" "$work/bin/df11-convert"; else go build -o "$work/bin/" ./cmd/df11-convert; fi
  DF11_CONVERT=$work/bin/df11-convert
}

# one_tensor FOLDER DTYPE BYTES: writes a model of one tensor of 8 × 8 zeros.
one_tensor() {
  mkdir -p "$1"
  python3 - "$@" <<'END'
import json, struct, sys
folder, dtype, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
header = json.dumps({"model.embed_tokens.weight": {"dtype": dtype, "shape": [8, 8], "data_offsets": [0, size]}}).encode()
open(folder + "/model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + bytes(size))
open(folder + "/config.json", "w").write('{"architectures": ["LlamaForCausalLM"], "model_type": "llama"}')
END
}

# start_hub NAME FLAGS…: starts a hub whose repos lie in $work/NAME, and points HF_ENDPOINT at it. Its log is $work/NAME.log.
start_hub() {
  hub=$1
  shift
  mkdir -p "$work/bin"
  [ -x "$work/bin/hubd" ] || go build -o "$work/bin/" ./internal/hubtest/hubd
  : >"$work/$hub.url"
  "$work/bin/hubd" -data "$work/$hub" "$@" >"$work/$hub.url" 2>"$work/$hub.log" &
  hub_pid=$!
  pids[hub_pid]=$hub_pid
  announced "$hub_pid" "$work/$hub.url" '^READY \(.*\)' || { cat "$work/$hub.log"; fail 'hubd did not start'; }
  export HF_ENDPOINT=$said
}

# end_hub ends the hub that was started last. It must exit with 0, and must have seen no mistake of a client, such as a token
# that went to the storage host.
end_hub() {
  kill -TERM "$hub_pid"
  wait "$hub_pid" || { cat "$work/$hub.log"; fail "hubd ended with $?"; }
  unset "pids[$hub_pid]"
  if grep -A 9 '^violations' "$work/$hub.log"; then fail "clients made mistakes at the hub $hub"; fi
}

# serve_files FOLDER: serves its files over HTTP and sets server to the address.
serve_files() {
  : >"$work/server.log"
  python3 -u -m http.server -d "$1" --bind 127.0.0.1 0 >"$work/server.log" 2>&1 &
  pids[$!]=$!
  announced $! "$work/server.log" '^Serving.* port \([0-9]*\).*' || fail "no server: $(cat "$work/server.log")"
  # shellcheck disable=SC2034 # it is for the script
  server=http://127.0.0.1:$said
}
