"""Fills a model from files: units stay compressed where a GPU decodes them, else they become BF16."""

from collections import defaultdict
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import nn

from . import kernel, units
from .files import DF11Error, Files, Unit, log, manifest
from .match import Fill, Part, Piece, made, match, numel, some, state_of
from .program import Stream

DTypeOf = Callable[[str, torch.Tensor], torch.dtype]
State = Dict[str, torch.Tensor]


class Devices(NamedTuple):
    """Where tensors go."""

    main: torch.device
    map: Dict[str, torch.device] = {}

    def of(self, name: str) -> torch.device:
        """Returns the device of a tensor or module: that of the longest path in the map."""
        while name not in self.map and name:
            name = name.rpartition(".")[0]
        return self.map.get(name, self.main)

    def of_plain(self, name: str) -> torch.device:
        """Returns the same for what isn't compressed: what the map leaves on the CPU goes where it runs."""
        device = self.of(name)
        return self.main if device.type == "cpu" else device


def place(
    model: nn.Module, files: Files, device: torch.device, decode: bool, dtype_of: DTypeOf,
    spread: Optional[Callable[[nn.Module, List[units.Group]], Dict[str, torch.device]]] = None, yours: bool = False,
) -> Tuple[List[units.Group], Devices]:  # fmt: skip
    """Fills the parameters and saved buffers of a model. Returns the units that stay compressed, and where tensors go.

    dtype_of returns the type that a parameter of this name becomes. spread returns a device for
    modules, once they show how large they are. yours says that someone else made the model.
    """
    fills, unused = match(model, files)
    if unused:
        log.warning("%s: not loaded, because the class has no such module: %s", files.folder.name, some(unused))
    state = state_of(model)
    own = {f.name for f in fills}
    for f in fills if yours else ():
        if any(p.n for p in f.pieces) and state[f.name].dtype != torch.bfloat16:
            raise DF11Error(f"{f.name} is {state[f.name].dtype}; make the model in torch.bfloat16 before you fill it")

    def viewable(f: Fill) -> bool:
        t = state[f.name]
        aliases = [n for n, other in state.items() if other is t]
        return not f.converter and isinstance(t, nn.Parameter) and own.issuperset(aliases) and dtype_of(f.name, t) == torch.bfloat16

    gpu, why = (False, "") if decode else usable(device)
    kept = units.groups(model, fills, viewable) if gpu else []
    for group in kept:
        group.attach(model)
    compressed = {u.path for g in kept for u in g.units}
    rest = [f for f in fills if not any(isinstance(p.source, Unit) and p.source.path in compressed for p in f.pieces)]
    n = sum(p.n for f in rest for p in f.pieces)
    if n and not decode:
        log.warning("%s: %s, so %s are BF16", files.folder.name, why or "not all modules can stay compressed", size(2 * n))
    devices = Devices(device, spread(model, kept) if spread else {})
    put(model, state, fills, values(rest, model, state, files, dtype_of, devices, gpu), freeze=bool(kept))
    for group in kept:
        at = devices.of(group.path)
        group.read(at, device if at.type == "cpu" and device.type != "cpu" else None)
    return kept, devices


def size(n_bytes: float) -> str:
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.4g} GB"


def usable(device: torch.device) -> Tuple[bool, str]:
    """Reports whether the kernel runs on a device, and else why not."""
    if device.type == "cpu" and not kernel.STAND_IN:
        if torch.cuda.is_available():
            return False, "the model runs on the CPU"
        return False, "PyTorch finds no GPU" if torch.version.cuda else "this PyTorch is without CUDA"
    try:
        kernel.device_of(device)
        return True, ""
    except DF11Error as e:
        return False, str(e)


def values(
    fills: List[Fill], model: nn.Module, state: State, files: Files, dtype_of: DTypeOf, devices: Devices, gpu: bool
) -> State:
    """Reads and decodes what fills parameters that aren't views."""
    result: State = {}
    inputs: Dict[str, Dict[str, torch.Tensor]] = {}  # of converters
    wanted: Dict[str, List[Tuple[Piece, torch.Tensor]]] = defaultdict(list)  # pieces of units, and where they go
    for f in fills:
        device, dtype = devices.of_plain(f.name), dtype_of(f.name, state[f.name])
        if f.converter:
            inputs[f.name] = {p.name: torch.empty(shape_of(p, files), dtype=torch.bfloat16) for p in f.pieces if p.n}
            inputs[f.name].update((p.name, p.source.read()) for p in f.pieces if not p.n)
            targets = [(p, inputs[f.name][p.name]) for p in f.pieces]
        elif len(f.parts) == 1 and not f.pieces[0].n:
            result[f.name] = cast(f.pieces[0].source.read(), dtype).to(device)
            continue
        else:
            result[f.name] = torch.empty(state[f.name].shape, dtype=dtype, device=device)
            targets = [(part.piece, box(result[f.name], part)) for part in f.parts]
        for piece, target in targets:
            if piece.n:
                wanted[piece.source.path].append((piece, target))
            elif not f.converter:
                target.copy_(piece.source.read().view(target.shape))
    read_units(files, wanted, devices.main if gpu else None)
    for f in fills:
        if f.converter:
            for name, t in convert(f, model, inputs.pop(f.name)).items():
                if name in state:
                    result[name] = cast(t, dtype_of(name, state[name])).to(devices.of_plain(name))
    return result


def cast(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return t.to(dtype) if t.is_floating_point() else t


def box(t: torch.Tensor, part: Part) -> torch.Tensor:
    for dim, (start, size) in enumerate(zip(part.start, part.extent)):
        t = t.narrow(dim, start, size)
    return t


def read_units(files: Files, wanted: Dict[str, List[Tuple[Piece, torch.Tensor]]], gpu: Optional[torch.device]) -> None:
    """Decodes units into their targets: on a GPU one by one, else by the program, file by file."""
    if gpu is not None:
        for path, targets in wanted.items():
            flat = kernel.decode(files.units[path], gpu)
            for piece, target in targets:
                target.copy_(flat[piece.offset : piece.offset + piece.n].view(target.shape))
        return
    for file in sorted({files.units[path].file for path in wanted}):
        with Stream(file) as stream:
            for path in sorted(u.path for u in files.units.values() if u.file == file):
                files.units[path].read()  # checks what the program may not
                targets = sorted(wanted.get(path, ()), key=lambda t: t[0].offset)
                at = 0
                for piece, target in targets:
                    stream.skip(piece.offset - at)
                    stream.read(target)
                    at = piece.offset + piece.n
                stream.skip(files.units[path].n_weights - at)


def shape_of(piece: Piece, files: Files) -> Tuple[int, ...]:
    """Returns the shape of a unit's tensor, which only the manifest has."""
    for u in manifest(files.folder)[1].get("units", ()):
        if u["path"] == piece.source.path:
            index = sum(1 for end in running(piece.source.sizes) if end <= piece.offset)
            shape = tuple(u["tensors"][index]["shape"])
            if numel(shape) == piece.n:
                return shape
    raise DF11Error(f"{piece.name}: transformers converts it, and no file says its shape")


def running(sizes: Tuple[int, ...]) -> List[int]:
    ends, at = [], 0
    for n in sizes:
        at += n
        ends.append(at)
    return ends


def convert(f: Fill, model: nn.Module, inputs: State) -> State:
    """Has transformers make parameters of a converter's tensors."""
    converter, pieces = f.converter
    for piece, pattern in pieces:
        converter.add_tensor(f.name, piece.name, pattern, inputs[piece.name])
    made_ = converter.convert(f.name, model=model, config=model.config)
    return {name: t[0] if isinstance(t, list) else t for name, t in made_.items()}


def put(model: nn.Module, state: State, fills: List[Fill], new: State, freeze: bool) -> None:
    """Puts values into a model. Names that share a parameter still do, unless a unit is among them."""
    by_parameter: Dict[int, List[str]] = defaultdict(list)
    for name, t in state.items():
        by_parameter[id(t)].append(name)
    coded = {name for f in fills if any(p.n for p in f.pieces) for name in made(f, state)}
    for names in by_parameter.values():
        filled = [n for n in names if n in new]
        for other in filled[1:]:
            if not coded.intersection(filled) and not torch.equal(new[other], new[filled[0]]):
                raise DF11Error(f"{filled[0]} and {other} are one parameter in this class, but their values differ")
        for name in names:
            if not filled:
                continue
            source = name if name in filled and coded.intersection(filled) else filled[0]
            old = state[name]
            owner, _, leaf = name.rpartition(".")
            module = model.get_submodule(owner)
            if tuple(new[source].shape) != tuple(old.shape):
                raise DF11Error(f"{name} has the shape {list(old.shape)}, the files make {list(new[source].shape)}")
            if leaf in module._buffers:
                module._buffers[leaf] = new[source]
                continue
            if not isinstance(new[source], nn.Parameter):
                new[source] = nn.Parameter(new[source], old.requires_grad and not freeze and new[source].is_floating_point())
            module._parameters[leaf] = new[source]


def settle(model: nn.Module, kept: List[units.Group], devices: Devices) -> None:
    """Moves what the class has computed, and makes everything ready for the first call."""
    moved: Dict[int, Tuple[torch.Tensor, torch.Tensor]] = {}  # what they were and are, so that names still share them
    for path, module in model.named_modules():
        for tensors in (module._buffers, module._parameters):
            for leaf, t in tensors.items():
                name = f"{path}.{leaf}" if path else leaf
                if t is None or leaf.startswith("df11_"):
                    continue
                if t.device.type == "meta":
                    raise DF11Error(f"nothing in the files fills {name}")
                device = devices.of_plain(name)
                if t.device != device:
                    new = moved[id(t)][1] if id(t) in moved else t.to(device)
                    if isinstance(t, nn.Parameter) and not isinstance(new, nn.Parameter):
                        new = nn.Parameter(new, t.requires_grad)
                    tensors[leaf], moved[id(t)] = new, (t, new)
