"""Loads results of df11-convert as if they were ordinary models, as code that people copy does, and wants an error each time.

Usage: plain.py DF11_CONVERT SCRATCH

Such code must never return a model: its compressed weights would be random. A copy with the official compressor's name for the
remainder must load, or else this test would not see it.
"""
import pathlib
import shutil
import subprocess
import sys

import diffusers
import torch
import transformers

import tiny

PROGRAM, SCRATCH = sys.argv[1], pathlib.Path(sys.argv[2])


def convert(name, save, *args):
    """Makes a tiny model and converts it; returns source and result."""
    source, target = SCRATCH / name, SCRATCH / f"{name}-DF11"
    if not source.exists():
        torch.manual_seed(1)
        save(source)
        subprocess.run([PROGRAM, source, "-o", target, "--quiet", *args], check=True, stdout=subprocess.DEVNULL)
    return source, target


def ways_of_transformers(folder):
    """What people write to load a language model."""
    auto = [getattr(transformers, c) for c in ("AutoModel", "AutoModelForCausalLM", "LlamaForCausalLM")]
    for cls in auto:
        yield cls.__name__, lambda cls=cls: cls.from_pretrained(folder)
        yield cls.__name__ + ", all in memory", lambda cls=cls: cls.from_pretrained(folder, low_cpu_mem_usage=False)
        yield cls.__name__ + ", device map", lambda cls=cls: cls.from_pretrained(folder, device_map="cpu")
    yield "pipeline", lambda: transformers.pipeline("text-generation", model=str(folder))


def ways_of_diffusers(part):
    """What people write to load a pipeline, or the part of it that is compressed."""
    def ways(folder):
        yield "DiffusionPipeline", lambda: diffusers.DiffusionPipeline.from_pretrained(folder)
        yield "DiffusionPipeline, all in memory", lambda: diffusers.DiffusionPipeline.from_pretrained(folder, low_cpu_mem_usage=False)
        for sub in (None, "transformer"):
            yield f"{part.__name__} in {sub}", lambda sub=sub: part.from_pretrained(folder, subfolder=sub)
            yield f"{part.__name__} in {sub}, all in memory", lambda sub=sub: part.from_pretrained(folder, subfolder=sub, low_cpu_mem_usage=False)
    return ways


def must_fail(name, folder, ways):
    said = set()
    for way, load in ways(folder):
        try:
            model = load()
        except Exception as e:
            said.add(f"{type(e).__name__}: {str(e).splitlines()[0][:50]}…")
        else:
            sys.exit(f"{name}, {way}: returns a {type(model).__name__}")
    print(f"{name}, DF11: none loads it:", *sorted(said), sep="\n  ")


def must_load(name, ways):
    loaded = 0
    for _, load in ways:
        try:
            load()
            loaded += 1
        except Exception:  # some ways are not for this kind of model
            pass
    if loaded == 0:
        sys.exit(f"{name}: nothing loads the original either, so this test shows nothing")
    print(f"{name}: {loaded} ways load it")


def main():
    transformers.logging.set_verbosity_error()
    diffusers.logging.set_verbosity_error()
    llama = lambda path: tiny.save(path, "LlamaForCausalLM", "llama", False)
    tied = lambda path: tiny.save(path, "LlamaForCausalLM", "llama", True)
    flux = lambda path: tiny.save(path, "FluxTransformer2DModel", "-")
    for name, save, ways, args in [
        ("llama", llama, ways_of_transformers, []),
        ("llama-tied", tied, ways_of_transformers, []),
        ("llama-single", llama, ways_of_transformers, ["--layout", "transformers-single"]),
        ("flux", flux, ways_of_diffusers(diffusers.FluxTransformer2DModel), []),
        ("flux-single", flux, ways_of_diffusers(diffusers.FluxTransformer2DModel), ["--layout", "diffusers-single"]),
    ]:
        source, target = convert(name, save, *args)
        must_load(name, ways(source))
        must_fail(name, target, ways)
        if name != "llama":
            continue
        # the remainder of a large model
        sharded = SCRATCH / "llama-sharded-DF11"
        if not sharded.exists():
            shutil.copytree(target, sharded)
            (sharded / "remainder.safetensors").rename(sharded / "remainder-00001-of-00001.safetensors")
            (sharded / "remainder.safetensors.index.json").write_text(
                '{"metadata": {}, "weight_map": {"model.norm.weight": "remainder-00001-of-00001.safetensors"}}')
        must_fail("llama, shards", sharded, ways)
        named = SCRATCH / "llama-official-DF11"
        if not named.exists():
            shutil.copytree(target, named)
            (named / "remainder.safetensors").rename(named / "model.safetensors")
        must_load("llama, with the official name", ways(named))
    print(f"nothing loads a result as an ordinary model (transformers {transformers.__version__}, diffusers {diffusers.__version__})")


main()
