"""Which stored tensors make which parameters of a model, and that nothing lacks or is left over.

The names in files aren't always the model's. What becomes of a name is asked of transformers: its
renames, and its converters, which make one parameter of several tensors.
"""

import re
from copy import deepcopy
from math import prod
from typing import NamedTuple, Optional, Union

import torch

from .files import DF11Error, Files, Stored, Unit


class Piece(NamedTuple):
    """A stored tensor: one of its own, or an attribute of a unit."""

    name: str
    source: Union[Stored, Unit]
    offset: int = 0  # in the unit, in weights
    n: int = 0  # weights, of a unit's piece

    @property
    def unit(self) -> Optional[Unit]:
        return self.source if isinstance(self.source, Unit) else None

    @property
    def shape(self) -> Optional[tuple[int, ...]]:
        return None if self.unit else self.source.shape

    @property
    def n_elems(self) -> int:
        return self.n if self.unit else prod(self.shape)


class Part(NamedTuple):
    """A piece and the box of a parameter that it fills."""

    piece: Piece
    start: tuple[int, ...]
    extent: tuple[int, ...]


class Fill(NamedTuple):
    """How a parameter or buffer is filled."""

    name: str
    parts: list[Part]  # empty if a converter must compute it
    pieces: list[Piece]
    converter: object = None  # of transformers, with all names; it may make several parameters

    @property
    def coded(self) -> bool:
        return any(p.unit for p in self.pieces)


class Missing(DF11Error):
    """Parameters that no tensor fills."""

    def __init__(self, model: torch.nn.Module, names: list[str]):
        super().__init__(f"nothing in the files fills {some(names)} of {type(model).__name__}")


def some(names) -> str:
    names = sorted(names)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


class Names:
    """Finds the model's name of a tensor."""

    def __init__(self, model: torch.nn.Module, state: dict[str, torch.Tensor]):
        self.model, self.state = model, state
        self.prefix = getattr(model, "base_model_prefix", "") or ""
        self.renames, self.converters = [], []
        try:
            from transformers.conversion_mapping import get_model_conversion_mapping
            from transformers.core_model_loading import WeightConverter
        except ImportError:  # no transformers, or one before 5
            return
        if hasattr(model, "base_model_prefix"):
            for entry in get_model_conversion_mapping(model):
                (self.converters if isinstance(entry, WeightConverter) else self.renames).append(
                    entry
                )

    def find(self, name: str) -> tuple[Optional[str], Optional[str]]:
        """Returns the parameter that a tensor fills, or None, and the source pattern of its
        converter.
        """
        if self.renames or self.converters:
            from transformers.core_model_loading import rename_source_key

            new, pattern = rename_source_key(
                name, self.renames, self.converters, self.prefix, self.state
            )
            if new in self.state:
                return new, pattern
        for new in (name, self.older(name)):
            for full in (
                new,
                f"{self.prefix}.{new}",
                new[len(self.prefix) + 1 :] if new.startswith(self.prefix + ".") else new,
            ):
                if full in self.state:
                    return full, None
        return None, None

    def older(self, name: str) -> str:
        """Renames a tensor as transformers 4 does."""
        fix = getattr(self.model, "_fix_state_dict_key_on_load", None)
        if fix:
            name = fix(name)[0]
        for pattern, new in (
            getattr(self.model, "_checkpoint_conversion_mapping", None) or {}
        ).items():
            name, n = re.subn(pattern, new, name)
            if n:
                break
        return name

    def converter(self, pattern: str):
        return next(deepcopy(c) for c in self.converters if pattern in c.source_patterns)


def state_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Returns parameters and saved buffers by all their names."""
    return model.state_dict(keep_vars=True)


class Matched(NamedTuple):
    """How parameters and saved buffers are filled, and which tensors the class doesn't load."""

    fills: list[Fill]
    unused: list[str]


def match(model: torch.nn.Module, files: Files) -> Matched:
    """Finds a place for every tensor, and a tensor for every place.

    Parameters with two names, of which one is stored, have one fill.
    """
    state = state_of(model)
    names = Names(model, state)
    found: dict[str, list[tuple[Piece, Optional[str]]]] = {}
    unused: list[str] = []
    pieces = [Piece(s.name, s) for s in files.plain.values()]
    for u in files.units.values():
        pieces += unit_pieces(u, model, names)
    for piece in sorted(pieces, key=lambda p: natural(p.name)):
        target, pattern = names.find(piece.name)
        if target is None:
            target = slice_target(piece, names)
        if (
            target is not None
            and piece.unit
            and not piece.name.endswith(".weight")
            and not files.parameters
        ):
            raise DF11Error(
                f"{piece.name} is a parameter, and the version of dfloat11_config doesn't say "
                "that there are such"
            )
        if target is None:
            unused.append(left_over(piece, model, names))
        else:
            found.setdefault(target, []).append((piece, pattern))
    fills = [fill(target, state[target], of, names) for target, of in found.items()]
    check_missing(model, state, fills)
    return Matched(fills, unused)


# Python's int takes neither every digit of Unicode nor, since 3.11, more than 4300 of them.
NUMBER = re.compile("[0-9]{1,4300}")


def natural(name: str) -> list[tuple[int, Union[int, str]]]:
    return [(0, int(x)) if NUMBER.fullmatch(x) else (1, x) for x in name.split(".")]


def unit_pieces(u: Unit, model: torch.nn.Module, names: Names) -> list[Piece]:
    """Names the tensors of a unit. What its dict means depends on the class (docs/format.md)."""
    module = submodule(model, u.path)
    own = [u.path + ".weight", u.path]
    if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)) or not u.attributes:
        options = [own]
    else:
        options = [[f"{u.path}.{a}.weight", f"{u.path}.{a}"] for a in u.attributes]
        if len(u.sizes) == 1 and not any(names.find(n)[0] for n in options[0]):
            options = [own]  # a Linear or Embedding under another name: its list doesn't count
    if len(options) != len(u.sizes):
        raise DF11Error(
            f"{u.path}: the pattern dict names {len(options)} weights, the unit holds "
            f"{len(u.sizes)}"
        )
    pieces, offset = [], 0
    for n, candidates in zip(u.sizes, options):
        name = next(
            (c for c in candidates if names.find(c)[0]),
            candidates[-1] if candidates is own else candidates[0],
        )
        pieces.append(Piece(name, u, offset, n))
        offset += n
    return pieces


def submodule(model: torch.nn.Module, path: str) -> Optional[torch.nn.Module]:
    try:
        return model.get_submodule(path)
    except AttributeError:
        return None


def slice_target(piece: Piece, names: Names) -> Optional[str]:
    """Returns the parameter of which a piece is a slice along the first dimension, or None."""
    path, _, row = piece.name.rpartition(".")
    if not re.fullmatch(r"0|[1-9]\d*", row):
        return None
    target, pattern = names.find(path)
    return target if pattern is None else None


def left_over(piece: Piece, model: torch.nn.Module, names: Names) -> str:
    """Returns the name of a tensor that has no place, if the original's loader ignores it, too.

    That is one of a module that the class lacks, such as a layer for several tokens at once.
    """
    name = piece.name
    ignored = getattr(model, "_keys_to_ignore_on_load_unexpected", None) or ()
    if any(re.search(pattern, name) for pattern in ignored):
        return name
    path = piece.unit.path if piece.unit else name.rpartition(".")[0]
    shorter = path[len(names.prefix) + 1 :] if path.startswith(names.prefix + ".") else path
    options = [path, shorter, f"{names.prefix}.{path}", names.older(path)]
    if any(option and submodule(model, option) is not None for option in options):
        raise DF11Error(f"{name} has no place in {type(model).__name__}")
    return name


def fill(
    target: str, parameter: torch.Tensor, found: list[tuple[Piece, Optional[str]]], names: Names
) -> Fill:
    """Lays out the pieces that were found for a parameter, each with the source pattern of its
    converter.
    """
    pieces, patterns = [p for p, _ in found], {pattern for _, pattern in found}
    shape = tuple(parameter.shape)
    if patterns == {None}:
        if len(pieces) == 1 and pieces[0].name.rpartition(".")[0] != target:
            return Fill(target, [whole(pieces[0], shape)], pieces)
        return Fill(target, slices(target, shape, pieces), pieces)
    if None in patterns:
        raise DF11Error(
            f"{target} is filled by {some(p.name for p in pieces)}: one of them is too many"
        )
    converter = names.converter(next(iter(patterns)))
    order = [p for p in converter.source_patterns if p in patterns]
    columns = [[piece for piece, pattern in found if pattern == p] for p in order]
    parts = layout(target, shape, converter, columns)
    if parts is None:
        for piece, pattern in found:
            converter.layer_targets[target].add(piece.name)
        return Fill(target, [], pieces, (converter, found))
    return Fill(target, parts, pieces)


def whole(piece: Piece, shape: tuple[int, ...]) -> Part:
    return part(piece, (0,) * len(shape), shape)


def part(
    piece: Piece,
    start: tuple[int, ...],
    extent: tuple[int, ...],
    shape: Optional[tuple[int, ...]] = None,
) -> Part:
    """Checks that a piece has the size, and the shape if it has one, of its box."""
    shape = extent if shape is None else shape
    if piece.shape is not None and piece.shape != shape:
        raise DF11Error(
            f"{piece.name} has the shape {list(piece.shape)}, the class has {list(shape)}"
        )
    if piece.shape is None and piece.n != prod(extent):
        raise DF11Error(f"{piece.name} has {piece.n} weights, the class has {list(shape)}")
    return Part(piece, start, extent)


def slices(target: str, shape: tuple[int, ...], pieces: list[Piece]) -> list[Part]:
    """Lays out slices along the first dimension; their names end with their first row."""
    parts, row = [], 0
    for piece in pieces:
        path, _, start = piece.name.rpartition(".")
        if not NUMBER.fullmatch(start) or len(shape) < 1:
            raise DF11Error(
                f"{target} is filled by {some(p.name for p in pieces)}: one of them is too many"
            )
        rows, rest = divmod(piece.n_elems, prod(shape[1:]) or 1)
        if int(start) != row or rest or row + rows > shape[0]:
            raise DF11Error(
                f"{piece.name}: {piece.n_elems} weights from row {start} on don't continue "
                f"{target} at row {row}"
            )
        parts.append(part(piece, (row,) + (0,) * (len(shape) - 1), (rows,) + shape[1:]))
        row += rows
    if row != shape[0]:
        raise DF11Error(f"{target}: its slices end at row {row} of {shape[0]}")
    return parts


class Assembly(NamedTuple):
    """What a converter does, if it only puts tensors next to each other.

    The tensors of one source pattern are a column.
    """

    stacks: bool  # those of a column are the rows of the first dimension, such as experts
    dim: Optional[int]  # columns follow each other along this dimension; None if there is one


def assembly(converter, n_dims: int) -> Optional[Assembly]:
    """Returns how a converter puts together a parameter of so many dimensions; None if it computes
    it, or makes several.
    """
    operations = list(converter.operations)
    kinds = [type(op).__name__ for op in operations]
    stacks = kinds[:1] == ["MergeModulelist"] and operations[0].dim == 0
    if stacks:
        del operations[0], kinds[0]
    if kinds not in ([], ["Concatenate"]) or len(converter.target_patterns) != 1:
        return None
    if not stacks and not operations:
        return None
    return Assembly(stacks, operations[0].dim % n_dims if operations else None)


def layout(
    target: str, shape: tuple[int, ...], converter, columns: list[list[Piece]]
) -> Optional[list[Part]]:
    """Lays out the tensors that a converter puts together; None if it does something else."""
    how = assembly(converter, len(shape))
    if how is None:
        return None
    joins = how.dim is not None
    if joins and len(columns) != len(converter.source_patterns):
        raise DF11Error(
            f"{target}: of what makes it, only {some(p.name for c in columns for p in c)} is there"
        )
    if how.stacks and (not joins and len(columns) > 1 or any(len(c) != shape[0] for c in columns)):
        raise DF11Error(
            f"{target} is made of {len(columns[0])} tensors, the class has {list(shape)}"
        )
    if not how.stacks and any(len(c) != 1 for c in columns) or how == Assembly(True, 0):
        return None
    parts, at = [], 0
    for column in columns:
        box = list(shape)
        if how.stacks:
            box[0] = 1
        if joins:  # as long as the tensor says; part compares the rest
            box[how.dim] = column[0].n_elems * box[how.dim] // (prod(box) or 1)
        for row, piece in enumerate(column):
            start = [0] * len(shape)
            if how.stacks:
                start[0] = row
            if joins:
                start[how.dim] = at
            parts.append(
                part(piece, tuple(start), tuple(box), tuple(box[1:] if how.stacks else box))
            )
        at += box[how.dim] if joins else 0
    if joins and at != shape[how.dim]:
        raise DF11Error(
            f"{target}: its tensors make {at} of {shape[how.dim]} along dimension {how.dim}"
        )
    return parts


def check_missing(
    model: torch.nn.Module, state: dict[str, torch.Tensor], fills: list[Fill]
) -> None:
    filled = {id(state[name]) for f in fills for name in made(f, state)}
    missing = [
        name for name, t in state.items() if id(t) not in filled and not computed(model, name)
    ]
    if missing:
        raise Missing(model, missing)


def computed(model: torch.nn.Module, name: str) -> bool:
    """Reports whether the class says that a file may lack a tensor, since it computes it."""
    return any(
        re.search(pattern, name)
        for pattern in getattr(model, "_keys_to_ignore_on_load_missing", None) or ()
    )


def made(f: Fill, state: dict[str, torch.Tensor]) -> list[str]:
    """Returns the parameters that a fill makes: one, unless its converter has several targets."""
    if not f.converter:
        return [f.name]
    targets = f.converter[0].target_patterns
    names = [f.name.replace(targets[0], t) for t in targets]
    if any("*" in n for n in names):
        pattern = re.compile("|".join(re.escape(n).replace(r"\*", r"\d+") for n in names))
        return [n for n in state if pattern.fullmatch(n)]
    return [n for n in names if n in state]
