"""Forges units on parameters, and wants df11 and df11-convert verify to refuse each, and other readers the honest folders, too.

Usage: forged.py DF11_CONVERT SCRATCH [READER...]

The models are tiny mixtures of experts: of one, the experts of a layer are a unit, of the other, gate_up_proj is cut into
slices. Both readers get the very same folders. READER is a word and a command, which is run with an honest folder: it must fail
with an error that has the word.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

import torch
import transformers
from safetensors.torch import load_file, save_file

import df11

PROGRAM, SCRATCH = sys.argv[1], pathlib.Path(sys.argv[2]) / "forged"
SOURCE, WHOLE, CUT, PLAIN, FORGED = (SCRATCH / name for name in ("model", "whole", "cut", "plain", "forged-DF11"))
UNIT = "model.layers.0.mlp.experts"
FILE = "model_layers_0_mlp_experts.safetensors"
SLICE = "model_layers_0_mlp_experts_gate_up_proj_{}.safetensors"
DOWN = "model_layers_0_mlp_experts_down_proj.safetensors"
DICT = {r"model\.layers\.\d+\.mlp\.experts\.gate_up_proj\.(0|2|5)": [], r"model\.layers\.\d+\.mlp\.experts\.down_proj": []}


def make():
    torch.manual_seed(1)
    config = transformers.Qwen3MoeConfig(
        vocab_size=100, hidden_size=32, intermediate_size=48, moe_intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, num_experts=6, num_experts_per_tok=2, tie_word_embeddings=False,
    )  # fmt: skip
    transformers.Qwen3MoeForCausalLM(config).bfloat16().save_pretrained(SOURCE, save_original_format=False)
    (SCRATCH / "dict.json").write_text(json.dumps(DICT))
    for result, flags in ((WHOLE, []), (CUT, ["--pattern-dict", SCRATCH / "dict.json"]), (PLAIN, ["--for", "dfloat11"])):
        subprocess.run([PROGRAM, SOURCE, "-o", result, "--quiet", *flags], check=True, stdout=subprocess.DEVNULL)


def config(change):
    """Forges config.json, as text."""
    def forge():
        path = FORGED / "config.json"
        text = path.read_text()
        changed = change(text)
        assert changed != text, "nothing changed"
        json.loads(changed)
        path.write_text(changed)
    return forge


def replace(old, new):
    return config(lambda text: text.replace(old, new))


def experts(n):
    """Forges the number of experts; versions of transformers have several names for it."""
    return config(lambda text: re.sub(r'("num(_local)?_experts": )6', rf"\g<1>{n}", text))


def tensors(file, change):
    """Forges the tensors of a file."""
    def forge():
        found = load_file(FORGED / file)
        save_file(change(dict(found)) or found, FORGED / file)
    return forge


def array(name, change, file=FILE, unit=UNIT):
    def forge(found):
        found[f"{unit}.{name}"] = change(found[f"{unit}.{name}"]).contiguous()
        return found
    return tensors(file, forge)


def renamed(file, old, new):
    return tensors(file, lambda found: {name.replace(f"{old}.", f"{new}."): t for name, t in found.items()})


def without(name, file=FILE, unit=UNIT):
    return tensors(file, lambda found: {n: t for n, t in found.items() if n != f"{unit}.{name}"})


def plus(name, tensor, file=FILE):
    return tensors(file, lambda found: found | {name: tensor.contiguous()})


def both(*forgeries):
    return lambda: [forge() for forge in forgeries]


def header(file, change):
    """Forges the header of a file, and leaves its bytes."""
    def forge():
        data = (FORGED / file).read_bytes()
        n = int.from_bytes(data[:8], "little")
        stated = json.loads(data[8:8 + n])
        change(stated)
        text = json.dumps(stated).encode()
        (FORGED / file).write_bytes(len(text).to_bytes(8, "little") + text + data[8 + n:])
    return forge


def huge(stated):
    stated[f"{UNIT}.sign_mantissa"]["shape"] = [2**62]


def exchange():
    a, b = FORGED / SLICE.format(0), FORGED / SLICE.format(2)
    both(renamed(a.name, f"{UNIT}.gate_up_proj.0", f"{UNIT}.gate_up_proj.x"), renamed(b.name, f"{UNIT}.gate_up_proj.2", f"{UNIT}.gate_up_proj.0"),
         renamed(a.name, f"{UNIT}.gate_up_proj.x", f"{UNIT}.gate_up_proj.2"))()


def swap(text):
    return text.replace('"gate_up_proj"', '"x"').replace('"down_proj"', '"gate_up_proj"').replace('"x"', '"down_proj"')


def escaping(path):
    pattern = json.dumps(path.replace("\\", r"\\").replace(".", r"\."))
    return both(
        lambda: shutil.copy(FORGED / FILE, FORGED / "z.safetensors"), renamed("z.safetensors", UNIT, path),
        replace('"pattern_dict": {', f'"pattern_dict": {{{pattern}: [],'),
    )  # fmt: skip


NEW = torch.zeros(6, 32, 24, dtype=torch.bfloat16)
CONFIG = 6  # verify's exit status, if config.json differs from the original's and nothing else
# What is forged of which result, and what df11's error says; verify ends with 3, if there is no other number.
CASES = [
    ("parameters in another order", WHOLE, config(swap), ["down_proj", "weights, the class has"]),
    ("where a parameter ends", WHOLE, array("split_positions", lambda t: t + 1), ["down_proj has 4607 weights, the class has"]),
    ("a parameter before its begin", WHOLE, array("split_positions", lambda t: -t), [UNIT, "split_positions"]),
    ("a parameter after the end", WHOLE, array("split_positions", lambda t: t + 2**62), [UNIT, "split_positions"]),
    ("more parameters than the dict has", WHOLE, array("split_positions", lambda t: torch.cat([t, t + 1])), [UNIT, "names 2 weights, the unit holds 3"]),
    ("a parameter left out of the dict", WHOLE, config(lambda t: t.replace('"gate_up_proj",', "")), [UNIT, "names 1 weights, the unit holds 2"]),
    ("a parameter that the class lacks", WHOLE, replace('"down_proj"', '"side_proj"'), [f"{UNIT}.side_proj", "no place"]),
    ("the official version", WHOLE, replace('"0.5.0+parameters"', '"0.5.0"'), ["threads_per_block"]),
    ("the official version and members", WHOLE, replace('"0.5.0+parameters"', '"0.5.0", "threads_per_block": [512], "bytes_per_thread": 8'), [UNIT, "is a parameter"]),
    ("the official members", WHOLE, replace('"pattern_dict"', '"threads_per_block": [512], "bytes_per_thread": 8, "pattern_dict"'), ["threads_per_block"]),
    ("an unknown extension", WHOLE, replace("+parameters", "+parameters.more"), ["extension", "more"]),
    ("a plain parameter beside its unit", WHOLE, plus(f"{UNIT}.down_proj", NEW), [f"{UNIT}.down_proj", "too many"]),
    ("a second unit for a parameter", WHOLE, both(lambda: shutil.copy(CUT / DOWN, FORGED), replace('"pattern_dict": {', r'"pattern_dict": {"model\\.layers\\.0\\.mlp\\.experts\\.down_proj": [],')),
     [f"{UNIT}.down_proj", "too many"]),
    ("more experts than there are", WHOLE, experts(7), ["down_proj", "the class has [7, 32, 24]"], CONFIG),
    ("wider experts", WHOLE, replace('"moe_intermediate_size": 24', '"moe_intermediate_size": 20'), ["down_proj", "the class has [6, 32, 20]"], CONFIG),
    ("a plain tensor of another shape", CUT, both(lambda: (FORGED / DOWN).unlink(), plus(f"{UNIT}.down_proj", NEW[:, :30], SLICE.format(0))),
     [f"{UNIT}.down_proj", "[6, 30, 24]"]),
    ("a flat unit that is a vector", WHOLE, array("luts", lambda t: t.flatten()), [f"{UNIT}.luts", "shape"]),
    ("overlapping slices", CUT, both(renamed(SLICE.format(2), f"{UNIT}.gate_up_proj.2", f"{UNIT}.gate_up_proj.1"), replace("(0|2|5)", "[0-25]")),
     [f"{UNIT}.gate_up_proj.1", "at row 2"]),
    ("a gap between slices", CUT, both(renamed(SLICE.format(2), f"{UNIT}.gate_up_proj.2", f"{UNIT}.gate_up_proj.3"), replace("(0|2|5)", "[0-35]")),
     [f"{UNIT}.gate_up_proj.3", "at row 2"]),
    ("slices after the end", CUT, both(renamed(SLICE.format(5), f"{UNIT}.gate_up_proj.5", f"{UNIT}.gate_up_proj.6"), replace("(0|2|5)", "[0-6]")),
     [f"{UNIT}.gate_up_proj.6", "at row 5"]),
    ("a slice from a huge row", CUT, both(renamed(SLICE.format(5), f"{UNIT}.gate_up_proj.5", f"{UNIT}.gate_up_proj.{10**30}"), replace("(0|2|5)", r"\\d+")),
     [f"{UNIT}.gate_up_proj.1000", "at row 5"]),
    ("a slice less", CUT, lambda: (FORGED / SLICE.format(5)).unlink(), [f"{UNIT}.gate_up_proj", "end at row 5 of 6"]),
    ("slices exchanged", CUT, exchange, [f"{UNIT}.gate_up_proj", "row"]),
    ("the path of a file", WHOLE, escaping("../../evil"), ["'../../evil'"]),
    ("an absolute path", WHOLE, escaping("/etc/evil"), ["'/etc/evil'"]),
    ("a path with a line break", WHOLE, escaping("evil\nmodel"), ["evil"]),
    ("no stream", WHOLE, without("encoded_exponent"), [UNIT, "encoded_exponent"]),
    ("no tables", WHOLE, without("luts"), [f"{UNIT}.luts"]),
    ("no gaps", WHOLE, without("gaps"), [f"{UNIT}.gaps"]),
    ("no positions of chunks", WHOLE, without("output_positions"), [f"{UNIT}.output_positions"]),
    ("no positions of parameters", WHOLE, without("split_positions"), [f"{UNIT}.split_positions"]),
    ("a chunk too few", WHOLE, array("output_positions", lambda t: t[8:]), [f"{UNIT}.output_positions"]),
    ("a huge chunk", WHOLE, array("output_positions", lambda t: t.view(torch.int32).index_fill(0, torch.tensor([1]), 2**31 - 1).view(torch.uint8)),
     [f"{UNIT}.output_positions"]),
    ("a huge number of weights", WHOLE, header(FILE, huge), [FILE]),
    ("a huge number of tables", WHOLE, array("luts", lambda t: t.repeat(4000, 1)), [f"{UNIT}.luts"]),
    ("bytes cut off", WHOLE, lambda: (FORGED / FILE).write_bytes((WHOLE / FILE).read_bytes()[:-1]), [FILE]),
]  # fmt: skip


# What takes the place of a member of dfloat11_config.
VALUES = ["null", "true", "0", "8", "8.0", "8e0", "512", '"512"', '""', "[]", "[512]", "[512.0]", "[512, 1]", '["512"]', "[true]", "{}", '{"a": 1}',
          '{"a": []}', '{"a": null}', '{"a": "weight"}', '{"a": [1]}', '{"a": ["b", "b"]}', '{"a": [""]}', '{"a(": []}', '{"": []}', "NaN", "[[512]]"]  # fmt: skip
VERSIONS = ["0.1.0", "0.2", "0.2.0", "0.4.7", "0.5.0", "0.5.00", "0.5.99", "0.5.0 ", "0.5.0\\n", " 0.5.0", "v0.5.0", "0.5.0.1", "0.5.0rc1", "0.5.\u0663",
            "0.6.0", "1.0.0", "0.5.0+", "0.5.0+parameters", "0.4.1+parameters", "0.5.0+Parameters", "0.5.0+parameters.", "0.5.0+.parameters",
            "0.5.0+parameters+parameters", "0.5.0+parameters.parameters", "0.5.0+x"]  # fmt: skip


def spelled(members):
    """Returns the text of an object whose members are texts, in order."""
    return "{" + ", ".join(f"{json.dumps(key)}: {value}" for key, value in members) + "}"


def changed(members):
    """Yields what can be done to the members of a dfloat11_config, with its name: each one left out, twice, misspelled, of another
    form; other versions; another one added."""
    for i, (key, value) in enumerate(members):
        rest = members[:i] + members[i + 1:]
        yield f"without {key}", rest
        yield f"{key} twice", members + [(key, value)]
        yield f"{key} twice, null first", [(key, "null")] + members
        yield f"{key} twice, null last", members + [(key, "null")]
        for other in (key.upper(), key.title(), key + " "):
            yield f"{other!r} for {key}", rest + [(other, value)]
            yield f"{other!r} next to {key}", members + [(other, "null")]
        for new in VALUES:
            yield f"{key} {new}", members[:i] + [(key, new)] + members[i + 1:]
    rest = [m for m in members if m[0] != "version"]
    for version in VERSIONS:
        constants = [("threads_per_block", "[512]"), ("bytes_per_thread", "8")]
        few = [m for m in rest if m not in constants]
        for name, others in (("", few), (" and no constants", few), (" and constants", few + constants)):
            yield f"version {version!r}{name}", [("version", f'"{version}"')] + others
    for key, value in (("threads_per_block", "null"), ("bytes_per_thread", "null"), ("bytes_per_thread", "8"), ("threads_per_block", "[512]"),
                       ("extra", "1"), ("parameters", "true")):  # fmt: skip
        yield f"{key} {value} added", members + [(key, value)]


def configs():
    """Yields texts of config.json, with their names and results. A byte order mark is none of them: a result keeps that of its
    source, and plan says that its readers refuse it."""
    for result in (PLAIN, WHOLE):
        whole = json.loads((result / "config.json").read_text())
        stated = whole.pop("dfloat11_config")
        members = [(key, json.dumps(value)) for key, value in whole.items()]
        own = [(key, json.dumps(value)) for key, value in stated.items()]
        for name, change in changed(own):
            yield f"{result.name}: {name}", result, spelled(members + [("dfloat11_config", spelled(change))])
        good = ("dfloat11_config", spelled(own))
        yield f"{result.name}: dfloat11_config twice", result, spelled(members + [good, good])
        yield f"{result.name}: DFloat11_config", result, spelled(members + [("DFloat11_config", good[1])])
        yield f"{result.name}: dfloat11_config, then DFloat11_config", result, spelled(members + [good, ("DFloat11_config", "null")])
        for value in VALUES:
            yield f"{result.name}: dfloat11_config {value}", result, spelled(members + [("dfloat11_config", value)])
        yield f"{result.name}: more behind it", result, spelled(members + [good]) + "x"
        yield f"{result.name}: nothing behind the comma", result, spelled(members + [good])[:-1] + ",}"
        yield f"{result.name}: NaN elsewhere", result, spelled(members + [good, ("other", "NaN")])


def agree():
    """Checks that df11 and verify accept and refuse the same configs."""
    wrong, accepted, n, last = [], 0, 0, None
    for name, result, text in configs():
        if result != last:
            copy(result)
            last = result
        (FORGED / "config.json").write_text(text, encoding="utf-8")
        try:
            df11.files.read(FORGED)
            said = None
        except df11.DF11Error as e:
            said = str(e)
        except Exception as e:
            wrong.append(f"{name}: {type(e).__name__}: {e}")
            continue
        done = subprocess.run([PROGRAM, "verify", FORGED, "--level", "structure"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        n, accepted = n + 1, accepted + (said is None)
        if (said is None) != (done.returncode == 0):
            wrong.append(f"{name}: df11 says {said}, verify ends with {done.returncode}: {done.stdout}")
    print(f"{n} configs, {accepted} accepted by both, {len(wrong)} otherwise")
    if not accepted:
        wrong.append("no config is accepted")
    return wrong


def load(decode=False):
    return df11.load(str(FORGED), decode=decode)


def verify():
    done = subprocess.run([PROGRAM, "verify", FORGED, "--against", SOURCE, "--strict-files"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def copy(result):
    shutil.rmtree(FORGED, ignore_errors=True)
    shutil.copytree(result, FORGED)


def main(readers):
    make()
    wrong = []
    want = transformers.Qwen3MoeForCausalLM.from_pretrained(SOURCE, dtype=torch.bfloat16).eval().state_dict()
    for result in (WHOLE, CUT):
        copy(result)
        assert verify()[0] == 0, f"an honest folder: {verify()[1]}"
        state = load().state_dict()
        assert [n for n in want if not torch.equal(state[n], want[n])] == []
        for reader in readers:
            word, *command = reader.split()
            done = subprocess.run([*command, FORGED], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            end = (done.stdout.strip().splitlines() or [""])[-1]
            print(f"{command[-2]}: {end}")
            if done.returncode == 0 or word not in end:
                wrong.append(f"{reader}, {result.name}: {done.stdout}")
    for name, result, forge, words, *status in CASES:
        copy(result)
        forge()
        for decode in (False, True):
            try:
                load(decode)
                wrong.append(f"{name}: df11.load(decode={decode}) loads it")
            except df11.DF11Error as e:
                said = str(e)
                if not all(w in said for w in words):
                    wrong.append(f"{name}: df11 says: {said}")
            except Exception as e:
                wrong.append(f"{name}: df11.load(decode={decode}): {type(e).__name__}: {e}")
        code, text = verify()
        if code != (status or [3])[0]:
            wrong.append(f"{name}: verify ends with {code}: {text}")
        print(f"{name}: {said}")
    wrong += agree()
    shutil.rmtree(SCRATCH)
    print(f"{len(CASES)} forgeries, {len(wrong)} not refused as they should be")
    sys.exit("\n".join(wrong) or None)


torch.set_num_threads(1)  # the models are too small to share
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
main(sys.argv[3:])
