"""Loads a tiny model with more than 1,000 modules, whose layers share files, in the official loader, and wants equal outputs.

Usage: shared.py DF11_CONVERT SCRATCH
"""
import json
import os
import pathlib
import subprocess
import sys

os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}

import torch
import transformers

import card
import official
import tiny

PROGRAM, SCRATCH = sys.argv[1], pathlib.Path(sys.argv[2])
source, target = SCRATCH / "experts", SCRATCH / "experts-DF11"
official.load(SCRATCH)
transformers.logging.set_verbosity_error()

config = tiny.config(transformers.Qwen3MoeConfig, num_hidden_layers=4, num_experts=260, moe_intermediate_size=32)
torch.manual_seed(1)
tiny.fill(transformers.Qwen3MoeForCausalLM(config)).save_pretrained(source)
transformers.PreTrainedTokenizerFast(**tiny.word_level(), model_input_names=["input_ids", "attention_mask"]).save_pretrained(source)
attention = [f"self_attn.{x}_proj" for x in "qkvo"]
(SCRATCH / "dict.json").write_text(json.dumps({
    "lm_head": [], r"model\.layers\.\d+\.self_attn": [a.partition(".")[2] for a in attention],
    r"model\.layers\.\d+\.mlp\.experts\.\d+": ["gate_proj", "up_proj", "down_proj"]}))
subprocess.run([PROGRAM, source, "-o", target, "--quiet", "--pattern-dict", SCRATCH / "dict.json"], check=True, stdout=subprocess.DEVNULL)
files = sorted(f.name for f in target.glob("*.safetensors"))
assert files == ["lm_head.safetensors", *(f"model_layers_{i}.safetensors" for i in range(4)), "remainder.safetensors"], files

os.chdir(SCRATCH)
model = card.run(card.snippet((target / "README.md").read_text()))["model"]
want = transformers.Qwen3MoeForCausalLM.from_pretrained(source, dtype=torch.bfloat16).eval()
with torch.no_grad():
    inputs = torch.randint(0, tiny.WORDS, (2, 16), generator=torch.Generator().manual_seed(2))
    got, wanted = model(inputs).logits, want(inputs).logits
assert official.digest(got) == official.digest(wanted), "logits differ"
print(f"{4 * 261 + 1} modules in {len(files)} files: logits equal")
