"""Builds models without weights, as transformers and diffusers build them."""

import contextlib
import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Callable, Optional

import torch
from torch import nn

from . import trust
from .files import MANIFEST, DF11Error, Files, read_object, reading
from .match import Matched, Missing, computed, match, some

Build = Callable[[], nn.Module]


class Empty(nn.Parameter):
    """A parameter without memory.

    What a class assigns to its data when it initializes weights is lost.
    """

    def detach(self) -> "Empty":  # of the same type, so that a parameter can be made of it
        return Empty(super().detach(), False)

    @property
    def data(self) -> torch.Tensor:
        return self.detach()

    @data.setter
    def data(self, _) -> None:
        pass


@contextlib.contextmanager
def empty(real: frozenset = frozenset()) -> Iterator[None]:
    """Makes modules register parameters without memory, except those whose numbers are in real.

    Buffers are computed.
    """
    register, count = nn.Module.register_parameter, 0

    def without_memory(module: nn.Module, name: str, parameter: Optional[nn.Parameter]) -> None:
        nonlocal count
        register(module, name, parameter)
        if parameter is not None:
            if count not in real and parameter.device.type != "meta":
                module._parameters[name] = Empty(parameter.to("meta"), parameter.requires_grad)
                module._parameters[name].__dict__.update(parameter.__dict__)
            module._parameters[name].df11_number = count
            count += 1

    nn.Module.register_parameter = without_memory
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        yield
    finally:
        torch.set_default_dtype(default)
        nn.Module.register_parameter = register


def fitting(builds: list[Build], stored: Files) -> tuple[nn.Module, Matched, Build]:
    """Builds the first class that takes all tensors; the class that the config names may leave some
    out.
    """
    errors: list[DF11Error] = []
    for build in builds:
        with empty(), reading(stored.folder):
            model = build()
        if hasattr(model, "tie_weights"):
            model.tie_weights()
        try:
            matched = match(model, stored)
        except Missing as e:  # the files may hold only the base model of the class
            errors.append(e)
            continue
        cls = type(model).__name__
        if (
            not matched.unused
            or len(builds) == 1
            or cls in (stored.config.get("architectures") or ())
        ):
            return model, matched, build
        errors.append(DF11Error(f"{cls} has no place for {some(matched.unused)}"))
    raise errors[0]


def compute(model: nn.Module, build: Build) -> None:
    """Gives their values to the parameters that the class computes and the files lack."""
    left = {
        name: p
        for name, p in model.named_parameters(remove_duplicate=False)
        if p.device.type == "meta"
    }
    if not left:
        return
    lost = [name for name in left if not computed(model, name)]
    if lost:
        raise DF11Error(f"nothing in the files fills {some(lost)}")
    numbers = frozenset(getattr(p, "df11_number", -1) for p in left.values())
    with empty(numbers):
        again = build()
    for name in left:
        owner, _, leaf = name.rpartition(".")
        value = again.get_parameter(name)
        if value.device.type == "meta":
            raise DF11Error(f"nothing in the files fills {name}")
        model.get_submodule(owner)._parameters[leaf] = value


# Members of a config that count modules, and the number up to which they're cheap to build. Many
# experts may share one weight, so a model may have more of them than weights. transformers names
# each label.
COUNTS, FEW, FEW_LABELS = re.compile(r"(layers?|blocks?|depths?|experts|labels)$"), 4096, 10**6


def check_counts(config: dict, files: Files) -> None:
    """Raises an error if a config wants many more modules than the files have tensors, before
    they're built.
    """
    have = len(files.plain) + sum(len(u.sizes) for u in files.units.values())
    left: list[object] = [("", config)]
    while left:
        name, value = left.pop()
        if isinstance(value, dict):
            left += value.items()
        elif isinstance(value, list):
            left += ((name, v) for v in value)
        elif (
            isinstance(value, int)
            and COUNTS.search(str(name))
            and value > max(FEW_LABELS if name == "num_labels" else FEW, have)
        ):
            raise DF11Error(
                f"{files.folder}: config.json wants {value} {name}, and the files hold {have} "
                "weights"
            )


def is_diffusers(config: dict) -> bool:
    return "_class_name" in config or "_diffusers_version" in config


def builds(
    folder: Path, trust_remote_code: trust.Trust, model_class: Optional[type], options: dict
) -> list[Build]:
    """Returns how the model of a config may be built, in order: by the class that it names, and by
    others that may fit.
    """
    config = read_object(folder / "config.json")
    if "device_map" in options:
        raise DF11Error('device_map: with df11, it\'s device="auto" or a device')
    require_bf16(options)
    if (
        is_diffusers(config)
        or model_class is not None
        and "diffusers" in {c.__module__.partition(".")[0] for c in model_class.__mro__}
    ):
        if options:
            raise DF11Error(f"{some(options)}: df11.load has no such option for diffusers' classes")
        return [diffusers_build(folder, config, model_class)]
    if "model_type" not in config and "auto_map" not in config and model_class is None:
        raise DF11Error(
            f"{folder}: config.json names no class; "
            + (
                "the file is for ComfyUI: docs/comfyui.md"
                if is_for_comfyui(folder)
                else "build the model and use df11.fill(model, …)"
            )
        )
    import transformers

    own = bool(trust_remote_code) and model_class is None  # whether its own code runs
    resolved, _ = transformers.PretrainedConfig.get_config_dict(folder)  # of configuration_files
    for c in (config, resolved):
        trust.require_named(folder / "config.json", c, trust_remote_code, own, options)
        trust.require_installed(folder / "config.json", c, options)
    if model_class is None:
        require_known(folder, config, own)
    return transformers_builds(folder, own, model_class, options)


def require_bf16(options: dict) -> None:
    """Takes the type of the weights out of a caller's options, and raises an error unless it's
    BF16.
    """
    for dtype in (options.pop("dtype", None), options.pop("torch_dtype", None)):
        if dtype not in (torch.bfloat16, "bfloat16", "auto", None):
            raise DF11Error(
                f"{dtype}: the weights are bfloat16; load them with decode=True, then convert the "
                "model"
            )


def is_for_comfyui(folder: Path) -> bool:
    """Reports whether the manifest says so."""
    if not (folder / MANIFEST).is_file():
        return False
    plan = read_object(folder / MANIFEST).get("plan")
    return isinstance(plan, dict) and plan.get("layout") == "comfyui-single"


def require_known(folder: Path, config: dict, own: bool) -> None:
    """Raises an error if transformers doesn't know the kind of model, before it asks whether to run
    the model's own code.
    """
    import transformers

    if config.get("model_type") in transformers.CONFIG_MAPPING or "auto_map" in config and own:
        return
    if "auto_map" in config:
        trust.require_named(folder / "config.json", config, [], True)
        raise DF11Error(
            f"{folder}: the class comes with the model: read its Python files, then load with "
            "trust_remote_code=True"
        )
    raise DF11Error(
        f"transformers {transformers.__version__} has no {config['model_type']}: a newer one may: "
        "pip install -U transformers"
    )


def diffusers_build(folder: Path, config: dict, cls: Optional[type]) -> Build:
    import diffusers

    require_class(cls, "load_config")
    cls = cls or trust.class_of(diffusers.ModelMixin, config.get("_class_name"))
    if cls is None:
        raise DF11Error(
            f"diffusers {diffusers.__version__} has no model {config.get('_class_name')}"
        )
    stated = {k: v for k, v in cls.load_config(folder).items() if k != "dfloat11_config"}
    return lambda: cls.from_config(stated)


def require_class(cls: Optional[type], member: str) -> None:
    """Raises an error if a caller's class isn't a model's, which has that member."""
    if cls is not None and not hasattr(cls, member):
        raise DF11Error(
            f"model_class: {getattr(cls, '__name__', cls)} isn't the class of a model; leave it out, "
            "since the config names one"
        )


def transformers_builds(
    folder: Path, own: bool, cls: Optional[type], options: dict
) -> list[Build]:
    import transformers

    require_class(cls, "config_class")
    config = (cls.config_class if cls else transformers.AutoConfig).from_pretrained(
        folder, **({} if cls else {"trust_remote_code": own})
    )
    vars(config).pop("dfloat11_config", None)
    in_bf16(config)
    classes = [cls] if cls else transformers_classes(folder, config, own)
    if not classes:
        raise DF11Error(
            f"transformers {transformers.__version__} has no class for "
            f"{config.architectures or config.model_type}"
        )

    def build(cls: type) -> nn.Module:
        plain = copy.deepcopy(config)
        try:
            model = cls._from_config(config, **options)
        except (AttributeError, ImportError, TypeError, ValueError) as e:
            if not options:
                raise
            cls._from_config(plain)  # if this works, it's the options
            wrong = [name for name in options if name in str(e)] or options
            raise DF11Error(f"{some(wrong)}: {cls.__name__} doesn't take it: {e}") from e
        buffers(model)
        if (
            getattr(model, "generation_config", None)
            and (folder / "generation_config.json").is_file()
        ):
            model.generation_config = transformers.GenerationConfig.from_pretrained(folder)
        return model

    return [lambda c=c: build(c) for c in classes]


def buffers(model: nn.Module) -> None:
    """Computes buffers again as transformers 5 does: after building the model, so not in BF16."""
    try:
        import transformers.initialization  # noqa: F401, of transformers 5
    except ImportError:
        return
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        for module in model.modules():
            module._is_hf_initialized = False
        model.initialize_weights()
    finally:
        torch.set_default_dtype(default)


def in_bf16(config) -> None:
    # Before 4.56 it's torch_dtype; dtype is what a newer version has written into the file.
    setattr(config, "torch_dtype" if "torch_dtype" in vars(config) else "dtype", torch.bfloat16)
    for name in getattr(config, "sub_configs", {}):
        if hasattr(getattr(config, name, None), "model_type"):
            in_bf16(getattr(config, name))


def transformers_classes(folder: Path, config, own: bool) -> list[type]:
    """Returns the class that the config names, then the auto classes' for its kind of model, then
    its base.
    """
    import transformers
    from transformers.models.auto import modeling_auto

    found: list[type] = []
    architecture = (config.architectures or [""])[0]
    mapped = getattr(config, "auto_map", None) or {}
    if own and mapped:
        from transformers.dynamic_module_utils import get_class_from_dynamic_module

        models = {k: v for k, v in mapped.items() if k.startswith("AutoModel")}
        named = [v for v in models.values() if v.rpartition(".")[2] == architecture]
        return [
            get_class_from_dynamic_module(reference, folder)
            for reference in (named or list(models.values()))[:1]
        ]
    named = getattr(transformers, architecture, None)
    if isinstance(named, type) and isinstance(config, getattr(named, "config_class", None) or ()):
        found.append(named)
    suffix = re.search(r"(For\w+|)$", architecture).group(1)
    for auto in [
        *([f"AutoModel{suffix}"] if suffix else []),
        *([] if named in found else HEADS),
        "AutoModel",
    ]:
        mapping = getattr(getattr(modeling_auto, auto, None), "_model_mapping", None)
        if mapping is not None and type(config) in mapping.keys():
            fitting = mapping[type(config)]
            found += [
                c for c in (fitting if isinstance(fitting, tuple) else (fitting,)) if c not in found
            ]
    return found


# The auto classes that may fit a config that names no class of this version.
HEADS = [
    "AutoModelForCausalLM",
    "AutoModelForImageTextToText",
    "AutoModelForSeq2SeqLM",
    "AutoModelForSpeechSeq2Seq",
    "AutoModelForMaskedLM",
    "AutoModelForTextEncoding",
]


def dtypes(model: nn.Module) -> Callable[[str, torch.Tensor], torch.dtype]:
    """Returns the type that the library gives a parameter of this name in a BF16 model."""
    family = {c.__module__.partition(".")[0] for c in type(model).__mro__}
    if "diffusers" in family:
        kept = model._keep_in_fp32_modules or []
        kept = {kept} if isinstance(kept, str) else set(kept)

        def of_diffusers(name: str, t: torch.Tensor) -> torch.dtype:
            if not t.is_floating_point():
                return t.dtype
            return torch.float32 if kept.intersection(name.split(".")) else torch.bfloat16

        return of_diffusers
    strict = getattr(model, "_keep_in_fp32_modules_strict", None) or []
    pattern = "|".join(rf"(^|\.){m}($|\.)" for m in strict).replace("*", ".*")
    return lambda name, t: torch.float32 if strict and re.search(pattern, name) else t.dtype


def index_of(folder: Path) -> dict:
    return read_object(folder / "model_index.json")


def config_of(stored: Files) -> Path:
    """Returns the folder of a model's config: its own, or that of a part of a pipeline whose
    weights lie beside the index.
    """
    beside = "_class_name" not in stored.config and (stored.folder / "model_index.json").is_file()
    return part_beside(stored.folder) if beside else stored.folder


def part_beside(folder: Path) -> Path:
    """Returns where the config of a part is whose weights lie beside a pipeline's index: the one
    part without weights.
    """
    found = [
        folder / name
        for name in trust.parts(folder, index_of(folder))
        if (folder / name / "config.json").is_file()
        and not any((folder / name).glob("*.safetensors"))
    ]
    if len(found) != 1:
        raise DF11Error(
            f"{folder}: of the parts of model_index.json, {len(found)} have a config and no "
            "weights, want 1"
        )
    return found[0]


def parts(folder: Path) -> dict[str, Path]:
    """Returns the DF11 models of a pipeline by their names in it: in folders of their own, or
    beside the index.

    A folder without an index is a transformer.
    """
    if not (folder / "model_index.json").is_file():
        return {"transformer": folder}
    configs = {
        name: folder / name / "config.json" for name in trust.parts(folder, index_of(folder))
    }
    found = {name: c.parent for name, c in configs.items() if is_df11(c)}
    if not found and is_df11(folder / "config.json"):
        found[part_beside(folder).name] = folder
    return found


def require_df11(folder: Path) -> None:
    """Raises an error unless a pipeline has a DF11 model."""
    if not any(map(is_df11, [folder / "config.json", *folder.glob("*/config.json")])):
        raise DF11Error(
            f"{folder}: none of the pipeline's parts is a DF11 model; df11-convert makes one of it"
        )


def is_df11(config: Path) -> bool:
    return config.is_file() and "dfloat11_config" in read_object(config)
