"""Fills a model: units stay compressed where a GPU decodes them, else they become BF16."""

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from math import prod
from typing import Callable, NamedTuple, Optional, Union

import torch
from torch import nn

from . import kernel, units
from .files import DF11Error, Files, log, manifest
from .match import Fill, Matched, Part, Piece, made, some, state_of
from .program import Stream
from .spread import Spread

# As the caller names it; None is the first GPU, else the CPU.
Device = Union[str, torch.device, None]
DTypeOf = Callable[[str, torch.Tensor], torch.dtype]
State = dict[str, torch.Tensor]


class Devices(NamedTuple):
    """Where tensors go."""

    main: torch.device
    map: dict[str, torch.device] = {}

    def of(self, name: str) -> torch.device:
        """Returns the device of a tensor or module: that of the longest path in the map."""
        while name not in self.map and name:
            name = name.rpartition(".")[0]
        return self.map.get(name, self.main)

    def of_plain(self, name: str) -> torch.device:
        """Returns the same for what isn't compressed: what the map leaves on the CPU goes where it
        runs.
        """
        device = self.of(name)
        return self.main if device.type == "cpu" else device


def install(
    model: nn.Module,
    files: Files,
    matched: Matched,
    device: Device,
    decode: bool,
    dtype_of: DTypeOf,
    max_memory: Optional[dict] = None,
    compute: Callable[[], None] = lambda: None,
) -> None:
    """Fills the parameters and saved buffers of a model, and makes it ready to run.

    dtype_of returns the type that a parameter of this name becomes. compute gives values to the
    parameters that the files may lack, since the class computes them.
    """
    main = main_device(device)
    over = Spread(max_memory, main) if device == "auto" and main.type == "cuda" else None
    hint = (
        "max_memory= leaves more room"
        if over
        else "device=\"auto\" puts what doesn't fit on other GPUs, or into the CPU's memory"
    )
    with explained(
        main, f"{size(files.n_bytes())} of files" + (", decoded" if decode else ""), hint
    ):
        kept, devices = place(model, files, matched, main, decode, dtype_of, over)
        compute()
        settle(model, devices)
        if over:
            over.connect(model)
        for group in kept:
            group.bind()


def main_device(device: Device) -> torch.device:
    """Returns the device that runs a model, or, if several do, the first one."""
    there = torch.cuda.is_available()
    if device in (None, "auto"):
        return torch.device("cuda:0" if there else "cpu")
    main = torch.device(device)
    if main.type == "cuda" and not there:
        raise DF11Error(f"device={str(device)!r}: {no_gpu()}")
    return (
        torch.device("cuda", torch.cuda.current_device())
        if main.type == "cuda" and main.index is None
        else main
    )


def no_gpu() -> str:
    return "PyTorch finds no GPU" if torch.version.cuda else "this PyTorch is without CUDA"


@contextlib.contextmanager
def explained(device: torch.device, what: str, hint: str) -> Iterator[None]:
    """Says what to do if the memory of a device isn't enough."""
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0
    try:
        yield
    except torch.OutOfMemoryError as e:
        raise DF11Error(
            f"{device} had {size(free)} free, which isn't enough for {what}: {hint}"
        ) from e


def require_bf16(model: nn.Module, matched: Matched) -> None:
    """Raises an error if someone made a model whose compressed weights aren't BF16, or whose computed
    buffers have no values. It warns of buffers that a cast has rounded.
    """
    state = state_of(model)
    for f in matched.fills:
        if f.coded and state[f.name].dtype != torch.bfloat16:
            raise DF11Error(
                f"{f.name} is {state[f.name].dtype}; make the model in torch.bfloat16 before you "
                "fill it: AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16), for example"
            )
    computed = {n: b for n, b in model.named_buffers() if n not in state}
    for name, buffer in computed.items():
        if buffer.device.type == "meta":
            raise DF11Error(
                f"{name} is computed when the model is made, and not on meta: make the model with "
                "accelerate.init_empty_weights(), which leaves only weights on meta"
            )
    # transformers computes the frequencies of rotary embeddings in F32, and keeps them so.
    rounded = [n for n, b in computed.items() if n.endswith("inv_freq") and b.dtype != torch.float32]
    if rounded:
        log.warning(
            "%s is %s, and F32 in the original, so outputs differ; model.to() casts it, and "
            "from_config(config, dtype=torch.bfloat16) doesn't",
            rounded[0],
            computed[rounded[0]].dtype,
        )


def place(
    model: nn.Module,
    files: Files,
    matched: Matched,
    device: torch.device,
    decode: bool,
    dtype_of: DTypeOf,
    spread: Optional[Spread],
) -> tuple[list[units.Group], Devices]:
    """Fills the parameters and saved buffers.

    Returns the units that stay compressed, and where tensors go.
    """
    fills, unused = matched
    if unused:
        log.warning(
            "%s: not loaded, because the class has no such module: %s",
            files.folder.name,
            some(unused),
        )
    state = state_of(model)
    own = {f.name for f in fills}

    def viewable(f: Fill) -> bool:
        t = state[f.name]
        aliases = [n for n, other in state.items() if other is t]
        return (
            not f.converter
            and isinstance(t, nn.Parameter)
            and own.issuperset(aliases)
            and dtype_of(f.name, t) == torch.bfloat16
        )

    gpu, why = (False, "") if decode else usable(device)
    kept = units.groups(model, fills, viewable) if gpu else []
    for group in kept:
        group.attach(model)
    compressed = {u.path for g in kept for u in g.units}
    rest = [
        f for f in fills if not any(p.unit and p.unit.path in compressed for p in f.pieces)
    ]
    n = sum(p.n for f in rest for p in f.pieces)
    if n and not decode:
        log.warning(
            "%s: %s, so %s are BF16",
            files.folder.name,
            why or "not all modules can stay compressed",
            size(2 * n),
        )
    devices = Devices(device, spread(model, kept) if spread else {})
    put(
        model,
        state,
        fills,
        values(rest, model, state, files, dtype_of, devices, gpu),
        freeze=bool(kept),
    )
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


def usable(device: torch.device) -> tuple[bool, str]:
    """Reports whether the kernel runs on a device, and else why not."""
    if device.type == "cpu" and not kernel.STAND_IN:
        return False, "the model runs on the CPU" if torch.cuda.is_available() else no_gpu()
    try:
        kernel.device_of(device)
        return True, ""
    except DF11Error as e:
        return False, str(e)


def values(
    fills: list[Fill],
    model: nn.Module,
    state: State,
    files: Files,
    dtype_of: DTypeOf,
    devices: Devices,
    gpu: bool,
) -> State:
    """Reads and decodes what fills parameters that aren't views."""
    result: State = {}
    inputs: dict[str, State] = {}  # of converters
    # pieces of units, and where they go
    wanted: dict[str, list[tuple[Piece, torch.Tensor]]] = defaultdict(list)
    for f in fills:
        device, dtype = devices.of_plain(f.name), dtype_of(f.name, state[f.name])
        if f.converter:
            inputs[f.name] = room = inputs_of(f, files)
            for piece in f.pieces:
                if piece.unit:
                    wanted[piece.unit.path].append((piece, room[piece.name]))
        elif len(f.parts) == 1 and not f.coded:
            result[f.name] = cast(f.pieces[0].source.read(), dtype).to(device)
        else:
            result[f.name] = torch.empty(state[f.name].shape, dtype=dtype, device=device)
            for part in f.parts:
                piece, target = part.piece, box(result[f.name], part)
                if piece.unit:
                    wanted[piece.unit.path].append((piece, target))
                else:
                    target.copy_(piece.source.read().view(target.shape))
    read_units(files, wanted, devices.main if gpu else None)
    for f in fills:
        if f.converter:
            for name, t in convert(f, model, inputs.pop(f.name)).items():
                if name in state:
                    result[name] = cast(t, dtype_of(name, state[name])).to(devices.of_plain(name))
    return result


def inputs_of(f: Fill, files: Files) -> State:
    """Returns the tensors of a converter, by name. Those of units are empty until they're
    decoded.
    """
    return {
        p.name: torch.empty(shape_of(p, files), dtype=torch.bfloat16) if p.unit else p.source.read()
        for p in f.pieces
    }


def cast(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return t.to(dtype) if t.is_floating_point() else t


def box(t: torch.Tensor, part: Part) -> torch.Tensor:
    for dim, (start, size) in enumerate(zip(part.start, part.extent)):
        t = t.narrow(dim, start, size)
    return t


def read_units(
    files: Files, wanted: dict[str, list[tuple[Piece, torch.Tensor]]], gpu: Optional[torch.device]
) -> None:
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


def shape_of(piece: Piece, files: Files) -> tuple[int, ...]:
    """Returns the shape of a unit's tensor, which only the manifest has."""
    for u in manifest(files.folder, "units")[1]:
        if u.get("path") == piece.unit.path:
            index = sum(1 for end in accumulate(piece.unit.sizes) if end <= piece.offset)
            try:
                shape = tuple(map(int, u["tensors"][index]["shape"]))
            except (IndexError, KeyError, TypeError, ValueError):
                break
            if prod(shape) == piece.n:
                return shape
    raise DF11Error(f"{piece.name}: transformers converts it, and no file says its shape")


def convert(f: Fill, model: nn.Module, inputs: State) -> State:
    """Has transformers make parameters of a converter's tensors."""
    converter, pieces = f.converter
    for piece, pattern in pieces:
        converter.add_tensor(f.name, piece.name, pattern, inputs[piece.name])
    converted = converter.convert(f.name, model=model, config=model.config)
    return {name: t[0] if isinstance(t, list) else t for name, t in converted.items()}


def put(model: nn.Module, state: State, fills: list[Fill], new: State, freeze: bool) -> None:
    """Puts values into a model.

    Names that share a parameter still do, unless a unit is among them.
    """
    by_parameter: dict[int, list[str]] = defaultdict(list)
    for name, t in state.items():
        by_parameter[id(t)].append(name)
    coded = {name for f in fills if f.coded for name in made(f, state)}
    for names in by_parameter.values():
        filled = [n for n in names if n in new]
        for other in filled[1:]:
            if not coded.intersection(filled) and not torch.equal(new[other], new[filled[0]]):
                raise DF11Error(
                    f"{filled[0]} and {other} are one parameter in this class, but their values "
                    "differ"
                )
        for name in names:
            if not filled:
                continue
            source = name if name in filled and coded.intersection(filled) else filled[0]
            old = state[name]
            owner, _, leaf = name.rpartition(".")
            module = model.get_submodule(owner)
            if tuple(new[source].shape) != tuple(old.shape):
                raise DF11Error(
                    f"{name} has the shape {list(old.shape)}, the files make "
                    f"{list(new[source].shape)}"
                )
            if leaf in module._buffers:
                module._buffers[leaf] = new[source]
                continue
            if not isinstance(new[source], nn.Parameter):
                new[source] = nn.Parameter(
                    new[source],
                    old.requires_grad and not freeze and new[source].is_floating_point(),
                )
            module._parameters[leaf] = new[source]


def settle(model: nn.Module, devices: Devices) -> None:
    """Moves what the class has computed, and makes everything ready for the first call."""
    # what they were and are, so that names still share them
    moved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
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
