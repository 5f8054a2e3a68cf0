"""Guards of compiled modules: what a call depends on beyond the numbers, and what its weights contain."""

import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._C import _functorch
from torch._C._dynamo.guards import TensorGuards
from torch.autograd import forward_ad
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from tuner.core.errors import UsageError
from tuner.runtime.cpu.content_hash import ContentHash

# What a call of a compiled module depends on beyond the numbers: kinds of tensors, and PyTorch's modes.
#
# A program reads memory by its address, and does not see what PyTorch keeps next to the numbers: lazy signs,
# tangents, transforms, autocast. So each call is compared with what the program was compiled under, by the
# guard that torch.compile itself uses for tensors, which takes 0.2 us; what differs is made equal (signs are
# resolved, strides made contiguous), or refused in one line.

Expected = tuple[tuple[torch.dtype, torch.Size], ...]
Check = Callable[..., bool]
PROCESSOR = torch.device("cpu")
NO_GRADIENTS = "autograd is not supported: call the program under torch.no_grad(), or detach its inputs"
NO_TANGENTS = "forward-mode autograd is not supported: the input has a tangent"
dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack  # noqa: SLF001 - torch's only API
function_modes: Callable[[], int] = torch._C._len_torch_function_stack  # noqa: SLF001
default_dtype = torch.get_default_dtype
Layout = tuple[int, torch.dtype, torch.Size, tuple[int, ...]]  # address, type, shape, strides
State = tuple[tuple[Any, ...], int]  # types, shapes and strides of tensors, and the hash of what they contain


def tensor_checks(expected: Expected) -> tuple[Check, Check, Check]:
    """Returns three guards of torch: functions that are true for tensors that need no copy.

    The guards are for calls outside of inference mode, for calls inside of it, and for calls inside of it
    with tensors that were made inside. ``expected``: (type, shape) of each tensor.
    """
    checks = []  # they compare dispatch keys: tracing adds one, so that no guard holds there
    for is_called_inside, is_made_inside in ((False, False), (True, False), (True, True)):
        with torch.inference_mode(is_made_inside):
            examples = [torch.empty(shape, dtype=dtype) for dtype, shape in expected]
        with torch.inference_mode(is_called_inside):
            checks.append(_check_like(examples) if examples else lambda: False)
    return checks[0], checks[1], checks[2]


def _check_like(examples: list[torch.Tensor]) -> Check:
    sizes: list[Any] = [list(example.shape) for example in examples]
    strides: list[Any] = [list(example.stride()) for example in examples]
    check: Check = TensorGuards(*examples, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
    return check


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
    freed storage. ``name`` begins the message.
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
    needed = tensor.storage_offset() * tensor.element_size() + _span_bytes(tensor)
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
        if ready.dtype != dtype or ready.shape != shape:
            raise UsageError(
                f"{name}: found {_text(ready.dtype, ready.shape)}, allowed {_text(dtype, shape)}"
            )
        if tensor.requires_grad and torch.is_grad_enabled():  # type: ignore[attr-defined,unused-ignore]
            raise UsageError(NO_GRADIENTS)
        dense.append(ready.contiguous())
    return tuple(dense)


def require_separate(tensors: Mapping[str, torch.Tensor], changed: Iterable[str]) -> None:
    """Raises UsageError where a tensor that a call changes shares memory with another tensor of the call."""
    for name in changed:
        first = tensors[name].data_ptr()
        end = first + _span_bytes(tensors[name])
        for other, tensor in tensors.items():
            other_first = tensor.data_ptr()
            if other != name and first < other_first + _span_bytes(tensor) and other_first < end:
                raise UsageError(f"{name}, which the module changes, shares memory with {other}")


def _text(dtype: torch.dtype, shape: torch.Size) -> str:
    return f"{_name(dtype)} of shape {'x'.join(map(str, shape)) or '()'}"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# What weights contain, so that code which has copies of them is not used after they have changed.
#
# torch counts versions of a tensor, which writes through ``.data``, numpy or DLPack leave as they are, and
# which tensors made under inference mode lack; addresses are used again. So contents are compared: 64 bits of
# a hash, read at the speed of memory.


class WeightContents:
    """Computes hashes of tensors' contents; fast if the tensors are those of the call before."""

    def __init__(self) -> None:
        self._known: tuple[list[Layout], tuple[Any, ...], ContentHash | None] = ([], (), None)

    def of(self, tensors: Sequence[torch.Tensor]) -> State:
        """Returns a state of tensors: equal for equal types, shapes, strides and contents (a 64-bit hash)."""
        layouts = [(tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()) for tensor in tensors]
        known, properties, content = self._known  # read at once: other threads call this, too
        if content is not None and layouts == known:
            return properties, content.value()
        properties = tuple(layout[1:] for layout in layouts)
        read = list(map(materialized, tensors))
        # all of the memory between the first and the last element is the tensor's
        dense = []
        for tensor in read:
            is_dense = _span_bytes(tensor) <= int(tensor.numel()) * int(tensor.element_size())
            dense.append(tensor if is_dense else tensor.detach().contiguous())
        content = ContentHash([(tensor.data_ptr(), _span_bytes(tensor)) for tensor in dense])
        if all(copied is tensor for copied, tensor in zip(dense, tensors, strict=True)):
            self._known = (layouts, properties, content)
        return properties, content.value()


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


def _span_bytes(tensor: torch.Tensor) -> int:
    if not tensor.numel():
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (int(last) + 1) * int(tensor.element_size())
