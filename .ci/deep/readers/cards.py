"""Runs the code for df11 of model cards: of a text model, a vision-language model, an MoE, and a pipeline.

Usage: cards.py DF11_CONVERT SCRATCH

The models are tiny. All weights must equal those of the original, and what the text models generate, too.
"""
import contextlib
import os
import pathlib
import re
import subprocess
import sys

os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "TOKENIZERS_PARALLELISM": "false"}

import diffusers
import torch
import transformers

import card
import official
import tiny

PROGRAM, SCRATCH = sys.argv[1], pathlib.Path(sys.argv[2])
FOUR = transformers.__version__[0] == "4"


def check(name, model_type, tied):
    base = SCRATCH / f"{name}-{tied}"
    if not (base / "model-DF11").exists():
        torch.manual_seed(1)
        tiny.save(base / "model", name, model_type, tied)
        subprocess.run([PROGRAM, base / "model", "-o", base / "model-DF11", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    blocks = [b for b in card.blocks((base / "model-DF11" / "README.md").read_text(), "python") if "import df11" in b]
    assert len(blocks) == 1, f"{name}: {len(blocks)} blocks"
    code = re.sub(r"^pipe\(.*\n", "", blocks[0], flags=re.M).replace("max_new_tokens=128", f"max_new_tokens={card.TOKENS}, do_sample=False")
    os.chdir(base)
    scope = {}
    with contextlib.redirect_stdout(sys.stderr):
        exec(compile(code, "README.md", "exec"), scope)
    if "pipe" in scope:
        got, want = scope["pipe"].transformer, tiny.real_class(name).from_pretrained(base / "model", torch_dtype=torch.bfloat16).transformer
    else:
        got, want = scope["model"], getattr(transformers, name).from_pretrained(base / "model", dtype=torch.bfloat16)
    got_state, want_state = got.state_dict(), want.state_dict()
    assert got_state.keys() == want_state.keys(), sorted(got_state.keys() ^ want_state.keys())
    wrong = [n for n in want_state if official.digest(got_state[n]) != official.digest(want_state[n])]
    assert not wrong, f"{name}: {wrong[0]} differs"
    note = ""
    if "inputs" in scope:
        tokens = lambda m: m.generate(**scope["inputs"], max_new_tokens=card.TOKENS, do_sample=False)
        assert torch.equal(tokens(got), tokens(want.eval())), f"{name}: other tokens"
        note = " and tokens"
    print(f"{name}: the card's code for df11 gives equal weights{note}")


transformers.logging.set_verbosity_error()
diffusers.logging.set_verbosity_error()
for row in [("LlamaForCausalLM", "llama", False), ("LlamaForCausalLM", "llama", True), ("Qwen3MoeForCausalLM", "qwen3_moe", False),
            ("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", False), *([("FluxTransformer2DModel", "-", None)] if FOUR else [])]:
    check(*row)
