# shellcheck shell=bash
# Makes $venv, a Python environment with torch, transformers, diffusers, and the official loader. Source it after lib.sh.
have python3 cc nm readelf || skip_rest 'Python, a C compiler or binutils are not here: no model was loaded'
[ "$(uname -sm)" = 'Linux x86_64' ] || skip_rest 'not Linux on x86-64: no model was loaded'

# Without dependencies: torch's are CUDA's libraries, dfloat11's is CuPy. What transformers 5 needs in other versions lies in a folder
# of its own, before the others.
venv=$CI_CACHE/readers-2
unloaded='PyPI does not give the packages: no model was loaded in the official loader'
install() {
  venv "$venv" --no-deps --only-binary :all: \
    dfloat11==0.5.0 torch==2.8.0 transformers==4.57.6 diffusers==0.39.0 accelerate==1.10.1 huggingface-hub==0.36.0 \
    safetensors==0.8.0 tokenizers==0.22.1 numpy==2.2.6 dahuffman==0.4.2 'setuptools==80.9.0' httpx==0.28.1 httpcore==1.0.9 h11==0.16.0 anyio==4.11.0 sniffio==1.3.1 ftfy==6.3.1 wcwidth==0.2.13 \
    filelock==3.19.1 fsspec==2025.9.0 jinja2==3.1.6 markupsafe==3.0.2 mpmath==1.3.0 networkx==3.4.2 sympy==1.14.0 \
    typing-extensions==4.15.0 packaging==25.0 psutil==7.1.0 pillow==11.3.0 pyyaml==6.0.3 regex==2026.4.4 requests==2.32.5 \
    urllib3==2.5.0 idna==3.10 certifi==2025.8.3 charset-normalizer==3.4.3 tqdm==4.67.1 importlib-metadata==8.7.0 zipp==3.23.0 \
    || skip_rest "$unloaded"
  "$venv/bin/pip" install -q --disable-pip-version-check --no-deps --only-binary :all: --target "$venv/transformers-5" \
    transformers==5.23.0 huggingface-hub==1.33.0 tokenizers==0.23.1 \
    || skip_rest "$unloaded"
  "$venv/bin/python" .ci/deep/readers/nocuda.py "$("$venv"/bin/python -c 'import importlib.util, os
print(os.path.join(os.path.dirname(importlib.util.find_spec("torch").origin), "lib"))')"
}
once "$venv" install
