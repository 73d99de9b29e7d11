"""Checks internal/catalog/comfynames.txt against the converters of diffusers, which do the opposite."""

import ctypes
import inspect
import json
import math
import pathlib
import subprocess
import sys

import torch
from diffusers import (
    ChromaTransformer2DModel,
    Flux2Transformer2DModel,
    FluxTransformer2DModel,
    Lumina2Transformer2DModel,
    ZImageTransformer2DModel,
)
from diffusers.loaders import single_file_utils
from safetensors.torch import load_file

WIDTH = 64
FLUX = {"in_channels": 64, "num_layers": 2, "num_single_layers": 2, "attention_head_dim": 16, "num_attention_heads": 4,
        "joint_attention_dim": 64}
MODELS = {
    "flux": (FluxTransformer2DModel, {**FLUX, "pooled_projection_dim": 64, "guidance_embeds": True, "axes_dims_rope": (4, 6, 6)}),
    "chroma": (ChromaTransformer2DModel, {**FLUX, "axes_dims_rope": (4, 6, 6), "approximator_num_channels": 16,
                                          "approximator_hidden_dim": 32, "approximator_layers": 5}),
    "flux2": (Flux2Transformer2DModel, {**FLUX, "timestep_guidance_channels": 16, "axes_dims_rope": (4, 4, 4, 4)}),
    "z_image": (ZImageTransformer2DModel, {"dim": WIDTH, "n_layers": 2, "n_refiner_layers": 2, "n_heads": 4, "n_kv_heads": 4,
                                           "cap_feat_dim": 64, "axes_dims": [4, 6, 6], "axes_lens": [8, 8, 8]}),
    "lumina2": (Lumina2Transformer2DModel, {"hidden_size": WIDTH, "num_layers": 2, "num_refiner_layers": 2,
                                            "num_attention_heads": 4, "num_kv_heads": 2, "cap_feat_dim": 64,
                                            "axes_dim_rope": (4, 6, 6)}),
}
CONVERTERS = {"lumina2": "convert_lumina2_to_diffusers"}
# The widths that the converters have built in are those of the published models.
BUILT_IN = {"inner_dim = 3072": f"inner_dim = {WIDTH}", "q_dim = 2304": f"q_dim = {WIDTH}",
            "k_dim = v_dim = 768": f"k_dim = v_dim = {WIDTH // 2}"}


def decoder(scratch: pathlib.Path):
    library = scratch / "decode.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, pathlib.Path(__file__).parent / "decode.c"], check=True)
    decode = ctypes.CDLL(str(library)).decode
    decode.argtypes = [ctypes.c_void_p] * 6 + [ctypes.c_int] * 3
    decode.restype = ctypes.c_int64
    return decode


def stored(folder: pathlib.Path, decode) -> dict[str, torch.Tensor]:
    """Returns the tensors of a ComfyUI file by their names there, its units decoded."""
    tensors = load_file(next(folder.glob("*.safetensors")))
    for unit in json.loads((folder / "df11-manifest.json").read_text())["units"]:
        arrays = {name: tensors.pop(f"{unit['path']}.{name}").contiguous() for name in (
            "luts", "encoded_exponent", "sign_mantissa", "output_positions", "gaps", "split_positions")}
        luts, codes, sign_mantissa, positions, gaps, splits = arrays.values()
        weights = torch.empty(sign_mantissa.numel(), dtype=torch.bfloat16)
        written = decode(luts.data_ptr(), codes.data_ptr(), sign_mantissa.data_ptr(), positions.data_ptr(), gaps.data_ptr(),
                         weights.data_ptr(), luts.shape[0], codes.numel(), weights.numel())
        assert written == weights.numel(), unit["path"]
        shapes = [t["shape"] for t in unit["tensors"]]
        parts = weights.tensor_split(splits)
        assert [p.numel() for p in parts] == [math.prod(s) for s in shapes], unit["path"]
        tensors.update((t["name"], p.view(t["shape"])) for t, p in zip(unit["tensors"], parts))
    return tensors


def back(name: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    function = CONVERTERS.get(name, f"convert_{name}_transformer_checkpoint_to_diffusers")
    source = inspect.getsource(getattr(single_file_utils, function))
    for published, tiny in BUILT_IN.items():
        source = source.replace(published, tiny)
    scope = dict(vars(single_file_utils))
    exec(source, scope)
    return scope[function](tensors)


def main(program: str, work: str) -> None:
    torch.manual_seed(0)
    top = pathlib.Path(work)
    decode = decoder(top)

    def run(*args: str | pathlib.Path) -> None:
        subprocess.run([program, *map(str, args), "--quiet"], check=True, stdout=subprocess.DEVNULL)

    for name, (model_class, options) in MODELS.items():
        model = model_class(**options).to(torch.bfloat16)
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.randn_like(p) * 0.02)
        source = top / name
        model.save_pretrained(source)
        run(source, "-o", top / f"{name}-DF11")
        want = load_file(source / "diffusion_pytorch_model.safetensors")
        for start in (source, top / f"{name}-DF11"):
            one, restored = top / f"{start.name}-one", top / f"{start.name}-back"
            run(start, "--layout", "single", "-o", one)
            got = back(name, stored(one, decode))
            assert got.keys() == want.keys(), sorted(got.keys() ^ want.keys())
            for key, tensor in want.items():
                assert torch.equal(got[key].view(torch.int16), tensor.view(torch.int16)), key
            run("decode", one, "-o", restored)
            original = "diffusion_pytorch_model.safetensors"
            assert (restored / original).read_bytes() == (source / original).read_bytes(), restored
        print(f"{name}: {len(want)} tensors, every bit the same")


main(*sys.argv[1:])
