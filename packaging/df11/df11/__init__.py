"""Loads DF11 models: BF16 weights in two thirds of the space, with the same bits.

    import df11
    model = df11.load("you/Qwen3-8B-DF11")  # or a folder; the class comes from the config
    pipe = df11.load_pipeline("you/FLUX.1-dev-DF11")
    df11.fill(model, "you/…-DF11")  # into a model of yours

On a CUDA GPU, the weights stay compressed, and each module is decoded before it runs. Elsewhere,
the model is decoded once and runs as BF16. Whatever doesn't fit is a DF11Error, before the first
forward pass.
"""

from typing import Optional

import torch

from . import files, hub, library, match, place, trust
from .files import DF11Error
from .place import Device

__all__ = ["DF11Error", "fill", "load", "load_pipeline"]


def load(
    name: str,
    *,
    device: Device = None,
    subfolder: Optional[str] = None,
    decode: bool = False,
    check: bool = False,
    max_memory: Optional[dict] = None,
    trust_remote_code: trust.Trust = False,
    model_class: Optional[type] = None,
    revision: Optional[str] = None,
    token: Optional[str] = None,
    cache_dir: Optional[str] = None,
    local_files_only: bool = False,
    **options,
) -> torch.nn.Module:
    """Loads the model of a folder or a repo of the Hub, in eval mode.

    device is a torch device, by default the first GPU, else the CPU; "auto" spreads the model over
    all GPUs, and over the CPU's memory what they don't hold, within max_memory (as accelerate takes
    it). decode=True makes BF16 weights of it, on any device. check=True hashes the files first,
    which finds changed ones. trust_remote_code=True runs the model's own Python
    files; code that its config takes from another repo runs only if trust_remote_code is that repo's
    name, or a list of such names. model_class overrides the config's class. options go to the class
    of transformers, such as attn_implementation.
    """
    own = dict(zip(hub.OPTIONS, (revision, token, cache_dir, local_files_only)))
    stored = read(name, subfolder, check, own)
    folder = library.config_of(stored)
    library.check_counts(files.read_object(folder / "config.json"), stored)
    with files.reading(folder):
        builds = library.builds(folder, trust_remote_code, model_class, options)
    model, matched, build = library.fitting(builds, stored)
    files.check_sizes(stored.folder)
    with torch.no_grad():
        place.install(
            model,
            stored,
            matched,
            device,
            decode,
            library.dtypes(model),
            max_memory,
            compute=lambda: library.compute(model, build),
        )
    return model.eval()


def fill(
    model: torch.nn.Module,
    name: str,
    *,
    device: Device = None,
    subfolder: Optional[str] = None,
    decode: bool = False,
    check: bool = False,
    max_memory: Optional[dict] = None,
    revision: Optional[str] = None,
    token: Optional[str] = None,
    cache_dir: Optional[str] = None,
    local_files_only: bool = False,
) -> torch.nn.Module:
    """Fills a model of yours from a folder or a repo, and returns it, in the mode that it's in.

    It must be BF16; see load for the options.
    """
    own = dict(zip(hub.OPTIONS, (revision, token, cache_dir, local_files_only)))
    stored = read(name, subfolder, check, own)
    matched = match.match(model, stored)
    files.check_sizes(stored.folder)
    place.require_bf16(model, matched)
    with torch.no_grad():
        place.install(model, stored, matched, device, decode, library.dtypes(model), max_memory)
    return model


def load_pipeline(
    name: str,
    *,
    device: Device = None,
    decode: bool = False,
    check: bool = False,
    original: Optional[str] = None,
    trust_remote_code: trust.Trust = False,
    **options,
):
    """Loads a diffusers pipeline, of which some parts are DF11 models.

    device="auto" keeps each part in the CPU's memory while the others run. For a repo that holds a
    single part, such as a transformer, original names the repo that has the others.
    trust_remote_code runs the Python files that come with the pipeline, as in load. options go to
    the pipeline's from_pretrained.
    """
    import diffusers

    library.require_bf16(options)
    own = {k: options.pop(k) for k in hub.OPTIONS if k in options}
    folder = hub.find(name, library.require_df11, **own)
    offload = device == "auto" and torch.cuda.is_available()
    main = place.main_device(device)
    found = library.parts(folder)
    source, base = str(folder), folder  # what has the other parts, and its folder with their configs
    if not (folder / "model_index.json").is_file():
        if original is None:
            raise DF11Error(
                f"{name} has no model_index.json; original= names the repo with the pipeline's "
                "other parts"
            )
        own.pop("revision", None)
        source, base = original, hub.configs(original, **own)
        if base.parent.name == "snapshots":  # so that diffusers takes the files that were checked
            own["revision"] = base.name
        options.update(own)
    index = library.index_of(base)
    with files.reading(base):
        trust.require_pipeline(base, index, found, options, trust_remote_code)
    parts = {
        part: load(
            str(at), device=main, decode=decode, check=check, trust_remote_code=trust_remote_code
        )
        for part, at in found.items()
    }
    if trust_remote_code:  # an older diffusers ignores it, and runs what a folder holds
        options["trust_remote_code"] = True
    cls = trust.class_of(diffusers.DiffusionPipeline, index.get("_class_name"))
    pipe = (cls or diffusers.DiffusionPipeline).from_pretrained(
        source, torch_dtype=torch.bfloat16, **parts, **options
    )
    if offload:
        pipe.enable_model_cpu_offload()
        return pipe
    with place.explained(
        main,
        "all parts of the pipeline",
        'device="auto" keeps each in the CPU\'s memory while the others run',
    ):
        return pipe.to(main)


def read(name: str, subfolder: Optional[str], check: bool, own: dict) -> files.Files:
    """Reads the headers of a model's files. own are the options of the Hub."""
    folder = hub.find(name, files.read_config, subfolder, **own)
    with files.reading(folder):
        if check:
            files.check_hashes(folder)
        return files.read(folder)
