"""What weights contain, so that code which has copies of them is not used after they have changed.

torch counts versions of a tensor, which writes through ``.data``, numpy or DLPack leave as they are, and
which tensors made under inference mode lack; addresses are used again. Contents are compared by 64 bits of a
hash, read at the speed of memory.
"""

import weakref
from collections.abc import Iterator, Sequence
from operator import is_
from typing import Any

import torch

from tuner.runtime.cpu.content_hash import ContentHash
from tuner.torch.guards import materialized, span_bytes

Layout = tuple[int, torch.dtype, torch.Size, tuple[int, ...]]  # address, type, shape, strides
State = tuple[
    tuple[Any, ...], ...
]  # of each tensor: type, shape and strides, and the hash of what it contains
Versions = tuple[tuple[int, int, int], ...]  # identity, address and version of tensors


def versions_of(tensors: Sequence[torch.Tensor]) -> Versions | None:
    """Returns what differs after a write that PyTorch counts, and for other tensors; None without counters.

    Valid while the memory of the tensors is kept: an address may be given to another tensor otherwise.
    Tensors that were made in inference mode have no counter.
    """
    try:
        return tuple(map(_version, tensors))
    except RuntimeError:
        return None


def _version(tensor: torch.Tensor) -> tuple[int, int, int]:
    return id(tensor), tensor.data_ptr(), tensor._version  # noqa: SLF001 - torch's only name


def _layout(tensor: torch.Tensor) -> Layout:
    return tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()


class WeightContents:
    """Computes hashes of tensors' contents; fast if the tensors are those of the call before."""

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


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    is_dense = span_bytes(tensor) <= int(tensor.numel()) * int(tensor.element_size())
    return tensor if is_dense else tensor.detach().contiguous()


class ModuleWeights:
    """Hashes of a module's parameters and buffers, computed at construction, to find later changes."""

    def __init__(
        self, module: torch.nn.Module | torch.export.ExportedProgram, changed: Sequence[str] = ()
    ) -> None:
        """Reads all weights but ``changed`` ones, which calls change; refers weakly to the module."""
        self._module = weakref.ref(module)
        self._without = frozenset(changed)
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
