"""Uses the shared cache as the official Python client does.

usage: cache.py shared|own    downloads org/tiny; its weights must then lie in the store of all repos, or the repo's own

The hub speaks no Xet. Where the client would call hf_xet for the bytes of a file, they are fetched over HTTP; all else, with
the layout of the cache above all, is the client's own work.
"""

import os
import pathlib
import sys

import huggingface_hub
from huggingface_hub import file_download

cache = pathlib.Path(os.environ["HF_HUB_CACHE"])
repo = cache / "models--org--tiny"


def check(ok, what):
    if not ok:
        sys.exit(f"FAIL {what}")
    print("ok  ", what)


def over_http(*, incomplete_path, xet_file_data, headers, expected_size=None, displayed_filename=None, **_):
    commit = xet_file_data.refresh_route.rsplit("/", 1)[1]
    url = huggingface_hub.hf_hub_url("org/tiny", displayed_filename, revision=commit)
    with incomplete_path.open("wb") as f:
        file_download.http_get(url, f, headers=headers, expected_size=expected_size)


if hasattr(file_download, "xet_get"):
    file_download.xet_get = over_http


def weights():
    """The names of the weights in the one snapshot, with the hash that each blob is named by."""
    (snapshot,) = (repo / "snapshots").iterdir()
    for link in sorted(snapshot.glob("*.safetensors")):
        blob = pathlib.Path(os.readlink(link))
        yield link.name, blob.name


def download(layout):
    # One worker: while several begin the store of all repos, the client may keep a weight in its repo all the same.
    folder = pathlib.Path(huggingface_hub.snapshot_download("org/tiny", max_workers=1))
    names = [name for name, _ in weights()]
    check(len(names) > 1 and (folder / "config.json").is_file(), f"snapshot_download by {huggingface_hub.__version__}")
    shared = [name for name, etag in weights() if (repo / "blobs" / etag).is_symlink()]
    check(shared == (names if layout == "shared" else []), f"{len(shared)} of {len(names)} weights lie in the store of all repos")


download(sys.argv[1])
