"""The official loader, dfloat11 0.5.0, with or without a GPU.

With one, and CuPy, it runs as it is. Without, its CUDA kernel is replaced by decode.c, compiled by the system's compiler.
"""
import contextlib
import ctypes
import pathlib
import subprocess
import sys
import types

import torch

HERE = pathlib.Path(__file__).parent
DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"


class Kernel:
    """Stands in for cupy's RawModule: the one function that the loader takes out of it, on host memory."""

    units = 0  # decoded so far

    def __init__(self, path):
        if not pathlib.Path(path).exists():
            raise FileNotFoundError(path)

    def get_function(self, name):
        return getattr(self, name)

    def decode(self, grid, block, shared_mem, args):
        n_bytes, n_elements = args[-2:]
        assert grid == (-(-n_bytes // 4096),) and block == (512,) and 2052 <= shared_mem <= 49152, (grid, block, shared_mem)
        written = _decode(*args)
        if written != n_elements:
            raise RuntimeError(f"the unit decodes to {written} weights, not {n_elements}")
        Kernel.units += 1


def load(scratch):
    """Makes dfloat11 importable; returns nothing."""
    global _decode
    if DEVICE != "cpu":
        torch.use_deterministic_algorithms(True, warn_only=True)  # else a sum over experts differs from run to run
        import dfloat11.dfloat11 as loader
        kernel = loader._decode

        def counted(*args, **named):
            Kernel.units += 1
            return kernel(*args, **named)
        loader._decode = counted
        return
    library = pathlib.Path(scratch) / "decode.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, HERE / "decode.c"], check=True)
    _decode = ctypes.CDLL(str(library)).decode
    _decode.argtypes = [ctypes.c_void_p] * 6 + [ctypes.c_int] * 3
    _decode.restype = ctypes.c_int64
    cupy = types.ModuleType("cupy")
    cupy.RawModule = Kernel
    cupy.cuda = types.SimpleNamespace(Device=lambda index: contextlib.nullcontext())
    sys.modules["cupy"] = cupy


def weights_used(model, run):
    """Returns what run() returns, and a hash of every weight at the time its module is called, the first time."""
    seen, handles = {}, []

    def note(path):
        def hook(module, _):
            for name in ("weight", "bias"):
                if path + "." + name not in seen and torch.is_tensor(getattr(module, name, None)):
                    seen[path + "." + name] = digest(getattr(module, name))
        return hook

    for path, module in model.named_modules():
        if not any(True for _ in module.children()):
            handles.append(module.register_forward_pre_hook(note(path)))
    try:
        return run(), seen
    finally:
        for h in handles:
            h.remove()


def digest(t):
    """A tensor's type, shape and bits in a form that can be compared."""
    shape = tuple(t.shape)
    t = t.detach().cpu().contiguous().reshape(-1)
    return str(t.dtype), shape, t.view(torch.uint8).numpy().tobytes() if t.numel() else b""
