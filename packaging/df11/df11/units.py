"""Units that stay compressed: they're decoded on the GPU before each call of their module.

All units of a model share one buffer per device. The weights of a module are views of it, made
once, so a call costs one launch for each unit.
"""

from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import nn

from . import kernel
from .files import DF11Error, Unit
from .match import Fill, Part, numel, submodule

CONSTANT = "the weights of a DF11 model can't be changed; df11.load(..., decode=True) loads them as BF16, where they can"


class View(NamedTuple):
    """A parameter, as a view of its group's weights."""

    path: str  # of its module, from the group's module on
    name: str
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    offset: int

    @property
    def key(self) -> str:
        return f"{self.path}.{self.name}" if self.path else self.name

    def of(self, weights: torch.Tensor) -> torch.Tensor:
        return weights.as_strided(self.shape, self.strides, self.offset)


class Weight(nn.Parameter):
    """A weight that has its values only while its module runs.

    So data decodes them again, into a tensor of its own, and can't be set.
    """

    @staticmethod
    def of(group: "Group", view: View, weights: torch.Tensor) -> "Weight":
        w = torch.Tensor._make_subclass(Weight, view.of(weights), False)
        w.group, w.view = group, view
        return w

    @property
    def data(self) -> torch.Tensor:
        return self.group.values()[self.view.key]

    @data.setter
    def data(self, _) -> None:
        raise DF11Error(CONSTANT)

    def __deepcopy__(self, memo):
        return None  # the copied group binds its own

    def __reduce_ex__(self, protocol):
        return nothing, ()


def nothing() -> None:
    """Stands for a Weight in a pickle: the group that comes with it binds its own."""


class Scratch:
    """The buffers that the groups of a model share: for each device, one of weights, one of bytes from the CPU."""

    def __init__(self):
        self.n_weights = self.n_bytes = 0
        self.__setstate__({})

    def weights(self, device: torch.device) -> torch.Tensor:
        if device not in self.decoded:
            with torch.inference_mode(False):
                self.decoded[device] = torch.empty(self.n_weights, dtype=torch.bfloat16, device=device)
            self.versions[device] = self.decoded[device]._version
        return self.decoded[device]

    def bytes(self, device: torch.device) -> torch.Tensor:
        if device not in self.copied:
            self.copied[device] = torch.empty(self.n_bytes, dtype=torch.uint8, device=device)
        return self.copied[device]

    def renew(self, device: torch.device) -> None:
        """Notes that the weights are others now. So autograd stops if it still needs the ones before."""
        weights = self.decoded[device]
        if weights._version != self.versions[device]:
            raise DF11Error(CONSTANT)
        torch.autograd.graph.increment_version(weights)
        self.versions[device] = weights._version

    def __getstate__(self) -> dict:
        return {"n_weights": self.n_weights, "n_bytes": self.n_bytes}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state, decoded={}, copied={}, versions={})


class Group:
    """Units that are decoded together, before each call of their module; it's the hook that does so."""

    def __init__(self, path: str, scratch: Scratch):
        self.path, self.scratch = path, scratch
        self.units: List[Unit] = []
        self.views: List[View] = []
        self.runs_on: Optional[torch.device] = None  # where it's decoded, if its bytes stay on the CPU
        self.__setstate__({})

    @property
    def n_weights(self) -> int:
        return sum(u.n_weights for u in self.units)

    def attach(self, model: nn.Module) -> None:
        """Takes the place of the parameters. The bytes are empty until read."""
        self.module = model.get_submodule(self.path)
        self.layouts = [kernel.layout_of(u) for u in self.units]
        self.keys = [f"df11_{i}" for i in range(len(self.units))]
        for key, layout in zip(self.keys, self.layouts):
            self.module.register_buffer(key, torch.empty(layout.size, dtype=torch.uint8, device="meta"), persistent=False)
        for view in self.views:
            self.module.get_submodule(view.path)._parameters[view.name] = placeholder("meta")
        self.scratch.n_weights = max(self.scratch.n_weights, self.n_weights)
        self.module.register_forward_pre_hook(self)
        self.module.register_state_dict_post_hook(Save(self))

    def read(self, device: torch.device, runs_on: Optional[torch.device] = None) -> None:
        """Reads the bytes, to the GPU, or to memory from which it copies them before each call."""
        self.runs_on = runs_on
        for key, unit, layout in zip(self.keys, self.units, self.layouts):
            pin = runs_on is not None and runs_on.type == "cuda"
            self.module._buffers[key] = kernel.pack(unit, layout, device, pin)
            if runs_on is not None:
                self.scratch.n_bytes = max(self.scratch.n_bytes, layout.size)
        for view in self.views:
            self.module.get_submodule(view.path)._parameters[view.name] = placeholder(runs_on or device)

    def bind(self) -> None:
        """Makes everything ready that calls need, where the bytes are now."""
        packed = [self.module._buffers[key] for key in self.keys]
        device = self.runs_on or packed[0].device
        try:
            gpu = kernel.device_of(device)
        except DF11Error as e:
            raise DF11Error(f"{self.path} can't be decoded on {device}: {e}; df11.load(..., decode=True) loads it as BF16") from e
        weights, launches, at = self.scratch.weights(device), [], 0
        for source, layout in zip(packed, self.layouts):
            place = self.scratch.bytes(device)[: layout.size] if self.runs_on else source
            if self.runs_on:
                place.copy_(source)
            launch = kernel.Launch(gpu, place, layout, kernel.widest(source, layout), weights[at:])
            launch.build()
            if self.runs_on:
                source[: kernel.TABLE_BYTES].copy_(place[: kernel.TABLE_BYTES])
            launches.append((launch, place, source))
            at += layout.n_weights
        for view in self.views:
            self.module.get_submodule(view.path).__dict__[view.name] = Weight.of(self, view, weights)
        self.gpu, self.launches, self.device = gpu, launches, device
        self.bound = [p.data_ptr() for p in packed]

    def decode(self) -> None:
        """Enqueues decoding."""
        if self.bound != [self.module._buffers[key].data_ptr() for key in self.keys]:
            self.bind()
        with self.gpu:
            for launch, place, source in self.launches:
                if self.runs_on:
                    place.copy_(source, non_blocking=True)
                launch.decode()
        self.scratch.renew(self.device)

    def __call__(self, module: nn.Module, args) -> None:
        self.decode()

    def values(self) -> Dict[str, torch.Tensor]:
        """Decodes the weights into tensors of their own, on the CPU."""
        self.decode()
        weights = self.scratch.weights(self.device)
        return {view.key: view.of(weights).cpu().clone(memory_format=torch.contiguous_format) for view in self.views}

    def __getstate__(self) -> dict:
        return {k: v for k, v in self.__dict__.items() if k not in ("gpu", "launches", "device", "bound")}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state, gpu=None, launches=[], device=None, bound=None)


class Save:
    """The hook that puts a group's weights, decoded, into a state dict."""

    def __init__(self, group: Group):
        self.group = group

    def __call__(self, module: nn.Module, state: dict, prefix: str, _) -> None:
        for key, value in self.group.values().items():
            state[prefix + key] = value


def placeholder(device) -> nn.Parameter:
    """Stands for a parameter in a module's list, with its type and device, but empty."""
    return nn.Parameter(torch.empty(0, dtype=torch.bfloat16, device=device), requires_grad=False)


def groups(model: nn.Module, fills: List[Fill], viewable) -> List[Group]:
    """Makes groups of all units whose weights can be views of what they decode to.

    viewable says whether a fill's parameter may be a view at all.
    """
    users: Dict[str, List[Fill]] = {}
    units: Dict[str, Unit] = {}
    for f in fills:
        for piece in f.pieces:
            if isinstance(piece.source, Unit):
                users.setdefault(piece.source.path, []).append(f)
                units[piece.source.path] = piece.source
    made: Dict[str, Group] = {}
    scratch, seen = Scratch(), set()
    for path in units:
        if path in seen:
            continue
        paths, filled = together(path, users)
        seen |= set(paths)
        if not all(viewable(f) and all(p.source.__class__ is Unit for p in f.pieces) for f in filled):
            continue
        module = home(model, paths, filled)
        group = made.get(module) or Group(module, scratch)
        views = views_of(model, group, [units[p] for p in paths], filled)
        if views is not None:
            group.units += [units[p] for p in paths]
            group.views += views
            made[module] = group
    return list(made.values())


def together(path: str, users: Dict[str, List[Fill]]) -> Tuple[List[str], List[Fill]]:
    """Returns all units that fill parameters with this one, in the order of their pieces, and the parameters."""
    paths, filled, new = [], {}, [path]
    while new:
        paths.append(new.pop(0))
        for f in users[paths[-1]]:
            filled[f.name] = f
            for piece in f.pieces:
                if piece.source.__class__ is Unit and piece.source.path not in paths + new:
                    new.append(piece.source.path)
    return paths, list(filled.values())


def home(model: nn.Module, paths: List[str], filled: List[Fill]) -> str:
    """Returns the module before whose calls units are decoded: the unit's, or the one that has all its parameters."""
    if len(paths) == 1 and callable_module(model, paths[0]) and all(f.name.startswith(paths[0] + ".") for f in filled):
        return paths[0]
    owners = [f.name.split(".")[:-1] for f in filled]
    common = owners[0]
    for owner in owners[1:]:
        n = next((i for i, (a, b) in enumerate(zip(common, owner)) if a != b), min(len(common), len(owner)))
        common = common[:n]
    while common and not callable_module(model, ".".join(common)):
        common = common[:-1]
    return ".".join(common)


def callable_module(model: nn.Module, path: str) -> bool:
    module = submodule(model, path)
    return module is not None and type(module).forward is not nn.Module.forward


def views_of(model: nn.Module, group: Group, units: List[Unit], filled: List[Fill]) -> Optional[List[View]]:
    """Returns the parameters as views of the group's weights, with units at its end; None if one can't be."""
    offsets, at = {}, group.n_weights
    for u in units:
        offsets[u.path], at = at, at + u.n_weights
    views = []
    for f in filled:
        owner, _, name = f.name.rpartition(".")
        shape = tuple(submodule(model, owner)._parameters[name].shape)
        found = strides(shape, f.parts, offsets)
        if found is None:
            return None
        views.append(View(owner[len(group.path) + 1 :] if group.path else owner, name, shape, *found))
    return views


def strides(shape: Tuple[int, ...], parts: List[Part], offsets: Dict[str, int]) -> Optional[Tuple[Tuple[int, ...], int]]:
    """Returns the strides and the offset with which a flat buffer shows all parts in their places, or None."""
    found: List[Optional[int]] = [None] * len(shape)
    boxes = [(p.start, p.extent, offsets[p.piece.source.path] + p.piece.offset) for p in parts]
    first = min(boxes)
    for start, extent, _ in boxes:
        for k, size in enumerate(extent):
            if size > 1:
                found[k] = numel(extent[k + 1 :])
    for k in range(len(shape)):
        if found[k] is None:
            ahead = [(s[k], at) for s, _, at in boxes if s[k] > 0 and s[:k] + s[k + 1 :] == first[0][:k] + first[0][k + 1 :]]
            n, at = min(ahead, default=(1, first[2]))
            found[k] = (at - first[2]) // n
    for start, extent, at in boxes:
        inner = [found[k] == numel(extent[k + 1 :]) for k, size in enumerate(extent) if size > 1]
        if not all(inner) or at != first[2] + sum(s * n for s, n in zip(start, found)) or min(found, default=0) < 0:
            return None
    return tuple(found), first[2]
