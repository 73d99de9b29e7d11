"""Loads a folder that has the official program's names of files, and no manifest, as published repos do.

Usage: official_names.py DF11_CONVERT SCRATCH
"""
import os
import pathlib
import shutil
import subprocess
import sys

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

import torch
import transformers

import df11
import tiny

PROGRAM, BASE = sys.argv[1], pathlib.Path(sys.argv[2]) / "official-names"
transformers.logging.set_verbosity_error()
torch.manual_seed(1)
tiny.save(BASE / "model", "LlamaForCausalLM", "llama", False)
want = transformers.LlamaForCausalLM.from_pretrained(BASE / "model", **tiny.BF16).eval()
ids = torch.arange(8, 24)[None]
for layout in ([], ["--layout", "transformers-single"]):
    shutil.rmtree(BASE / "DF11", ignore_errors=True)
    subprocess.run([PROGRAM, BASE / "model", "-o", BASE / "DF11", "--quiet", *layout], check=True, stdout=subprocess.DEVNULL)
    (BASE / "DF11" / "df11-manifest.json").unlink()
    if not layout:
        (BASE / "DF11" / "remainder.safetensors").rename(BASE / "DF11" / "model.safetensors")
    names = sorted(f.name for f in (BASE / "DF11").glob("*.safetensors"))
    model = df11.load(str(BASE / "DF11"))
    with torch.no_grad():
        assert torch.equal(model(input_ids=ids).logits, want(input_ids=ids).logits), names
    print(f"{len(names)} files, with {names[-1]}: equal logits")
