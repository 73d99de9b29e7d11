"""Lists what the model classes of the catalog hold: name, shape and kind of module of every parameter.

    python -m venv v && v/bin/pip install transformers==4.57.6 diffusers==0.36.0
    v/bin/python classes.py ../../catalog > classes-4.57.6.txt

Stacks are cut to four blocks and four experts. Lines of several runs, with different versions of the libraries, are put
together by id; a class that a version lacks is named on stderr. README.md says which versions made classes.txt.
"""
import inspect
import json
import logging
import pathlib
import sys

import torch_stub  # noqa: F401, takes torch's place
import diffusers
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

# Fields of configs that say how many of something there are.
SMALL = dict.fromkeys(
    "num_hidden_layers n_layer n_layers num_layers num_decoder_layers num_encoder_layers encoder_layers decoder_layers "
    "depth num_experts num_local_experts n_routed_experts moe_num_experts".split(), 4)
SMALL |= {"num_nextn_predict_layers": 0, "first_k_dense_replace": 1, "num_dense_layers": 1}
LISTS = ["layer_types", "mlp_layer_types", "layers_block_type", "no_rope_layers", "sliding_window_pattern"]

# What defaults leave open or what does not fit four blocks, by model_type.
CONFIGS = {
    "dots1": dict(n_routed_experts=4, n_shared_experts=2),
    "gemma3n_text": dict(num_kv_shared_layers=1, layer_types=["sliding_attention", "full_attention"] * 2,
                         intermediate_size=[16384] * 4, activation_sparsity_pattern=[0.0] * 4),
    "granitemoehybrid": dict(layer_types=["mamba", "attention"] * 2, layers_block_type=["mamba", "attention"] * 2),
    "hunyuan_v1_dense": dict(head_dim=128),
    "hunyuan_v1_moe": dict(head_dim=128),
    "ministral": dict(head_dim=128),
    "mllama_text_model": dict(rope_scaling={"rope_type": "default"}),
    "mllama_vision_model": dict(intermediate_layers_indices=[0, 1]),
    "nemotron": dict(num_key_value_heads=8),
    "qwen3_vl_moe_text": dict(rope_scaling={"rope_type": "default", "mrope_section": [24, 20, 20]}),
    "qwen3_vl_text": dict(rope_scaling={"rope_type": "default", "mrope_section": [24, 20, 20]}),
}

# Arguments of diffusers classes, by id in the catalog or by class.
ARGUMENTS = {
    "HiDreamImageTransformer2DModel": dict(caption_channels=[4096] * 4, patch_size=2, axes_dims_rope=(64, 32, 32),
                                           num_routed_experts=4, llama_layers=[0, 1, 2, 3]),
    "WanVACETransformer3DModel": dict(num_layers=8, vace_layers=[0, 5]),
    "sd35-large-diffusers": dict(num_layers=38),
    "sd35-medium-diffusers": dict(dual_attention_layers=(0,)),
    "wan-i2v-diffusers": dict(image_dim=1280, added_kv_proj_dim=5120),
}

# Classes that hold an entry's modules where the first of its architectures does not; with their model_type.
CLASSES = {
    "gpt2": ("GPT2LMHeadModel", "gpt2"),
    "llama4-text": ("Llama4ForCausalLM", "llama4_text"),
    "modernbert": ("ModernBertForMaskedLM", "modernbert"),
    "qwen3-embedding": ("Qwen3Model", "qwen3"),
}


def shrink(config):
    """Cuts a config, and those inside it, to four blocks."""
    for value in list(vars(config).values()):
        if isinstance(value, transformers.PretrainedConfig):
            shrink(value)
    for field, most in SMALL.items():
        field = config.attribute_map.get(field, field)
        value = vars(config).get(field)
        if type(value) is int and value > most:
            setattr(config, field, most)
    for field in LISTS:
        if isinstance(vars(config).get(field), list):
            setattr(config, field, vars(config)[field][:4])
    for field, value in CONFIGS.get(config.model_type, {}).items():
        setattr(config, field, value)
    return config


def build(entry):
    """Builds an entry's model; gives it with the name of its class and library."""
    match = entry["match"]
    if "class_name" in match:
        name = match["class_name"][0]
        cls = getattr(diffusers, name)
        arguments = {}
        for p in inspect.signature(cls.__init__).parameters.values():
            if "layers" in p.name and "approximator" not in p.name and type(p.default) is int and p.default > 3:
                arguments[p.name] = 3
        arguments |= ARGUMENTS.get(name, {}) | ARGUMENTS.get(entry["id"], {})
        return cls(**arguments), f"{name} diffusers {diffusers.__version__}"
    first = [(match.get(k) or [None])[0] for k in ("architectures", "model_type")]
    name, model_type = CLASSES.get(entry["id"], first)
    cls = getattr(transformers, name)
    config = CONFIG_MAPPING[model_type]() if model_type else cls.config_class()
    if config.model_type != cls.config_class.model_type:
        config = cls.config_class()
    return cls(shrink(config)), f"{name} transformers {transformers.__version__}"


def parameters(model):
    """Yields name, shape and kind of module of every parameter; the kind of a subclass of nn.Linear is Linear."""
    known = {"Linear", "Embedding", "Conv", "LayerNorm", "RMSNorm"}
    for path, module in model.named_modules():
        names = [c.__name__ for c in type(module).__mro__ if c.__module__ == "torch_stub" and c.__name__ in known]
        for name, p in module._parameters.items():
            yield f"{path}.{name}".lstrip("."), p.shape, (names or [type(module).__name__])[0]


def brace(numbers):
    """Writes a set of numbers as runs: {0-3,7}."""
    if len(numbers) == 1:
        return str(numbers[0])
    runs = []
    for n in numbers:
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return "{" + ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs) + "}"


def lines(rows):
    """Yields one line for parameters that differ in indices alone, where these form a grid."""
    groups = {}
    for name, shape, kind in rows:
        parts = name.split(".")
        template = ".".join("{}" if p.isdigit() else p for p in parts)
        groups.setdefault((template, shape, kind), []).append(tuple(int(p) for p in parts if p.isdigit()))
    for (template, shape, kind), indices in groups.items():
        for grid in grids(sorted(set(indices))):
            yield f"{template.format(*map(brace, grid))} {'x'.join(map(str, shape)) or '1'} {kind}"


def grids(indices):
    """Splits tuples into grids, each a list of sorted values for every place."""
    sets = [sorted(set(column)) for column in zip(*indices)]
    n = 1
    for s in sets:
        n *= len(s)
    if n == len(indices):
        yield sets
        return
    place = next(i for i, s in enumerate(sets) if len(s) > 1)
    for v in sets[place]:
        yield from grids([t for t in indices if t[place] == v])


def main(catalog):
    logging.disable(logging.CRITICAL)
    transformers.PreTrainedModel.post_init = lambda self: None
    for file in sorted(pathlib.Path(catalog).glob("*.json")):
        for entry in json.loads(file.read_text())["entries"]:
            if not entry["match"].keys() & {"class_name", "architectures", "model_type"}:
                continue  # ComfyUI's own classes
            try:
                model, origin = build(entry)
            except Exception as e:  # a class that this version does not have, or not for these arguments
                print(f"{entry['id']}: {e}", file=sys.stderr)
                continue
            print("=", entry["id"], origin)
            print(*lines(parameters(model)), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1])
