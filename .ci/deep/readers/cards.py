"""Runs the code for df11 of README.md, docs/python.md, and model cards: of a text model, a vision-language model, an MoE, and a
pipeline.

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
from PIL import Image

import card
import official
import tiny

PROGRAM, SCRATCH = sys.argv[1], pathlib.Path(sys.argv[2])
ROOT = pathlib.Path(__file__).resolve().parents[3]
VERSION = tuple(map(int, transformers.__version__.split(".")[:2]))
SEES = VERSION >= (4, 52)  # when models that see got the modules that results have
PIPELINES = VERSION[0] == 4 or tuple(map(int, diffusers.__version__.split(".")[:2])) >= (0, 40)  # else diffusers needs 4


# How a model that sees is asked.
TEMPLATE = """{% for m in messages %}{% for c in m.content %}{% if c.type == 'image' %}<image>{% else %}{{ c.text }}{% endif %} {% endfor %}{% endfor %}"""


def save_seeing(path):
    """Saves a tiny model that sees, with its processor, and a README.md that says what it does."""
    tokenizer = transformers.PreTrainedTokenizerFast(
        **tiny.word_level(), model_input_names=["input_ids", "attention_mask"], extra_special_tokens={"image_token": "<image>"})
    vision = transformers.CLIPVisionConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=8)
    text = transformers.LlamaConfig(
        vocab_size=100, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    config = transformers.LlavaConfig(vision_config=vision, text_config=text, image_token_index=tokenizer.convert_tokens_to_ids("<image>"), image_seq_length=4)
    tiny.fill(transformers.LlavaForConditionalGeneration(config)).save_pretrained(path)
    transformers.LlavaProcessor(
        transformers.CLIPImageProcessor(size={"shortest_edge": 16}, crop_size=16), tokenizer, patch_size=8, chat_template=TEMPLATE,
        vision_feature_select_strategy="default", image_token="<image>", num_additional_image_tokens=1).save_pretrained(path)  # fmt: skip
    (path / "README.md").write_text("---\nlicense: mit\npipeline_tag: image-text-to-text\n---\n")


def picture(path):
    """Draws what the picture that cards name stands for here, where there is no network."""
    Image.frombytes("RGB", (20, 18), bytes(i * 7 % 256 for i in range(20 * 18 * 3))).save(path)
    return path.name


def check(name, model_type, tied):
    base = SCRATCH / f"{name}-{tied}"
    if not (base / "model-DF11").exists():
        torch.manual_seed(1)
        save_seeing(base / "model") if model_type == "seeing" else tiny.save(base / "model", name, model_type, tied)
        subprocess.run([PROGRAM, base / "model", "-o", base / "model-DF11", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    blocks = [b for b in card.blocks((base / "model-DF11" / "README.md").read_text(), "python") if "import df11" in b]
    assert len(blocks) == 1, f"{name}: {len(blocks)} blocks"
    code = re.sub(r"^pipe\(.*\n", "", blocks[0], flags=re.M).replace("max_new_tokens=128", f"max_new_tokens={card.TOKENS}, do_sample=False")
    os.chdir(base)
    code = re.sub(r'"https://.*"', lambda _: repr(picture(base / "picture.png")), code)
    scope = {}
    with contextlib.redirect_stdout(sys.stderr):
        exec(compile(code, "README.md", "exec"), scope)
    if "pipe" in scope:
        got, want = scope["pipe"].transformer, tiny.real_class(name).from_pretrained(base / "model", torch_dtype=torch.bfloat16).transformer
    else:
        got, want = scope["model"], getattr(transformers, name).from_pretrained(base / "model", **tiny.BF16)
    got_state, want_state = got.state_dict(), want.state_dict()
    assert got_state.keys() == want_state.keys(), sorted(got_state.keys() ^ want_state.keys())
    wrong = [n for n in want_state if official.digest(got_state[n]) != official.digest(want_state[n])]
    assert not wrong, f"{name}: {wrong[0]} differs"
    note = ""
    if "inputs" in scope:
        assert model_type != "seeing" or "pixel_values" in scope["inputs"], f"{name}: no picture"
        tokens = lambda m: m.generate(**scope["inputs"], max_new_tokens=card.TOKENS, do_sample=False)
        assert torch.equal(tokens(got), tokens(want.eval())), f"{name}: other tokens"
        note = " and tokens"
    print(f"{name}: the card's code for df11 gives equal weights{note}")


def check_pages():
    """Runs the code of README.md and docs/python.md on the result of the first check."""
    os.chdir(SCRATCH / "LlamaForCausalLM-False")
    for page in "README.md", "docs/python.md":
        blocks = [b for b in card.blocks((ROOT / page).read_text(), "python") if "import df11" in b]
        assert blocks, f"{page}: no code for df11"
        scope = {}
        with contextlib.redirect_stdout(sys.stderr):
            exec(compile(re.sub(r'"you/[\w.-]+-DF11"', '"model-DF11"', "\n".join(blocks)), page, "exec"), scope)
        assert next(scope["model"].parameters()).dtype == torch.bfloat16, page
    print("the code of README.md and docs/python.md runs")


transformers.logging.set_verbosity_error()
diffusers.logging.set_verbosity_error()
for row in [("LlamaForCausalLM", "llama", False), ("LlamaForCausalLM", "llama", True), ("Qwen3MoeForCausalLM", "qwen3_moe", False),
            *([("Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", False), ("LlavaForConditionalGeneration", "seeing", False)] if SEES else []),
            *([("FluxTransformer2DModel", "-", None)] if PIPELINES else [])]:
    check(*row)
check_pages()
