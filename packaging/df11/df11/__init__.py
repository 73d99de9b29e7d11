"""Loads DF11 models: BF16 weights in two thirds of the space, with the same bits.

    import df11
    model = df11.load("you/Qwen3-8B-DF11")  # or a folder; the class comes from the config
    pipe = df11.load_pipeline("you/FLUX.1-dev-DF11")
    df11.fill(model, "you/…-DF11")  # into a model of yours

On a CUDA GPU, the weights stay compressed, and each module is decoded before it runs. Elsewhere,
the model is decoded once and runs as BF16. Whatever doesn't fit is a DF11Error, before the first
forward pass.
"""

import json
from typing import Dict, Optional, Union

import torch

from .files import DF11Error

__all__ = ["DF11Error", "fill", "load", "load_pipeline"]

Place = Union[str, torch.device, None]


def load(
    name: str, *, device: Place = None, subfolder: Optional[str] = None, decode: bool = False, max_memory: Optional[Dict] = None,
    trust_remote_code: bool = False, model_class: Optional[type] = None, revision: Optional[str] = None,
    token: Optional[str] = None, cache_dir: Optional[str] = None, local_files_only: bool = False, **options,
) -> torch.nn.Module:  # fmt: skip
    """Loads the model of a folder or a repo of the Hub, in eval mode.

    device is a torch device, by default the first GPU, else the CPU; "auto" spreads the model over
    all GPUs, and over the CPU's memory what they don't hold, within max_memory (as accelerate takes
    it). decode=True makes BF16 weights of it, on any device. trust_remote_code runs the model's own
    Python files. model_class overrides the config's class. options go to the class of transformers,
    such as attn_implementation.
    """
    from . import files, library, match, place

    folder = files.find(
        name, subfolder, revision=revision, token=token, cache_dir=cache_dir, local_files_only=local_files_only
    )
    stored = files.read(folder)
    config = folder
    if "_class_name" not in stored.config and (folder / "model_index.json").is_file():
        config = library.config_of(folder, json.loads((folder / "model_index.json").read_text(encoding="utf-8")))
    first = None
    builds = library.builds(config, trust_remote_code, model_class, options)
    for build in builds:
        with library.empty():
            model = build()
        tie(model)
        try:
            _, unused = match.match(model, stored)
            if not unused or type(model).__name__ in (stored.config.get("architectures") or ()) or len(builds) == 1:
                break
            first = first or DF11Error(f"{type(model).__name__} has no place for {match.some(unused)}")
        except match.Missing as e:  # the files may hold only the base model of the class
            first = first or e
    else:
        raise first
    with torch.no_grad():
        place_on(model, stored, device, decode, library.dtypes(model), max_memory, lambda: library.compute(model, build))
    return model.eval()


def fill(
    model: torch.nn.Module, name: str, *, device: Place = None, subfolder: Optional[str] = None, decode: bool = False,
    max_memory: Optional[Dict] = None, revision: Optional[str] = None, token: Optional[str] = None,
    cache_dir: Optional[str] = None, local_files_only: bool = False,
) -> torch.nn.Module:  # fmt: skip
    """Fills a model of yours from a folder or a repo, and returns it. It must be BF16; see load for the options."""
    from . import files, library

    folder = files.find(
        name, subfolder, revision=revision, token=token, cache_dir=cache_dir, local_files_only=local_files_only
    )
    with torch.no_grad():
        place_on(model, files.read(folder), device, decode, library.dtypes(model), max_memory)
    return model


def load_pipeline(name: str, *, device: Place = None, decode: bool = False, original: Optional[str] = None, **options):
    """Loads a diffusers pipeline whose DF11 parts are in folders of their own.

    For a repo that holds a single part, such as a transformer, original names the repo that has the
    others. options go to the pipeline's from_pretrained.
    """
    from pathlib import Path

    import diffusers

    from . import files, library

    hub = {k: options[k] for k in ("revision", "token", "cache_dir", "local_files_only") if k in options}
    folder = Path(name)
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(name, **hub))
    index, components, cls = folder / "model_index.json", {}, diffusers.DiffusionPipeline
    if index.is_file():
        stated = json.loads(index.read_text(encoding="utf-8"))
        cls = getattr(diffusers, str(stated.get("_class_name")), cls)
        for part, at in library.parts(folder, stated).items():
            components[part] = load(str(at), device=device, decode=decode)
        if not components:
            raise DF11Error(f"{name}: none of the pipeline's parts is a DF11 model")
        name = str(folder)
        options = {k: v for k, v in options.items() if k not in hub}
    elif original is None:
        raise DF11Error(f"{name} has no model_index.json; original= names the repo with the pipeline's other parts")
    else:
        components["transformer"], name = load(str(folder), device=device, decode=decode), original
    pipe = cls.from_pretrained(name, torch_dtype=torch.bfloat16, **components, **options)
    return pipe if device is None and not torch.cuda.is_available() else pipe.to(device or "cuda")


def tie(model: torch.nn.Module) -> None:
    if hasattr(model, "tie_weights"):
        model.tie_weights()


def place_on(model, stored, device: Place, decode: bool, dtype_of, max_memory, compute=None) -> None:
    """Fills a model, and makes it ready to run. compute gives the parameters that the class computes their values."""
    from . import place, spread

    auto = device == "auto"
    main = torch.device("cuda:0" if torch.cuda.is_available() else "cpu") if auto or device is None else torch.device(device)
    if main.type == "cuda" and main.index is None:
        main = torch.device("cuda", torch.cuda.current_device())
    over = spread.Spread(max_memory, main) if auto and main.type == "cuda" else None
    kept, devices = place.place(model, stored, main, decode, dtype_of, over, yours=compute is None)
    if compute:
        compute()
    place.settle(model, kept, devices)
    if over:
        over.connect(model)
    for group in kept:
        group.bind()
