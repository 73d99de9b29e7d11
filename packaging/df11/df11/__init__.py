"""Loads DF11 models: BF16 weights in two thirds of the space, with the same bits.

    import df11
    model = df11.load("you/Qwen3-8B-DF11")  # or a folder; the class comes from the config
    pipe = df11.load_pipeline("you/FLUX.1-dev-DF11")
    df11.fill(model, "you/…-DF11")  # into a model of yours

On a CUDA GPU, the weights stay compressed, and each module is decoded before it runs. Elsewhere,
the model is decoded once and runs as BF16. Whatever doesn't fit is a DF11Error, before the first
forward pass.
"""

from typing import Dict, Optional, Union

import torch

from .files import DF11Error

__all__ = ["DF11Error", "fill", "load", "load_pipeline"]

Place = Union[str, torch.device, None]


def load(
    name: str, *, device: Place = None, subfolder: Optional[str] = None, decode: bool = False, max_memory: Optional[Dict] = None,
    trust_remote_code: bool = False, model_class: Optional[type] = None, revision: Optional[str] = None,
    token: Optional[str] = None, cache_dir: Optional[str] = None, local_files_only: bool = False, check: bool = False, **options,
) -> torch.nn.Module:  # fmt: skip
    """Loads the model of a folder or a repo of the Hub, in eval mode.

    device is a torch device, by default the first GPU, else the CPU; "auto" spreads the model over
    all GPUs, and over the CPU's memory what they don't hold, within max_memory (as accelerate takes
    it). decode=True makes BF16 weights of it, on any device. check=True hashes the files first, which
    finds damaged ones. trust_remote_code runs the model's own Python files. model_class overrides the
    config's class. options go to the class of transformers, such as attn_implementation.
    """
    from . import files, library, match

    hub = {"revision": revision, "token": token, "cache_dir": cache_dir, "local_files_only": local_files_only}
    stored = read(name, subfolder, check, hub)
    config = folder = stored.folder
    if "_class_name" not in stored.config and (folder / "model_index.json").is_file():
        config = library.config_of(folder)
    library.check_counts(files.read_object(config / "config.json"), stored)
    first = None
    with files.reading(config):
        builds = library.builds(config, trust_remote_code, model_class, options)
    for build in builds:
        with library.empty(), files.reading(config):
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
    cache_dir: Optional[str] = None, local_files_only: bool = False, check: bool = False,
) -> torch.nn.Module:  # fmt: skip
    """Fills a model of yours from a folder or a repo, and returns it. It must be BF16; see load for the options."""
    from . import library

    hub = {"revision": revision, "token": token, "cache_dir": cache_dir, "local_files_only": local_files_only}
    stored = read(name, subfolder, check, hub)
    with torch.no_grad():
        place_on(model, stored, device, decode, library.dtypes(model), max_memory)
    return model


def read(name: str, subfolder: Optional[str], check: bool, hub: dict):
    from . import files
    from .hub import find

    folder = find(name, files.read_config, subfolder, **hub)
    with files.reading(folder):
        if check:
            files.check_hashes(folder)
        return files.read(folder)


def load_pipeline(
    name: str, *, device: Place = None, decode: bool = False, original: Optional[str] = None, check: bool = False, **options
):  # fmt: skip
    """Loads a diffusers pipeline, of which some parts are DF11 models.

    device="auto" keeps each part in the CPU's memory while the others run. For a repo that holds a
    single part, such as a transformer, original names the repo that has the others. options go to
    the pipeline's from_pretrained.
    """
    import diffusers

    from . import hub, library

    own = {k: options.pop(k) for k in ("revision", "token", "cache_dir", "local_files_only") if k in options}
    folder, cls = hub.find(name, library.require_df11, **own), diffusers.DiffusionPipeline
    auto = device == "auto" and torch.cuda.is_available()
    where = "cuda" if auto else "cpu" if device == "auto" else device
    components = {part: load(str(at), device=where, decode=decode, check=check) for part, at in library.parts(folder).items()}
    if (folder / "model_index.json").is_file():
        cls = getattr(diffusers, library.index_of(folder).get("_class_name", ""), cls)
        pipe = cls.from_pretrained(folder, torch_dtype=torch.bfloat16, **components, **options)
    elif original is None:
        raise DF11Error(f"{name} has no model_index.json; original= names the repo with the pipeline's other parts")
    else:
        own.pop("revision", None)
        pipe = cls.from_pretrained(original, torch_dtype=torch.bfloat16, **components, **own, **options)
    if auto:
        pipe.enable_model_cpu_offload()
        return pipe
    return pipe.to(where or ("cuda" if torch.cuda.is_available() else "cpu"))


def tie(model: torch.nn.Module) -> None:
    if hasattr(model, "tie_weights"):
        model.tie_weights()


def place_on(model, stored, device: Place, decode: bool, dtype_of, max_memory, compute=None) -> None:
    """Fills a model, and makes it ready to run. compute gives the parameters that the class computes their values."""
    from . import place, spread

    auto, main = device == "auto", main_device(device)
    over = spread.Spread(max_memory, main) if auto and main.type == "cuda" else None
    free = torch.cuda.mem_get_info(main)[0] if main.type == "cuda" else 0
    try:
        kept, devices = place.place(model, stored, main, decode, dtype_of, over, yours=compute is None)
        if compute:
            compute()
        place.settle(model, kept, devices)
        if over:
            over.connect(model)
        for group in kept:
            group.bind()
    except torch.OutOfMemoryError as e:
        hint = "max_memory= leaves more room" if auto else 'device="auto" puts what doesn\'t fit on other GPUs, or into the CPU\'s memory'
        what = f"{place.size(stored.n_bytes())} of files" + (", decoded" if decode else "")
        raise DF11Error(f"{main} had {place.size(free)} free, which isn't enough for {what}: {hint}") from e


def main_device(device: Place) -> torch.device:
    """Returns the device that runs a model, or the first one."""
    there = torch.cuda.is_available()
    if device in (None, "auto"):
        return torch.device("cuda:0" if there else "cpu")
    main = torch.device(device)
    if main.type == "cuda" and not there:
        raise DF11Error(f"device={str(device)!r}: " + ("PyTorch finds no GPU" if torch.version.cuda else "this PyTorch is without CUDA"))
    return torch.device("cuda", torch.cuda.current_device()) if main.type == "cuda" and main.index is None else main
