"""A module as parts that run one after the other: compiled programs, and PyTorch's own operators."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse
from operator import attrgetter

import torch

from tuner.models.torch.dynamic_sizes import DynamicSize, Shape
from tuner.models.torch.guards import require_separate

Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True, eq=False)
class TensorPart:
    """Some operators of a module, as a compiled program or as PyTorch's own operators.

    ``reads`` and ``returns``: names of the tensors that ``call`` takes and returns, in order.
    """

    call: Callable[[tuple[torch.Tensor, ...]], Tensors]
    reads: tuple[str, ...]
    returns: tuple[str, ...]


@dataclass(frozen=True)
class ChangedTensor:
    """A buffer or input that a module changes: its name, and the name of its new value, in the parts."""

    owner: str  # the changed tensor
    value: str  # its new value
    buffer: str  # name of the buffer in the module; "" for an input
    is_in_place: bool  # parts write the tensor itself; False: the new value is copied into it


@dataclass(frozen=True, eq=False)
class PartedFunction:
    """A module as parts that run one after the other, some of them by PyTorch's own operators."""

    shapes: tuple[Shape, ...]  # of the arguments
    inputs: tuple[str, ...]
    parts: tuple[TensorPart, ...]
    results: tuple[str, ...]
    held: Mapping[str, torch.Tensor]  # results that depend on weights alone
    why_no_fusions: str  # which operators run in PyTorch, and what the module changes
    state: Mapping[str, torch.Tensor]  # the module's buffers that it changes
    changes: tuple[ChangedTensor, ...]
    sizes: tuple[DynamicSize, ...]  # of the arguments
    views: TensorPart  # makes results that are views of arguments or of other results

    def __repr__(self) -> str:
        """Returns one line: how many parts there are, and which operators run in PyTorch."""
        return f"PartedFunction({len(self.parts)} parts; {self.why_no_fusions})"

    def __call__(self, tensors: Tensors) -> list[torch.Tensor]:
        """Runs the parts in order, then changes buffers and arguments.

        A result that is the new value of a buffer or of an argument is that tensor; but for these and
        ``views`` no result shares memory with an argument, a weight, a buffer or another result. Raises
        UsageError where a tensor that is changed shares memory with another, and for dynamic sizes out of
        range.
        """
        for size in self.sizes:
            size.require(tensors)
        values = {**dict(zip(self.inputs, tensors, strict=True)), **self.state}
        owners = {change.value: values[change.owner] for change in self.changes}
        if owners:
            require_separate(values, map(attrgetter("owner"), self.changes))
        taken = set(map(_storage, (*values.values(), *self.held.values())))
        values |= self.held
        for part in self.parts:
            values.update(zip(part.returns, _called(part, values), strict=True))
        for name in dict.fromkeys(self.results):
            if name not in self.views.returns and name not in owners:
                values[name] = _own(values[name], taken)
        self._copy_new_values(values, taken)
        values |= owners
        values.update(zip(self.views.returns, _called(self.views, values), strict=True))
        return list(map(values.__getitem__, self.results))

    def _copy_new_values(self, values: Mapping[str, torch.Tensor], taken: set[int]) -> None:
        copied = list(filterfalse(attrgetter("is_in_place"), self.changes))
        # all new values first: one may be a view of a tensor that is changed
        new = [_own(values[change.value], taken) for change in copied]
        for change, value in zip(copied, new, strict=True):
            values[change.owner].copy_(value)

    @property
    def changed_buffers(self) -> tuple[str, ...]:
        """Returns the names of the module's buffers that a call changes."""
        return tuple(filter(None, map(attrgetter("buffer"), self.changes)))

    @property
    def changed_inputs(self) -> tuple[int, ...]:
        """Returns the indices, from 0, of the arguments that a call changes."""
        return tuple(self.inputs.index(change.owner) for change in self.changes if not change.buffer)


def _called(part: TensorPart, values: Mapping[str, torch.Tensor]) -> Tensors:
    return part.call(tuple(map(values.__getitem__, part.reads)))


def _own(tensor: torch.Tensor, taken: set[int]) -> torch.Tensor:
    """Returns ``tensor`` and adds its storage to ``taken``; a copy of it if the storage is there already.

    The storage of a copy is not added: nothing else has it. A number, such as a size, is returned as it is.
    """
    if not isinstance(tensor, torch.Tensor):
        return tensor
    address = _storage(tensor)
    if address in taken:
        return tensor.clone()
    taken.add(address)
    return tensor


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())
