"""A compiled PyTorch module: tensors in, tensors out, without copies.

The program reads tensors by their addresses; a result is a tensor that shares the memory of the program's
result, which is used again when nobody refers to it.
"""

import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tuner.core.element_types import number_type
from tuner.core.errors import UsageError
from tuner.core.grouped_program import TensorType
from tuner.programs.run.grouped_function import GroupedFunction
from tuner.programs.run.host_function import HostFunction
from tuner.programs.torch_models.exported_module import ExportedModule, leaves_of, rebuilt
from tuner.programs.tuning import TunedProgram

Tensor = torch.Tensor
BITS = {"bf16": np.int16}  # numpy has no such type: torch takes the bits
NO_GRADIENTS = "autograd is not supported: call the program under torch.no_grad(), or detach its inputs"


class TensorProgram:
    """A compiled module that is called like the module, for the shapes and types of its example inputs.

    Results do not require gradients. Calls of several threads run one after the other.
    """

    def __init__(
        self,
        function: GroupedFunction | HostFunction,
        exported: ExportedModule,
        module: torch.nn.Module | None = None,
    ) -> None:
        """Takes a compiled function, what was exported, and the module whose weights it has."""
        self.function = function
        self.tuned: TunedProgram | None = None  # how the program was tuned, of ``tuner.torch.tune``
        self._exported = exported
        self._module = None if module is None else weakref.ref(module)
        self._versions = {} if module is None else dict(_versions(module))
        self._types = _types_of(function)
        self._expected = tuple((torch_type(each.element), torch.Size(each.shape)) for each in self._types)
        self._count = len(self._expected)
        self._run = function.run if isinstance(function, GroupedFunction) else None
        self._conversions = tuple(_conversion_of(element) for element in _result_elements(function))
        arguments, keywords = len(exported.inputs), exported.in_spec.num_leaves
        flat = torch.utils._pytree.tree_flatten((tuple([0] * arguments), {}))[1]  # noqa: SLF001 - torch's only API
        self._is_flat = arguments == keywords and flat == exported.in_spec
        single = torch.utils._pytree.tree_flatten(0)[1]  # noqa: SLF001
        self._is_single = exported.out_spec == single and exported.outputs[0].result == 0

    @property
    def why_no_groups(self) -> str:
        """Returns why the program is not computed as groups of operations; "" where it is."""
        return self.function.why_no_groups

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Calls the program.

        Args:
            arguments: those of the module, of the shapes and types of the example inputs.
            keywords: keyword arguments of the module, likewise.

        Returns:
            What the module returns, of tensors that do not require gradients.

        Raises:
            UsageError: an argument of another structure, shape, type or device, or one that requires
                gradients while autograd is enabled.

        Example:
            >>> import torch  # doctest: +SKIP
        """
        tensors = arguments
        if keywords or not self._is_flat:
            leaves = leaves_of(arguments, keywords, self._exported.in_spec)
            tensors = tuple(leaves[at] for at in self._exported.inputs)
        results = self.run(tensors)
        if self._is_single:
            return results[0]
        outputs = self._exported.outputs
        leaves = [each.constant if each.result is None else results[each.result] for each in outputs]
        return rebuilt(leaves, self._exported.out_spec)

    def run(self, tensors: tuple[Any, ...]) -> list[torch.Tensor]:
        """Calls the program on the function's arguments; returns its results in order.

        Raises UsageError for an argument that does not fit.
        """
        if len(tensors) != self._count:
            raise UsageError(f"found {len(tensors)} tensors, allowed {self._count}")
        addresses = []
        for tensor, (dtype, shape) in zip(tensors, self._expected, strict=True):
            if not (
                tensor.__class__ is Tensor
                and tensor.dtype is dtype
                and tensor.shape == shape
                and tensor.is_cpu
                and not tensor.requires_grad
                and tensor.is_contiguous()
            ):
                return self.run(self._checked(tensors))
            addresses.append(tensor.data_ptr())
        if self._run is not None:
            arrays = self._run(addresses)
        else:
            found = self.function(*(_array(each) for each in tensors))
            arrays = list(found) if isinstance(found, tuple) else [found]
        return [convert(array) for convert, array in zip(self._conversions, arrays, strict=True)]

    def stale(self) -> tuple[str, ...]:
        """Returns the names of the module's weights that were changed after the program was compiled.

        Changes are seen by the versions that autograd counts: those of ``.data`` in place are not.

        Args:
            None.

        Returns:
            Names of parameters and buffers; () where the program has the present ones, and where the module
            does not exist any more.

        Raises:
            Nothing.
        """
        module = None if self._module is None else self._module()
        if module is None:
            return ()
        now = dict(_versions(module))
        return tuple(name for name in self._versions | now if self._versions.get(name) != now.get(name))

    def export(self, folder: str | Path) -> None:
        """Writes the program into a folder, for ``tuner.load`` (arrays) and ``tuner.torch.load`` (tensors).

        Args:
            folder: path of a folder that is new, or has an exported program.

        Returns:
            None.

        Raises:
            UsageError: the folder has other files, or the program is not one of groups of operations.
        """
        if not isinstance(self.function, GroupedFunction):
            raise UsageError(f"only a program of groups is exported: {self.why_no_groups}")
        self.function.export(folder)

    def _checked(self, tensors: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
        """Returns tensors that the fast path takes: views of parameters, copies of what is not contiguous."""
        checked = []
        for number, (tensor, (dtype, shape)) in enumerate(zip(tensors, self._expected, strict=True)):
            if not isinstance(tensor, torch.Tensor):
                raise UsageError(f"argument {number}: found {type(tensor).__name__}, allowed a tensor")
            if tensor.dtype != dtype or tensor.shape != shape:
                found, allowed = _text(tensor.dtype, tensor.shape), _text(dtype, shape)
                raise UsageError(f"argument {number}: found {found}, allowed {allowed}")
            if not tensor.is_cpu:
                raise UsageError(f"argument {number}: found device {tensor.device}, allowed cpu")
            if tensor.requires_grad and torch.is_grad_enabled():
                raise UsageError(NO_GRADIENTS)
            plain = tensor.detach()
            checked.append(plain.as_subclass(torch.Tensor).contiguous())
        return tuple(checked)


def torch_type(element: str) -> torch.dtype:
    """Returns PyTorch's type of an MLIR element type; its name is numpy's."""
    found: torch.dtype = getattr(torch, number_type(element).numpy_name.removesuffix("_"))
    return found


def _types_of(function: GroupedFunction | HostFunction) -> tuple[TensorType, ...]:
    if isinstance(function, GroupedFunction):
        return function.code.arguments
    kinds = function.program.arguments
    return tuple(TensorType(tuple(int(size) for size in kind.shape), kind.element) for kind in kinds)  # type: ignore[union-attr,arg-type]


def _result_elements(function: GroupedFunction | HostFunction) -> tuple[str, ...]:
    results = function.code.results if isinstance(function, GroupedFunction) else function.program.results
    return tuple(each.element for each in results)


def _versions(module: torch.nn.Module) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yields the name, the address and the version of each parameter and buffer."""
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        version = 0 if tensor.is_inference() else tensor._version  # noqa: SLF001 - torch's only API
        yield name, (tensor.data_ptr(), version)


def _array(tensor: torch.Tensor) -> Any:
    if tensor.dtype is torch.bfloat16:
        import ml_dtypes

        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def _conversion_of(element: str) -> Callable[[Any], torch.Tensor]:
    """Returns the function that makes a tensor of a result: one that shares the array's memory."""
    if element not in BITS:
        convert: Callable[[Any], torch.Tensor] = torch.from_numpy
        return convert
    bits, kind = BITS[element], torch_type(element)
    return lambda array: torch.from_numpy(array.view(bits)).view(kind)


def _text(dtype: torch.dtype, shape: torch.Size) -> str:
    return f"{str(dtype).removeprefix('torch.')} of shape {'x'.join(map(str, shape)) or '()'}"
