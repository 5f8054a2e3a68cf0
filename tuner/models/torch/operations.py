"""Operations ``tuner::mm``, ``addmm``, ``bmm`` and ``linear`` of torch.library, for floats on the CPU.

Each shape is compiled once. A weight, which is a parameter, is packed once: its contents are read at each
call, and it is packed again where they have changed. Gradients, tangents and ``torch.autocast`` are refused.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NoReturn

import torch
from torch.autograd import forward_ad
from torch.utils.weak import WeakIdKeyDictionary

from tuner.core.errors import UsageError
from tuner.core.typed_arguments import shown
from tuner.models.run.fused_program import FusedFunction
from tuner.models.torch.compiled_products import DTYPES, ELEMENTS, SHAPES_LIMIT, Product, compiled_product
from tuner.models.torch.guards import NO_GRADIENTS
from tuner.models.torch.program import array_of, conversion_of
from tuner.models.torch.weights import State, WeightContents

# process-wide on purpose: weights live as long as their modules, as does what is packed of them
PACKED: Any = WeakIdKeyDictionary()
# process-wide on purpose: torch knows the operations as long as this exists
LIBRARY = torch.library.Library("tuner", "FRAGMENT")


@dataclass(frozen=True, eq=False)
class _PackedWeight:
    """A weight's compiled functions, and the contents that the weight had when it was packed."""

    contents: WeightContents
    state: State
    functions: dict[tuple[Product, bool], FusedFunction]  # by the product, and whether B is the transpose


def mm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns a @ b. ``a``: (m, k), ``b``: (k, n); of one float type, on the CPU.

    Raises UsageError for other operands, and where gradients or ``torch.autocast`` would be needed.
    """
    _require_tensors("mm", a=a, b=b)
    result: torch.Tensor = torch.ops.tuner.mm(a, b)
    return result


def addmm(bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns bias + a @ b. ``a``: (m, k), ``b``: (k, n), ``bias``: (n,); of one float type, on the CPU.

    Raises UsageError for other operands, and where gradients or ``torch.autocast`` would be needed.
    """
    _require_tensors("addmm", bias=bias, a=a, b=b)
    result: torch.Tensor = torch.ops.tuner.addmm(bias, a, b)
    return result


def bmm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns a @ b per batch. ``a``: (batch, m, k), ``b``: (batch, k, n); of one float type.

    Raises UsageError for other operands and devices, and where gradients or ``torch.autocast`` would be
    needed.
    """
    _require_tensors("bmm", a=a, b=b)
    result: torch.Tensor = torch.ops.tuner.bmm(a, b)
    return result


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Returns x @ weight.T + bias. ``x``: (..., k), ``weight``: (n, k), ``bias``: (n,); of one float type.

    A ``weight`` that is a Parameter is packed once, and again after it has changed. Raises UsageError for
    other operands and devices, and where gradients or ``torch.autocast`` would be needed.
    """
    _require_tensors("linear", x=x, weight=weight, **({} if bias is None else {"bias": bias}))
    result: torch.Tensor = torch.ops.tuner.linear(x, weight, bias)
    return result


def _matmul(name: str, *operands: torch.Tensor) -> torch.Tensor:
    *bias, a, b = operands
    _require_matrices(name, a, b, *bias)
    return _product(name, a, b, *(bias or [None]))


def _bmm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    _require_batches(a, b)
    element = _element("bmm", a, b)
    return _run(Product(element, a.shape[1], b.shape[2], a.shape[2], batch=a.shape[0]), [a, b], None)


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    _require_weight(x, weight, bias)
    product = _product("linear", x.reshape(-1, x.shape[-1]), weight, bias, is_transposed=True)
    return product.reshape(*x.shape[:-1], weight.shape[0])


# torch computes without numbers where one operand has none: on a device "meta", or while it traces


def _empty_matmul(name: str, *operands: torch.Tensor) -> torch.Tensor:
    *bias, a, b = operands
    _require_one_device(name, a, b, *bias)
    _require_matrices(name, a, b, *bias)
    return a.new_empty((a.shape[0], b.shape[1]))


def _empty_bmm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    _require_one_device("bmm", a, b)
    _require_batches(a, b)
    return a.new_empty((a.shape[0], a.shape[1], b.shape[2]))


def _empty_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    _require_one_device("linear", x, weight, *_listed(bias))
    _require_weight(x, weight, bias)
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


def _refuse_autocast(name: str, *_: object) -> NoReturn:
    """Called by torch under ``torch.autocast``, where its own products are in bf16 or f16."""
    raise UsageError(
        f"tuner::{name}: torch.autocast is not supported",
        "call it under torch.autocast('cpu', enabled=False)",
    )


def _without_gradients(name: str, operation: Any, keys: Any, *operands: Any) -> torch.Tensor:
    """Calls an operation; raises UsageError if a derivative is asked for, also by ``torch.func``."""
    tensors = [operand for operand in operands if isinstance(operand, torch.Tensor)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):  # type: ignore[attr-defined,unused-ignore]
        raise UsageError(f"tuner::{name}: {NO_GRADIENTS}")
    is_forward_mode = forward_ad._current_level >= 0  # noqa: SLF001 - torch's only API
    if is_forward_mode and any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors):
        raise UsageError(f"tuner::{name}: forward-mode autograd is not supported: an operand has a tangent")
    with torch._C._AutoDispatchBelowAutograd():  # noqa: SLF001 - as torch.library does
        result: torch.Tensor = operation.redispatch(keys & torch._C._after_autograd_keyset, *operands)  # noqa: SLF001
    return result


OPERATIONS: tuple[tuple[str, Callable[..., torch.Tensor], Callable[..., torch.Tensor]], ...] = (
    ("mm(Tensor a, Tensor b) -> Tensor", partial(_matmul, "mm"), partial(_empty_matmul, "mm")),
    (
        "addmm(Tensor bias, Tensor a, Tensor b) -> Tensor",
        partial(_matmul, "addmm"),
        partial(_empty_matmul, "addmm"),
    ),
    ("bmm(Tensor a, Tensor b) -> Tensor", _bmm, _empty_bmm),
    ("linear(Tensor x, Tensor weight, Tensor? bias=None) -> Tensor", _linear, _empty_linear),
)


def _define(schema: str, compute: Callable[..., torch.Tensor], empty: Callable[..., torch.Tensor]) -> None:
    """Defines an operation that sees tangents of ``torch.func``, unlike ``torch.library.custom_op``."""
    name = schema.partition("(")[0]
    LIBRARY.define(schema, tags=torch.Tag.pt2_compliant_tag)
    operation = getattr(torch.ops.tuner, name).default
    LIBRARY.impl(name, compute, "CompositeExplicitAutograd")
    LIBRARY.impl(name, partial(_without_gradients, name, operation), "Autograd", with_keyset=True)
    LIBRARY.impl(name, partial(_refuse_autocast, name), "AutocastCPU")
    torch.library.register_fake(f"tuner::{name}", empty, lib=LIBRARY)


for _operation in OPERATIONS:
    _define(*_operation)


def _product(
    name: str, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, *, is_transposed: bool = False
) -> torch.Tensor:
    columns = b.shape[0] if is_transposed else b.shape[1]
    element = _element(name, a, b, *_listed(bias))
    is_weight = isinstance(b, torch.nn.Parameter)
    product = Product(element, a.shape[0], columns, a.shape[1], 0, bias is not None, is_weight)
    if is_weight:
        return _run(product, [a, *_listed(bias)], b, is_transposed=is_transposed)
    matrix = b.t() if is_transposed else b
    return _run(product, [a, matrix, *_listed(bias)], None, is_transposed=is_transposed)


def _run(
    product: Product,
    inputs: Sequence[torch.Tensor],
    weight: torch.Tensor | None,
    *,
    is_transposed: bool = False,
) -> torch.Tensor:
    if not all(matrix.numel() for matrix in (*inputs, *_listed(weight))):
        raise UsageError("a matrix has no elements: products of 1 or more are supported")
    if weight is None:
        function = _function(product)
    else:
        function = _function_of_weight(product, weight, is_transposed=is_transposed)
    held = [input_.detach().contiguous() for input_ in inputs]
    (result,) = function.run([matrix.data_ptr() for matrix in held])
    return conversion_of(product.element)(result)


def _function_of_weight(product: Product, weight: torch.Tensor, *, is_transposed: bool) -> FusedFunction:
    packed: _PackedWeight | None = PACKED.get(weight)
    contents = WeightContents() if packed is None else packed.contents
    state = contents.of([weight])
    if packed is None or packed.state != state:
        packed = PACKED[weight] = _PackedWeight(contents, state, {})
    key = (product, is_transposed)
    if key not in packed.functions:
        matrix = weight.detach().t() if is_transposed else weight.detach()
        image = compiled_product(product).with_weights([array_of(matrix.contiguous())])
        packed.functions[key] = FusedFunction(image.code, image.weights)
    return packed.functions[key]


@lru_cache(maxsize=SHAPES_LIMIT)
def _function(product: Product) -> FusedFunction:
    image = compiled_product(product)
    return FusedFunction(image.code, image.weights)


def _element(name: str, *tensors: torch.Tensor) -> str:
    """Returns the element type of operands; raises UsageError for operands that no product can take."""
    for tensor in tensors:
        if not tensor.is_cpu:
            raise UsageError(f"tuner::{name}: found device {tensor.device}, allowed cpu")
        if tensor.dtype not in ELEMENTS or tensor.dtype != tensors[0].dtype:
            dtypes = dict.fromkeys(str(operand.dtype).removeprefix("torch.") for operand in tensors)
            types_text = " and ".join(dtypes)
            raise UsageError(f"tuner::{name}: found {types_text}, allowed {DTYPES} of all operands")
        if not tensor.data_ptr() and tensor.numel():
            raise UsageError(f"tuner::{name}: found a tensor without memory: its storage was freed")
    return ELEMENTS[tensors[0].dtype]


def _require_one_device(name: str, *tensors: torch.Tensor) -> None:
    devices = dict.fromkeys(str(tensor.device) for tensor in tensors)
    if len(devices) > 1:
        raise UsageError(f"tuner::{name}: found devices {' and '.join(devices)}, allowed one")


def _require_tensors(operation: str, **operands: Any) -> None:
    """Raises UsageError for an operand that is not a dense tensor; torch's own error has several lines."""
    for name, operand in operands.items():
        if not isinstance(operand, torch.Tensor):
            raise UsageError(f"tuner::{operation}: {name}: found {shown(operand)}, allowed a torch.Tensor")
        if operand.is_nested:
            raise UsageError(f"tuner::{operation}: {name}: found a nested tensor, allowed a dense tensor")
        if operand.layout != torch.strided:
            raise UsageError(
                f"tuner::{operation}: {name}: found layout {operand.layout}, allowed a dense tensor",
                ".to_dense()",
            )


def _require_matrices(name: str, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None) -> None:
    is_product = a.dim() == b.dim() == 2 and a.shape[1] == b.shape[0]
    if not is_product or (bias is not None and (bias.dim() != 1 or bias.shape[0] != b.shape[1])):
        raise _wrong_shapes(name, *_listed(bias), a, b)


def _require_batches(a: torch.Tensor, b: torch.Tensor) -> None:
    if a.dim() != 3 or b.dim() != 3 or a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise _wrong_shapes("bmm", a, b)


def _require_weight(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
    is_product = x.dim() >= 1 and weight.dim() == 2 and x.shape[-1] == weight.shape[1]
    if not is_product or (bias is not None and (bias.dim() != 1 or bias.shape[0] != weight.shape[0])):
        raise _wrong_shapes("linear", x, weight, *_listed(bias))


def _listed(bias: torch.Tensor | None) -> list[torch.Tensor]:
    if bias is None:
        return []
    return [bias]


def _wrong_shapes(name: str, *tensors: torch.Tensor) -> UsageError:
    shapes = " and ".join("x".join(map(str, tensor.shape)) or "()" for tensor in tensors)
    return UsageError(f"tuner::{name}: shapes {shapes} do not fit together")
