"""Holds df11 to what docs/python.md promises of mixtures of experts with transformers 5, on tiny models.

Usage: experts_test.py DF11_CONVERT SCRATCH. DF11_TEST_DRIVER names the stand-in for the driver of a GPU.

Its experts are larger than a chunk, as those of real models are, so that a router's picks leave chunks out.
"""
import copy
import json
import os
import pathlib
import pickle
import subprocess
import sys
import unittest

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

import df11
from df11 import units

PROGRAM, BASE = sys.argv[1], pathlib.Path(sys.argv[2]) / "experts-test"
LOG = pathlib.Path(os.environ["DF11_TEST_DRIVER"]).parent / "log"
N, TOP, LAYERS = 8, 2, 2
# The experts of a layer as tensors of their own, in the unit of the layer, and as parameters, which are a unit.
KINDS = {"separate": True, "fused": False}
NAMES, WEIGHTS = ("gate_up_proj", "down_proj"), 512 * 64 + 64 * 256  # of an expert


def make(kind):
    folder = BASE / kind
    if not (folder / "model-DF11" / "config.json").exists():
        torch.manual_seed(1)
        config = transformers.Qwen3MoeConfig(
            vocab_size=100, hidden_size=64, intermediate_size=96, moe_intermediate_size=256, num_hidden_layers=LAYERS, num_attention_heads=4,
            num_key_value_heads=2, head_dim=16, num_experts=N, num_experts_per_tok=TOP, tie_word_embeddings=False,
        )  # fmt: skip
        model = transformers.Qwen3MoeForCausalLM(config).bfloat16()
        for p in model.parameters():  # so that logits depend on each weight of an expert
            if p.dim() > 1:
                p.data.normal_(0, 0.1)
        model.save_pretrained(folder / "model", save_original_format=KINDS[kind])
        subprocess.run([PROGRAM, folder / "model", "-o", folder / "model-DF11", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return folder / "model", folder / "model-DF11"


def ids(n):
    return torch.arange(8, 8 + n)[None]


def logits(model, n=1):
    with torch.no_grad():
        return model(input_ids=ids(n), use_cache=False).logits


def groups(model):
    return [h for m in model.modules() for h in m._forward_pre_hooks.values() if isinstance(h, units.Group)]


def experts_of(model):
    return [layer.mlp.experts for layer in model.model.layers]


def shown(module):
    """The weights of a module as they are in the buffer."""
    return {name: module.__dict__[name].df11_view.of(module.__dict__[name].df11_group.scratch.weights(torch.device("cpu")).data) for name in NAMES}


class Stale:
    """While it's active, every group finds the buffer full of NaN, and every expert that wasn't decoded is noted."""

    def __init__(self, model):
        self.decode, self.decoded = units.Group.decode, []
        self.modules = experts_of(model)

    def __enter__(self):
        def decode(group, part=None):
            scratch = group.scratch.weights(group.device)
            if group.scratch.last.get(group.device) is not group:
                scratch.data.fill_(float("nan"))
            self.decode(group, part)
        units.Group.decode = decode
        self.hooks = [m.register_forward_hook(self.note) for m in self.modules]
        return self

    def note(self, module, *_):
        if torch.compiler.is_compiling():
            return
        self.decoded.append(sum(int((~weights.isnan()).sum()) for weights in shown(module).values()))

    def __exit__(self, *_):
        units.Group.decode = self.decode
        for h in self.hooks:
            h.remove()


class Operations(TorchDispatchMode):
    """Lists what torch computes."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


class Picked:
    kind = ""

    @classmethod
    def setUpClass(cls):
        cls.source, cls.result = make(cls.kind)
        cls.want = transformers.Qwen3MoeForCausalLM.from_pretrained(cls.source, dtype=torch.bfloat16).eval()

    def setUp(self):
        self.model = df11.load(str(self.result))

    def both(self, implementation):
        for model in (self.model, self.want):
            model.set_experts_implementation(implementation)

    def equal(self, model=None):
        for n in (1, 3, 40):
            self.assertTrue(torch.equal(logits(model or self.model, n), logits(self.want, n)), n)

    def test_units(self):
        where = [g.path for g in groups(self.model)]
        self.assertEqual(sum(path.endswith("mlp.experts") for path in where), 0 if self.kind == "separate" else LAYERS)
        self.assertEqual({e.n for g in groups(self.model) for e in g.experts}, {N})
        self.assertEqual(sum(bool(g.parts) for g in groups(self.model)), LAYERS)

    def test_nothing_stale_is_used(self):
        for implementation in ("eager", "batched_mm", "grouped_mm"):
            self.both(implementation)
            for n in (1, 2, 5):
                want = logits(self.want, n)
                with Stale(self.model) as stale:
                    got = logits(self.model, n)
                self.assertTrue(torch.equal(got, want), (implementation, n))
                self.assertEqual(len(stale.decoded), LAYERS)
                self.assertTrue(all(d < N * WEIGHTS for d in stale.decoded), stale.decoded)

    def test_one_token_decodes_what_it_needs(self):
        with Stale(self.model) as stale:
            logits(self.model)
        for decoded in stale.decoded:  # whole chunks, so a bit more
            self.assertGreaterEqual(decoded, TOP * WEIGHTS)
            self.assertLess(decoded, TOP * WEIGHTS + 2 * TOP * len(NAMES) * 16000)

    def test_an_expert_that_is_left_out_would_be_noticed(self):
        pick = units.experts.pick

        def none(e, marks, picks):
            done = pick(e, marks, picks)
            marks[e.first :] = 0
            return done
        units.experts.pick = none
        try:
            with Stale(self.model):
                self.assertTrue(logits(self.model).isnan().all())
        finally:
            units.experts.pick = pick

    def test_many_tokens_take_the_plain_kernel(self):
        self.equal()
        LOG.write_text("")
        logits(self.model, 4 * N // TOP)
        launches = [line.split(":")[0] for line in LOG.read_text().splitlines() if line.startswith("launch")]
        self.assertEqual(launches.count("launch 4"), LAYERS if self.kind == "separate" else 0)
        LOG.write_text("")
        logits(self.model, 4 * N // TOP - 1)
        launches = [line.split(":")[0] for line in LOG.read_text().splitlines() if line.startswith("launch")]
        self.assertEqual(launches.count("launch 4"), 2 * LAYERS if self.kind == "separate" else LAYERS)

    def hook(self):
        """The hook of a module of experts, with its module."""
        module = experts_of(self.model)[0]
        return next(h for h in module._forward_pre_hooks.values() if isinstance(h, (units.Group, units.Routed))), module

    def test_picks_stay_on_the_device(self):
        self.equal()
        hook, module = self.hook()
        hidden, picks, weights = torch.zeros(3, 64).bfloat16(), torch.tensor([[1, 5], [5, 7], [0, 1]]), torch.zeros(3, TOP)
        groups(self.model)[0].scratch.last[torch.device("cpu")] = hook if isinstance(hook, units.Group) else hook.group
        with Operations() as done, torch.profiler.profile(profile_memory=True) as p:
            hook(module, (hidden, picks, weights), {})
        self.assertEqual(set(done.names) - {"view", "slice", "alias", "detach"}, {"zero_", "index_fill_"})
        self.assertEqual([e.name for e in p.events() if e.cpu_memory_usage], [])
        mask = next(iter(hook.group.parts[hook.experts.path] if isinstance(hook, units.Routed) else hook.parts[""]))
        self.assertEqual([i - 1 for i in range(1, N + 1) if mask[i]], [0, 1, 5, 7])

    def test_other_implementations_get_all(self):
        def dense(module, hidden_states, top_k_index, top_k_weights):
            out = torch.zeros_like(hidden_states)
            for i in range(N):
                gate, up = torch.nn.functional.linear(hidden_states, module.gate_up_proj[i]).chunk(2, dim=-1)
                down = torch.nn.functional.linear(module.act_fn(gate) * up, module.down_proj[i])
                out += down * (top_k_weights * (top_k_index == i)).sum(-1, keepdim=True).to(down.dtype)
            return out
        ALL_EXPERTS_FUNCTIONS.register("dense", dense)
        self.both("dense")
        try:
            want = logits(self.want, 2)
            with Stale(self.model):
                self.assertTrue(torch.equal(logits(self.model, 2), want))
        finally:
            self.both("eager")

    def test_experts_before_their_call_stop(self):
        self.equal()
        if self.kind == "separate":
            group = next(g for g in groups(self.model) if g.parts)
            group(group.module, (), {})
        else:
            self.model = df11.load(str(self.result))
        with self.assertRaisesRegex(df11.DF11Error, "used while its module doesn't run"):
            torch.nn.functional.linear(torch.ones(1, 64).bfloat16(), experts_of(self.model)[0].gate_up_proj[0])

    def test_generate(self):
        args = dict(input_ids=ids(3), max_new_tokens=12, do_sample=False)
        with Stale(self.model):
            got = self.model.generate(**args)
        self.assertTrue(torch.equal(got, self.want.generate(**args)))

    def test_state_dict(self):
        logits(self.model)
        state, want = self.model.state_dict(), self.want.state_dict()
        self.assertEqual(state.keys(), want.keys())
        self.assertEqual([n for n in want if not torch.equal(state[n], want[n])], [])
        self.equal()

    def test_copies(self):
        logits(self.model)
        for copied in (copy.deepcopy(self.model), pickle.loads(pickle.dumps(self.model))):
            self.equal(copied)
            with Stale(copied) as stale:
                logits(copied)
            self.assertTrue(all(d < N * WEIGHTS for d in stale.decoded))
        self.equal()

    def test_bytes_from_the_cpu(self):
        for group in groups(self.model):
            group.read(torch.device("cpu"), runs_on=torch.device("cpu"))
        for group in groups(self.model):
            group.bind()
        self.equal()

    def test_compile(self):
        torch._dynamo.reset()
        self.both("batched_mm")
        with torch.no_grad():
            want = torch.compile(self.want, backend="eager")(input_ids=ids(2), use_cache=False).logits
            compiled = torch.compile(self.model, backend="eager")
            for _ in range(2):
                with Stale(self.model):
                    self.assertTrue(torch.equal(compiled(input_ids=ids(2), use_cache=False).logits, want))
        self.both("eager")

    def test_flipped_bit(self):
        self.equal()
        expert = int(self.picked()[0, 0])
        group = next(g for g in groups(self.model) if g.parts)
        view = next(v for v in group.views if v.name == "down_proj")
        packed, layout = group.module._buffers[group.keys[0]], group.layouts[0]
        at = int(self.want.model.layers[0].mlp.experts.down_proj[expert].flatten().abs().argmax())
        packed[layout.sign_mantissa + view.offset + expert * view.strides[0] + at] ^= 0x80
        self.assertFalse(torch.equal(logits(self.model), logits(self.want)))

    def picked(self):
        found = []
        hook = self.want.model.layers[0].mlp.experts.register_forward_pre_hook(lambda m, args: found.append(args[1]))
        logits(self.want)
        hook.remove()
        return found[0]


class Separate(Picked, unittest.TestCase):
    kind = "separate"


class Fused(Picked, unittest.TestCase):
    kind = "fused"


torch.set_num_threads(1)  # the models are too small to share
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
unittest.main(argv=sys.argv[:1] + sys.argv[3:])
