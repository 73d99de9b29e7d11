"""Units that stay compressed: they're decoded on the GPU before each call of their module.

All units of a model share one buffer per device. The weights of a module are views of it, made
once, so a call costs one launch for each unit.
"""

import threading
from math import prod
from typing import NamedTuple, Optional, Union

import torch
from torch import nn

from . import experts, kernel
from .files import DF11Error, Unit
from .match import Fill, Part, submodule

CONSTANT = (
    "the weights of a DF11 model can't be changed; "
    "df11.load(..., decode=True) loads them as BF16, where they can"
)


class View(NamedTuple):
    """A parameter, as a view of its group's weights."""

    path: str  # of its module, from the group's module on
    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
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

    @classmethod
    def of(cls, group: "Group", view: View, weights: torch.Tensor) -> "Weight":
        w = torch.Tensor._make_subclass(cls, view.of(weights), False)
        w.df11_group, w.df11_view = group, view  # torch.Tensor has a method view
        return w

    @property
    def data(self) -> torch.Tensor:
        return self.df11_group.values()[self.df11_group.views.index(self.df11_view)]

    @data.setter
    def data(self, _) -> None:
        raise DF11Error(CONSTANT)

    def __deepcopy__(self, memo):
        return empty_weight(self.device)  # the copied group binds its own

    def __reduce_ex__(self, protocol):
        return empty_weight, (self.device,)


class Sealed(Weight):
    """A weight whose module doesn't run. So whoever uses it finds out that it has no values."""

    LOOKS = {
        "__get__",
        "size",
        "stride",
        "dim",
        "numel",
        "detach",
        "data_ptr",
        "is_floating_point",
        "element_size",
        "__repr__",
    }

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") not in cls.LOOKS:
            w = next((a for a in args if isinstance(a, Sealed)), None)
            name = f"{w.df11_group.path}.{w.df11_view.key}" if w is not None else "a weight"
            raise DF11Error(
                f"{name} is used while its module doesn't run, so it isn't decoded; its data is; "
                "df11.load(..., decode=True)"
            )
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class Inside:
    """The hook that checks, at a part's first call, that its group was the last one decoded."""

    def __init__(self, group: "Group", path: str):
        self.group, self.path = group, path

    def __call__(self, module: nn.Module, args) -> None:
        if not torch.compiler.is_compiling():
            self.check(module)

    def check(self, module: nn.Module) -> None:
        self.group.require_last(self.path)
        for key, hook in list(module._forward_pre_hooks.items()):
            if hook is self:
                del module._forward_pre_hooks[key]


def empty_weight(device: Union[torch.device, str]) -> nn.Parameter:
    """Stands for a Weight that isn't bound, as in a copy: it has the type and the device."""
    return nn.Parameter(torch.empty(0, dtype=torch.bfloat16, device=device), requires_grad=False)


class Scratch:
    """The buffers that the groups of a model share: for each device, one of weights, one of bytes
    from the CPU.
    """

    def __init__(self):
        self.n_weights = self.n_bytes = 0
        self.__setstate__({})

    def weights(self, device: torch.device) -> torch.Tensor:
        if device not in self.decoded:
            with torch.inference_mode(False):
                self.decoded[device] = torch.empty(
                    self.n_weights, dtype=torch.bfloat16, device=device
                )
            self.versions[device] = self.decoded[device]._version
        return self.decoded[device]

    def bytes(self, device: torch.device) -> torch.Tensor:
        if device not in self.copied:
            self.copied[device] = torch.empty(self.n_bytes, dtype=torch.uint8, device=device)
        return self.copied[device]

    def order(self, device: torch.device) -> None:
        """Makes the device finish, before the next decoding, what another stream does with the
        weights.
        """
        if device.type != "cuda":
            return
        stream, before = torch.cuda.current_stream(device), self.streams.get(device)
        if before not in (None, stream) and not torch.cuda.is_current_stream_capturing():
            stream.wait_stream(before)
        self.streams[device] = stream

    def renew(self, group: "Group", device: torch.device) -> None:
        """Notes that the weights are a group's now."""
        if self.decoded[device]._version != self.versions[device]:  # someone has written into them
            raise DF11Error(CONSTANT)
        self.last[device], self.threads[device] = group, threading.get_ident()

    def __getstate__(self) -> dict:
        return {"n_weights": self.n_weights, "n_bytes": self.n_bytes}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(
            state, decoded={}, copied={}, versions={}, last={}, threads={}, streams={}
        )


REST = None  # key of the part of a group that isn't of experts


class Masked(NamedTuple):
    """A part of a group's weights: a byte for each owner of chunks, and the launches' arguments."""

    mask: torch.Tensor
    owners: list[torch.Tensor]
    arguments: list[kernel.Arguments]


class Group:
    """Units that are decoded together, before each call of their module; it's the hook that does
    so.
    """

    def __init__(self, path: str, scratch: Scratch):
        self.path, self.scratch = path, scratch
        self.units: list[Unit] = []
        self.views: list[View] = []
        # where it's decoded, if its bytes stay on the CPU
        self.runs_on: Optional[torch.device] = None
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
            self.module.register_buffer(
                key, torch.empty(layout.size, dtype=torch.uint8, device="meta"), persistent=False
            )
        # peft may move them
        self.owners = [self.module.get_submodule(view.path) for view in self.views]
        self.hold_places("meta")
        self.scratch.n_weights = max(self.scratch.n_weights, self.n_weights)
        self.experts = experts.find(self.module, self.views)
        self.module.register_forward_pre_hook(self, with_kwargs=True)
        self.module.register_forward_hook(self.done)
        for e in self.experts:
            if e.path:
                self.module.get_submodule(e.path).register_forward_pre_hook(
                    Routed(self, e), with_kwargs=True
                )
        saved = Saved(self)
        self.module.register_state_dict_post_hook(saved)
        self.module.register_load_state_dict_pre_hook(saved.refuse)
        for path in sorted({view.path for view in self.views} - {""}):
            self.module.get_submodule(path).register_forward_pre_hook(Inside(self, path))

    def read(self, device: torch.device, runs_on: Optional[torch.device] = None) -> None:
        """Reads the bytes, to the GPU, or to memory from which it copies them before each call."""
        self.runs_on = runs_on
        for key, unit, layout in zip(self.keys, self.units, self.layouts):
            pin = runs_on is not None and runs_on.type == "cuda"
            self.module._buffers[key] = kernel.pack(unit, layout, device, pin)
            if runs_on is not None:
                self.scratch.n_bytes = max(self.scratch.n_bytes, layout.size)
        self.hold_places(runs_on or device)

    def hold_places(self, device: Union[torch.device, str]) -> None:
        """Puts empty parameters into the modules' lists, which have the type and the device of the
        weights.
        """
        for owner, view in zip(self.owners, self.views):
            owner._parameters[view.name] = empty_weight(device)

    def bind(self) -> None:
        """Makes everything ready that calls need, where the bytes are now."""
        packed = [self.module._buffers[key] for key in self.keys]
        device = self.runs_on or packed[0].device
        try:
            gpu = kernel.device_of(device)
        except DF11Error as e:
            raise DF11Error(
                f"{self.path} can't be decoded on {device}: {e}; df11.load(..., decode=True) "
                "loads it as BF16"
            ) from e
        weights, launches, at = self.scratch.weights(device), [], 0
        segments, tables = None, []
        if self.experts and not self.runs_on:  # else copying takes far longer than decoding
            segments = experts.segments(self.experts, self.views, self.n_weights)
        for source, layout in zip(packed, self.layouts):
            place = self.scratch.bytes(device)[: layout.size] if self.runs_on else source
            if self.runs_on:
                place.copy_(source)
            launch = kernel.Launch(gpu, place, layout, kernel.widest(source, layout), weights[at:])
            launch.build()
            if self.runs_on:
                source[: kernel.TABLE_BYTES].copy_(place[: kernel.TABLE_BYTES])
            if segments:
                tables.append(experts.owners(segments, kernel.positions(source, layout), at))
            launches.append((launch, place, source))
            at += layout.n_weights
        self.gpu, self.launches, self.device = gpu, launches, device
        self.parts = self.part(tables) if experts.worth(tables) else {}
        self.later = {e.path for e in self.experts} if REST in self.parts else set()
        self.rest = {view.path for view in self.views} - self.later
        self.looks = {
            kind: [kind.of(self, view, weights) for view in self.views] for kind in (Sealed, Weight)
        }
        self.seal()
        self.bound = [p.data_ptr() for p in packed]

    def part(self, tables: list[torch.Tensor]) -> dict[Optional[str], Masked]:
        """Makes what decodes a part of the weights: for each module of experts, and for all that
        isn't of experts.
        """
        alone = self.experts[0].path == ""
        made = {e.path: experts.mask(self.experts, self.device, rest=alone) for e in self.experts}
        if not alone:
            made[REST] = experts.mask(self.experts, self.device, rest=True)
        return {
            path: Masked(
                m, tables, [launch.picked(t, m) for (launch, *_), t in zip(self.launches, tables)]
            )
            for path, m in made.items()
        }

    def decode(self, part: Optional[Masked] = None) -> None:
        """Enqueues decoding, of all weights or of a part."""
        self.scratch.order(self.device)
        with self.gpu:
            for i, (launch, place, source) in enumerate(self.launches):
                if self.runs_on:
                    place.copy_(source, non_blocking=True)
                launch.decode(part.arguments[i] if part else None)
        self.scratch.renew(self, self.device)

    def ready(self) -> None:
        """Prepares for a call, if something was moved."""
        if self.bound != [self.module._buffers[key].data_ptr() for key in self.keys]:
            self.bind()
        dtype = self.owners[0]._parameters[self.views[0].name].dtype
        if dtype != torch.bfloat16:
            raise DF11Error(f"the model was made {dtype}; " + CONSTANT)

    def show(self, kind: type, paths) -> None:
        """Makes views of the weights the parameters of the modules with these paths."""
        for owner, view, look in zip(self.owners, self.views, self.looks[kind]):
            if view.path in paths and owner.__dict__.get(view.name) is not look:
                owner.__dict__[view.name] = look

    def seal(self) -> None:
        """Hides the weights until the next call."""
        self.show(Sealed, self.rest | self.later)

    def require_last(self, path: str) -> None:
        """Raises an error for a part that is called when other weights are in the buffer."""
        if self.scratch.last.get(self.device) is not self:
            raise DF11Error(
                f"{self.path}.{path} runs outside its module, so it isn't decoded; "
                "df11.load(..., decode=True)"
            )

    @torch.compiler.disable  # a graph break
    def __call__(self, module: nn.Module, args, kwargs) -> None:
        if torch.is_grad_enabled() and needs_gradients(module, args, kwargs):
            raise DF11Error(
                f"{self.path}: gradients need weights that last; df11.load(..., decode=True) has "
                "them, else use torch.no_grad()"
            )
        self.ready()
        if "" in self.parts:
            self.decode_experts(self.experts[0], self.experts[0].picks(module, args, kwargs))
            return
        self.decode(self.parts.get(REST))
        self.show(Weight, self.rest)
        self.show(Sealed, self.later)

    def done(self, module: nn.Module, args, output) -> None:
        """Is the hook after a call: it seals the weights, and checks that no other thread has
        replaced them meanwhile.
        """
        if torch.compiler.is_compiling():
            return
        if self.scratch.threads[self.device] != threading.get_ident():
            raise DF11Error(
                f"{self.path} ran while another thread ran the model, and they share a buffer; "
                "let threads take turns"
            )
        self.seal()

    def decode_experts(self, e: experts.Experts, picks: Optional[torch.Tensor]) -> None:
        """Enqueues decoding the experts that were picked, or all weights."""
        part = self.parts[e.path]
        self.decode(part if experts.pick(e, part.mask, picks) else None)
        self.show(Weight, {e.path})

    def values(self) -> list[torch.Tensor]:
        """Decodes the weights into tensors of their own, on the CPU, in the order of the views."""
        self.ready()
        self.decode()
        weights = self.scratch.weights(self.device)
        return [
            view.of(weights).to("cpu", copy=True, memory_format=torch.contiguous_format)
            for view in self.views
        ]

    def __getstate__(self) -> dict:
        return {k: v for k, v in self.__dict__.items() if k not in unbound()}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state, **unbound())


def unbound() -> dict:
    """Returns what bind makes of a group, before it does."""
    return {
        "gpu": None,
        "launches": [],
        "device": None,
        "bound": None,
        "parts": {},
        "looks": {},
        "later": set(),
        "rest": set(),
    }


class Routed:
    """The hook of a module of experts, inside a group's module."""

    def __init__(self, group: Group, e: experts.Experts):
        self.group, self.experts = group, e

    @torch.compiler.disable
    def __call__(self, module: nn.Module, args, kwargs) -> None:
        group, path = self.group, self.experts.path
        if path not in group.later:
            return  # decoded with the rest
        group.require_last(path)
        group.decode_experts(self.experts, self.experts.picks(module, args, kwargs))


def needs_gradients(module: nn.Module, args, kwargs) -> bool:
    """Reports whether autograd would keep the module's weights for its backward pass."""
    inputs = (t for t in (*args, *kwargs.values()) if torch.is_tensor(t))
    return any(t.requires_grad for t in inputs) or any(p.requires_grad for p in module.parameters())


class Saved:
    """The hook that puts a group's weights, decoded, into a state dict; refuse is one that takes
    none out of it.
    """

    def __init__(self, group: Group):
        self.group = group

    def names(self, module: nn.Module, prefix: str) -> list[str]:
        """Returns the names of the group's weights, in the order of the views."""
        paths = {id(m): path for path, m in module.named_modules()}
        of = [paths[id(owner)] for owner in self.group.owners]
        return [
            f"{prefix}{path}.{view.name}" if path else prefix + view.name
            for path, view in zip(of, self.group.views)
        ]

    def __call__(self, module: nn.Module, state: dict, prefix: str, _) -> None:
        state.update(zip(self.names(module, prefix), self.group.values()))

    def refuse(self, module: nn.Module, state: dict, prefix: str, *_) -> None:
        found = [name for name in self.names(module, prefix) if name in state]
        if found:
            raise DF11Error(f"{found[0]}: {CONSTANT}")


def groups(model: nn.Module, fills: list[Fill], viewable) -> list[Group]:
    """Makes groups of all units whose weights can be views of what they decode to, and stay so
    during the call.

    viewable says whether a fill's parameter may be a view at all.
    """
    users: dict[str, list[Fill]] = {}
    units: dict[str, Unit] = {}
    for f in fills:
        for piece in f.pieces:
            if piece.unit:
                users.setdefault(piece.unit.path, []).append(f)
                units[piece.unit.path] = piece.unit
    made: dict[str, Group] = {}
    scratch, seen = Scratch(), set()
    for path in units:
        if path in seen:
            continue
        paths, filled = together(path, users)
        seen |= set(paths)
        if not all(viewable(f) and all(p.unit for p in f.pieces) for f in filled):
            continue
        module = home(model, paths, filled)
        group = made.get(module) or Group(module, scratch)
        views = views_of(model, group, [units[p] for p in paths], filled)
        if views is not None:
            group.units += [units[p] for p in paths]
            group.views += views
            made[module] = group
    # A module that calls the one of another group would lose its weights meanwhile.
    homes = {model.get_submodule(path) for path in made}
    return [g for g in made.values() if len(homes & {*model.get_submodule(g.path).modules()}) == 1]


def together(path: str, users: dict[str, list[Fill]]) -> tuple[list[str], list[Fill]]:
    """Returns all units that fill parameters with this one, in the order of their pieces, and the
    parameters.
    """
    paths, filled, new = [], {}, [path]
    while new:
        paths.append(new.pop(0))
        for f in users[paths[-1]]:
            filled[f.name] = f
            for piece in f.pieces:
                if piece.unit and piece.unit.path not in paths + new:
                    new.append(piece.unit.path)
    return paths, list(filled.values())


def home(model: nn.Module, paths: list[str], filled: list[Fill]) -> str:
    """Returns the module before whose calls units are decoded: the unit's, or the one that has all
    its parameters.
    """
    if (
        len(paths) == 1
        and callable_module(model, paths[0])
        and all(f.name.startswith(paths[0] + ".") for f in filled)
    ):
        return paths[0]
    owners = [f.name.split(".")[:-1] for f in filled]
    common = owners[0]
    for owner in owners[1:]:
        n = next(
            (i for i, (a, b) in enumerate(zip(common, owner)) if a != b),
            min(len(common), len(owner)),
        )
        common = common[:n]
    while common and not callable_module(model, ".".join(common)):
        common = common[:-1]
    return ".".join(common)


def callable_module(model: nn.Module, path: str) -> bool:
    module = submodule(model, path)
    return module is not None and type(module).forward is not nn.Module.forward


def views_of(
    model: nn.Module, group: Group, units: list[Unit], filled: list[Fill]
) -> Optional[list[View]]:
    """Returns the parameters as views of the group's weights, with units at its end; None if one
    can't be.
    """
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
        views.append(
            View(owner[len(group.path) + 1 :] if group.path else owner, name, shape, *found)
        )
    return views


def strides(
    shape: tuple[int, ...], parts: list[Part], offsets: dict[str, int]
) -> Optional[tuple[tuple[int, ...], int]]:
    """Returns the strides and the offset with which a flat buffer shows all parts in their places,
    or None.

    Each part lies in one piece in the buffer, row by row.
    """
    boxes = [(p.start, p.extent, offsets[p.piece.unit.path] + p.piece.offset) for p in parts]
    offset = min(boxes)[2]
    found: list[Optional[int]] = [None] * len(shape)
    for _, extent, _ in boxes:
        for k, size in enumerate(extent):
            if size > 1:
                found[k] = prod(extent[k + 1 :])
    steps = [distance(boxes, k) if step is None else step for k, step in enumerate(found)]
    for start, extent, at in boxes:  # whether these steps lead to every weight of every box
        inner = [steps[k] == prod(extent[k + 1 :]) for k, size in enumerate(extent) if size > 1]
        if (
            not all(inner)
            or at != offset + sum(i * step for i, step in zip(start, steps))
            or min(steps, default=0) < 0
        ):
            return None
    return tuple(steps), offset


def distance(boxes: list[tuple[tuple[int, ...], tuple[int, ...], int]], k: int) -> int:
    """Returns how far apart in the buffer the first box and the next one along dimension k are, for
    each step of that dimension; 0 if no box follows.
    """
    first, _, offset = min(boxes)
    ahead = [
        (start[k], at)
        for start, _, at in boxes
        if start[k] > 0 and start[:k] + start[k + 1 :] == first[:k] + first[k + 1 :]
    ]
    n, at = min(ahead, default=(1, offset))
    return (at - offset) // n
