"""Guards of compiled modules: what a call depends on beyond the numbers."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch._C import _functorch
from torch._C._dynamo.guards import TensorGuards
from torch.autograd import forward_ad
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from tuner.core.errors import UsageError
from tuner.models.torch.dynamic_sizes import Shape
from tuner.runtime.arrays import require_distinct, type_text

# What a call of a compiled module depends on beyond the numbers: kinds of tensors, and PyTorch's modes.
#
# A program reads memory by its address, and does not see what PyTorch keeps next to the numbers: lazy signs,
# tangents, transforms, autocast. So each call is compared with what the program was compiled under, by the
# guard that torch.compile itself uses for tensors, which takes 0.2 us; what differs is made equal (signs are
# resolved, strides made contiguous), or refused in one line.

Expected = tuple[tuple[torch.dtype, Shape], ...]
Check = Callable[..., bool]
PROCESSOR = torch.device("cpu")
NO_GRADIENTS = "autograd is not supported: call the program under torch.no_grad(), or detach its inputs"
NO_TANGENTS = "forward-mode autograd is not supported: the input has a tangent"
dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack  # noqa: SLF001 - torch's only API
function_modes: Callable[[], int] = torch._C._len_torch_function_stack  # noqa: SLF001
default_dtype = torch.get_default_dtype


def tensor_checks(expected: Expected) -> tuple[Check, Check, Check]:
    """Returns three guards of PyTorch: functions that return True for tensors that need no check or copy.

    The first is for calls outside of inference mode; the second for calls inside; the third for calls inside
    with tensors that were made inside. ``expected``: (type, shape) of each tensor.
    """
    checks = []  # they compare dispatch keys: tracing adds one, so that no guard holds there
    for is_called_inside, is_made_inside in ((False, False), (True, False), (True, True)):
        with torch.inference_mode(is_made_inside):
            examples = [torch.empty(_example_shape(shape), dtype=dtype) for dtype, shape in expected]
        with torch.inference_mode(is_called_inside):
            shapes = [shape for _, shape in expected]
            checks.append(_check_like(examples, shapes) if examples else lambda: False)
    return checks[0], checks[1], checks[2]


def _check_like(examples: list[torch.Tensor], shapes: list[Shape]) -> Check:
    sizes: list[Any] = list(map(list, shapes))
    strides: list[Any] = list(map(_strides, examples, shapes))
    check: Check = TensorGuards(*examples, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
    return check


def _example_shape(shape: Shape) -> tuple[int, ...]:
    return tuple(2 if size is None else size for size in shape)


def _strides(example: torch.Tensor, shape: Shape) -> list[int | None]:
    """Returns the strides that are required; None for a dynamic dimension and for those before it."""
    strides: list[int | None] = list(example.stride())
    for dimension in range(len(shape)):
        if None in shape[dimension:]:
            strides[dimension] = None
    return strides


def require_modes(compiled_under: torch.dtype) -> None:
    """Raises UsageError where a program cannot be called or compiled as PyTorch would compute.

    Such are autocast, torch.jit.trace, a TorchDispatchMode, a TorchFunctionMode that is not the device CPU,
    and another default dtype than ``compiled_under``.
    """
    if torch.is_autocast_enabled("cpu"):
        raise UsageError(
            "torch.autocast is not supported around a program",
            "compile a module whose forward has autocast, and call the program outside of it",
        )
    if default_dtype() is not compiled_under:
        raise UsageError(
            f"found default dtype {_name(default_dtype())}, allowed {_name(compiled_under)}, "
            "which the program was compiled under"
        )
    if torch.jit.is_tracing():
        raise UsageError("torch.jit.trace is not supported: it would keep the program's results as constants")
    if dispatch_modes():
        raise UsageError(
            "a TorchDispatchMode, such as FakeTensorMode, is not supported: it would not see the program"
        )
    for mode in _get_current_function_mode_stack():
        if not isinstance(mode, DeviceContext) or mode.device != PROCESSOR:
            raise UsageError(f"{type(mode).__name__} is not supported: it changes operations of the module")


def require_no_transforms() -> None:
    """Raises UsageError inside a transform of ``torch.func``, such as vmap: no module is compiled there."""
    if _functorch.peek_interpreter_stack() is not None:
        raise UsageError("transforms of torch.func are not supported: compile outside of vmap, grad and jvp")


def plain(tensor: object, name: str) -> torch.Tensor:
    """Returns a CPU tensor, detached, with lazy signs (conj, neg) resolved.

    Raises UsageError for what a program cannot read: what is not a tensor, tensors of torch.func, subclasses
    with code of their own, nested, sparse and quantized tensors, other devices, forward-mode tangents, and
    freed storage. ``name`` begins the message, but that about tangents.
    """
    if not isinstance(tensor, torch.Tensor):
        raise UsageError(f"{name}: found {type(tensor).__name__}, allowed a tensor")
    if _functorch.is_functorch_wrapped_tensor(tensor) or torch._is_functional_tensor(tensor):  # noqa: SLF001
        raise UsageError(
            f"{name}: transforms of torch.func are not supported: vmap, grad, jvp, functionalize"
        )
    keys = torch._C._dispatch_keys(tensor)  # noqa: SLF001 - torch's only API
    if keys.has(torch._C.DispatchKey.Python):  # noqa: SLF001 - its numbers are elsewhere, or nowhere
        raise UsageError(f"{name}: found {type(tensor).__name__}, allowed a tensor with its own memory")
    if not _is_passing(type(tensor)):
        raise UsageError(
            f"{name}: found {type(tensor).__name__}, whose __torch_function__ a program would not call",
            "pass .as_subclass(torch.Tensor)",
        )
    if tensor.is_nested:
        raise UsageError(f"{name}: found a nested tensor, allowed a dense tensor")
    if tensor.layout is not torch.strided or tensor.is_quantized:
        if tensor.is_quantized:
            found_layout = "a quantized tensor"
        else:
            found_layout = str(tensor.layout).removeprefix("torch.")
        raise UsageError(f"{name}: found {found_layout}, allowed a dense tensor")
    if not tensor.is_cpu:
        raise UsageError(f"{name}: found device {tensor.device}, allowed cpu")
    if forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None:  # noqa: SLF001
        raise UsageError(NO_TANGENTS)
    dense = materialized(tensor)
    require_memory(dense, name)
    return dense.detach().as_subclass(torch.Tensor).resolve_conj().resolve_neg()


def materialized(tensor: torch.Tensor) -> torch.Tensor:
    """Returns zeros in memory for a ZeroTensor of autograd, which has none; other tensors as they are."""
    if torch._C._dispatch_keys(tensor).has(torch._C.DispatchKey.ZeroTensor):  # noqa: SLF001
        return torch.zeros(tensor.shape, dtype=tensor.dtype)
    return tensor


def _is_passing(class_: type[torch.Tensor]) -> bool:
    function: Any = class_.__torch_function__
    if inspect.ismethod(function):
        return function.__func__ is torch.Tensor.__torch_function__.__func__
    return function is torch._C._disabled_torch_function_impl  # noqa: SLF001 - of parameters


def require_memory(tensor: torch.Tensor, name: str) -> None:
    """Raises UsageError, with ``name``, for a tensor whose storage was freed or is too small."""
    needed = tensor.storage_offset() * tensor.element_size() + span_bytes(tensor)
    is_freed = tensor.untyped_storage().nbytes() < needed or not tensor.data_ptr()
    if tensor.numel() and is_freed:
        raise UsageError(f"{name}: found a tensor without memory: its storage was freed")


def checked(tensors: Sequence[object], expected: Expected, names: Sequence[str]) -> tuple[torch.Tensor, ...]:
    """Returns the tensors of a call as contiguous tensors, copied where needed.

    ``expected``: (type, shape) per tensor; ``names``: of the arguments, for messages. Raises UsageError for
    another type or shape, for what ``plain`` refuses, and for required gradients while autograd is on.
    """
    dense = []
    for tensor, (dtype, shape), name in zip(tensors, expected, names, strict=True):
        ready = plain(tensor, name)
        if ready.dtype != dtype or not _fits(ready.shape, shape):
            found = type_text(_name(ready.dtype), ready.shape)
            raise UsageError(f"{name}: found {found}, allowed {type_text(_name(dtype), shape)}")
        if tensor.requires_grad and torch.is_grad_enabled():  # type: ignore[attr-defined,unused-ignore]
            raise UsageError(NO_GRADIENTS)
        dense.append(ready.contiguous())
    return tuple(dense)


def require_separate(tensors: Mapping[str, torch.Tensor], changed: Iterable[str]) -> None:
    """Raises UsageError where a tensor that a call changes shares memory with another tensor of the call."""
    for name in changed:
        first = tensors[name].data_ptr()
        end = first + span_bytes(tensors[name])
        for other, tensor in tensors.items():
            other_first = tensor.data_ptr()
            is_shared = other != name and first < other_first + span_bytes(tensor) and other_first < end
            require_distinct(name, other, is_shared=is_shared)


def _fits(shape: torch.Size, expected: Shape) -> bool:
    pairs = zip(shape, expected, strict=False)
    return len(shape) == len(expected) and all(size in (found, None) for found, size in pairs)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def span_bytes(tensor: torch.Tensor) -> int:
    """Returns the bytes from the first element of a tensor to the end of the last one."""
    if not tensor.numel():
        return 0
    return (last_element(tensor.shape, tensor.stride()) + 1) * int(tensor.element_size())


def last_element(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Returns the offset of a tensor's last element from its first element in memory, in elements."""
    return sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
