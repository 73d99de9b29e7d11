#!/usr/bin/env bash
# Reads results of tiny models with mlx-dfloat 0.2.0, decodes every module with its own decoder for CPUs, and wants the bits of the
# original. A model whose units are parameters must be refused. It has no Metal here, so its GPU kernel isn't run. Needs what 70-readers.sh needs, and MLX for CPUs from PyPI.
set -euo pipefail
cd "$(dirname "$0")/../.."
. .ci/lib.sh
. .ci/deep/readers/environment.sh
converter

mlx=$CI_CACHE/mlx-dfloat-0.2.0
once "$mlx" venv "$mlx" mlx-dfloat==0.2.0 'mlx[cpu]==0.32.4' numpy==2.2.6 \
  || skip_rest 'PyPI does not give mlx-dfloat or MLX for CPUs: mlx-dfloat read nothing'

cat >"$work/make.py" <<'END'
import pathlib, subprocess, sys
sys.path.insert(0, ".ci/deep/readers")
import torch
import tiny

program, scratch = sys.argv[1], pathlib.Path(sys.argv[2])
for name, model_type, tied, *flags in [
    ("LlamaForCausalLM", "llama", False), ("LlamaForCausalLM", "llama", True),
    ("LlamaForCausalLM", "llama", False, "--layout", "transformers-single"), ("Qwen3MoeForCausalLM", "qwen3_moe", False),
    ("GemmaForCausalLM", "gemma", True), ("T5EncoderModel", "t5", None),
    ("FluxTransformer2DModel", "-", None), ("FluxTransformer2DModel", "-", None, "--layout", "diffusers-single"),
    ("GptOssForCausalLM", "gpt_oss+fused", False),
]:
    base = scratch / "-".join([name, str(tied), *flags]).replace("---layout", "")
    torch.manual_seed(1)
    tiny.save(base / "model", name, model_type, tied)
    subprocess.run([program, base / "model", "-o", base / "DF11", "--quiet", *flags], check=True, stdout=subprocess.DEVNULL)
END
PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 "$venv/bin/python" -W ignore "$work/make.py" "$DF11_CONVERT" "$work/models" 2>"$work/log" \
  || { tail -n 20 "$work/log"; exit 1; }

cat >"$work/read.py" <<'END'
import hashlib, json, pathlib, sys
import numpy as np
from mlx_dfloat import decode, format

def tensors(folder):
    """The bytes of every tensor of a model, by its name."""
    found = {}
    for file in sorted(folder.glob("*.safetensors")):
        data = file.read_bytes()
        n = int.from_bytes(data[:8], "little")
        for name, t in json.loads(data[8:8 + n]).items():
            if name != "__metadata__":
                a, b = t["data_offsets"]
                found[name] = data[8 + n + a:8 + n + b]
    return found

def refused(base):
    """Says with which error a model is refused, if it needs more than the official format."""
    if "+" not in json.loads((base / "DF11" / "config.json").read_text())["dfloat11_config"]["version"]:
        return None
    try:
        format.open_checkpoint(base / "DF11")
    except format.DFloatFormatError as e:
        return f"refused: {e}"
    raise AssertionError("mlx-dfloat takes units that are parameters")

def read(base):
    source = tensors(base / "model") | tensors(base / "model" / "transformer")
    df11 = format.open_checkpoint(base / "DF11")
    stored = tensors(base / "DF11")
    for name in df11.extras:
        assert stored[name] == source[name], f"{name} differs"
    for group in df11.groups.values():
        result = decode.decode_group(format.load_group_mx(group), backend="reference")
        decode.check(result, name=group.name)
        bits = np.array(result.bits)
        ends = [*group.load().split_positions, bits.size]
        for name, a, b in zip(group.matrix_names, [0, *ends], ends):
            assert bits[a:b].tobytes() == source[name], f"{name} differs"
    return f"{len(df11.groups)} modules and {len(df11.extras)} tensors equal"

bases = sorted(pathlib.Path(sys.argv[1]).iterdir())
for base in bases:
    print(f"{base.name}: {refused(base) or read(base)}")
assert len(bases) == 9 and sum(refused(base) is not None for base in bases) == 1
END
"$mlx/bin/python" "$work/read.py" "$work/models"
