"""Spreads a model over several GPUs, and over the CPU's memory what they don't hold, as accelerate decides."""

from typing import Dict, Optional

import torch
from torch import nn

from .files import DF11Error


class Spread:
    """A map of devices, made once the model shows what its modules take."""

    def __init__(self, max_memory: Optional[Dict], main: torch.device):
        self.max_memory, self.main = max_memory, main
        self.map: Dict[str, torch.device] = {}

    def __call__(self, model: nn.Module, scratch: int) -> Dict[str, torch.device]:
        """Returns the map; scratch is what decoding takes on each GPU, in bytes."""
        from accelerate import infer_auto_device_map
        from accelerate.utils import get_max_memory

        memory = {k: n - (0 if k in ("cpu", "disk") else scratch) for k, n in get_max_memory(self.max_memory).items()}
        found = infer_auto_device_map(model, memory, no_split_module_classes=getattr(model, "_no_split_modules", None) or [])
        if "disk" in found.values():
            raise DF11Error("the model fits neither the GPUs nor the CPU's memory")
        self.map = {path: torch.device("cuda", d) if isinstance(d, int) else torch.device(d) for path, d in found.items()}
        return self.map

    def dispatch(self, model: nn.Module) -> None:
        """Makes modules move their inputs to their GPUs. What stays on the CPU runs on the main one."""
        from accelerate import dispatch_model

        runs = {path: self.main if d.type == "cpu" else d for path, d in self.map.items()}
        if len(set(runs.values())) > 1:
            dispatch_model(model, runs, main_device=self.main)

