"""Measures on a GPU what DF11 costs: kernels, and a model of Qwen3-8B's shape in each loader. gpu-run.sh runs it.

Usage: gpu-loaders.py DF11_CONVERT SCRATCH [--tiny] [STEP...]

    kernels  weights/s of decode, ours and the official one, and of the functions that df11 launches
    speed    tokens/s, peak memory, and tokens, with 1, 8, and 64 sequences: BF16, dfloat11, dfloat11 with our kernel, df11
    offload  the same on a card that doesn't hold the BF16 model: BF16 offloaded to the CPU, and df11
    experts  tokens/s of a mixture of experts with 1, 8, and 64 sequences: BF16, df11, and df11 with all experts decoded

Needs torch, transformers, accelerate, and df11; without dfloat11, it says that this loader wasn't measured. Weights are random. RATE and
GOAL lines are for docs/measured.md. It ends with 1 if tokens differ. --tiny takes small shapes, to rehearse it without a GPU.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time

import torch
import transformers

PROGRAM, SCRATCH = sys.argv[1], pathlib.Path(sys.argv[2])
TINY = "--tiny" in sys.argv
GPU = torch.cuda.is_available()
DEVICE = "cuda:0" if GPU else "cpu"
SIZES, NEW = ((1, 2), 4) if TINY else ((1, 8, 64), 128)
CARD = 1 if TINY else 14  # GiB of the card in the step offload
BF16 = {"dtype" if tuple(map(int, transformers.__version__.split(".")[:2])) >= (4, 56) else "torch_dtype": torch.bfloat16}
SHAPES = {
    "dense": dict(hidden_size=4096, intermediate_size=12288, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8, head_dim=128,
                  vocab_size=151936),
    "experts": dict(hidden_size=2048, intermediate_size=6144, moe_intermediate_size=768, num_hidden_layers=12, num_attention_heads=32,
                    num_key_value_heads=4, head_dim=128, num_experts=128, num_experts_per_tok=8, vocab_size=151936, norm_topk_prob=True),
}  # fmt: skip
SMALL = dict(hidden_size=64, intermediate_size=96, moe_intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             head_dim=16, num_experts=8, num_experts_per_tok=2, vocab_size=128)  # fmt: skip
failed = []


def folders(kind):
    """Makes a model and its DF11, unless they are there."""
    source, result = SCRATCH / kind, SCRATCH / f"{kind}-DF11"
    if not (result / "config.json").exists():
        shape = SHAPES[kind] if not TINY else {k: SMALL[k] for k in SHAPES[kind] if k in SMALL}
        config = (transformers.Qwen3Config if kind == "dense" else transformers.Qwen3MoeConfig)(**shape, tie_word_embeddings=False)
        torch.manual_seed(1)
        torch.set_default_dtype(torch.bfloat16)
        with torch.device(DEVICE):
            model = transformers.AutoModelForCausalLM.from_config(config)
        torch.set_default_dtype(torch.float32)
        for p in model.parameters():
            if p.dim() > 1:
                p.data.normal_(0, 0.02)
        model.save_pretrained(source)
        del model
        subprocess.run([PROGRAM, source, "-o", result, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return source, result


# --- kernels ----------------------------------------------------------------------------------------------------------


def kernels():
    from df11 import files, kernel

    _, result = folders("dense")
    stored = files.read(result)
    unit = max(stored.units.values(), key=lambda u: u.n_weights)
    device = torch.device(DEVICE)
    layout = kernel.layout_of(unit)
    packed = kernel.pack(unit, layout, device)
    out = torch.empty(unit.n_weights, dtype=torch.bfloat16, device=device)
    gpu = kernel.device_of(device)
    launch = kernel.Launch(gpu, packed, layout, kernel.widest(packed, layout), out)
    launch.build()
    owners = torch.zeros(layout.n_chunks, dtype=torch.int32, device=device)
    owners[::16] = 1 | 1 << 16
    ways = {"df11, whole": lambda: launch.decode()}
    for name, marks, share in (("df11, all picked", [1, 1], 1), ("df11, a chunk of 16 picked", [0, 1], 1 / 16), ("df11, none picked", [0, 0], 0)):
        mask = torch.tensor(marks, dtype=torch.uint8, device=device)
        ways[name] = lambda a=launch.picked(owners, mask), _=mask: launch.decode(a)
    want = None
    for name, ptx in texts().items():
        try:
            ways[name] = whole(gpu, ptx, packed, layout, out)
        except files.DF11Error as e:
            print(f"NOT MEASURED: {name}: {e}")
    for name, run in ways.items():
        out.zero_()
        with gpu:
            run()
        sync()
        if want is None:
            want = out.clone()
        if "16" not in name and "none" not in name and not torch.equal(out.view(torch.int16), want.view(torch.int16)):
            failed.append(f"{name} decodes to other weights")
        seconds = timed(gpu, run)
        print(f"RATE {name:40} {1e6 * seconds:10.1f} µs {unit.n_weights / seconds / 1e9:8.1f} Gweights/s of {unit.n_weights}")


def texts():
    """The files with a function decode: ours, and the official one, if it's here."""
    import df11

    found = {"decode, ours": pathlib.Path(df11.__file__).parent / "decode.ptx"}
    spec = importlib.util.find_spec("dfloat11")
    if spec:
        for name in ("decode.ptx.official", "decode.ptx"):
            file = pathlib.Path(spec.origin).parent / name
            if file.exists():
                found["decode, official"] = file
                break
    else:
        print("NOT MEASURED: dfloat11 isn't installed, so neither is its kernel")
    return found


def whole(gpu, file, packed, layout, out):
    """Returns a launch of decode as the official loader does it."""
    from df11 import kernel

    at, shared = packed.data_ptr(), 512 * 4 + 4 + 2 * kernel.widest(packed, layout)
    with gpu:
        module = gpu.driver.handle("cuModuleLoadData", file.read_bytes())
        function = gpu.driver.handle("cuModuleGetFunction", module, b"decode")
    arguments = kernel.Arguments(at + layout.luts, at + layout.stream, at + layout.sign_mantissa, at + layout.positions, at + layout.gaps,
                                 out.data_ptr(), layout.n_luts, layout.n_stream, layout.n_weights)  # fmt: skip
    return lambda _=module: gpu.launch(function, layout.n_chunks, shared, arguments)


def sync():
    if GPU:
        torch.cuda.synchronize()


def timed(gpu, run, n=1 if TINY else 50):
    """Returns the median of the seconds that a launch takes."""
    taken = []
    for _ in range(n):
        sync()
        began = time.perf_counter()
        with gpu:
            for _ in range(4):
                run()
        sync()
        taken.append((time.perf_counter() - began) / 4)
    return sorted(taken)[len(taken) // 2]


# --- loaders ----------------------------------------------------------------------------------------------------------


def load(loader, kind):
    source, result = folders(kind)
    if loader == "BF16":
        return transformers.AutoModelForCausalLM.from_pretrained(source, **BF16, device_map=DEVICE).eval()
    if loader == "BF16 offloaded":
        limits = {0 if GPU else "cpu": f"{CARD}GiB", **({"cpu": "100GiB"} if GPU else {})}
        return transformers.AutoModelForCausalLM.from_pretrained(source, **BF16, device_map="auto", max_memory=limits).eval()
    if loader.startswith("dfloat11"):
        from dfloat11 import DFloat11Model
        return DFloat11Model.from_pretrained(str(result), device_map="auto").eval()
    import df11
    model = df11.load(str(result), device=DEVICE)
    if loader == "df11, all experts":
        from df11 import experts
        experts.pick = lambda *_: False
    return model


def one(loader, kind):
    """Measures a loader, in a process of its own, and prints what came out as JSON."""
    began = time.perf_counter()
    model = load(loader, kind)
    made = {"load": time.perf_counter() - began, "runs": []}
    for n in (SIZES[:1] if loader == "BF16 offloaded" else SIZES):
        torch.manual_seed(7)
        prompt = torch.randint(0, 100, (n, 16), device=DEVICE)
        options = dict(input_ids=prompt, attention_mask=torch.ones_like(prompt), do_sample=False, pad_token_id=0, eos_token_id=None, use_cache=True)
        with torch.no_grad():
            model.generate(**options, max_new_tokens=2)
            sync()
            if GPU:
                torch.cuda.reset_peak_memory_stats()
            began = time.perf_counter()
            tokens = model.generate(**options, max_new_tokens=NEW, min_new_tokens=NEW)
            sync()
        seconds = time.perf_counter() - began
        peak = torch.cuda.max_memory_reserved() / 1e9 if GPU else 0
        made["runs"].append({"n": n, "rate": n * NEW / seconds, "peak": peak, "tokens": tokens.tolist()})
    print("MADE " + json.dumps(made))


def measure(loader, kind):
    """Returns what `one` measures, or None if it can't run."""
    command = [sys.executable, __file__, *sys.argv[1:3], *(["--tiny"] if TINY else []), "--one", loader, kind]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    lines = [line[5:] for line in done.stdout.splitlines() if line.startswith("MADE ")]
    if lines:
        return json.loads(lines[-1])
    print(f"NOT MEASURED: {loader}: {(done.stdout.strip().splitlines() or ['nothing said'])[-1]}")
    return None


def compare(kind, loaders, goals):
    """Measures loaders, of which the first has the right tokens, and judges their share of its speed."""
    made = {}
    for loader in loaders:
        if loader == "dfloat11, our kernel":
            kernel("--install")
        try:
            made[loader] = measure(loader, kind)
        finally:
            if loader == "dfloat11, our kernel":
                kernel("--uninstall")
    first = made[loaders[0]]
    for loader, m in made.items():
        for i, r in enumerate(m["runs"] if m else ()):
            line = f"RATE {kind}, {loader}, {r['n']} sequences: {r['rate']:.1f} tokens/s, peak {r['peak']:.1f} GB, loaded in {m['load']:.0f} s"
            if first is None or i >= len(first["runs"]):
                print(line)
                continue
            share, same = r["rate"] / first["runs"][i]["rate"], r["tokens"] == first["runs"][i]["tokens"]
            print(f"{line}, {share:.2f} of {loaders[0]}, tokens {'equal' if same else 'DIFFER'}")
            if not same:
                failed.append(f"{loader}: other tokens with {r['n']} sequences")
            goal = goals.get((loader, r["n"]))
            if goal:
                print(f"GOAL {loader}, {r['n']} sequences {share:6.2f}, goal {goal:.2f}: {'met' if share >= goal else 'missed'}")


def kernel(flag):
    spec = importlib.util.find_spec("dfloat11")
    if spec:
        subprocess.run([PROGRAM, "kernel", flag, pathlib.Path(spec.origin).parent], check=True, stdout=subprocess.DEVNULL)


def speed():
    goals = {("df11", 64): 0.90, ("df11", 1): 0.85, ("dfloat11, our kernel", 1): 0.80, ("dfloat11, our kernel", 64): 0.80}
    compare("dense", ["BF16", "dfloat11", "dfloat11, our kernel", "df11"], goals)


def offload():
    compare("dense", ["BF16 offloaded", "df11"], {})


def mixture():
    compare("experts", ["BF16", "df11", "df11, all experts"], {})


STEPS = {"kernels": kernels, "speed": speed, "offload": offload, "experts": mixture}

if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    os.environ["HF_HUB_OFFLINE"] = "1"
    if "--one" in sys.argv:
        one(*sys.argv[-2:])
        sys.exit()
    print("DEVICE", torch.cuda.get_device_name(0) if GPU else "none: SIMULATED, not a result", "torch", torch.__version__)
    for name in [a for a in sys.argv[3:] if a in STEPS] or STEPS:
        print(f"-- {name}", flush=True)
        STEPS[name]()
    sys.exit("\n".join(failed) or None)
