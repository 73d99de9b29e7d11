#!/usr/bin/env bash
# Installs the wheel as pip does, twice: next to the newest release of everything, on the newest Python here, and next to the oldest
# that docs/python.md names, on the oldest. Both run the code of cards, of a text model, a vision-language model, a mixture of
# experts, and a pipeline, load a folder as the official program names its files, and what docs/python.md promises. Needs Python,
# a C compiler, binutils, PyPI, and 10 GB of disk; DF11_PYTHONS names other Pythons, the oldest one first.
# The newest are those of the month in which the environment was made: $CI_CACHE/wheel-newest-YEAR-MONTH.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh
have python3 cc nm readelf || skip_rest 'Python, a C compiler or binutils are not here: no wheel was run'
[ "$(uname -sm)" = 'Linux x86_64' ] || skip_rest 'not Linux on x86-64: no wheel was run'

# python VERSION…: prints the first of these Pythons that is here.
python() {
  local version
  for version in "$@" 3; do
    command -v "$(pyenv prefix "$version" 2>/dev/null || echo /usr)/bin/python$version" && return
  done
}
read -r oldest newest <<<"${DF11_PYTHONS-"$(python 3.9 3.10 3.11) $(python 3.14 3.13 3.12)"}"

# What torch, transformers, and the others need besides; torch's own list would bring 3 GB of CUDA.
plain=(filelock fsspec jinja2 networkx sympy typing-extensions setuptools numpy packaging pillow psutil pyyaml regex requests tqdm importlib-metadata)

# environment FOLDER PYTHON PACKAGE…: makes an environment with these packages, and torch without CUDA.
environment() {
  "$2" -m venv "$1" || return
  "$1/bin/pip" install -q --disable-pip-version-check --only-binary :all: "${plain[@]}" huggingface_hub"${hub-}" || return
  "$1/bin/pip" install -q --disable-pip-version-check --only-binary :all: --no-deps "${@:3}" || return
  "$1/bin/python" .ci/deep/readers/nocuda.py "$("$1/bin/python" -c 'import importlib.util, os
print(os.path.join(os.path.dirname(importlib.util.find_spec("torch").origin), "lib"))')"
}

# The wheel, as a release packs it, but for the notices of libraries.
converter
mkdir -p "$work"/{driver,loaders,tree/build,tree/verify}
cp -R packaging LICENSE "$work/tree/"
cp -R verify/kernel "$work/tree/verify/"
: >"$work/tree/build/THIRD_PARTY_NOTICES"
python3 "$work/tree/packaging/wheel/build.py" --binary "$DF11_CONVERT" --tag linux_x86_64 --version 1.2.3 --out "$work/wheels" >/dev/null
wheel=$(echo "$work"/wheels/*.whl)
cc -shared -fPIC -O2 -pthread -DHOST -DDIR="\"$work/driver\"" -o "$work/driver/libcuda.so.1" verify/testdata/stub/stub.c

# try NAME: runs everything in the environment $venv.
try() {
  local base=$work/$1 script
  "$venv/bin/pip" install -q --disable-pip-version-check --force-reinstall --no-deps "$wheel"
  mkdir -p "$base"
  "$venv/bin/python" - <<'END'
import sys, torch, transformers, diffusers, accelerate, safetensors, huggingface_hub
print("Python %d.%d.%d," % sys.version_info[:3], ", ".join(f"{m.__name__} {m.__version__}" for m in (torch, transformers, diffusers, accelerate, safetensors, huggingface_hub)))
END
  for script in cards.py official_names.py; do # as on a machine without a GPU: the program decodes
    PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -W ignore ".ci/deep/readers/$script" "$DF11_CONVERT" "$base" 2>"$work/log" || { tail -n 40 "$work/log"; exit 1; }
  done
  for script in df11_test.py "${@:2}"; do
    DF11_TEST_DRIVER=$work/driver/libcuda.so.1 PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -W ignore ".ci/deep/readers/$script" "$DF11_CONVERT" "$base" \
      2>"$work/log" || { tail -n 40 "$work/log"; exit 1; }
    tail -n 3 "$work/log"
  done
}

venv=$CI_CACHE/wheel-newest-$(date +%Y-%m)
once "$venv" environment "$venv" "$newest" torch transformers diffusers accelerate safetensors tokenizers peft \
  || skip_rest 'PyPI does not give the newest packages: no wheel was run'
try newest experts_test.py
# What gpu-run.sh measures on a GPU runs with small shapes.
DF11_TEST_DRIVER=$work/driver/libcuda.so.1 "$venv/bin/python" -W ignore verify/testdata/gpu-loaders.py "$DF11_CONVERT" "$work/loaders" --tiny kernels experts 2>"$work/log" \
  || { tail -n 40 "$work/log"; exit 1; }

venv=$CI_CACHE/wheel-oldest
hub='==0.30.2' once "$venv" environment "$venv" "$oldest" torch==2.6.0 transformers==4.51.0 diffusers==0.33.1 accelerate==1.6.0 safetensors==0.5.3 tokenizers==0.21.1 \
  || skip_rest 'PyPI does not give the oldest packages: the wheel was run with the newest alone'
try oldest
if grep VIOLATION "$work/driver/log"; then fail 'df11 misuses the driver'; fi
