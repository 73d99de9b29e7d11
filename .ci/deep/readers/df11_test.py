"""Holds df11 to what docs/python.md promises, on a tiny Llama.

Usage: df11_test.py DF11_CONVERT SCRATCH. DF11_TEST_DRIVER names the stand-in for the driver of a GPU.
"""
import contextlib
import copy
import ctypes.util
import hashlib
import http.server
import inspect
import io
import json
import logging
import os
import pathlib
import pickle
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

import torch
import transformers
from safetensors.torch import load_file, save_file

import df11
import tiny
from df11.files import ARRAYS
from df11.kernel import Launch
from df11.patterns import Pattern

PROGRAM, SCRATCH = sys.argv[1:3]
BASE = pathlib.Path(SCRATCH) / f"df11-test-{transformers.__version__[0]}"
MODEL, RESULT = BASE / "model", BASE / "model-DF11"
IDS = torch.arange(8, 24)[None]
LAYER = "model_layers_1.safetensors"


def make():
    if not RESULT.exists():
        torch.manual_seed(1)
        tiny.save(MODEL, "LlamaForCausalLM", "llama", False)
        subprocess.run([PROGRAM, MODEL, "-o", RESULT, "--quiet"], check=True)


def original():
    return transformers.LlamaForCausalLM.from_pretrained(MODEL, **tiny.BF16).eval()


def logits(model):
    with torch.no_grad():
        return model(input_ids=IDS).logits


class Folder(unittest.TestCase):
    """A copy of the result, to change."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=SCRATCH)) / "forged-DF11"
        shutil.copytree(RESULT, self.folder)

    def tearDown(self):
        shutil.rmtree(self.folder.parent)

    def edit(self, file, change):
        (self.folder / "df11-manifest.json").unlink(missing_ok=True)  # which has the file's size
        tensors = load_file(self.folder / file)
        change(tensors)
        save_file(tensors, self.folder / file)

    def config(self, change):
        path = self.folder / "config.json"
        config = json.loads(path.read_text())
        change(config)
        path.write_text(json.dumps(config))


class Forged(Folder):
    """A result with one thing wrong is a DF11Error that names it."""

    def stops(self, *words):
        for decode in (False, True):
            with self.assertRaises(df11.DF11Error) as e:
                df11.load(str(self.folder), decode=decode)
            for word in words:
                self.assertIn(word, str(e.exception))

    def remainder(self):
        return next(f.name for f in self.folder.glob("*.safetensors") if "model.norm.weight" in load_file(f))

    def test_missing_file(self):
        (self.folder / LAYER).unlink()
        self.stops("model.layers.1.", "fills")

    def test_missing_norm(self):
        self.edit(LAYER, lambda t: t.pop("model.layers.1.input_layernorm.weight"))
        self.stops("model.layers.1.input_layernorm.weight")

    def test_missing_remainder(self):
        (self.folder / self.remainder()).unlink()
        self.stops("model.norm.weight")

    def test_extra_tensor(self):
        self.edit(LAYER, lambda t: t.update({"model.layers.1.self_attn.q_proj.scale": torch.ones(4)}))
        self.stops("model.layers.1.self_attn.q_proj.scale")

    def test_tensor_of_a_module_that_the_class_lacks(self):
        self.edit(LAYER, lambda t: t.update({"model.layers.9.eh_proj.weight": torch.ones(4)}))
        with self.assertLogs("df11") as log:
            model = df11.load(str(self.folder))
        self.assertIn("model.layers.9.eh_proj.weight", log.output[0])
        self.assertTrue(torch.equal(logits(model), logits(original())))

    def test_shape(self):
        self.edit(LAYER, lambda t: t.update({"model.layers.1.input_layernorm.weight": torch.ones(63, dtype=torch.bfloat16)}))
        self.stops("model.layers.1.input_layernorm.weight", "[63]", "[64]")

    def test_class_of_other_shapes(self):
        self.config(lambda c: c.update(intermediate_size=95))
        self.stops("mlp.down_proj.weight", "[64, 95]")

    def test_class_of_more_layers(self):
        self.config(lambda c: c.update(num_hidden_layers=4, layer_types=["full_attention"] * 4))
        self.stops("model.layers.3.")

    def test_twice(self):
        shutil.copy(self.folder / LAYER, self.folder / "z.safetensors")
        self.stops("is in", LAYER, "z.safetensors")

    def test_no_safetensors(self):
        (self.folder / LAYER).write_bytes((self.folder / LAYER).read_bytes()[:-1])
        self.stops(LAYER)

    def test_folder_as_file(self):
        (self.folder / "x.safetensors").mkdir()
        self.stops("x.safetensors isn't a file")

    def test_small_files(self):
        for file in ("config.json", "generation_config.json"):
            whole = (self.folder / file).read_bytes() if (self.folder / file).exists() else None
            for content in (b"[]", b"", b"[" * 200_000, b"\xff{}", b"3", b'{"a": '):
                (self.folder / file).write_bytes(content)
                self.stops(str(self.folder))
            (self.folder / file).unlink() if whole is None else (self.folder / file).write_bytes(whole)

    def test_values_of_the_config(self):
        for key, value in {"hidden_size": "x", "num_attention_heads": 0, "rope_scaling": 7, "architectures": 3, "dtype": [], "vocab_size": -1}.items():
            self.config(lambda c: c.update({key: value}))
            try:
                df11.load(str(self.folder))
            except df11.DF11Error:
                pass

    def test_more_layers_than_tensors(self):
        for change in ({"num_hidden_layers": 20_000}, {"text_config": {"n_layers": 20_000}}):
            self.config(lambda c: c.update(change))
            with unittest.mock.patch("df11.library.builds", side_effect=AssertionError("built")):
                self.stops("config.json wants 20000")

    def test_more_labels_than_any_model(self):
        self.config(lambda c: c.update(num_labels=200_000_000))
        with unittest.mock.patch("df11.library.builds", side_effect=AssertionError("built")):
            self.stops("config.json wants 200000000 num_labels")

    def test_printable(self):
        """Names reach a terminal with escapes, in errors and notices, wherever they come from."""
        for c in ("\x1b[31m", "\x1b]0;t\x07", "\x9b2J", "\r", "\n", "\u202e", "\u2028", "\x00", "\udc80"):
            self.assertTrue(str(df11.DF11Error(f"a{c}b ü 模")).isprintable())
            self.assertTrue(str(df11.match.Missing(torch.nn.Linear(1, 1), [f"a{c}"])).isprintable())
            with self.assertLogs("df11") as log:
                logging.getLogger("df11").warning("%s: %s", f"a{c}", [c])
            self.assertTrue(log.records[0].getMessage().isprintable())
        self.assertEqual(str(df11.DF11Error("\x1b ü 模")), "\\x1b ü 模")
        self.edit(LAYER, lambda t: t.update({"e\x1b[31mv\x1b]0;t\x07": torch.ones(0)}))
        with self.assertLogs("df11") as log:
            df11.load(str(self.folder), decode=True)
        self.assertTrue(log.output[0].isprintable())
        self.assertIn("e\\x1b[31mv", log.output[0])

    def test_versions(self):
        for version in ("0.6.0", "1.0.0", "0.1.0", None):
            self.config(lambda c: c["dfloat11_config"].update(version=version))
            self.stops("format", repr(version))
        self.config(lambda c: c["dfloat11_config"].update(version="0.5.0+holograms"))
        self.stops("holograms")
        for version in ("0.2.0", "0.3.1", "0.3.2", "0.5.0"):
            self.config(lambda c: c["dfloat11_config"].update(version=version))
            self.assertTrue(torch.equal(logits(df11.load(str(self.folder))), logits(original())))

    def test_threads(self):
        self.config(lambda c: c["dfloat11_config"].update(threads_per_block=[256]))
        self.stops("256")

    def test_no_dict(self):
        self.config(lambda c: c.pop("dfloat11_config"))
        self.stops("dfloat11_config")

    def test_dict_without_pattern(self):
        self.config(lambda c: c["dfloat11_config"]["pattern_dict"].pop("lm_head"))
        self.stops("lm_head", "0 patterns")

    def test_dict_with_two_patterns(self):
        self.config(lambda c: c["dfloat11_config"]["pattern_dict"].update({"lm_.*": []}))
        self.stops("lm_head", "2 patterns")

    def test_dict_with_fewer_attributes(self):
        def shorten(c):
            next(v for v in c["dfloat11_config"]["pattern_dict"].values() if v).pop()
        self.config(shorten)
        self.stops("model.layers.0", "names 6 weights, the unit holds 7")

    def test_dict_in_another_order(self):
        def swap(c):
            v = next(v for v in c["dfloat11_config"]["pattern_dict"].values() if v)
            v[0], v[1] = v[1], v[0]
        self.config(swap)
        self.stops("_proj.weight", "weights, the class has")

    def test_arrays(self):
        name = "model.layers.1."
        for array in ("luts", "sign_mantissa", "output_positions", "gaps", "split_positions"):
            self.tearDown()
            self.setUp()
            self.edit(LAYER, lambda t: t.pop(name + array))
            self.stops(name + array)
        for array, change in {
            "gaps": lambda a: a[:-1], "luts": lambda a: a[:, :255].contiguous(), "output_positions": lambda a: a[:-1],
            "sign_mantissa": lambda a: a[:-1], "split_positions": lambda a: a + 1, "encoded_exponent": lambda a: a[:-4096],
        }.items():
            self.tearDown()
            self.setUp()
            self.edit(LAYER, lambda t: t.update({name + array: change(t[name + array])}))
            self.stops("model.layers.1")

    def test_positions(self):
        def back(t):
            p = t["model.layers.1.output_positions"].view(torch.int32)
            p[1] = p[2] + 1 if len(p) > 2 else -1
        self.edit(LAYER, back)
        self.stops("model.layers.1.output_positions")

    def test_luts(self):
        def jump(t):
            t["model.layers.1.luts"][0, 128] = 240  # to a table that isn't there
        self.edit(LAYER, jump)
        self.stops("model.layers.1")

        def long(t):
            t["model.layers.1.luts"][-1] = 200
        self.tearDown()
        self.setUp()
        self.edit(LAYER, long)
        self.stops("model.layers.1")

    def test_unit_without_stream(self):
        self.edit(LAYER, lambda t: t.pop("model.layers.1.encoded_exponent"))
        self.stops("model.layers.1.", "encoded_exponent")

    def test_check(self):
        file = self.folder / LAYER
        stated = json.loads((RESULT / "df11-manifest.json").read_text())["files"]
        df11.load(str(self.folder), check=True)
        with open(file, "r+b") as f:
            f.seek(-1, os.SEEK_END)
            last = f.read(1)[0]
            f.seek(-1, os.SEEK_END)
            f.write(bytes([last ^ 1]))
        df11.load(str(self.folder))  # by default, no weight is compared
        want = next(f["sha256"] for f in stated if f["path"] == LAYER)
        for decode in (False, True):
            with self.assertRaisesRegex(df11.DF11Error, f"{LAYER} is damaged: its sha256 isn't {want}"):
                df11.load(str(self.folder), decode=decode, check=True)
        (self.folder / "df11-manifest.json").unlink()
        with self.assertRaisesRegex(df11.DF11Error, "nothing says its sha256"):
            df11.load(str(self.folder), check=True)

    def test_paths(self):
        """df11 takes the paths that the program takes, and opens no file outside the model's folder."""
        cases = json.loads(pathlib.Path("internal/names/testdata/paths.json").read_text())
        for verdict, paths in cases.items():
            for path in paths:
                self.assertEqual(df11.files.is_safe(path), verdict == "safe", ascii(path))
        for path in ("a" * 255, "a/" * 2047 + "a"):
            self.assertTrue(df11.files.is_safe(path))
            self.assertFalse(df11.files.is_safe(path + "aaa"))
        self.assertFalse(df11.files.is_safe("\ud800"))
        (self.folder / "x").mkdir()
        (self.folder.parent / "token").write_text("secret")
        manifest = self.folder / "df11-manifest.json"
        text = manifest.read_text()
        opened = []
        spy = lambda real: lambda file: opened.append(file) or real(file)
        with unittest.mock.patch("df11.files.sha256", spy(df11.files.sha256)), unittest.mock.patch("df11.files.git_hash", spy(df11.files.git_hash)):
            for path in ("x/../../token", *cases["listed"], *cases["refused"]):
                stated = json.loads(text)
                stated["files"].append({"path": path, "size": 6, "sha256": "0" * 64})
                manifest.write_text(json.dumps(stated))
                for check in (False, True):
                    self.says(f"{df11.files.printable(repr(path))} isn't the path of a file of the model", check=check)
            self.assertEqual(opened, [])
            manifest.write_text(text)
            df11.load(str(self.folder), check=True)
        self.assertIn(self.folder / LAYER, opened)
        for file in opened:
            self.assertIn(self.folder.resolve(), file.resolve().parents)

    def test_manifest_above(self):
        """The manifest of a folder above counts if it lists the model's files, as that of a pipeline does."""
        above = self.folder.parent / "df11-manifest.json"
        (self.folder / "df11-manifest.json").rename(above)
        self.says("nothing says its sha256", check=True)
        stated = json.loads(above.read_text())
        for f in stated["files"]:
            f["path"] = f"{self.folder.name}/{f['path']}"
        above.write_text(json.dumps(stated))
        df11.load(str(self.folder), check=True)
        (self.folder / LAYER).write_bytes((self.folder / LAYER).read_bytes()[:-1] + b"\0")
        self.says(f"{LAYER} is damaged", check=True)

    def test_check_of_a_config(self):
        """It decides the outputs, too."""
        self.config(lambda c: c.update(rms_norm_eps=0.5))
        df11.load(str(self.folder))
        self.says("config.json is damaged: its sha256 isn't", check=True)

    def test_size(self):
        """A file of another model, with the same tensors."""
        file = self.folder / LAYER
        with open(file, "rb") as f:
            n = int.from_bytes(f.read(8), "little")
            header, data = f.read(n), f.read()
        file.write_bytes((n + 8).to_bytes(8, "little") + header + b" " * 8 + data)
        for decode in (False, True):
            self.says(f"{LAYER} has {file.stat().st_size} bytes, and df11-manifest.json lists", decode=decode)
        (self.folder / "df11-manifest.json").unlink()
        df11.load(str(self.folder))

    def test_json(self):
        for name in ("config.json", "df11-manifest.json"):
            for text in ("", "[]", '{"files": 1, "dfloat11_config": '):
                self.tearDown()
                self.setUp()
                (self.folder / name).write_text(text)
                with self.assertRaisesRegex(df11.DF11Error, name):
                    df11.load(str(self.folder), check=True)

    def test_cache(self):
        """The Hub's cache names files by what the Hub said of them, which a manifest can't outdo."""
        repo = self.folder.parent / "models--you--model-DF11"
        snapshot = repo / "snapshots" / ("c" * 40)
        snapshot.mkdir(parents=True)
        (repo / "refs").mkdir()
        (repo / "refs" / "main").write_text("c" * 40)
        (repo / "blobs").mkdir()
        for file in self.folder.iterdir():
            blob = repo / "blobs" / hashlib.sha256(file.read_bytes()).hexdigest()
            blob.write_bytes(file.read_bytes())
            (snapshot / file.name).symlink_to(f"../../blobs/{blob.name}")
        load = lambda: df11.load("you/model-DF11", cache_dir=self.folder.parent, check=True)  # offline
        self.assertTrue(torch.equal(logits(load()), logits(original())))
        blob = (snapshot / LAYER).resolve()
        data = bytearray(blob.read_bytes())
        data[-1] ^= 1
        blob.write_bytes(data)
        manifest = (snapshot / "df11-manifest.json").resolve()
        manifest.write_text(manifest.read_text().replace(blob.name, hashlib.sha256(data).hexdigest()))
        with self.assertRaisesRegex(df11.DF11Error, f"{LAYER} is damaged"):
            load()
        with self.assertRaisesRegex(df11.DF11Error, "you/other isn't in the cache; without HF_HUB_OFFLINE"):
            df11.load("you/other", cache_dir=self.folder.parent)

    def test_patterns(self):
        """df11 reads the patterns that the program reads, and none can keep it busy."""
        testdata = pathlib.Path("internal/python/testdata")
        for text, accepted in json.loads((testdata / "grammar.json").read_text()).items():
            try:
                Pattern(text)
            except ValueError:
                self.assertFalse(accepted, text)
            else:
                self.assertTrue(accepted, text)
        golden = json.loads((testdata / "pyregex.json").read_text())
        for case in golden["cases"]:
            with contextlib.suppress(ValueError):
                pattern = Pattern(case["pattern"])
                for s in case.get("strings") or golden["strings"]:
                    self.assertEqual(pattern.matches(s), s in (case.get("matches") or []), (case["pattern"], s))
        self.assertFalse(Pattern(".*.*.*.*x").matches("a" * 5000))
        self.config(lambda c: c["dfloat11_config"]["pattern_dict"].update({r"([a-z]+)+!": ["x"]}))
        self.says("it could take very long to match")

    def test_mistakes(self):
        if not torch.cuda.is_available():
            self.says("device='cuda': PyTorch finds no GPU", device="cuda")
        self.says("of BertModel", model_class=transformers.BertModel)
        self.says('device="auto"', device_map="auto")
        self.says("the weights are bfloat16", torch_dtype=torch.float16)
        for options in ({"load_in_4bit": True}, {"atn_implementation": "sdpa"}, {"attn_implementation": "bogus"}):
            name = next(iter(options))
            self.says(f"{name}: LlamaForCausalLM doesn't take it", **options)
        self.says("model_class: AutoModelForCausalLM isn't the class of a model", model_class=transformers.AutoModelForCausalLM)
        config = json.loads((self.folder / "config.json").read_text())
        self.config(lambda c: c.update(_class_name="FluxTransformer2DModel"))
        self.says("torch.float32: the weights are bfloat16", torch_dtype=torch.float32)
        self.says("bogus: df11.load has no such option", bogus=3)
        with self.assertRaisesRegex(df11.DF11Error, "torch.float16: the weights are bfloat16"):
            df11.load_pipeline(str(self.folder), torch_dtype=torch.float16)
        (self.folder / "transformer").mkdir()
        (self.folder / "transformer" / "config.json").write_text("{}")
        with self.assertRaisesRegex(df11.DF11Error, "transformer: config.json has no dfloat11_config"):
            df11.load(str(self.folder), subfolder="transformer")  # a folder above isn't read, unless it's a pipeline
        (self.folder / "model_index.json").write_text("{}")
        self.says("its weights are in the folder above", subfolder="transformer")
        (self.folder / "model_index.json").unlink()
        for name in ("_class_name", "model_type", "architectures"):
            self.config(lambda c: c.pop(name))
        manifest = self.folder / "df11-manifest.json"
        manifest.write_text(manifest.read_text().replace('"layout": "transformers"', '"layout": "comfyui-single"'))
        self.says("the file is for ComfyUI")
        self.config(lambda c: c.update(config))
        self.config(lambda c: c.update(model_type="llama99"))
        self.says(f"transformers {transformers.__version__} has no llama99: a newer one may")
        self.config(lambda c: c.update(auto_map={"AutoModel": "m.M"}))
        self.says("trust_remote_code=True")
        self.config(lambda c: c.update(auto_map={"AutoConfig": "a/b--m.C", "AutoModel": "c/d--m.M"}))
        self.says("['a/b', 'c/d']")
        self.says("the class is code of c/d, not of this model", trust_remote_code=["a/b"])
        self.config(lambda c: c.update(auto_map={"AutoModel": "a/b--m.M"}))
        for trust in (False, True, "c/d"):
            self.says("trust_remote_code='a/b'", trust_remote_code=trust)
        (self.folder / "config.4.0.0.json").write_text((self.folder / "config.json").read_text())
        self.config(lambda c: c.update(auto_map={"AutoModel": "m.M"}, configuration_files=["config.4.0.0.json"]))
        self.says("trust_remote_code='a/b'", trust_remote_code=True)
        self.config(lambda c: c.pop("dfloat11_config"))
        self.says("this isn't a DF11 model")

    def says(self, words, **options):
        with self.assertRaises(df11.DF11Error) as e:
            df11.load(str(self.folder), **options)
        self.assertIn(words, str(e.exception))

    def test_no_folder(self):
        with self.assertRaisesRegex(df11.DF11Error, "no such folder"):
            df11.load(str(self.folder) + "-2/x/y")


class Built(Exception):
    """diffusers was asked for a pipeline."""


class Code(Folder):
    """No JSON file makes transformers or diffusers run or fetch code that the caller didn't name."""

    def setUp(self):
        super().setUp()
        self.ran = self.folder.parent / "ran"

    def code(self, file):
        """Writes a Python file that leaves a trace if it runs."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"open({str(self.ran)!r}, 'w')\nclass E:\n    @classmethod\n    def from_pretrained(cls, *_, **__): return cls()\nclass P: pass\n")

    def stops(self, load, *words, **options):
        with self.assertRaises(df11.DF11Error) as e:
            load(str(self.folder), **options)
        for word in words:
            self.assertIn(word, str(e.exception))
        self.assertFalse(self.ran.exists())

    def change(self, change):
        self.tearDown()
        self.setUp()
        self.config(lambda c: c.update(change))

    def test_kernels(self):
        """transformers fetches and runs what a config names as its attention, if the package kernels is there."""
        nested = {"text_config": {"attn_implementation": {"": "paged|evil/kern@main:f"}}}
        for change in (
            {"_attn_implementation": "evil/kern"}, {"attn_implementation": "evil/kern:f"}, {"_attn_implementation_internal": "evil/kern"}, nested,
            {"_experts_implementation": "evil/kern"}, {"x": [nested]},
        ):
            self.change(change)
            for trust in (False, True, "evil/other", ["you/a", "you/b"]):
                self.stops(df11.load, "implementation", "is code of evil/kern", "(config.json: ", "trust_remote_code='evil/kern'", trust_remote_code=trust)
        self.change({"configuration_files": ["config.4.0.0.json"]})
        (self.folder / "config.4.0.0.json").write_text(json.dumps(json.loads((self.folder / "config.json").read_text()) | {"_attn_implementation": "evil/kern"}))
        self.stops(df11.load, "is code of evil/kern")

    def test_named_kernels(self):
        """Who names the repo has it asked for, once for each build."""
        for options in ({"trust_remote_code": "evil/kern"}, {"attn_implementation": "evil/kern"}):
            self.change({"_attn_implementation": "evil/kern"})
            with self.assertRaises(Exception) as e:  # of transformers, since the package kernels isn't here
                df11.load(str(self.folder), **options)
            self.assertNotIn("not of this model", str(e.exception))
            self.assertRegex(str(e.exception), "kernels|evil/kern")  # not with 4.51

    def test_implementations_that_are_fetched(self):
        for change, option, plain in (
            ({"_attn_implementation": "flash_attention_2"}, "attn_implementation", "sdpa"),
            ({"text_config": {"experts_implementation": "deepgemm"}}, "experts_implementation", "grouped_mm"),
        ):
            self.change(change)
            self.stops(df11.load, repr(next(iter(next(iter(change.values())).values())) if isinstance(next(iter(change.values())), dict) else "flash_attention_2"), f'load with {option}="{plain}"')
        self.change({"_attn_implementation": "flash_attention_2"})
        self.assertTrue(torch.equal(logits(df11.load(str(self.folder), attn_implementation="sdpa")), logits(original())))
        for name in ("eager", "sdpa"):
            self.change({"_attn_implementation": name})
            df11.load(str(self.folder))

    def test_other_models(self):
        for change, repo in (({"backbone": "hf-hub:evil/x"}, "hf-hub:evil/x"), ({"a": {"backbone": "evil/x"}}, "evil/x"), ({"architecture": "hf-hub:evil/x"}, "hf-hub:evil/x")):
            self.change(change)
            self.stops(df11.load, f"is code of {repo}", "(config.json: ")
        for change in ({"backbone_kwargs": {"checkpoint_path": "/x"}}, {"model_args": {"pretrained_cfg": {"file": "/x"}}}, {"attribute_map": {"x": "_attn_implementation"}, "x": "evil/kern"}):
            self.change(change)
            self.stops(df11.load, "config.json: ", "isn't a setting of a model")

    def test_classes_of_diffusers(self):
        for name in (["evil", "E"], "AutoModel", "DiffusionPipeline", "utils", "Nothing", 3):
            self.config(lambda c: c.update(_class_name=name))
            self.stops(df11.load, f"has no model {name}")

    def pipeline(self, index=(), **files):
        """Makes a pipeline whose transformer is the DF11 model, with more members, and files by their paths."""
        self.tearDown()
        self.setUp()
        (self.folder / "model_index.json").unlink(missing_ok=True)
        moved = self.folder.parent / "transformer"
        self.folder.rename(moved)
        self.folder.mkdir()
        moved.rename(self.folder / "transformer")
        members = {"_class_name": "FluxPipeline", "transformer": ["diffusers", "X"], "scheduler": ["diffusers", "Y"], "tokenizer": ["transformers", "AutoTokenizer"], **dict(index)}
        (self.folder / "model_index.json").write_text(json.dumps(members))
        for path, content in files.items():
            (self.folder / path).parent.mkdir(exist_ok=True)
            (self.folder / path).write_text(json.dumps(content))

    def pipeline_stops(self, *words, index=(), py="", trust=(False,), **files):
        """Wants an error of a pipeline, and of one that takes the others' parts from it, before anything is built."""
        for original in (False, True):
            for t in trust:
                self.pipeline(index, **files)
                if py:
                    self.code(self.folder / py)
                with unittest.mock.patch("df11.load", side_effect=AssertionError("built")):
                    self.stops((lambda f, **o: df11.load_pipeline(str(RESULT), original=f, **o)) if original else df11.load_pipeline, *words, trust_remote_code=t)

    def test_code_of_a_pipeline(self):
        """diffusers imports a module that lies next to a part's files, or next to the index, or anywhere."""
        hint = "load with trust_remote_code=True"
        index = "model_index.json: "
        self.pipeline_stops(index + "scheduler", hint, index={"scheduler": ["evil", "E"]}, py="scheduler/evil.py")
        self.pipeline_stops(index + "scheduler", hint, py="scheduler/diffusers.py")
        self.pipeline_stops(index + "scheduler", hint, index={"scheduler": ["x/evil", "E"]}, py="scheduler/x/evil.py")
        self.pipeline_stops(index + "scheduler", hint, index={"scheduler": ["antigravity", "E"]})
        self.pipeline_stops(index + "transformer", hint, index={"transformer": ["evil", "E"]}, py="transformer/evil.py")
        self.pipeline_stops(index + "_class_name", hint, index={"_class_name": ["evil", "P"]}, py="evil.py")
        self.pipeline_stops(index + "scheduler", hint, index={"scheduler": ["diffusers", "DiffusionPipeline"]})
        self.pipeline_stops(index + "'../x'", index={"../x": ["diffusers", "Y"]})
        self.pipeline_stops(index + "'scheduler' isn't a part", index={"scheduler": ["diffusers", ["Y"]]})
        for name in ("AutoModel", "utils", "Nothing", None):
            self.pipeline_stops(index, f"has no pipeline {name}", index={"_class_name": name})
        self.pipeline_stops(index + "StableCascadeCombinedPipeline loads other repos", hint, index={"_class_name": "StableCascadeCombinedPipeline"}, **{"README.md": ""})

    def test_code_that_parts_name(self):
        both = (False, True, "evil/other")
        encoder = {"text_encoder": ["transformers", "CLIPTextModel"]}
        for file, content in (
            ("config.json", {"_attn_implementation": "evil/kern"}),
            ("config.9.json", {"text_config": {"attn_implementation": {"": "evil/kern"}}}),
            ("adapter_config.json", {"base_model_name_or_path": "evil/kern"}),
            ("config.json", {"backbone": "evil/kern"}),
        ):
            self.pipeline_stops("is code of evil/kern", f"({file}: ", "trust_remote_code='evil/kern'", index=encoder, trust=both, **{f"text_encoder/{file}": content})
        self.pipeline_stops("is code of evil/code", "(tokenizer_config.json: auto_map.AutoTokenizer)", **{"tokenizer/tokenizer_config.json": {"auto_map": {"AutoTokenizer": ["evil/code--t.T", None]}}}, trust=both)
        self.pipeline_stops("tokenizer_config.json: auto_map", "load with trust_remote_code=True", **{"tokenizer/tokenizer_config.json": {"auto_map": {"AutoTokenizer": ["t.T", None]}}})
        self.pipeline_stops("config.json: configuration_files", index=encoder, **{"text_encoder/config.json": {"configuration_files": ["../config.1.json"]}})
        self.pipeline_stops("config.json: _attn_implementation is 'flash_attention_2'", index=encoder, **{"text_encoder/config.json": {"_attn_implementation": "flash_attention_2"}})

    def test_names_of_parts(self):
        """A part is a folder of the pipeline that its class has a place for, never a folder elsewhere or an option."""
        import diffusers
        source = inspect.getsource(diffusers.DiffusionPipeline.from_pretrained)
        options = {*re.findall(r'kwargs\.pop\("(\w+)"', source), *inspect.signature(diffusers.DiffusionPipeline.from_pretrained.__func__).parameters} - {"kwargs"}
        self.assertIn("torch_dtype", options)
        for name in ("trust_remote_code", "../outside", str(RESULT), "transformer/../../outside", "..", ".", "", "a b", "a.b", "1a", "tr\u200bansformer", *sorted(options - {"trust_remote_code"})):
            self.pipeline({name: ["diffusers", "X"]})
            shutil.copytree(RESULT, self.folder.parent / "outside")
            if name.isidentifier():
                shutil.copytree(RESULT, self.folder / name)
            for trust in (False, True):
                for library in ("diffusers", None):  # diffusers builds no part of null
                    index = self.folder / "model_index.json"
                    members = json.loads(index.read_text())
                    index.write_text(json.dumps({**members, "transformer": [None, None], name: [library, library and "X"]}))
                    with unittest.mock.patch("df11.load", side_effect=AssertionError("built")), \
                            unittest.mock.patch.object(diffusers.FluxPipeline, "from_pretrained", side_effect=Built) as built, \
                            self.assertRaises((df11.DF11Error, Built), msg=name) as e:
                        df11.load_pipeline(str(self.folder), trust_remote_code=trust)
                    if library:
                        self.assertIn(f"{name!r} isn't a part", str(e.exception))
                    else:  # then from_pretrained gets nothing from the index
                        self.assertLessEqual(built.call_args.kwargs.keys(), {"torch_dtype", "trust_remote_code"})
                        self.assertEqual(built.call_args.kwargs.get("trust_remote_code", False), trust)
        for value in (["diffusers"], ["diffusers", None], ["diffusers", 3], ["diffusers", "X", "Y"], [], [["x"], "X"]):
            self.pipeline_stops("model_index.json: 'transformer' isn't a part", index={"transformer": value})
        self.pipeline({"_class_name": "StableDiffusionPipeline"})
        with unittest.mock.patch("df11.load", side_effect=AssertionError("built")):
            self.stops(df11.load_pipeline, "StableDiffusionPipeline has no part transformer")

    def test_trusted_pipeline(self):
        self.pipeline({"scheduler": ["evil", "E"]})
        self.code(self.folder / "scheduler" / "evil.py")
        called = {}

        def from_pretrained(cls, source, **options):
            called.update(options, source=source)
            return cls.__new__(cls)
        import diffusers
        with unittest.mock.patch.object(diffusers.FluxPipeline, "from_pretrained", classmethod(from_pretrained)), \
                unittest.mock.patch.object(diffusers.FluxPipeline, "to", lambda self, _: self):
            pipe = df11.load_pipeline(str(self.folder), trust_remote_code=True)
        self.assertIsInstance(pipe, diffusers.FluxPipeline)
        self.assertTrue(called["trust_remote_code"])
        self.assertIsInstance(called["transformer"], transformers.LlamaForCausalLM)


class Damaged(Folder):
    """Whatever the files hold, loading ends with a DF11Error or a launch that stays within its buffers."""

    N = int(os.environ.get("DF11_TEST_FUZZ", 60))

    def damage(self, rng):
        """Changes a file of a unit at random: bytes of the header, or an array's bytes, size, or type."""
        file = self.folder / rng.choice(["lm_head.safetensors", LAYER])
        (self.folder / "df11-manifest.json").unlink()  # which has the file's size
        if rng.random() < 0.3:
            data = bytearray(file.read_bytes())
            for _ in range(rng.choice([1, 1, 4])):
                data[rng.randrange(rng.choice([8, 1500]))] ^= 1 << rng.randrange(8)
            return file.write_bytes(data)
        tensors = load_file(file)
        name = rng.choice([n for n in sorted(tensors) if n.rpartition(".")[2] in ARRAYS])
        a = tensors[name]
        flat = a.contiguous().view(-1).view(torch.uint8).clone()
        for _ in range(rng.choice([1, 3, 30])):
            if len(flat):
                at = rng.randrange(len(flat))
                flat[at : at + rng.choice([1, 1, 40])] = rng.choice([0, 255, rng.randrange(256)])
        change = rng.random()
        if change < 0.2:
            flat = flat[: rng.randrange(len(flat) + 1) // 8 * 8]
        elif change < 0.3:
            flat = torch.cat([flat, flat[: rng.randrange(len(flat) + 1) // 8 * 8]])
        shaped = flat.view(torch.int64) if a.dtype == torch.int64 and len(flat) % 8 == 0 else flat
        tensors[name] = shaped.view(a.shape) if shaped.numel() == a.numel() else shaped.view(-1, 256) if a.dim() == 2 and len(flat) % 256 == 0 else shaped
        save_file({n: t.contiguous() for n, t in tensors.items()}, file)

    def fits(self, device, packed, layout, widest, out):
        """Wants of a launch what the kernel relies on."""
        start, n = packed.data_ptr(), layout.n_chunks
        places = [layout.luts, layout.stream, layout.gaps, layout.positions, layout.sign_mantissa, layout.size]
        room = [b - a for a, b in zip(places, places[1:])]
        need = [256 * layout.n_luts, layout.n_stream + 4, 320 * n + 16, 4 * n + 4, layout.n_weights]
        self.assertTrue(all(r >= k for r, k in zip(room, need)), (room, need))
        self.assertGreaterEqual(packed.numel(), layout.size)
        self.assertEqual(n, -(-layout.n_stream // 4096))
        self.assertTrue(2 <= layout.n_luts <= 18)
        self.assertGreaterEqual(out.numel(), layout.n_weights)
        positions = packed[layout.positions :][: 4 * n + 4].view(torch.int32).tolist()
        self.assertEqual((positions[0], positions[-1]), (0, layout.n_weights))
        self.assertTrue(all(0 <= b - a <= widest for a, b in zip(positions, positions[1:])))
        launch = Launch(device, packed, layout, widest, out)
        self.assertTrue(4640 + widest <= launch.shared <= 49152)
        self.launches += 1
        return launch

    def test_random(self):
        self.launches, refused = 0, 0
        for seed in range(self.N):
            self.tearDown()
            self.setUp()
            self.damage(random.Random(seed))
            for decode in (False, True):
                with unittest.mock.patch("df11.kernel.Launch", self.fits):
                    try:
                        df11.load(str(self.folder), decode=decode)
                    except df11.DF11Error:
                        refused += 1
                    except Exception as e:
                        raise AssertionError(f"seed {seed}, decode={decode}") from e
        self.assertGreater(refused, self.N / 3)
        self.assertGreater(self.launches, self.N / 3)


class Hub(http.server.BaseHTTPRequestHandler):
    """Answers as the Hub does of repos that can't be read, and of one that isn't DF11."""

    SAYS = {
        "gated": (403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}),
        "missing": (401, {"X-Error-Code": "RepoNotFound"}),
        "old": (404, {"X-Error-Code": "RevisionNotFound"}),
        "down": (418, {"X-Error-Message": "I'm a teapot"}),
    }

    def do_GET(self):
        repo = next((name for name in self.SAYS if f"/{name}" in self.path), None)
        if repo:
            return self.answer(*self.SAYS[repo])
        if self.path.startswith("/api/"):
            files = [{"type": "file", "rfilename": name, "path": name, "size": 2, "oid": "d" * 40} for name in ("config.json", "model.safetensors")]
            return self.answer(200, {}, json.dumps(files if "/tree/" in self.path else {"id": "you/plain", "sha": "c" * 40, "siblings": files}).encode())
        self.server.asked.append(self.path)
        self.answer(200, {"ETag": '"' + "d" * 40 + '"', "X-Repo-Commit": "c" * 40}, b"{}")

    do_HEAD = do_GET

    def answer(self, code, headers, body=b""):
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class Calls(torch.nn.Module):
    """Uses a parameter before and after it calls a module; both are units."""

    def __init__(self):
        super().__init__()
        self.p = torch.nn.Parameter(torch.randn(512, 512).bfloat16() / 16, requires_grad=False)
        self.inner = torch.nn.Linear(512, 512, bias=False, dtype=torch.bfloat16).requires_grad_(False)

    def forward(self, x):
        return torch.nn.functional.linear(self.inner(torch.nn.functional.linear(x, self.p)), self.p)


class Program(unittest.TestCase):
    """The program that decodes on the CPU, played by a script."""

    def stream(self, script):
        folder = pathlib.Path(tempfile.mkdtemp(dir=SCRATCH))
        self.addCleanup(shutil.rmtree, folder)
        program = folder / "program"
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(0o755)
        with unittest.mock.patch("df11.program.program", lambda: str(program)):
            with df11.program.Stream(folder / "x.safetensors") as s:
                weights = torch.empty(2, dtype=torch.bfloat16)
                s.read(weights)
        return weights

    def test_talkative(self):
        talk = "head -c 1000000 /dev/zero | tr '\\0' x >&2\n"
        self.assertEqual(self.stream(talk + "printf '\\200\\077\\200\\077'").tolist(), [1, 1])
        with self.assertRaises(df11.DF11Error) as e:
            self.stream(talk)
        self.assertIn("xxxx", str(e.exception))

    def test_errors(self):
        for script, words in (
            ("echo 'df11-convert: no such file' >&2; exit 1", "^no such file$"),
            ("printf abc", "its units don't hold what its headers say"),
            ("head -c 1000000 /dev/zero", "its units don't hold what its headers say"),
            ("printf abcd; exit 3", "its units don't hold what its headers say"),
        ):
            with self.assertRaisesRegex(df11.DF11Error, words):
                self.stream(script)


class Numbers(unittest.TestCase):
    def test_names_with_odd_digits(self):
        names = ["b.10", "b.9", "a." + "9" * 5000, "a.\u00b2", "a.\u0663", "a.x"]
        self.assertEqual(
            sorted(names, key=df11.match.natural),
            ["a." + "9" * 5000, "a.x", "a.\u00b2", "a.\u0663", "b.9", "b.10"],
        )

    def test_a_driver_without_functions(self):
        with unittest.mock.patch("df11.kernel.STAND_IN", ctypes.util.find_library("c")):
            df11.kernel.driver.cache_clear()
            self.addCleanup(df11.kernel.driver.cache_clear)
            with self.assertRaisesRegex(df11.DF11Error, "no CUDA driver: .*cuInit"):
                df11.kernel.driver()


class Nested(unittest.TestCase):
    def test_values(self):
        want, x = torch.nn.ModuleDict({"outer": Calls()}), torch.randn(1, 512).bfloat16()
        with tempfile.TemporaryDirectory() as folder:
            source, result, patterns = (pathlib.Path(folder, name) for name in ("model", "model-DF11", "patterns.json"))
            source.mkdir()
            save_file({"outer.p.weight": want.outer.p, "outer.inner.weight": want.outer.inner.weight}, source / "model.safetensors")
            (source / "config.json").write_text('{"model_type": "x", "architectures": ["X"], "torch_dtype": "bfloat16"}')
            patterns.write_text(r'{"outer\\.p": [], "outer\\.inner": []}')
            command = [PROGRAM, source, "-o", result, "--layout", "transformers", "--pattern-dict", patterns, "--unfilled", "--quiet"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            config = json.loads((result / "config.json").read_text())
            config["dfloat11_config"] = {"version": "0.5.0+parameters", "pattern_dict": config["dfloat11_config"]["pattern_dict"]}
            (result / "config.json").write_text(json.dumps(config))
            model = df11.fill(torch.nn.ModuleDict({"outer": Calls()}), str(result))
        for _ in range(2):
            self.assertTrue(torch.equal(model.outer(x), want.outer(x)))


class Repos(unittest.TestCase):
    """What is wrong with a repo is said in one sentence."""

    def test_errors(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        cases = [
            ("you/gated", {}, f"you/gated is gated: accept its terms at {endpoint}/you/gated, then log in with `hf auth login`"),
            ("you/missing", {}, "you/missing: no such folder, and no such repo, or it is private: log in with `hf auth login`"),
            ("you/old", {"revision": "v9"}, "you/old has no revision v9"),
            ("you/down", {}, f"you/down can't be downloaded from {endpoint}: I'm a teapot"),
            ("you/plain", {}, "config.json has no dfloat11_config, so this isn't a DF11 model; df11-convert makes one of it"),
        ]
        code = """import df11, json, sys
for name, options in json.load(sys.stdin):
    try:
        df11.load(name, **options)
    except df11.DF11Error as e:
        print(e)"""

        def run(url):
            with tempfile.TemporaryDirectory(dir=SCRATCH) as home:
                done = subprocess.run(
                    [sys.executable, "-W", "ignore", "-c", code], input=json.dumps([c[:2] for c in cases]), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    universal_newlines=True, env={**os.environ, "HF_HUB_OFFLINE": "0", "HF_ENDPOINT": url, "HF_HOME": home})
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout.splitlines()
        for line, (_, _, want) in zip(run(endpoint), cases):
            self.assertTrue(line.endswith(want), line)
        self.assertFalse([path for path in server.asked if "safetensors" in path])  # a BF16 model isn't downloaded
        server.shutdown()
        server.server_close()
        nobody = "http://127.0.0.1:9"
        self.assertRegex(run(nobody)[0], f"^you/gated can't be downloaded from {nobody}: .+")


class Whole(unittest.TestCase):
    """What docs/python.md says of a model whose weights stay compressed."""

    @classmethod
    def setUpClass(cls):
        cls.want, cls.out = original(), logits(original())

    def setUp(self):
        self.model = df11.load(str(RESULT))
        self.units = sum("df11_" in name for name, _ in self.model.named_buffers())

    def test_it_stays_compressed(self):
        self.assertEqual(self.units, 5)
        self.assertEqual(self.model.dtype, torch.bfloat16)
        self.assertEqual([n for n, _ in self.model.named_parameters()], [n for n, _ in self.want.named_parameters()])
        self.assertLess(self.model.get_memory_footprint(), self.want.get_memory_footprint())

    def test_a_call_is_one_launch_for_each_unit(self):
        logits(self.model)
        log = pathlib.Path(os.environ["DF11_TEST_DRIVER"]).parent / "log"
        log.write_text("")
        logits(self.model)
        calls = [line for line in log.read_text().splitlines() if line.startswith("cu")]
        self.assertEqual(calls, ["cuCtxPushCurrent", "cuLaunchKernel", "cuCtxPopCurrent"] * self.units)

    def test_a_call_allocates_nothing(self):
        logits(self.model)
        group = self.model.lm_head._forward_pre_hooks
        group = next(iter(group.values()))
        with torch.profiler.profile(profile_memory=True) as p:
            group(self.model.lm_head, (), {})
        self.assertEqual([e.name for e in p.events() if e.cpu_memory_usage], [])

    def test_decoded(self):
        with self.assertLogs("df11") as log:  # assertNoLogs comes with Python 3.10
            logging.getLogger("df11").warning("nothing else")
            model = df11.load(str(RESULT), decode=True)
        self.assertEqual(len(log.output), 1)
        self.assertTrue(torch.equal(logits(model), self.out))
        self.assertFalse([n for n, _ in model.named_buffers() if "df11_" in n])

    def test_state_dict(self):
        state, want = self.model.state_dict(), self.want.state_dict()
        self.assertEqual(state.keys(), want.keys())
        for name in want:
            self.assertTrue(torch.equal(state[name], want[name]), name)

    def test_save_pretrained(self):
        with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
            self.model.save_pretrained(folder)
            self.assertNotIn("dfloat11_config", json.loads((pathlib.Path(folder) / "config.json").read_text()))
            again = transformers.LlamaForCausalLM.from_pretrained(folder, **tiny.BF16).eval()
        self.assertTrue(torch.equal(logits(again), self.out))

    def test_copies(self):
        for run_before in (False, True):
            if run_before:
                logits(self.model)
            for copied in (copy.deepcopy(self.model), pickle.loads(pickle.dumps(self.model)), self.saved()):
                self.assertEqual(copied.lm_head.weight.dtype, torch.bfloat16)
                self.assertTrue(torch.equal(logits(copied), self.out))
                group = next(iter(copied.lm_head._forward_pre_hooks.values()))
                self.assertIs(group.module, copied.lm_head)
            self.assertTrue(torch.equal(logits(self.model), self.out))

    def saved(self):
        file = io.BytesIO()
        torch.save(self.model, file)
        return torch.load(io.BytesIO(file.getvalue()), weights_only=False)

    def test_to(self):
        self.assertTrue(torch.equal(logits(self.model.to("cpu")), self.out))
        for dtype in (torch.float16, torch.float32):
            with self.assertRaisesRegex(df11.DF11Error, str(dtype)):
                logits(copy.deepcopy(self.model).to(dtype))
        # Like any model, also in what it computes with buffers that were F32.
        self.assertTrue(torch.equal(logits(self.model.bfloat16()), logits(copy.deepcopy(self.want).bfloat16())))

    def test_moved_bytes(self):
        logits(self.model)
        for module in self.model.modules():
            for name in [n for n in module._buffers if n.startswith("df11_")]:
                module._buffers[name] = module._buffers[name].clone()
        self.assertTrue(torch.equal(logits(self.model), self.out))

    def test_bytes_from_the_cpu(self):
        groups = [h for m in self.model.modules() for h in m._forward_pre_hooks.values() if hasattr(h, "units")]
        for group in groups:
            group.read(torch.device("cpu"), runs_on=torch.device("cpu"))
        for group in groups:
            group.bind()
        self.assertTrue(torch.equal(logits(self.model), self.out))
        self.assertTrue(torch.equal(logits(self.model), self.out))

    def test_writes_stop(self):
        with self.assertRaisesRegex(df11.DF11Error, "can't be changed"):
            self.model.lm_head.weight.data = torch.zeros(1)
        with self.assertRaisesRegex(df11.DF11Error, "can't be changed"):
            self.during_a_call(lambda weight: weight.add_(1))

    def test_data_is_decoded(self):
        w = self.want.model.layers[0].mlp.up_proj.weight
        self.assertTrue(torch.equal(self.model.model.layers[0].mlp.up_proj.weight.data, w))
        logits(self.model)
        self.assertTrue(torch.equal(self.model.model.layers[0].mlp.up_proj.weight.data, w))

    def test_a_weight_hides_nothing_of_a_tensor(self):
        weight = self.during_a_call(lambda weight: weight)
        self.assertEqual([n for n in vars(weight) if hasattr(torch.Tensor, n)], [])
        self.assertEqual(weight.view(-1).shape, (weight.numel(),))

    def during_a_call(self, do):
        """Does something with a weight while its module runs."""
        done = []
        linear = self.model.model.layers[0].mlp.up_proj
        handle = linear.register_forward_hook(lambda module, *_: done.append(do(module.weight)))
        logits(self.model)
        handle.remove()
        return done[0]

    def test_use_after_a_call_stops(self):
        logits(self.model)  # by now, the buffer holds another module's weights
        weight = self.model.model.layers[0].mlp.up_proj.weight
        self.assertEqual((weight.dtype, weight.shape), (torch.bfloat16, self.want.model.layers[0].mlp.up_proj.weight.shape))
        with self.assertRaisesRegex(df11.DF11Error, "layers.0.mlp.up_proj.weight is used while its module doesn't run"):
            weight.norm()
        norm = self.during_a_call(lambda weight: weight.norm())
        self.assertEqual(norm, self.want.model.layers[0].mlp.up_proj.weight.norm())

    def test_load_state_dict_stops(self):
        with self.assertRaisesRegex(df11.DF11Error, "0.*_proj.weight: .*can't be changed"):
            self.model.model.layers.load_state_dict(self.want.model.layers.state_dict())
        self.model.load_state_dict({"model.norm.weight": self.want.model.norm.weight}, strict=False)
        model = df11.load(str(RESULT), decode=True)
        model.load_state_dict(self.want.state_dict())
        self.assertTrue(torch.equal(logits(model), self.out))

    def test_generate(self):
        for options in ({}, {"num_beams": 3}, {"prompt_lookup_num_tokens": 3}, {"assistant_model": df11.load(str(RESULT))}):
            got, want = (m.generate(IDS, max_new_tokens=12, do_sample=False, **options) for m in (self.model, self.want))
            self.assertTrue(torch.equal(got, want), options)

    def test_resizing_stops(self):
        with self.assertRaisesRegex(df11.DF11Error, "can't be changed"):
            self.model.resize_token_embeddings(600)
        model = df11.load(str(RESULT), decode=True)
        model.resize_token_embeddings(600)
        self.assertEqual(logits(model).shape[-1], 600)

    def test_use_without_call_stops(self):
        with self.assertRaisesRegex(df11.DF11Error, "used while its module doesn't run"):
            torch.nn.functional.linear(torch.ones(1, 64, dtype=torch.bfloat16), self.model.lm_head.weight)
        with self.assertRaisesRegex(df11.DF11Error, "runs outside its module"):
            self.model.model.layers[0].mlp.up_proj(torch.ones(1, 64, dtype=torch.bfloat16))

    def test_fill(self):
        model = self.of_config(torch.bfloat16)
        self.assertIs(df11.fill(model, str(RESULT)), model)
        self.assertTrue(torch.equal(logits(model.eval()), self.out))
        with self.assertRaisesRegex(df11.DF11Error, "torch.float32"):
            df11.fill(self.of_config(torch.float32), str(RESULT))
        with self.assertLogs("df11") as log:
            df11.fill(self.of_config(torch.float32).to(torch.bfloat16), str(RESULT))
        self.assertIn("inv_freq is torch.bfloat16, and F32 in the original", log.output[0])
        with torch.device("meta"), self.assertRaisesRegex(df11.DF11Error, "inv_freq is computed when the model is made"):
            df11.fill(self.of_config(torch.bfloat16), str(RESULT))

    def of_config(self, dtype):
        torch.set_default_dtype(dtype)
        try:
            return transformers.LlamaForCausalLM(transformers.AutoConfig.from_pretrained(MODEL))
        finally:
            torch.set_default_dtype(torch.float32)

    def test_compile(self):
        torch._dynamo.reset()
        graphs = []

        def backend(graph, inputs):
            graphs.append(graph)
            return graph.forward
        compiled = torch.compile(self.model, backend=backend)
        with torch.no_grad():  # without a cache, since with one the original's outputs change, too, when it's compiled
            want = torch.compile(self.want, backend="eager")(input_ids=IDS, use_cache=False).logits
            for _ in range(2):
                self.assertTrue(torch.equal(compiled(input_ids=IDS, use_cache=False).logits, want))
            self.assertGreaterEqual(len(graphs), self.units)  # a break before each unit; all else is compiled
            n = len(graphs)
            compiled(input_ids=IDS, use_cache=False)
            self.assertEqual(len(graphs), n)

    def test_inference_mode(self):
        with torch.inference_mode():
            model = df11.load(str(RESULT))
            self.assertTrue(torch.equal(model(input_ids=IDS).logits, self.out))
        self.assertTrue(torch.equal(logits(model), self.out))

    def test_threads(self):
        model, results = self.model, {}

        def forward(name):
            try:
                results[name] = logits(model)
            except df11.DF11Error as e:
                results[name] = str(e)
        for name in "ab":  # in turns
            thread = threading.Thread(target=forward, args=name)
            thread.start()
            thread.join()
            self.assertTrue(torch.equal(results[name], self.out))

        def meanwhile(*_):
            hook.remove()
            thread = threading.Thread(target=forward, args="c")
            thread.start()
            thread.join()
        hook = model.model.layers[1].mlp.register_forward_hook(meanwhile)
        forward("d")
        self.assertTrue(torch.equal(results["c"], self.out))
        self.assertIn("model.layers.1 ran while another thread", results["d"])
        forward("e")
        self.assertTrue(torch.equal(results["e"], self.out))

    def test_lora(self):
        try:
            import peft
        except ImportError:
            self.skipTest("peft is not here")
        config = peft.LoraConfig(target_modules=["q_proj", "up_proj"], init_lora_weights=False, lora_dropout=0.0)

        def adapted(model):
            torch.manual_seed(3)
            return peft.get_peft_model(model, config)
        got, want = adapted(self.model), adapted(original())
        self.assertTrue(torch.equal(logits(got), logits(want)))
        self.assertFalse(torch.equal(logits(got), self.out))
        with self.assertRaisesRegex(df11.DF11Error, "can't be changed"):
            got.merge_and_unload()
        with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
            got.save_pretrained(folder)
            again = peft.PeftModel.from_pretrained(df11.load(str(RESULT)), folder)
            self.assertTrue(torch.equal(logits(again), logits(want)))

    def test_lora_trains(self):
        try:
            import peft
        except ImportError:
            self.skipTest("peft is not here")
        config = peft.LoraConfig(target_modules=["q_proj", "up_proj"], init_lora_weights=False, lora_dropout=0.0)

        def gradients(model):
            torch.manual_seed(3)
            model = peft.get_peft_model(model, config).train()
            model(input_ids=IDS, labels=IDS).loss.backward()
            return [p.grad for p in model.parameters() if p.requires_grad]
        with self.assertRaisesRegex(df11.DF11Error, "gradients need weights that last"):
            gradients(self.model)
        got, want = gradients(df11.load(str(RESULT), decode=True)), gradients(original())
        self.assertTrue(got and all(torch.equal(g, w) for g, w in zip(got, want)))

    def test_gradients_of_inputs_stop(self):
        embeds = torch.ones(1, 4, 64, dtype=torch.bfloat16, requires_grad=True)
        with self.assertRaisesRegex(df11.DF11Error, "gradients need weights that last"):
            self.model(inputs_embeds=embeds)
        self.model(input_ids=IDS)  # nothing needs gradients


make()
transformers.logging.set_verbosity_error()
unittest.main(argv=sys.argv[:1] + sys.argv[3:])
