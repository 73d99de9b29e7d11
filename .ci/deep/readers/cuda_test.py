"""Holds df11 to what docs/python.md promises of GPUs, on two that stand-ins for CUDA's driver and runtime play.

Usage: cuda_test.py DF11_CONVERT SCRATCH LOG. LD_PRELOAD names the runtime's stand-in, LD_LIBRARY_PATH the folder of the driver's,
LOG the file where both list their calls.

So this is PyTorch as it is with CUDA: its devices, streams, pinned memory, and graphs. The memory of a GPU is the host's, where the
driver's stand-in decodes, and where OnHost has the CPU compute what PyTorch would have a GPU compute.
"""
import ctypes
import os
import pathlib
import subprocess
import sys
import unittest

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

import torch
import transformers
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

import df11
import tiny
from df11 import units

PROGRAM, SCRATCH, LOG = sys.argv[1], *map(pathlib.Path, sys.argv[2:4])
BASE = SCRATCH / f"cuda-test-{transformers.__version__[0]}"
MODEL, RESULT = BASE / "model", BASE / "model-DF11"
IDS = torch.arange(8, 24)[None]
GPUS = [torch.device("cuda", 0), torch.device("cuda", 1)]
CALL = ["cuCtxPushCurrent", "cuLaunchKernel", "cuCtxPopCurrent"]


# The Go program has streams of its own, which the stand-in for the runtime doesn't know: it uses no GPU.
def make():
    if not RESULT.exists():
        torch.manual_seed(1)
        tiny.save(MODEL, "LlamaForCausalLM", "llama", False)
        subprocess.run([PROGRAM, MODEL, "-o", RESULT, "--gpu", "off", "--quiet"], check=True, stdout=subprocess.DEVNULL)


def host(t):
    """A tensor of the CPU in the same memory as one of a GPU."""
    size = t.untyped_storage().nbytes()
    if not size:
        return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype)
    memory = (ctypes.c_char * size).from_address(t.untyped_storage().data_ptr())
    storage = torch.frombuffer(memory, dtype=torch.uint8).untyped_storage()
    return torch.empty(0, dtype=t.dtype).set_(storage, t.storage_offset(), t.shape, t.stride())


class OnHost(TorchDispatchMode):
    """Computes on the CPU what is to be computed on a GPU. GPUs allocate, make views, and copy themselves."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor) and t.is_cuda]
        device = kwargs.get("device") or (tensors[0].device if tensors else None)
        returns_views = any(a.alias_info and not a.alias_info.is_write for a in func._schema.arguments)
        if torch.device(device or "cpu").type != "cuda" and not tensors or returns_views or "empty" in func.__name__:
            return func(*args, **kwargs)
        own = {}  # the tensors that may come back, by what stands for them

        def to_host(t):
            if not isinstance(t, torch.Tensor) or not t.is_cuda:
                return t
            made = host(t)
            own[id(made)] = made, t
            return made
        kwargs = {k: v for k, v in kwargs.items() if k not in ("device", "pin_memory")} if torch.device(device).type == "cuda" else kwargs
        result = func(*tree_map(to_host, args), **tree_map(to_host, kwargs))
        if torch.device(device).type != "cuda":
            return result

        def to_gpu(t):
            if not isinstance(t, torch.Tensor):
                return t
            if id(t) in own:
                return own[id(t)][1]
            made = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device)
            host(made).copy_(t)
            return made
        return tree_map(to_gpu, result)


def logits(model, device=None):
    with torch.no_grad(), OnHost():
        return host(model(input_ids=IDS.to(device or model.device), use_cache=False).logits)


def groups(model):
    return [h for m in model.modules() for h in m._forward_pre_hooks.values() if isinstance(h, units.Group)]


def load(**options):
    with OnHost():
        return df11.load(str(RESULT), attn_implementation="eager", **options)


def calls(do):
    """Returns what is called while something is done."""
    before = LOG.stat().st_size
    do()
    with LOG.open() as log:
        log.seek(before)
        return log.read().splitlines()


def decode(group):
    with torch.no_grad():
        group(group.module, (), {})


def weights(group):
    return [host(view.of(group.scratch.weights(group.device))).clone() for view in group.views]


class GPUs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = transformers.LlamaForCausalLM.from_pretrained(MODEL, attn_implementation="eager", **tiny.BF16).eval()
        with torch.no_grad():
            cls.out = cls.model(input_ids=IDS).logits

    def tearDown(self):
        torch.cuda.set_device(0)

    def equal(self, model, **where):
        for _ in range(2):
            self.assertTrue(torch.equal(logits(model, **where), self.out))

    def test_first_gpu(self):
        model = load()
        self.assertEqual({p.device for p in model.parameters()} | {b.device for b in model.buffers()}, {GPUS[0]})
        self.equal(model)

    def test_a_call_is_one_launch_on_the_current_stream(self):
        model = load()
        logits(model)
        for stream in (None, torch.cuda.Stream(0)):
            for i, group in enumerate(groups(model)):
                with torch.cuda.stream(stream):
                    log = calls(lambda: decode(group))
                # The buffer may be in use on the stream before.
                self.assertEqual([line for line in log if "waits" in line], [f"stream {stream.cuda_stream} waits"] if stream and i == 0 else [])
                self.assertEqual([line for line in log if line.startswith(("cu", "on stream"))],
                                 CALL[:2] + [f"on stream {stream.cuda_stream if stream else 0} of device 0"] + CALL[2:])

    def test_tables_are_built_once(self):
        models = []
        log = calls(lambda: models.append(load()))
        self.assertEqual(log.count("tables were built"), len(groups(models[0])))
        self.assertNotIn("tables were built", calls(lambda: logits(models[0])))

    def test_second_gpu(self):
        model = load(device="cuda:1")
        self.assertEqual({p.device for p in model.parameters()} | {b.device for b in model.buffers()}, {GPUS[1]})
        self.assertEqual(torch.cuda.current_device(), 0)
        self.equal(model)
        self.assertEqual([line for line in calls(lambda: decode(groups(model)[0])) if line.startswith("on")], ["on stream 0 of device 1"])

    def test_both_gpus(self):
        model = load(device="auto", max_memory={0: 170_000, 1: 10**8})
        by_device = {g.device for g in groups(model)}
        self.assertEqual(by_device, set(GPUS))
        self.assertIs(len({id(g.scratch) for g in groups(model)}), 1)
        self.assertEqual(set(groups(model)[0].scratch.decoded), set(GPUS))
        self.equal(model, device=GPUS[0])
        streams = {d: torch.cuda.Stream(d) for d in GPUS}
        for group in groups(model):
            with torch.cuda.stream(streams[GPUS[0]]), torch.cuda.stream(streams[GPUS[1]]):
                log = calls(lambda: decode(group))
            self.assertIn(f"on stream {streams[group.device].cuda_stream} of device {group.device.index}", log)

    def test_generate(self):
        want = self.model.generate(input_ids=IDS, max_new_tokens=8, do_sample=False)
        for memory in ({0: 170_000, 1: 10**8}, {0: 120_000, 1: 170_000, "cpu": 10**8}):
            model = load(device="auto", max_memory=memory)
            self.assertEqual({g.device for g in groups(model)}, set(GPUS))
            self.assertEqual(any(g.runs_on for g in groups(model)), "cpu" in memory)
            with OnHost():
                got = model.generate(input_ids=IDS.to(GPUS[0]), max_new_tokens=8, do_sample=False)
            self.assertTrue(torch.equal(host(got), want))

    def test_moved(self):
        model = load()
        self.equal(model)
        with OnHost():
            model.to("cuda:1")
        self.equal(model)
        self.assertEqual({g.device for g in groups(model)}, {GPUS[1]})
        with OnHost():
            model.to("cpu")
        with self.assertRaisesRegex(df11.DF11Error, "can't be decoded on cpu"):
            model(input_ids=IDS)
        with OnHost():
            model.to("cuda:0")
        self.equal(model)

    def test_offloaded(self):
        model = load(device="auto", max_memory={0: 170_000, "cpu": 10**8})
        offloaded = [g for g in groups(model) if g.runs_on]
        self.assertTrue(0 < len(offloaded) < len(groups(model)))
        self.equal(model, device=GPUS[0])
        for group in offloaded:
            packed = [group.module._buffers[key] for key in group.keys]
            self.assertTrue(all(p.is_pinned() and p.device.type == "cpu" for p in packed))
            stream = torch.cuda.Stream(0)
            with torch.cuda.stream(stream):
                log = calls(lambda: decode(group))
            self.assertEqual([line for line in log if line.startswith(("cu", "on stream"))],
                             [CALL[0], f"cudaMemcpyAsync -2 to 0 on stream {stream.cuda_stream}", CALL[1], f"on stream {stream.cuda_stream} of device 0", CALL[2]])

    def test_graph(self):
        for options in ({}, {"device": "auto", "max_memory": {0: 170_000, "cpu": 10**8}}):
            model = load(**options)
            for group in groups(model):
                decode(group)
                want, graph = weights(group), torch.cuda.CUDAGraph()

                def capture():
                    with OnHost(), torch.cuda.graph(graph):
                        decode(group)
                self.assertIn("cuLaunchKernel", calls(capture))
                host(group.scratch.weights(group.device)).fill_(float("nan"))
                graph.replay()
                self.assertTrue(all(torch.equal(a, b) for a, b in zip(weights(group), want)), group.path)

    @unittest.skipIf(transformers.__version__[0] == "5", "diffusers 0.39 needs transformers 4")
    def test_pipeline_of_which_one_part_is_on_the_gpu(self):
        source, result = BASE / "flux", BASE / "flux-DF11"
        if not result.exists():
            tiny.save(source, "FluxTransformer2DModel", "-", None)
            subprocess.run([PROGRAM, source, "-o", result, "--gpu", "off", "--quiet"], check=True, stdout=subprocess.DEVNULL)
        with sdpa_kernel(SDPBackend.MATH):
            want = tiny.sample(tiny.real_class("FluxTransformer2DModel").from_pretrained(source, torch_dtype=torch.bfloat16))[0]
            with OnHost():
                pipe = df11.load_pipeline(result, device="auto")
                for _ in range(2):
                    self.assertEqual(pipe.transformer.device.type, "cpu")
                    log = calls(lambda: self.assertTrue(torch.equal(tiny.sample(pipe)[0].cpu(), want)))
                    self.assertIn("cuLaunchKernel", log)

    def test_too_small(self):
        code = f"import df11, sys; df11.load({str(RESULT)!r}, **eval(sys.argv[1]))"
        for options, hint in (({}, "other GPUs, or into the CPU's memory"), ({"device": "auto", "max_memory": {0: 10**8}}, "max_memory=")):
            done = subprocess.run(
                [sys.executable, "-c", code, repr(options)], stderr=subprocess.PIPE, text=True, env={**os.environ, "DF11_TEST_GPU_BYTES": "100000"})
            self.assertRegex(done.stderr.splitlines()[-1], f"DF11Error: cuda:0 had 100 kB free, which isn't enough for .* of files: .*{hint}")

    def test_state_dict(self):
        for options in ({}, {"device": "cuda:1"}, {"device": "auto", "max_memory": {0: 170_000, "cpu": 10**8}}):
            with OnHost():
                state = load(**options).state_dict()
            for name, want in self.model.state_dict().items():
                self.assertTrue(torch.equal(state[name].cpu(), want), name)


(LOG.parent / "faults").write_text("devices 2")
make()
transformers.logging.set_verbosity_error()
unittest.main(argv=sys.argv[:1] + sys.argv[4:])
