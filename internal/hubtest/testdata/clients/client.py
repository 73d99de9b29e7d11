"""Runs the official Python client against a hub and checks what it sees.

usage: client.py ENDPOINT SCRATCH [read]
The hub serves org/tiny, takes uploads of 300 kB and more in parts, and has a
small page size. With read, it has the ways of another server, which refuses in
words of its own, and is only read.
"""

import hashlib
import os
import pathlib
import sys

endpoint, scratch = sys.argv[1], pathlib.Path(sys.argv[2])
os.environ.update(
    HF_ENDPOINT=endpoint,
    HF_HOME=str(scratch / "home"),
    HF_TOKEN="hf_test",
    HF_HUB_DISABLE_XET="1",
    HF_HUB_DISABLE_PROGRESS_BARS="1",
    HF_HUB_DISABLE_UPDATE_CHECK="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    NO_PROXY="*",
)

import huggingface_hub  # noqa: E402  (the environment is read at import)
from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete, HfApi  # noqa: E402
from huggingface_hub.errors import (  # noqa: E402
    EntryNotFoundError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

api = HfApi()
print("huggingface_hub", huggingface_hub.__version__)


def check(ok, what):
    if not ok:
        sys.exit(f"FAIL {what}")
    print("ok  ", what)


def raises(kind, call):
    try:
        call()
    except kind:
        return True
    return False


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def read():
    info = api.model_info("org/tiny", files_metadata=True)
    check(len(info.sha) in (40, 64) and info.pipeline_tag == "text-generation", "model_info")
    folder = pathlib.Path(huggingface_hub.snapshot_download("org/tiny"))
    seen = {s.rfilename: s for s in info.siblings}
    for name, s in seen.items():
        check(s.size in (None, (folder / name).stat().st_size), f"snapshot_download: size of {name}")
        if s.lfs:
            check(digest(folder / name) == s.lfs.sha256, f"snapshot_download: sha256 of {name}")
    tree = [e.path for e in api.list_repo_tree("org/tiny", recursive=True) if hasattr(e, "size")]
    check(sorted(tree) == sorted(seen), "list_repo_tree over pages")
    return seen


def refusals(seen):
    paths = api.get_paths_info("org/tiny", ["config.json", "no-such-file"])
    check([p.path for p in paths] == ["config.json"], "get_paths_info")
    check(raises(EntryNotFoundError, lambda: api.hf_hub_download("org/tiny", "nope.bin")), "EntryNotFound")
    check(raises(RepositoryNotFoundError, lambda: api.model_info("org/none")), "RepoNotFound")
    check(raises(RevisionNotFoundError, lambda: api.model_info("org/tiny", revision="nope")), "RevisionNotFound")
    check(api.parse_safetensors_file_metadata("org/tiny", weight_file(seen)).parameter_count.get("BF16", 0) > 0,
          "parse_safetensors_file_metadata")


def weight_file(seen):
    return next(n for n in sorted(seen) if n.startswith("model") and n.endswith(".safetensors"))


def upload():
    repo = "tester/py-out"
    check(api.create_repo(repo, private=True).repo_id == repo, "create_repo")
    check(api.create_repo(repo, exist_ok=True).repo_id == repo, "create_repo exist_ok")
    check(raises(HfHubHTTPError, lambda: api.create_repo(repo)), "create_repo 409")
    folder = scratch / "up"
    (folder / "sub").mkdir(parents=True)
    big = os.urandom(1_000_003)
    (folder / "model.safetensors").write_bytes(big)
    (folder / "sub" / "small.safetensors").write_bytes(os.urandom(999))
    (folder / "config.json").write_text("{}\n")
    (folder / "empty.txt").write_text("")
    (folder / "README.md").write_text("---\nlicense: mit\nbase_model: org/tiny\ntags:\n- df11\n---\n# Hi\n")
    commit = api.upload_folder(repo_id=repo, folder_path=folder, commit_message="all files")
    check(len(commit.oid) == 40, "upload_folder with a multi-part file")
    info = api.model_info(repo, files_metadata=True)
    files = {s.rfilename: s for s in info.siblings}
    check(info.private and info.sha == commit.oid, "the commit is the head")
    check(files["model.safetensors"].lfs.sha256 == hashlib.sha256(big).hexdigest(), "uploaded sha256")
    again = api.upload_folder(repo_id=repo, folder_path=folder)
    check(again.oid == commit.oid, "unchanged folder makes no commit")
    one = api.upload_file(repo_id=repo, path_or_fileobj=b"hello\n", path_in_repo="note.txt")
    check(one.oid != commit.oid, "upload_file")
    back = api.hf_hub_download(repo, "model.safetensors")
    check(pathlib.Path(back).read_bytes() == big, "download of the uploaded file")
    edit(repo)


def edit(repo):
    check(raises(HfHubHTTPError, lambda: api.create_commit(
        repo, [CommitOperationDelete("no-such-file")], commit_message="bad")), "deleting a missing file fails")
    bad = CommitOperationAdd("README.md", b"---\nlicense:\n  a: 1\n---\n")
    check(raises((HfHubHTTPError, ValueError), lambda: api.create_commit(repo, [bad], commit_message="bad")),
          "invalid card is refused")
    api.delete_file("note.txt", repo)
    copy(repo)
    check("note.txt" not in api.list_repo_files(repo), "delete_file")
    api.create_branch(repo, branch="work")
    api.create_branch(repo, branch="work", exist_ok=True)
    check([b.name for b in api.list_repo_refs(repo).branches] == ["main", "work"], "create_branch, list_repo_refs")
    api.delete_branch(repo, branch="work")
    api.auth_check(repo)
    check(api.whoami()["name"] == "tester", "whoami")


def copy(repo):
    """Copies inside the repo, and from another one without moving bytes."""
    weights = weight_file({s.rfilename: s for s in api.model_info("org/tiny").siblings})
    api.create_commit(repo, [
        CommitOperationCopy("model.safetensors", "copy.safetensors"),
        CommitOperationCopy("config.json", "copy.json"),
        CommitOperationCopy(weights, "shard.safetensors", src_repo_id="org/tiny", src_repo_type="model"),
    ], commit_message="copies")
    there, here = (api.get_paths_info(r, [p])[0] for r, p in (("org/tiny", weights), (repo, "shard.safetensors")))
    check(there.lfs.sha256 == here.lfs.sha256, "CommitOperationCopy across repos")


files = read()
if sys.argv[3:] != ["read"]:
    refusals(files)
    upload()
