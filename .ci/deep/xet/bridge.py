"""Makes a Xet Hub of a Hub that knows LFS only and of xet-core's own test server: a proxy in front of both.

    bridge.py HUB CAS    prints "READY URL" when it answers, and every request on stderr

It adds what the real Hub adds: tokens for the storage, to whom the Hub lets read or write; the Xet hash of a file, and the link to
a token, where the file is asked for. A file is kept both ways, as on the real Hub: what a commit names and Xet has brought goes to
the Hub by LFS, what came by LFS goes to Xet when it is first asked for.
"""

import hashlib
import http.client
import http.server
import json
import re
import secrets
import sys
import threading
import time
import urllib.request
from urllib.parse import urlsplit

import hf_xet

HUB, CAS = sys.argv[1:]
tokens = {}  # a token of the storage: whether it may write
xet_of = {}  # Xet hash of a file, by its SHA-256
known = {}  # SHA-256 of a file, by its Xet hash
lock = threading.Lock()
LFS = "application/vnd.git-lfs+json"


def ask(method, url, body=None, headers={}):
    """Sends one request, follows no redirect, and returns status, headers and body."""
    u = urlsplit(url)
    c = http.client.HTTPConnection(u.netloc, timeout=60)
    try:
        c.request(method, u.path + ("?" + u.query if u.query else ""), body, headers)
        r = c.getresponse()
        return r.status, r.headers, r.read()
    finally:
        c.close()


def learn():
    """Learns the SHA-256 of the files that Xet clients have uploaded since the last call."""
    for entry in json.loads(ask("GET", CAS + "/simulation/file_entries")[2]):
        if (xet := "".join(f"{n:016x}" for n in entry["file_hash"])) not in known:
            sha256 = hashlib.sha256(content(xet)).hexdigest()
            known[xet], xet_of[sha256] = sha256, xet


def content(xet):
    status, _, data = ask("GET", f"{CAS}/simulation/files/{xet}/data")
    assert status == 200, (xet, status, data)
    return data


def to_lfs(repo, auth, oids):
    """Uploads files that Xet has to the Hub by LFS, unless this repo of it has them."""
    headers = {"Authorization": auth, "Content-Type": LFS, "Accept": LFS}
    data_of = {oid: content(xet_of[oid]) for oid in oids if oid in xet_of}
    objects = [{"oid": oid, "size": len(data)} for oid, data in data_of.items()]
    batch = {"operation": "upload", "transfers": ["basic"], "objects": objects, "hash_algo": "sha256"}
    status, _, body = ask("POST", f"{HUB}/{repo}.git/info/lfs/objects/batch", json.dumps(batch), headers)
    assert status == 200, (status, body)
    for o in json.loads(body)["objects"]:
        if "actions" in o:
            status, _, body = ask("PUT", o["actions"]["upload"]["href"], data_of[o["oid"]])
            assert status == 200, (status, body)


def to_xet(url, sha256):
    """Brings a file of the Hub to Xet; returns its hash there."""
    with lock:
        if sha256 not in xet_of:
            data = urllib.request.urlopen(url).read()
            assert hashlib.sha256(data).hexdigest() == sha256, url
            token = issue(True)
            with hf_xet.XetSession().new_upload_commit(endpoint=BRIDGE + "/cas", token=token[0], token_expiry_unix_secs=token[1]) as commit:
                handle = commit.start_upload_bytes(data, sha256=sha256)
            xet = handle.result().xet_info.hash
            known[xet], xet_of[sha256] = sha256, xet
        return xet_of[sha256]


def issue(writes):
    token = secrets.token_hex(16)
    tokens[token] = writes
    return token, int(time.time()) + 3600


def xet_headers(token, exp):
    return {"X-Xet-Cas-Url": BRIDGE + "/cas", "X-Xet-Access-Token": token, "X-Xet-Token-Expiration": str(exp)}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while n := int(self.rfile.readline(), 16):
                body += self.rfile.read(n)
                self.rfile.readline()
            self.rfile.readline()
        try:
            self.answer(*self.route(body))
        except Exception as e:
            print(f"{self.command} {self.path}: {e!r}", file=sys.stderr, flush=True)
            self.answer(500, {}, repr(e).encode())

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any

    def answer(self, status, headers, body):
        print(status, self.command, self.path, (self.headers.get("User-Agent") or "").split(";")[0], file=sys.stderr, flush=True)
        self.send_response(status)
        for k, v in headers.items():
            if k.lower() not in ("connection", "transfer-encoding", "date", "server") and (self.command == "HEAD" or k.lower() != "content-length"):
                self.send_header(k, v)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def route(self, body):
        auth = self.headers.get("Authorization", "")
        path = urlsplit(self.path).path
        if self.path.startswith("/cas/"):
            writes = tokens.get(auth.removeprefix("Bearer "))
            if writes is None or self.command in ("POST", "PUT") and not writes:
                return 401, {}, b"no token for this"
            return self.forward(CAS, self.path[len("/cas"):], body)
        if m := re.fullmatch(r"/api/models/([^/]+/[^/]+)/xet-(read|write)-token/([^/]+)", path):
            check = f"{HUB}/api/models/{m[1]}/" + ("auth-check/write" if m[2] == "write" else f"revision/{m[3]}")
            status, headers, answer = ask("GET", check, headers={"Authorization": auth} if auth else {})
            if status != 200:
                return status, headers, answer
            token, exp = issue(m[2] == "write")
            answer = {"casUrl": BRIDGE + "/cas", "accessToken": token, "exp": exp}
            return 200, {"Content-Type": "application/json", **xet_headers(token, exp)}, json.dumps(answer).encode()
        if self.command == "POST" and (m := re.fullmatch(r"/api/models/([^/]+/[^/]+)/commit/[^/]+", path)):
            files = [json.loads(line)["value"]["oid"] for line in body.splitlines() if line and json.loads(line)["key"] == "lfsFile"]
            with lock:
                learn()
                to_lfs(m[1], auth, files)
        status, headers, answer = self.forward(HUB, self.path, body)
        linked = (headers["X-Linked-Etag"] or "").strip('"')
        if (m := re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/.*", path)) and re.fullmatch("[0-9a-f]{64}", linked):
            commit = headers["X-Repo-Commit"]
            headers["X-Xet-Hash"] = to_xet(headers["Location"], linked)
            headers["Link"] = f'<{BRIDGE}/api/models/{m[1]}/xet-read-token/{commit}>; rel="xet-auth"'
        if status == 200 and path.endswith("/info/lfs/objects/batch") and "xet" in json.loads(body)["transfers"]:
            batch = json.loads(answer)
            upload = {"href": f"{BRIDGE}/api/models{path.split('.git/')[0]}/xet-write-token/main", "header": xet_headers(*issue(True))}
            for o in batch["objects"]:
                if "actions" in o:
                    o["actions"] = {"upload": upload}
            answer = json.dumps({**batch, "transfer": "xet"}).encode()
        if status == 200 and re.fullmatch(r"/api/models/[^/]+/[^/]+/tree/.*", path):
            tree = json.loads(answer)
            for entry in tree:
                if xet := xet_of.get(entry.get("lfs", {}).get("oid")):
                    entry["xetHash"] = xet
            answer = json.dumps(tree).encode()
        return status, headers, answer

    def forward(self, to, path, body):
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "transfer-encoding", "content-length", "accept-encoding")}
        status, headers, answer = ask(self.command, to + path, body, headers)
        if to == HUB:
            if "json" in headers.get("Content-Type", ""):
                answer = answer.replace(HUB.encode(), BRIDGE.encode())
            for k in ("Location", "Link"):
                if v := headers[k]:
                    del headers[k]
                    headers[k] = v.replace(HUB, BRIDGE)
        return status, headers, answer


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
BRIDGE = f"http://127.0.0.1:{server.server_port}"
print("READY", BRIDGE, flush=True)
server.serve_forever()
