"""Spreads a model over several GPUs, and over the CPU's memory what they don't hold, as accelerate
decides.
"""

import itertools
from collections.abc import Iterator
from typing import Optional

import torch
from torch import nn

from .files import DF11Error

# Arguments that hold tensors of each layer, on the device of the layer.
CACHES = ["past_key_values", "past_key_value"]


class Spread:
    """A map of devices, made once the model shows what its modules take."""

    def __init__(self, max_memory: Optional[dict], main: torch.device):
        self.max_memory, self.main = max_memory, main
        self.map: dict[str, torch.device] = {}

    def __call__(self, model: nn.Module, groups) -> dict[str, torch.device]:
        """Returns the map.

        No group is split, and each GPU has room for the weights of the largest.
        """
        from accelerate import infer_auto_device_map
        from accelerate.utils import get_max_memory

        scratch = 2 * max((g.n_weights for g in groups), default=0)
        whole = {
            *(getattr(model, "_no_split_modules", None) or ()),
            *(type(g.module).__name__ for g in groups),
        }
        memory = {
            k: n - (0 if k in ("cpu", "disk") else scratch)
            for k, n in get_max_memory(self.max_memory).items()
        }
        found = infer_auto_device_map(model, memory, no_split_module_classes=sorted(whole))
        if "disk" in found.values():
            raise DF11Error("the model fits neither the GPUs nor the CPU's memory")
        self.map = {
            path: torch.device("cuda", d) if isinstance(d, int) else torch.device(d)
            for path, d in found.items()
        }
        return self.map

    def connect(self, model: nn.Module) -> None:
        """Makes modules move their inputs to their GPU, and the model its outputs back."""
        model.hf_device_map = {
            path: self.main if d.type == "cpu" else d for path, d in self.map.items()
        }
        if len(set(model.hf_device_map.values())) == 1:
            return
        for path in self.map:
            for module in called(model.get_submodule(path)):
                module.register_forward_pre_hook(to_module, with_kwargs=True)
        model.register_forward_pre_hook(to_module, with_kwargs=True)
        model.register_forward_hook(from_module)


def called(module: nn.Module) -> Iterator[nn.Module]:
    """Yields a module, or of a list of modules those that are called, if they have anything on a
    device.
    """
    if type(module).forward is not nn.Module.forward:
        if any(True for _ in itertools.chain(module.parameters(), module.buffers())):
            yield module
        return
    for child in module.children():
        yield from called(child)


def device_of(module: nn.Module) -> torch.device:
    return next(itertools.chain(module.parameters(), module.buffers())).device


def to_module(module: nn.Module, args, kwargs):
    from accelerate.utils import send_to_device

    device = device_of(module)
    return send_to_device(args, device), send_to_device(kwargs, device, skip_keys=CACHES)


def from_module(module: nn.Module, args, output):
    from accelerate.utils import send_to_device

    return send_to_device(output, device_of(module), skip_keys=CACHES)
