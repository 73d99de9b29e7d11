"""Whose code a repo's JSON files make transformers or diffusers fetch or run, and whether the caller
trusts it.

Both ask for trust_remote_code in some places only. With what is checked here, a config can pick
classes and functions of packages that the caller installed, and nothing else.
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Optional, Union

from .files import DF11Error, read_object
from .match import some

# Trust is whether to run the model's own code, or the repo, or the repos, whose code to run too.
Trust = Union[bool, str, list[str]]

# A member of a config that names functions. transformers fetches some from repos of kernels.
IMPLEMENTATION = re.compile(r"(attn|experts)_implementation(_internal)?")
EXPERTS = {"eager", "batched_mm", "grouped_mm"}  # the implementations that transformers holds itself
# Members that name another model to build, whose config would count too.
MODELS = {"backbone", "architecture", "base_model_name_or_path"}
# Members of timm, which name a file or repo of weights, and those that change what names mean.
REFUSED = {"checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay", "attribute_map"}
# The packages whose classes a pipeline may have; others are imported from wherever Python finds them.
LIBRARIES = {"diffusers", "transformers"}
# The options of DiffusionPipeline.from_pretrained (diffusers 0.39 and 0.42), which takes parts by
# name, too.
PIPELINE_OPTIONS = {
    "cache_dir",
    "cls",
    "custom_pipeline",
    "custom_revision",
    "dduf_file",
    "device_map",
    "disable_mmap",
    "dtype",
    "force_download",
    "from_flax",
    "load_connected_pipeline",
    "local_files_only",
    "low_cpu_mem_usage",
    "max_memory",
    "offload_folder",
    "offload_state_dict",
    "pretrained_model_name_or_path",
    "provider",
    "provider_options",
    "proxies",
    "quantization_config",
    "revision",
    "sess_options",
    "token",
    "torch_dtype",
    "trust_remote_code",
    "use_flashpack",
    "use_onnx",
    "use_safetensors",
    "variant",
}

MemberPath = tuple[str, ...]  # the names from the outermost object to a member


def members(value: object, path: MemberPath = ()) -> Iterator[tuple[MemberPath, object]]:
    """Yields all members of a config, with their paths. Elements of a list have the list's."""
    if hasattr(value, "model_type"):  # a config of transformers
        value = vars(value)
    if isinstance(value, dict):
        for k, v in value.items():
            yield (*path, str(k)), v
            yield from members(v, (*path, str(k)))
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield path, v
            yield from members(v, path)


def repos(config: object, classes: bool) -> dict[str, str]:
    """Returns the repos whose code a config takes, with the members that say so. classes is whether
    the classes in its auto_map count.
    """
    found = {}
    for path, value in members(config):
        if not isinstance(value, str):
            continue
        if "auto_map" in path[:-1]:
            repo = value.partition("--")[0] if classes and "--" in value else ""
        elif any(IMPLEMENTATION.search(p) for p in path):
            # [WRAPPER|]ORG/NAME[@REVISION][:FUNCTION]
            repo = re.split("[@:]", value.rpartition("|")[2])[0].strip() if "/" in value else ""
        else:
            repo = value if path[-1] in MODELS and re.search("[/:]", value) else ""
        if repo:
            found[repo] = ".".join(path)
    return found


def require_named(
    file: Path, config: object, trust: Trust, classes: bool, options: Optional[dict] = None
) -> None:
    """Raises an error if a config takes code of a repo that neither trust nor an implementation in
    the caller's options names, or of a place that can't be named.
    """
    named = {trust} if isinstance(trust, str) else set() if isinstance(trust, bool) else set(trust)
    named |= repos(options or {}, False).keys()
    left = {r: m for r, m in repos(config, classes).items() if r not in named}
    if left:
        what = "the class" if any("auto_map" in m for m in left.values()) else some(left.values())
        raise DF11Error(
            f"{file.parent}: {what} is code of {some(left)}, not of this model ({file.name}: "
            f"{some(left.values())}), and no commit pins it: read what main there holds, then load "
            "with trust_remote_code=" + (repr(sorted(left)) if len(left) > 1 else repr(*left))
        )
    for path, value in members(config):
        if path[-1] in REFUSED and value:
            raise DF11Error(f"{file}: {'.'.join(path)} isn't a setting of a model: remove it")


def require_installed(file: Path, config: object, options: Optional[dict] = None) -> None:
    """Raises an error if a config picks an implementation that transformers would fetch, and the
    caller's options don't pick one.
    """
    import transformers

    for path, value in members(config):
        member = next((m for m in map(IMPLEMENTATION.search, path) if m), None)
        if not member or not isinstance(value, str) or "/" in value:
            continue
        if f"{member[1]}_implementation" in (options or {}):
            continue
        version = re.search(r"flash_attention_(\d)", value)
        there = version and getattr(
            transformers.utils, f"is_flash_attn_{version[1]}_available", lambda: False
        )
        missing = not there() if version else "flash" in value
        if missing if member[1] == "attn" else value not in EXPERTS:
            plain = "sdpa" if member[1] == "attn" else "grouped_mm"
            raise DF11Error(
                f"{file}: {'.'.join(path)} is {value!r}, whose package isn't installed: load with "
                f'{member[1]}_implementation="{plain}"'
            )


def parts(folder: Path, index: dict) -> dict[str, tuple[str, str]]:
    """Returns the parts of a pipeline's index, with the library and the class of each.

    A part's name is that of its folder, and goes to from_pretrained.
    """
    found = {}
    for name, value in index.items():
        # diffusers builds no part whose library is null
        if not isinstance(value, list) or name == "_class_name" or value[:1] == [None]:
            continue
        named = name.isidentifier() and name not in PIPELINE_OPTIONS
        if not named or len(value) != 2 or not all(isinstance(v, str) for v in value):
            raise DF11Error(f"{folder / 'model_index.json'}: {name!r} isn't a part: {value}")
        found[name] = (value[0], value[1])
    return found


def require_pipeline(
    folder: Path, index: dict, found: Iterable[str], options: Iterable[str], trust: Trust
) -> None:
    """Raises an error if a pipeline takes code from its own files, or from other repos, that trust
    doesn't name, or if its class has no place for a part. found are the parts that are DF11 models;
    options are what the caller passes, such as other parts.
    """
    import diffusers

    name, file = index.get("_class_name"), folder / "model_index.json"
    cls = class_of(diffusers.DiffusionPipeline, name)
    if isinstance(name, list):
        require_own(trust, f"{file}: _class_name is a class that comes with the pipeline: {name}")
    elif cls is None:
        raise DF11Error(
            f"{file}: diffusers {diffusers.__version__} has no pipeline {name}: a newer one may: "
            "pip install -U diffusers"
        )
    elif cls._load_connected_pipes and (folder / "README.md").is_file():
        require_own(trust, f"{file}: {name} loads other repos, which README.md names")
    if cls is not None:
        stray = [part for part in found if part not in inspect.signature(cls).parameters]
        if stray:
            raise DF11Error(f"{file}: {name} has no part {some(stray)}")
    for part, (library, cls) in parts(folder, index).items():
        known = library in LIBRARIES or hasattr(diffusers.pipelines, library)
        if not known or (folder / part / f"{library}.py").exists():
            require_own(trust, f"{file}: {part} is a class of {library}.py or another package")
        if part not in found and part not in options:
            if "Pipeline" in cls:
                require_own(trust, f"{file}: {part} is a pipeline of its own, {cls}")
            # diffusers takes a part without a folder from the pipeline's
            at = folder / part if (folder / part).is_dir() else folder
            for config in sorted(at.glob("*config*.json")):
                require_part(config, cls, trust)


def require_part(file: Path, cls: str, trust: Trust) -> None:
    """Raises an error for a config file of a part that isn't a DF11 model, by require_pipeline's
    rules.
    """
    config = read_object(file)
    auto = re.search("^Auto|Processor$", cls)  # whose from_pretrained looks at auto_map
    require_named(file, config, trust, classes=bool(auto))
    require_installed(file, config)
    if auto and any(path[-1] == "auto_map" for path, _ in members(config)):
        require_own(trust, f"{file}: auto_map names a class that comes with the model")
    if any("/" in str(name) for name in config.get("configuration_files") or ()):
        raise DF11Error(f"{file}: configuration_files names a file of another folder")


def require_own(trust: Trust, what: str) -> None:
    if not trust:
        raise DF11Error(f"{what}: read its Python files, then load with trust_remote_code=True")


def class_of(base: type, name: object) -> Optional[type]:
    """Returns the class of diffusers of this name, if it's one of base, or None."""
    import diffusers

    cls = getattr(diffusers, name, None) if isinstance(name, str) else None
    return cls if isinstance(cls, type) and issubclass(cls, base) else None
