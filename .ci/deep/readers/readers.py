"""Loads tiny models in the official loader by the code of their cards, and wants every bit of the original.

Usage: readers.py DF11_CONVERT CATALOGUE SCRATCH [--all] [ID...]

For every entry of the catalog that says it was loaded, and for a few pipelines, a tiny model of the real class is
saved, converted by df11-convert, and loaded by the Python code that the README.md of the result shows. Compared are the
weights at the time of their use, the outputs, and for language models what is generated; all bit for bit. --all tries
language models of the other entries too, and says what became of them.
"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time
import traceback

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "TQDM_DISABLE": "1", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}

import diffusers
import torch
import transformers

import card
import official
import tiny

PIPELINES = {"flux-kontext-dev-diffusers": tiny.flux, "sd35-medium-diffusers": tiny.sd3, "wan-diffusers": tiny.wan}


class Differs(Exception):
    """What was loaded is not the original."""


def convert(program, source, target):
    done = subprocess.run([program, source, "-o", target, "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Differs(f"df11-convert: exit {done.returncode}: {done.stdout.strip()}")
    return (target / "README.md").read_text()


def load(readme, folder):
    """Runs the card's code beside the folder and returns its names."""
    before, at = official.Kernel.units, os.getcwd()
    os.chdir(folder.parent)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            scope = card.run(card.snippet(readme))
    finally:
        os.chdir(at)
    return scope, official.Kernel.units - before


def compare_weights(got, want, state, wanted_state):
    """Compares the weights that modules had when they were called, then all that is stored.

    A buffer may be in a wider type, since the card's code builds buffers as the class does: the outputs judge that.
    """
    if got != want:
        names = sorted(n for n in got.keys() | want.keys() if got.get(n) != want.get(n))
        raise Differs(f"{len(names)} weights differ when they are used, first {names[0]}")
    for name, t in state.items():
        if name in wanted_state and not same(t, wanted_state[name]):
            raise Differs(f"{name} differs: {t.dtype}{tuple(t.shape)}, want {wanted_state[name].dtype}{tuple(wanted_state[name].shape)}")
    missing = wanted_state.keys() - state.keys() - want.keys()
    if missing:
        raise Differs(f"no {sorted(missing)[0]}")


def same(t, want):
    if isinstance(want, torch.nn.Parameter) or t.dtype == want.dtype:
        return official.digest(t) == official.digest(want)
    return torch.equal(t.cpu().double(), want.cpu().double())


def compare_outputs(got, want):
    if official.digest(got) != official.digest(want):
        raise Differs(f"outputs differ by up to {(got.float() - want.float()).abs().max().item():g}")


def forwards(model, ids):
    with torch.no_grad():
        out = model(input_ids=ids)
    return out.logits if hasattr(out, "logits") else out.last_hidden_state


def check_language(source, target, readme, cls):
    scope, _ = load(readme, target)
    model = scope["model"]
    if model.training:
        raise Differs("the model is not in eval mode")
    want = cls.from_pretrained(source, dtype=torch.bfloat16).to(official.DEVICE).eval()
    before = official.Kernel.units
    ids = torch.randint(3, tiny.WORDS, (2, 17), generator=torch.Generator().manual_seed(3)).to(official.DEVICE)
    got_out, got = official.weights_used(model, lambda: forwards(model, ids))
    want_out, used = official.weights_used(want, lambda: forwards(want, ids))
    compare_weights(got, used, model.state_dict(), want.state_dict(keep_vars=True))
    compare_outputs(got_out, want_out)
    note = f"{official.Kernel.units - before} units decoded, outputs {tuple(got_out.shape)}"
    if "output" in scope:  # what the card's code has generated
        with torch.no_grad():
            compare_outputs(scope["output"], want.generate(**scope["inputs"], max_new_tokens=card.TOKENS))
        note += f", {scope['output'].shape[1]} tokens"
    return note


def check_pipeline(source, target, readme, cls):
    scope, _ = load(readme, target)
    pipe, part = scope["pipe"], scope["part"]
    if pipe.transformer is not part:
        raise Differs("the pipeline holds another transformer than the one that was loaded")
    if part.training:
        raise Differs("the transformer is not in eval mode")
    want = cls.from_pretrained(source, torch_dtype=torch.bfloat16)
    if official.DEVICE != "cpu":
        want.enable_model_cpu_offload()
    if type(pipe) is not cls:
        raise Differs(f"the pipeline is a {type(pipe).__name__}")
    before = official.Kernel.units
    got_out, got = official.weights_used(part, lambda: sample(pipe))
    want_out, used = official.weights_used(want.transformer, lambda: sample(want))
    compare_weights(got, used, part.state_dict(), want.transformer.state_dict(keep_vars=True))
    compare_outputs(got_out, want_out)
    return f"{official.Kernel.units - before} units decoded, outputs {tuple(got_out.shape)}"


def sample(pipe):
    """Two steps of a pipeline from a fixed prompt and noise."""
    call = dict(num_inference_steps=2, generator=torch.Generator().manual_seed(5), output_type="latent", height=64, width=64)
    call |= dict(num_frames=5) if isinstance(pipe, diffusers.WanPipeline) else {}
    pipe.set_progress_bar_config(disable=True)
    out = pipe("The three laws", max_sequence_length=16, **call)
    return out.frames if hasattr(out, "frames") else out.images


def cases(entries, everything):
    """Yields id, what makes the source, what checks the result."""
    for e in entries:
        i, match = e["id"], e["match"]
        if i in PIPELINES:
            yield i, PIPELINES[i], check_pipeline
            continue
        if e["layout"] != "transformers" or e.get("refuse") or e.get("like_only") or "architectures" not in match:
            continue
        if not everything and "loaded" not in e:
            continue
        kinds = [match["tied"]] if "tied" in match else [False, True] if i.startswith("llama-") else [e.get("tied", {}).get("default", "always" in e.get("tied", {}))]
        for tied in kinds:
            for n, architecture in enumerate(match["architectures"][:1] if i != "llama4-text" else ["Llama4ForCausalLM"]):
                model_type = "llama4_text" if i == "llama4-text" else match["model_type"][0]
                cls = tiny_class(i, architecture)
                yield i + (" tied" if tied and i.startswith("llama-") else ""), (
                    lambda path, c=cls, m=model_type, t=tied: tiny.language(path, c, m, tie_word_embeddings=t)), check_language


def tiny_class(entry, architecture):
    """The class that holds an entry's modules, where another one is stated."""
    return {"qwen3-embedding": "Qwen3Model", "modernbert-bare": "ModernBertModel"}.get(entry, architecture)


def check(program, scratch, name, make, compare):
    base = scratch / name.replace(" ", "-")
    source, target = base / "model", base / "model-DF11"
    torch.manual_seed(1)
    cls = make(source)
    return compare(source, target, convert(program, source, target), cls)


def main(program, catalog, scratch, *args):
    scratch, wanted = pathlib.Path(scratch), {a for a in args if a != "--all"}
    torch.set_num_threads(1)  # the models are too small to share
    transformers.logging.set_verbosity_error()
    diffusers.logging.set_verbosity_error()
    official.load(scratch)
    entries = [e for f in sorted(pathlib.Path(catalog).glob("*.json")) for e in json.loads(f.read_text())["entries"]]
    failed = []
    n = 0
    for name, make, compare in cases(entries, "--all" in args):
        if wanted and not wanted & {name, name.removesuffix(" tied")}:
            continue
        n += 1
        began = time.monotonic()
        try:
            note = "equal: " + check(program, scratch, name, make, compare)
        except Exception as e:
            failed.append(name)
            note = f"FAILED: {type(e).__name__}: {e}"
            if "--all" not in args:
                note += "\n" + traceback.format_exc()
        print(f"{name:32} {time.monotonic() - began:5.1f} s  {note}", flush=True)
    versions = f"{official.DEVICE}, transformers {transformers.__version__}, diffusers {diffusers.__version__}, torch {torch.__version__}"
    print(f"{n - len(failed)} passed, {len(failed)} failed ({versions})")
    if failed or not n:
        sys.exit(1)


main(*sys.argv[1:])
