"""Compress random models with dfloat11 0.5.0 and with df11-convert and compare the files byte for byte.

Usage: compare.py PACKAGES DF11_CONVERT SCRATCH [SEED]

The official package imports CuPy, transformers' helpers and more at its top, for loading. Compressing needs none of
them, so empty modules stand in. Two shims keep it running on old CPU builds of torch: output positions go through as
int32 (the same bytes; old torch has no uint32), and its GPU check is off.
"""

import contextlib
import hashlib
import io
import json
import os
import random
import subprocess
import sys
import types

PACKAGES, CONVERT, SCRATCH = sys.argv[1:4]
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else random.SystemRandom().randrange(1 << 32)
sys.path.insert(0, PACKAGES)


def stand_in(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


class FakeKernel:
    def __init__(self, *_, **__):
        pass

    def get_function(self, _):
        return None


def fake_modules():
    stand_in("pkg_resources", resource_filename=lambda package, name: os.path.join(PACKAGES, package, name))
    stand_in("cupy", RawModule=FakeKernel, cuda=types.SimpleNamespace())
    stand_in("accelerate", infer_auto_device_map=None, dispatch_model=None)
    stand_in("accelerate.utils", get_balanced_memory=None)
    stand_in("huggingface_hub", snapshot_download=None)


fake_modules()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from dfloat11 import dfloat11_utils  # noqa: E402
from dfloat11.dfloat11 import compress_model  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

official_encode = dfloat11_utils.encode


def encode_for_old_torch(*args):
    encoded, gaps, positions = official_encode(*args)
    return encoded.copy(), gaps, positions.view(np.int32)


dfloat11_utils.encode = encode_for_old_torch
dfloat11_utils.HuffmanCodec.print_code_table = lambda *_: None  # thousands of lines


class Norm(torch.nn.Module):
    """A sibling: weight in the given type, and a buffer that is stored."""

    def __init__(self, n, dtype):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n).to(dtype))
        self.register_buffer("steps", torch.arange(3))


class Block(torch.nn.Module):
    def __init__(self, rng, hidden, dtype):
        super().__init__()
        inner = rng.randrange(1, 90)
        self.attn = torch.nn.Module()
        self.attn.q = linear(rng, hidden, hidden, bias=rng.random() < 0.5)
        self.attn.k = linear(rng, hidden, rng.randrange(1, hidden + 1), bias=False)
        self.mlp = torch.nn.ModuleList([linear(rng, hidden, inner, bias=False), linear(rng, inner, hidden, bias=True)])
        self.norm = Norm(hidden, dtype)
        self.gate = linear(rng, hidden, 2, bias=False)  # in no pattern: stays as it is


ATTRIBUTES = ["attn.q", "attn.k", "mlp.0", "mlp.1"]


class Model(torch.nn.Module):
    def __init__(self, rng):
        super().__init__()
        hidden, words = rng.choice([(rng.randrange(8, 72), rng.randrange(50, 400)), (128, rng.randrange(1000, 3000))])
        self.model = torch.nn.Module()
        self.model.embed_tokens = torch.nn.Embedding(words, hidden)
        self.model.embed_tokens.weight.data = weights(rng, words, hidden)
        dtype = rng.choice([torch.bfloat16, torch.float32])
        self.model.layers = torch.nn.ModuleList(Block(rng, hidden, dtype) for _ in range(rng.randrange(1, 4)))
        self.model.norm = Norm(hidden, dtype)
        self.lm_head = linear(rng, hidden, words, bias=False)

    def save_pretrained(self, path):
        """What transformers does with the rest of the model."""
        save_file(self.state_dict(), os.path.join(path, "model.safetensors"), metadata={"format": "pt"})


def weights(rng, rows, columns):
    """Weights of very different shapes of histogram, as bfloat16."""
    kind = rng.randrange(6)
    t = torch.randn(rows, columns)
    if kind == 1:
        t = torch.rand(rows, columns)
    elif kind == 2:  # heavy tails: long codes
        t = t / (torch.randn(rows, columns).abs() + 1e-4) ** 3
    elif kind == 3:  # many exponents
        t = t * torch.exp2(torch.randint(-9, 9, (rows, columns)).float())
    elif kind == 4:  # zeros of both signs
        t = t * (torch.rand(rows, columns) < 0.7)
    elif kind == 5:  # geometric: every count about half of the one before
        t = t * torch.exp2(-torch.empty(rows, columns).exponential_(0.9).floor())
    t = t * 10.0 ** rng.randrange(-6, 2)
    return t.clamp(-1e30, 1e30).to(torch.bfloat16)


def linear(rng, columns, rows, bias):
    layer = torch.nn.Linear(columns, rows, bias=bias)
    layer.weight.data = weights(rng, rows, columns)
    if bias:
        layer.bias.data = torch.randn(rows).to(torch.bfloat16)
    return layer


def pattern_dict(rng):
    attributes = ATTRIBUTES[:]
    rng.shuffle(attributes)
    dict_ = {
        r"model\.layers\.\d+": attributes[: rng.randrange(1, 5)],
        r"lm_head": [],
        r"model\.embed_tokens": [],
    }
    return {k: dict_[k] for k in rng.sample(list(dict_), rng.randrange(2, 4))}


def write_source(model, path):
    os.makedirs(path)
    save_file(model.state_dict(), os.path.join(path, "model.safetensors"), metadata={"format": "pt"})
    config = {"architectures": ["Toy"], "model_type": "toy", "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
    with open(os.path.join(path, "config.json"), "w") as f:
        json.dump(config, f, indent=2)


def sums(path):
    result = {}
    for name in sorted(os.listdir(path)):
        if name.endswith(".safetensors"):
            with open(os.path.join(path, name), "rb") as f:
                result[name] = hashlib.sha256(f.read()).hexdigest()
    return result


def holds(path):
    """Whether the kernel can decode what was written; the official compressor does not check (docs/format.md §9)."""
    for name in sums(path):
        with safe_open(os.path.join(path, name), "pt") as f:
            if any(f.get_slice(k).get_shape()[0] > 18 for k in f.keys() if k.endswith(".luts")):
                return False
    return True


def compare(number, single):
    """Returns the number of files compared, or 0 if DF11 cannot hold this model."""
    rng = random.Random(SEED * 1000 + number)
    torch.manual_seed(rng.randrange(1 << 32))
    base = os.path.join(SCRATCH, f"case{number}")
    source, official, ours = (os.path.join(base, d) for d in ("source", "official", "ours"))
    model, patterns = Model(rng), pattern_dict(rng)
    write_source(model, source)
    with open(os.path.join(base, "patterns.json"), "w") as f:
        json.dump(patterns, f)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            compress_model(model, patterns, official, save_single_file=single, check_correctness=False)
    except UnboundLocalError:  # docs/format.md §6, "crash case"
        return 0
    if not holds(official):
        return 0
    command = [CONVERT, source, "-o", ours, "--pattern-dict", os.path.join(base, "patterns.json")]
    if single:
        command += ["--layout", "transformers-single"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"case {number} (seed {SEED}): {' '.join(command)}: exit {done.returncode}\n{done.stdout}")
    want, got = sums(official), sums(ours)
    want["df11.safetensors" if single else "remainder.safetensors"] = want.pop("model.safetensors")
    if want != got:
        names = sorted(n for n in want.keys() | got.keys() if want.get(n) != got.get(n))
        sys.exit(f"case {number} (seed {SEED}, single file: {single}): these files differ: {names}")
    return len(want)


def main():
    print(f"dfloat11 0.5.0, torch {torch.__version__}, numpy {np.__version__}, seed {SEED}")
    n_files = n_models = number = 0
    while n_models < 30:
        n = compare(number, single=number % 4 == 3)
        n_files, n_models, number = n_files + n, n_models + (n > 0), number + 1
        if number > 150:
            sys.exit("too many models that DF11 cannot hold")
    print(f"{n_models} models, {n_files} files: all equal byte for byte")


if __name__ == "__main__":
    main()
