"""Mixtures of experts: which chunks of a unit have weights of which expert, and which experts a
router has picked.

A chunk has one or two owners: experts, by number, or 0, which stands for all other weights.
"""

import functools
import inspect
from types import CodeType
from typing import TYPE_CHECKING, NamedTuple, Optional

import torch
from torch import nn

if TYPE_CHECKING:
    from .units import View

MANY = 4  # picks for each expert, from which on all are decoded: so many leave out 2% by chance
MAX_OWNERS = 2**15
# Transformers' own implementations, which read only the experts that are picked.
PICKED_ALONE = {"eager", "batched_mm", "grouped_mm"}


class Experts(NamedTuple):
    """A module that gets the router's picks when it's called."""

    path: str  # from the group's module on
    n: int
    argument: str  # with the picks, the second of forward
    first: int  # owner of its first expert

    def picks(self, module: nn.Module, args, kwargs) -> Optional[torch.Tensor]:
        """Returns which experts' weights a call reads, by number; None if it may read more."""
        if module.config._experts_implementation not in PICKED_ALONE:
            return None
        return args[1] if len(args) > 1 else kwargs.get(self.argument)


class Segments(NamedTuple):
    """The weights of a group, cut where their owner changes."""

    starts: list[int]
    owners: list[int]


@functools.cache
def dispatch() -> Optional[CodeType]:
    """Returns the code of every forward that transformers' decorator for experts has made; None
    before transformers 5.
    """
    try:
        from transformers.integrations.moe import use_experts_implementation
    except ImportError:
        return None

    class Any(nn.Module):
        def forward(self, hidden_states, top_k_index, top_k_weights):
            pass

    return use_experts_implementation(Any).forward.__code__


def find(group: nn.Module, views: "list[View]") -> list[Experts]:
    """Returns the modules of experts among those that have the views.

    They must be made with transformers' decorator, which calls them with the picks.
    """
    found, first = [], 1
    for path in sorted({view.path for view in views}):
        module = group.get_submodule(path)
        forward, n = type(module).forward, getattr(module, "num_experts", None)
        if dispatch() is None or getattr(forward, "__code__", None) is not dispatch():
            continue
        if any(len(v.shape) < 3 or v.shape[0] != n for v in views if v.path == path):
            continue
        found.append(Experts(path, n, list(inspect.signature(forward).parameters)[2], first))
        first += n + 1  # some classes use the number after the last for no expert
        if not path:
            break
    return found if first <= MAX_OWNERS else []


def segments(
    experts: list[Experts], views: "list[View]", n_weights: int
) -> Optional[Segments]:
    """Returns whose the weights of a group are; None if those of experts lie between each other."""
    of = {e.path: e for e in experts}
    spans = []
    for view in views:
        if view.path in of:
            e, inner = of[view.path], zip(view.shape[1:], view.strides[1:])
            n = 1 + sum((size - 1) * stride for size, stride in inner)  # from first to last weight
            spans += [(view.offset + i * view.strides[0], n, e.first + i) for i in range(e.n)]
    made, at = Segments([], []), 0
    for start, n, owner in [*sorted(spans), (n_weights, 0, 0)]:
        if start < at:
            return None
        if start > at:
            made.starts.append(at)
            made.owners.append(0)
        if n:
            made.starts.append(start)
            made.owners.append(owner)
        at = start + n
    return made


def owners(found: Segments, positions: torch.Tensor, at: int) -> torch.Tensor:
    """Returns the owners of a unit's chunks: two of 16 bits, or 0 if there are more.

    The unit begins at weight `at`.
    """
    starts, numbers = (torch.tensor(values, device=positions.device) for values in found)
    positions = positions.to(torch.int64) + at
    first = torch.searchsorted(starts, positions[:-1], right=True) - 1
    last = torch.maximum(torch.searchsorted(starts, positions[1:] - 1, right=True) - 1, first)
    return torch.where(last - first <= 1, numbers[first] | numbers[last] << 16, 0).to(torch.int32)


def mask(experts: list[Experts], device: torch.device, rest: bool) -> torch.Tensor:
    """Returns a byte for each owner, of which none is picked, but for 0 with rest."""
    with torch.inference_mode(False):
        made = torch.zeros(
            max(e.first + e.n for e in experts) + 1, dtype=torch.uint8, device=device
        )
        made[:1] = rest
    return made


def pick(e: Experts, marks: torch.Tensor, picks: Optional[torch.Tensor]) -> bool:
    """Marks what is picked, on the device, without waiting for it.

    False says that all experts are to be decoded.
    """
    if picks is None or picks.numel() >= MANY * e.n:
        return False
    part = marks[e.first : e.first + e.n + 1]
    part.zero_()
    part.index_fill_(0, picks.reshape(-1).to(part.device, torch.int64), 1)
    return True


def worth(tables: list[torch.Tensor]) -> bool:
    """Reports whether any chunk has only weights of experts."""
    return any(bool(((t & 0xFFFF != 0) & (t >> 16 != 0)).any()) for t in tables)
