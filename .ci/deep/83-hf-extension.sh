#!/usr/bin/env bash
# Installs packaging/hf-df11 with the real hf, from a stand-in for GitHub behind a proxy, next to a wheel of this tree, and converts a
# model with hf df11. Needs python3 with venv, openssl, and PyPI.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh

hub_client || skip_rest 'huggingface_hub is missing here: hf df11 was not installed'
have openssl || debian openssl || skip_rest 'openssl is missing here: hf df11 was not installed'
converter
mkdir -p "$work"/{wheels,github,hf,tree/build,tree/verify}
cp -r packaging LICENSE "$work/tree"
cp -r verify/kernel "$work/tree/verify"
touch "$work/tree/build/THIRD_PARTY_NOTICES" # 80-release.sh looks into real wheels
python3 "$work/tree/packaging/wheel/build.py" --binary "$DF11_CONVERT" --tag "linux_$(uname -m)" --version 1.2.3 --out "$work/wheels" >/dev/null
python3 -m pip download -q --disable-pip-version-check --no-deps -d "$work/wheels" 'flit_core==3.12.0' ||
  skip_rest 'flit_core is missing here: hf df11 was not installed'

# GitHub: https for any host, with a certificate of our own, that knows one repository.
python3 -m zipfile -c "$work/github/HEAD.zip" packaging/hf-df11
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=stand-in -keyout "$work/key.pem" -out "$work/cert.pem" \
  -addext 'subjectAltName=DNS:github.com,DNS:raw.githubusercontent.com' 2>"$work/openssl.log"
cat >"$work/github.py" <<'PROXY'
import socketserver, ssl, sys

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{sys.argv[1]}/cert.pem", f"{sys.argv[1]}/key.pem")
with open(f"{sys.argv[1]}/github/HEAD.zip", "rb") as f:
    archive = f.read()
with open("packaging/hf-df11/pyproject.toml", "rb") as f:
    project = f.read()
repo = "/df11-convert/hf-df11"
answers = {
    ("github.com", repo): b"the page of the repository",
    ("github.com", repo + "/archive/HEAD.zip"): archive,
    ("github.com", repo + ".git/info/refs"): b"001e# service=git-upload-pack\n0000" + b"1" * 40 + b" HEAD\0",
    ("raw.githubusercontent.com", repo + "/HEAD/pyproject.toml"): project,
}


def read_head(connection):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte:
            return None
        head += byte
    return head.decode().split()


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        words = read_head(self.request)
        host = words[1].partition(":")[0]
        self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with context.wrap_socket(self.request, server_side=True) as tls:
            words = read_head(tls)
            if not words:
                return
            method, path = words[0], words[1].partition("?")[0]
            body = answers.get((host, path))
            print(method, host, path, 404 if body is None else 200, flush=True)
            status = b"404 Not Found" if body is None else b"200 OK"
            tls.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(body or b"")))
            if method == "GET" and body:
                tls.sendall(body)


with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
    print("port", server.server_address[1], flush=True)
    server.serve_forever()
PROXY
python3 "$work/github.py" "$work" >"$work/github.log" 2>&1 &
pids[$!]=$!
announced $! "$work/github.log" '^port \(.*\)' || fail "no stand-in: $(cat "$work/github.log")"
port=$said

# hf without what this machine has: of its own only a home, the stand-in, and wheels from a folder.
hf() {
  env -i PATH=/usr/bin:/bin HOME="$work/hf" HF_HOME="$work/hf" HF_TOKEN=hf_rehearsal HF_ENDPOINT="${HF_ENDPOINT-}" \
    HTTPS_PROXY="http://127.0.0.1:$port" NO_PROXY=127.0.0.1 SSL_CERT_FILE="$work/cert.pem" PIP_CERT="$work/cert.pem" \
    PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PIP_FIND_LINKS="$work/wheels" "$client/bin/hf" "$@"
}
start_hub hub -model org/tiny
hf extensions install df11-convert/hf-df11 >"$work/out" 2>&1 || { cat "$work/out" "$work/github.log"; fail 'hf did not install the extension'; }
hf extensions list >"$work/out" 2>&1
grep -q 'df11' "$work/out" || { cat "$work/out"; fail 'hf does not list the extension'; }
hf df11 org/tiny --push --json >"$work/result.json" || { cat "$work/result.json"; fail 'hf df11 failed'; }
python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["target"]["repo"] == "tester/tiny-DF11"' "$work/result.json"
code=0
hf df11 --no-such-flag 2>"$work/err" || code=$?
[ "$code" = 2 ] || { cat "$work/err"; fail "a wrong flag ends with $code"; }
grep -q 'unknown flag: --no-such-flag' "$work/err" || fail "a wrong flag: $(cat "$work/err")"
end_hub
echo 'hf-extension: hf installs the extension, and hf df11 converts'
