"""Loads tiny models in the official loader by the code of their cards, and in df11, and wants every bit of the original.

Usage: readers.py DF11_CONVERT TRIED SCRATCH [--df11] [--all | --write | --missing | --mutate] [CLASS...]

For lines of TRIED (internal/catalog/tried.txt) a tiny model of the class is saved, converted by df11-convert, and loaded by
the Python code that the README.md of the result shows. Compared are all weights, once more at the time of their use, the outputs,
and for language models what is generated; all bit for bit. What comes out must be what the line says. Models that transformers 4
has saved in SCRATCH are loaded with transformers 5, too. Without --all it is a few lines, one for each way to load. --write states
in TRIED what came out, --missing only where there is no result. With --mutate a bit of each result is flipped, and every model
must come out different.

With --df11 the loader is our own, which needs no card. It loads each model twice: decoded by the program, and compressed, if
DF11_TEST_DRIVER names a stand-in for the GPU's driver.
"""
import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
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

MUTATE = "--mutate" in sys.argv
MISSING = "--missing" in sys.argv
WRITE = "--write" in sys.argv or MISSING
DF11 = "--df11" in sys.argv
MAJOR = int(transformers.__version__.partition(".")[0])

# The rows that are run without --all: one for each way to load.
FEW = {
    "LlamaForCausalLM", "Qwen3ForCausalLM=Qwen3Model", "Qwen3MoeForCausalLM", "Llama4ForConditionalGeneration", "MinistralForCausalLM",
    "BertForMaskedLM", "T5EncoderModel", "Qwen2_5_VLForConditionalGeneration", "CwmForCausalLM", "FluxTransformer2DModel",
    "WanTransformer3DModel", "UNet2DConditionModel",
}


class Differs(Exception):
    """What was loaded is not the original."""


class Refused(Exception):
    """The model is not converted."""


class Untried(Exception):
    """There is no such class, or it cannot be saved and called like this."""


@contextlib.contextmanager
def untried():
    try:
        yield
    except Exception as e:
        raise Untried(f"{type(e).__name__}: {str(e)[:300]}") from e


def convert(program, source, target, *flags):
    done = subprocess.run([program, source, "-o", target, "--quiet", *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Refused(f"df11-convert: exit {done.returncode}: {done.stdout.strip()}")


def load(readme, folder):
    """Runs the card's code next to the folder and returns its names."""
    at = os.getcwd()
    os.chdir(folder.parent)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            if MAJOR == 5 and WRITE:  # cards of untried models are for transformers 4
                transformers.modeling_utils.no_init_weights = transformers.initialization.no_init_weights
            return card.run(card.snippet(readme))
    finally:
        os.chdir(at)


def compare_weights(got, want, state, wanted_state, decoded):
    """Compares the weights that modules had when they were called, then all that is stored, but for what is decoded.

    A buffer may be in a wider type, since the card's code builds buffers as the class does: the outputs judge that.
    """
    if got != want:
        names = sorted(n for n in got.keys() | want.keys() if got.get(n) != want.get(n))
        raise Differs(f"{len(names)} weights differ when they are used, first {names[0]}")
    for name, t in state.items():
        if name in wanted_state and not same(t, wanted_state[name]):
            raise Differs(f"{name} differs: {t.dtype}{tuple(t.shape)}, want {wanted_state[name].dtype}{tuple(wanted_state[name].shape)}")
    missing = wanted_state.keys() - state.keys() - decoded
    if missing:
        raise Differs(f"no {sorted(missing)[0]}")


def same(t, want):
    if isinstance(want, torch.nn.Parameter) or t.dtype == want.dtype:
        return official.digest(t) == official.digest(want)
    return torch.equal(t.cpu().double(), want.cpu().double())


def tensors(x):
    """Lists the tensors of an output."""
    if torch.is_tensor(x):
        return [x]
    items = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
    return [t for item in items for t in tensors(item)]


def compare_outputs(got, want):
    got, want = tensors(got), tensors(want)
    if len(got) != len(want) or not want:
        raise Differs(f"{len(got)} outputs, want {len(want)}")
    for g, w in zip(got, want):
        if official.digest(g) != official.digest(w):
            raise Differs(f"outputs differ by up to {(g.float() - w.float()).abs().max().item():g}")


def by_df11(folder):
    """Returns functions that load a folder by df11, one for each way, and give what the card's code gives."""
    import df11
    from df11 import units

    def scope(decode):
        with contextlib.redirect_stdout(sys.stderr):
            if (folder / "model_index.json").exists():
                pipe = df11.load_pipeline(str(folder), decode=decode)
                name = next(n for n in ("transformer", "unet", "prior") if hasattr(pipe, n))
                made = {"pipe": pipe, "part": getattr(pipe, name)}
            else:
                made = {"model": df11.load(str(folder), decode=decode)}
        model = made.get("model", made.get("part"))
        hooks = [h for m in model.modules() for h in m._forward_pre_hooks.values()]
        compressed = sum(len(h.units) for h in hooks if isinstance(h, units.Group))
        stored = sum(b"sign_mantissa" in f.read_bytes()[:1 << 20] for f in folder.rglob("*.safetensors"))
        made["how"] = f"{compressed} of {stored} compressed"
        if not decode and not compressed and MAJOR == 4:  # transformers 5 may need other orders than the files have
            raise Differs("nothing stays compressed")
        return made
    ways = [True, False] if os.environ.get("DF11_TEST_DRIVER") else [True]
    return [lambda d=d: scope(d) for d in ways]


def spoil_experts(model):
    """Has the experts that a router didn't pick be NaN from now on, where df11 might not decode them; says how many modules have such."""
    from df11 import units

    def spoil(view, e, module, args, kwargs):
        picks = e.picks(module, args, kwargs)
        if picks is not None:
            left = torch.ones(e.n + 1, dtype=torch.bool).index_fill_(0, picks.flatten(), False)[:-1]
            weight = module.__dict__[view.name]
            view.of(weight.df11_group.scratch.weights(weight.device).data)[left] = float("nan")
    n = 0
    for group in [h for m in model.modules() for h in m._forward_pre_hooks.values() if isinstance(h, units.Group)]:
        for e in group.experts:
            n += 1
            for view in (v for v in group.views if v.path == e.path):
                hook = functools.partial(spoil, view, e)
                group.module.get_submodule(e.path).register_forward_pre_hook(hook, with_kwargs=True)
    return n


def compare_units(model, want):
    """Decodes each module that is compressed, called or not, and compares its weights; returns their names."""
    names = set()
    for path, module in model.named_modules():
        if not hasattr(module, "encoded_exponent"):
            continue
        for hook in module._forward_pre_hooks.values():
            if "get_hook" in hook.__qualname__:
                hook(module, None)
        original = want.get_submodule(path)
        parts = {id(m): n for n, m in module.named_modules()}
        for part in getattr(module, "weight_injection_modules", [module]):
            if official.digest(part.weight) != official.digest(original.get_submodule(parts[id(part)]).weight):
                raise Differs(f"{path}.{parts[id(part)]} decodes to other weights")
            names.add(".".join(filter(None, (path, parts[id(part)], "weight"))))
    return names


def reference(cls, source):
    """The original, as its library loads it."""
    dtype = {"dtype" if issubclass(cls, transformers.PreTrainedModel) else "torch_dtype": torch.bfloat16}
    return cls.from_pretrained(source, **dtype).to(official.DEVICE)


def check_model(loads, cls, source):
    """Compares a transformers model with what each function loads."""
    with untried(), torch.no_grad():
        want = reference(cls, source).eval()
        calls = tiny.calls(want)
        want_out, used = official.weights_used(want, lambda: [call(want) for call in calls])
    for load in loads:
        scope = load()
        model = scope["model"]
        if model.training:
            raise Differs("the model is not in eval mode")
        with torch.no_grad():
            got_out, got = official.weights_used(model, lambda: [call(model) for call in calls])
        compare_weights(got, used, model.state_dict(), want.state_dict(keep_vars=True), compare_units(model, want))
        compare_outputs(got_out, want_out)
        if DF11:
            routed = spoil_experts(model)
            scope["how"] += f", {routed} routed" * (routed > 0)
            with torch.no_grad():
                compare_outputs([call(model) for call in calls], want_out)
        if DF11 and cls.__name__.endswith("ForCausalLM") and want.can_generate():
            scope["inputs"] = {"input_ids": torch.arange(8, 14)[None], "attention_mask": torch.ones(1, 6, dtype=torch.long)}
            scope["output"] = model.generate(**scope["inputs"], max_new_tokens=card.TOKENS, do_sample=False)
        if "output" in scope:  # what was generated
            with torch.no_grad():
                compare_outputs(scope["output"], want.generate(**scope["inputs"], max_new_tokens=card.TOKENS, **{"do_sample": False} if DF11 else {}))
    return f"{len(calls)} calls" + (f", {scope['output'].shape[1]} tokens" if "output" in scope else "") + said(scope)


def said(scope):
    return f", {scope['how']}" if "how" in scope else ""


def check_pipeline(loads, cls, source):
    """Compares a diffusers pipeline with what each function loads."""
    with untried(), torch.no_grad():
        want = reference(cls, source)
        name = next(n for n in ("transformer", "unet", "prior") if hasattr(want, n))
        call = tiny.sample if cls is not tiny.OnePart else lambda p: tiny.denoise(getattr(p, name))
        want_out, used = official.weights_used(getattr(want, name), lambda: call(want))
    for load in loads:
        scope = load()
        pipe, part, original = scope["pipe"], scope["part"], getattr(want, name)
        if getattr(pipe, name) is not part or type(pipe) is not cls:
            raise Differs(f"a {type(pipe).__name__} with a {name} that isn't the loaded one")
        if part.training:
            raise Differs(f"the {name} is not in eval mode")
        with torch.no_grad():
            got_out, got = official.weights_used(part, lambda: call(pipe))
        compare_weights(got, used, part.state_dict(), original.state_dict(keep_vars=True), compare_units(part, original))
        compare_outputs(got_out, want_out)
    return ("whole pipeline" if cls is not tiny.OnePart else "one part") + said(scope)


def flip(target):
    """Flips the sign of one weight in a result."""
    file = next(f for f in sorted(target.rglob("*.safetensors")) if b"sign_mantissa" in f.read_bytes()[:4096])
    data = bytearray(file.read_bytes())
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + n])
    data[8 + n + next(t["data_offsets"][0] for name, t in header.items() if name.endswith("sign_mantissa"))] ^= 0x80
    file.write_bytes(data)


def attempt(program, base, row, **variant):
    """Makes a source unless it exists, converts it, and checks what the card's code loads. Returns a note."""
    source, cls = base / "model", tiny.real_class(row[0], variant.get("switched", False))
    with untried():
        if cls is None:
            raise AttributeError("no such class")
        if not source.exists():
            torch.manual_seed(1)
            tiny.save(source, *row[:2], **variant)
        if tiny.fuses(source) != row[1].endswith("+fused"):
            raise ValueError(f"its experts are {'fused' if tiny.fuses(source) else 'separate'}")
    # the official loader can't hold fused experts, so they stay BF16 in a result that is for it
    flags = [] if DF11 or not tiny.fuses(source) else ["--for", "dfloat11"]
    target = base / ("for-dfloat11/model-DF11" if flags else "model-DF11")  # cards name the folder
    check = check_pipeline if issubclass(cls, diffusers.DiffusionPipeline) else check_model

    def convert_and_load():
        if not (target / "README.md").exists():
            convert(program, source, target, *flags)
        if MUTATE:
            flip(target)
        return by_df11(target) if DF11 else [lambda: load((target / "README.md").read_text(), target)]
    return check(Lazy(convert_and_load), cls, source)


class Lazy:
    """Iterates over what a function returns, called when it's needed."""

    def __init__(self, make):
        self.make = make

    def __iter__(self):
        return iter(self.make())


def modules(base):
    """The modules that were compressed in all variants of a row, with # for numbers."""
    paths = set()
    for manifest in base.rglob("df11-manifest.json"):  # also of results for dfloat11
        units = json.loads(manifest.read_text())["units"]
        paths |= {re.sub(r"(^|(?<=\.))\d+(?=\.|$)", "#", u["path"]) for u in units}
    return sorted(paths)


def outermost(paths):
    """Those of the paths that lie in no other, in order."""
    return sorted(p for p in paths if not any(p.startswith(q + ".") for q in paths))


def variants(row):
    """The ways in which a class is saved, by name: with tied embeddings or without, where it knows both, and with switches turned."""
    if row[0] in tiny.SWITCHES:
        return {"as it is": {}, "switched": dict(switched=True)}
    if row[1].startswith("-") or not re.search("ForCausalLM$|ConditionalGeneration$|ForMaskedLM$|MTModel$", row[0]):
        return {"as it is": {}}
    return {"untied": dict(tied=False), "tied": dict(tied=True)}


def run(program, base, row, log):
    """Checks the variants of a row that one version has saved; returns what came of them in the words of tried.txt."""
    results = {}
    for name, variant in variants(row).items():
        if base.parent.name != str(MAJOR) and not (base / name / "model").exists():
            continue
        began = time.monotonic()
        try:
            note = attempt(program, base / name, row, **variant)
            results[name] = "equal"
        except (Untried, Refused) as e:
            note = f"{type(e).__name__}: {e}"
            if name == "switched" and results:  # else its names would count as loaded
                results[name] = "no"
        except Exception as e:
            note = f"{type(e).__name__}: {str(e)[:300]}"
            results[name] = "no"
            print(traceback.format_exc(), file=sys.stderr)
        log(f"{row[0]} {row[1]}, {name}, saved by {base.parent.name}: {time.monotonic() - began:.1f} s, {results.get(name, '-')}: {note}")
    equal = [name for name, result in results.items() if result == "equal"]
    if results and len(equal) == len(results):
        return "equal"
    return "-" if not results else equal[0] if equal and "tied" in results else "no"


def main(program, tried, scratch, *args):
    tried, scratch, wanted = pathlib.Path(tried), pathlib.Path(scratch), {a for a in args if not a.startswith("--")}
    torch.set_num_threads(1)  # the models are too small to share
    transformers.logging.set_verbosity_error()
    diffusers.logging.set_verbosity_error()
    official.load(scratch)
    lines, counts, wrong = tried.read_text().splitlines(), {}, []
    for i, line in enumerate(lines):
        row = line.split()
        if row[0] == "#" or not (row[0] in wanted if wanted else "--all" in args or WRITE or row[0] in FEW):
            continue
        known = row[5].partition("=")[2].split(",") if DF11 else row[2:5]
        if MISSING and "-" not in {4: known[:2], 5: known[1:]}[MAJOR]:  # 5 loads what 4 has saved
            continue
        for column, saved in {4: [(2, 4)], 5: [(3, 4), (4, 5)]}[MAJOR]:
            if MUTATE and saved != MAJOR:
                continue
            base = scratch / (f"mutated{DF11:d}" if MUTATE else "") / str(saved) / f"{row[0]}-{row[1]}"
            result = run(program, base, row, lambda text: print(text, flush=True))
            stated = "no" if MUTATE else known[column - 2]
            if stated not in (result, "-") and not (MISSING and result == "-"):  # version 4 need not have saved it
                wrong.append(f"{row[0]} {row[1]}, saved by {saved}: {result}, stated is {stated}")
            counts[result] = counts.get(result, 0) + 1
            if WRITE and (not MISSING or stated == "-"):
                known[column - 2] = result
                row[2:6] = [*row[2:5], "df11=" + ",".join(known)] if DF11 else [*known, row[5]]
                row[6:] = outermost({*row[6:], *modules(base)})
                lines[i] = " ".join(row)
                tried.write_text("\n".join(lines) + "\n")
    versions = f"{official.DEVICE}, transformers {transformers.__version__}, diffusers {diffusers.__version__}, torch {torch.__version__}"
    print("; ".join(f"{n} {result}" for result, n in sorted(counts.items())), f"and {len(wrong)} not as stated ({versions})", *wrong, sep="\n  ")
    if not (WRITE or counts) or wrong and "--write" not in args:
        sys.exit(1)


main(*sys.argv[1:])
