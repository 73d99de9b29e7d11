#!/usr/bin/env python3
"""Packs the program into a Python wheel, with the package df11: pip puts the program on the PATH, and no Python runs with it.

    build.py --binary dist/…/df11-convert --tag musllinux_1_1_x86_64 --version 1.2.3 --out DIR

The release runs it for every program that it has built, after packaging/notices.sh. The same program, version, notices, and
time (SOURCE_DATE_EPOCH) give the same bytes. It needs the standard library alone.
"""

import argparse
import base64
import hashlib
import os
import re
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

METADATA = """\
Metadata-Version: 2.4
Name: df11-convert
Version: {version}
Summary: Convert BF16 models to DFloat11, losslessly
License-Expression: Apache-2.0
License-File: LICENSE
License-File: THIRD_PARTY_NOTICES
Requires-Python: >=3.9
Project-URL: Source, https://github.com/df11-convert/df11-convert
Keywords: dfloat11,huggingface,safetensors,compression
Classifier: Environment :: Console
Classifier: Topic :: System :: Archiving :: Compression
Description-Content-Type: text/markdown

"""

WHEEL = """\
Wheel-Version: 1.0
Generator: df11-convert
Root-Is-Purelib: false
"""


def python_version(version):
    """Spells a release's version as PEP 440 does; a snapshot of a build becomes a development version."""
    m = re.fullmatch(r"v?(\d+(?:\.\d+)*)(?:-(alpha|beta|rc)\.?(\d+))?(?:-SNAPSHOT-([0-9a-f]+))?", version)
    if not m:
        raise SystemExit(f"build.py: version {version!r} has no form in Python")
    release, stage, n, snapshot = m.groups()
    if stage:
        release += {"alpha": "a", "beta": "b", "rc": "rc"}[stage] + n
    return release + (f".dev0+g{snapshot}" if snapshot else "")


def record(path, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}\n"


def build(binary, tag, version, out):
    version = python_version(version)
    info = f"df11_convert-{version}.dist-info"
    program = "df11-convert.exe" if tag.startswith("win") else "df11-convert"
    # A tag such as a.b stands for the two tags a and b: the file's name holds it as it is, the metadata spells it out.
    tags = "".join(f"Tag: py3-none-{t}\n" for t in tag.split("."))
    files = {
        f"df11_convert-{version}.data/scripts/{program}": binary.read_bytes(),
        f"{info}/licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
        f"{info}/licenses/THIRD_PARTY_NOTICES": (ROOT / "build/THIRD_PARTY_NOTICES").read_bytes(),
        f"{info}/METADATA": METADATA.format(version=version).encode() + (HERE / "README.md").read_bytes(),
        f"{info}/WHEEL": (WHEEL + tags).encode(),
    }
    for source in [*sorted((ROOT / "packaging/df11/df11").glob("*.py")), ROOT / "verify/kernel/decode.ptx"]:
        files[f"df11/{source.name}"] = source.read_bytes()
    files[f"{info}/RECORD"] = ("".join(record(*f) for f in files.items()) + f"{info}/RECORD,,\n").encode()

    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800))[:6]  # ZIP begins with 1980
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"df11_convert-{version}-py3-none-{tag}.whl"
    unfinished = wheel.with_suffix(".tmp")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, when)
            entry.create_system = 3  # Unix, wherever this runs: the mode counts
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            z.writestr(entry, data)
    unfinished.replace(wheel)
    return wheel


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--binary", type=Path, required=True)
    p.add_argument("--tag", required=True, help="platform tag of the wheel, such as win_amd64")
    p.add_argument("--version", required=True)
    p.add_argument("--out", type=Path, required=True, help="folder for the wheel")
    a = p.parse_args()
    print(build(a.binary, a.tag, a.version, a.out))
