"""What weights contain, so that code which has copies of them is not used after they have changed.

torch counts versions of a tensor, which writes through ``.data``, numpy or DLPack leave as they are, and
which tensors made under inference mode lack; addresses are used again. Contents are compared by 64 bits of a
hash, read at the speed of memory: all of them, or a part at each call (``WeightSamples``).
"""

import itertools
import math
import weakref
from collections.abc import Iterator, Sequence
from operator import attrgetter, is_
from typing import Any

import numpy as np
import torch

from tuner.models.torch.guards import materialized, span_bytes
from tuner.runtime.cpu.content_hash import ContentHash

Layout = tuple[int, torch.dtype, torch.Size, tuple[int, ...]]  # address, type, shape, strides
State = tuple[
    tuple[Any, ...], ...
]  # of each tensor: type, shape and strides, and the hash of what it contains
Versions = tuple[tuple[int, int, int], ...]  # identity, address and version of tensors
Ranges = tuple[tuple[int, int, int], ...]  # index of a tensor, offset in bytes, number of bytes
# what WeightSamples read at each call (docs/decisions/models.md has the times)
LEAST_BYTES = 1 << 15  # half a microsecond from a cache
MOST_CALLS = 128  # until all is read
ROWS = 256  # of a call that reads all; one of fewer rows reads a part as large as its share of these rows
LINE_BYTES = 64  # of a cache
VERSION = attrgetter("_version")  # torch's only name
LINES = 4  # of each tensor: a write of half of it is seen by 15 of 16 calls


def versions_of(tensors: Sequence[torch.Tensor]) -> Versions | None:
    """Returns per tensor (identity, address, PyTorch's counter of writes), to compare with a later result.

    None if a tensor has no counter, as one made in inference mode. Valid while the memory of the tensors is
    kept: its address may be given to another tensor otherwise.
    """
    pointers = map(torch.Tensor.data_ptr, tensors)
    try:  # a model has hundreds of weights: no call of Python for each
        return tuple(zip(map(id, tensors), pointers, map(VERSION, tensors), strict=True))
    except RuntimeError:
        return None


class WeightContents:
    """Computes hashes of tensors' contents; faster if a call has the same tensors as the call before."""

    def __init__(self) -> None:
        self._known: tuple[list[Layout], tuple[ContentHash, ...]] = ([], ())

    def of(self, tensors: Sequence[torch.Tensor]) -> State:
        """Returns a state per tensor: equal for equal type, shape, strides and contents (a 64-bit hash)."""
        layouts = list(map(_layout, tensors))
        known, contents = self._known  # read at once: other threads call this, too
        if layouts != known:
            # all of the memory between the first and the last element is the tensor's
            dense = list(map(_dense, map(materialized, tensors)))
            contents = tuple(ContentHash([(tensor.data_ptr(), span_bytes(tensor))]) for tensor in dense)
            if all(map(is_, dense, tensors)):
                self._known = (layouts, contents)
        return tuple(
            (*layout[1:], content.value()) for layout, content in zip(layouts, contents, strict=True)
        )


def _layout(tensor: torch.Tensor) -> Layout:
    return tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    is_dense = span_bytes(tensor) <= int(tensor.numel()) * int(tensor.element_size())
    return tensor if is_dense else tensor.detach().contiguous()


class WeightSamples:
    """Detects writes to tensors by hashing a part of their memory at each call of ``late_calls``.

    The reference is the contents at construction. The memory is divided into ``calls`` equal parts; a call
    hashes the next part, so that ``calls`` successive calls cover all of it. If there are several parts, a
    call also hashes a few cache lines of every tensor, so that a write to a whole tensor is seen at once.
    These lines are drawn at construction, one set per part.
    """

    def __init__(self, tensors: Sequence[torch.Tensor], flop: float, rng: np.random.Generator) -> None:
        """Reads all of the tensors. ``flop``: of a call; ``rng``: draws the lines."""
        sizes = list(map(_memory_bytes, tensors))
        rows = flop / 2 / max(1, sum(map(torch.Tensor.numel, tensors)))  # that a product would have
        calls = min(MOST_CALLS, sum(sizes) / LEAST_BYTES, ROWS / max(1, rows))
        self.calls = max(1, math.ceil(calls))
        self._parts = _parts(sizes, self.calls, rng)
        self._count = itertools.count()
        self.move_to(tensors)
        self._known: tuple[int, ...] = tuple(map(self._value, range(self.calls)))

    def move_to(self, tensors: Sequence[torch.Tensor]) -> None:
        """Reads other tensors from now on, which contain the same and have the same strides."""
        self._addresses = tuple(map(torch.Tensor.data_ptr, tensors))
        self._hashes: list[ContentHash | None] = [None] * self.calls

    def late_calls(self) -> int | None:
        """Compares this call's part of the memory with its contents at construction; None if they are equal.

        Else hashes the parts of the calls before this one again, the latest first, and returns how many are
        still equal, up to the first that is not: these calls could not see the write. That first one read
        its part before the write.
        """
        call = next(self._count)  # of this call alone, if others are made by other threads
        if self._is_known(call):
            return None
        earlier = range(call - 1, max(call - self.calls, -1), -1)
        return sum(1 for _ in itertools.takewhile(self._is_known, earlier))

    def _is_known(self, call: int) -> bool:
        part = call % self.calls
        is_known: bool = self._value(part) == self._known[part]
        return is_known

    def _value(self, part: int) -> int:
        content = self._hashes[part]
        if content is None:
            addresses = self._addresses
            content = ContentHash(
                [(addresses[index] + offset, size) for index, offset, size in self._parts[part]]
            )
            self._hashes[part] = content
        return content.value()


def _memory_bytes(tensor: torch.Tensor) -> int:
    """Returns the bytes from the first element to the end of the last one; 0 for zeros without memory."""
    if not tensor.data_ptr():
        return 0
    return span_bytes(tensor)


def _parts(sizes: Sequence[int], count: int, rng: np.random.Generator) -> tuple[Ranges, ...]:
    """Returns ``count`` equal parts of the memory of tensors, of so many bytes each as ``sizes`` says.

    If there are several parts, each also has a few lines drawn from every tensor.
    """
    length = math.ceil(sum(sizes) / count / LINE_BYTES) * LINE_BYTES
    parts: list[list[tuple[int, int, int]]] = [[] for _ in range(count)]
    end = 0  # of the tensors so far, as if one began where another ends
    for index, size in enumerate(sizes):
        first = end
        end += size
        while first < end:
            part = first // length if length else 0
            stop = min(end, (part + 1) * length)
            parts[part].append((index, first - (end - size), stop - first))
            first = stop
    if count > 1:
        for part_ranges in parts:
            part_ranges.extend(_drawn_lines(sizes, rng))
    return tuple(map(tuple, parts))


def _drawn_lines(sizes: Sequence[int], rng: np.random.Generator) -> Iterator[tuple[int, int, int]]:
    lines = -(-np.array(sizes) // LINE_BYTES)
    indices = np.repeat(np.flatnonzero(lines), LINES)
    for index, line in zip(indices.tolist(), rng.integers(lines[indices]).tolist(), strict=True):
        offset = line * LINE_BYTES
        yield index, offset, min(LINE_BYTES, sizes[index] - offset)


class ModuleWeights:
    """Hashes of a module's parameters and buffers, computed at construction, to find later changes."""

    def __init__(
        self, module: torch.nn.Module | torch.export.ExportedProgram, without: Sequence[str] = ()
    ) -> None:
        """Hashes all weights but those of the names ``without``, which calls of the module may change.

        Has a weak reference to the module only.
        """
        self._module = weakref.ref(module)
        self._without = frozenset(without)
        self._states = dict(_states(module, self._without))

    def changed(self) -> tuple[str, ...]:
        """Returns the names of weights that have changed, come or gone since; () if the module is gone."""
        module = self._module()
        if module is None:
            return ()
        now = dict(_states(module, self._without))
        return tuple(name for name in self._states | now if self._states.get(name) != now.get(name))


def _states(
    module: torch.nn.Module | torch.export.ExportedProgram, without: frozenset[str]
) -> Iterator[tuple[str, State]]:
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if name in without:
            continue
        resolved = materialized(tensor.detach()).cpu().resolve_conj().resolve_neg().contiguous()
        yield name, WeightContents().of([resolved])
