#!/usr/bin/env bash
# Compresses random models with the official compressor (dfloat11 0.5.0) and with df11-convert, and wants the same bytes:
# every unit file whole, and the remainder. Needs Debian's python3-torch (CPU) and four packages from PyPI.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh
converter

# The distribution's own Python, since python3-torch belongs to it.
python=/usr/bin/python3
if ! $python -c 'import torch, numpy' 2>/dev/null; then
  echo 'install python3-torch'
  debian python3-torch python3-numpy
fi

# The official package without its dependencies: they are large and need a GPU, and compressing uses none of them.
packages=$CI_CACHE/official-0.5.0
once "$packages" python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps --only-binary :all: \
  --python-version "$($python -c 'import sys; print("%d.%d" % sys.version_info[:2])')" --target "$packages" \
  dfloat11==0.5.0 dahuffman==0.4.2 safetensors==0.6.2 tqdm==4.67.1 packaging==24.2

DF11_DEEP=1 go test -count=1 -run TestRandomPatterns ./internal/python # patterns, as the loader reads them
PYTHONDONTWRITEBYTECODE=1 $python .ci/deep/official/compare.py "$packages" "$DF11_CONVERT" "$work" "$@"
