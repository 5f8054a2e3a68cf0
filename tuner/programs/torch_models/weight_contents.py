"""What weights contain, so that code which has copies of them is not used after they have changed.

torch counts versions of a tensor, which writes through ``.data``, numpy or DLPack leave as they are, and
which tensors made under inference mode lack; addresses are used again. So contents are compared: 64 bits of
a hash, read at the speed of memory.
"""

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from tuner.runtime.cpu.content_hash import ContentHash

Layout = tuple[int, torch.dtype, torch.Size, tuple[int, ...]]  # address, type, shape, strides
State = tuple[tuple[Any, ...], int]  # types, shapes and strides of tensors, and the hash of what they contain


class WeightContents:
    """Reads the contents of tensors, mostly of the same ones as in the call before."""

    def __init__(self) -> None:
        self._known: tuple[list[Layout], tuple[Any, ...], ContentHash | None] = ([], (), None)

    def of(self, tensors: Sequence[torch.Tensor]) -> State:
        """Returns a value that equals another one if types, shapes, strides and contents are equal."""
        layouts = [(each.data_ptr(), each.dtype, each.shape, each.stride()) for each in tensors]
        known, kinds, content = self._known  # read at once: other threads call this, too
        if content is not None and layouts == known:
            return kinds, content.value()
        kinds = tuple(each[1:] for each in layouts)
        dense = [each if _is_dense(each) else each.detach().contiguous() for each in tensors]
        content = ContentHash([(each.data_ptr(), _span_bytes(each)) for each in dense])
        if all(one is other for one, other in zip(dense, tensors, strict=True)):
            self._known = (layouts, kinds, content)
        return kinds, content.value()


class ModuleWeights:
    """The parameters and buffers of a module, or of an exported program, as they were when this was made."""

    def __init__(self, module: torch.nn.Module | torch.export.ExportedProgram) -> None:
        """Reads all weights once; keeps no reference to the module."""
        self._module = weakref.ref(module)
        self._states = dict(_states(module))

    def changed(self) -> tuple[str, ...]:
        """Returns the names of weights that have changed; () where the module does not exist any more."""
        module = self._module()
        if module is None:
            return ()
        now = dict(_states(module))
        return tuple(name for name in self._states | now if self._states.get(name) != now.get(name))


def _states(module: torch.nn.Module | torch.export.ExportedProgram) -> Iterator[tuple[str, State]]:
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        yield name, WeightContents().of([plain])


def _is_dense(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor has all the memory between its first and its last element."""
    return _span_bytes(tensor) <= int(tensor.numel()) * int(tensor.element_size())


def _span_bytes(tensor: torch.Tensor) -> int:
    if not tensor.numel():
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (int(last) + 1) * int(tensor.element_size())
