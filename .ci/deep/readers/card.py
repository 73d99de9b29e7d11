"""Takes the code out of a model card and runs it."""
import re
import types

import diffusers
import torch
import transformers

import official


def blocks(card, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", card, re.S | re.M)


def snippet(card):
    """Returns the one block of Python that loads the model."""
    found = [b for b in blocks(card, "python") if "DFloat11Model" in b]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} blocks of Python load the model, want 1")
    return found[0]


TOKENS = 12


def run(code):
    """Runs the code of a card and returns its names.

    It runs as it stands, but that fewer tokens are generated, and for what a machine without a GPU can't do: cuda:0 becomes cpu,
    and a pipeline isn't moved between devices. No picture is made, because tiny pipelines lack the parts for it. Afterwards torch must be as it was.
    """
    code = code.replace('"cuda:0"', f'"{official.DEVICE}"').replace("max_new_tokens=128", f"max_new_tokens={TOKENS}")
    code = re.sub(r"^pipe\(.*\n", "", code, flags=re.M)
    scope = types.SimpleNamespace(__name__="card").__dict__
    offload = diffusers.DiffusionPipeline.enable_model_cpu_offload
    if official.DEVICE == "cpu":
        diffusers.DiffusionPipeline.enable_model_cpu_offload = lambda self: self
    try:
        exec(compile(code, "README.md", "exec"), scope)
        left = torch.get_default_dtype()
    finally:
        if hasattr(transformers, "initialization"):  # of transformers 5, where the card's code adds a name
            vars(transformers.modeling_utils).pop("no_init_weights", None)
        torch.set_default_dtype(torch.float32)
        diffusers.DiffusionPipeline.enable_model_cpu_offload = offload
    if left != torch.float32:
        raise AssertionError("the card's code leaves torch with another default dtype")
    return scope
