"""Which operators compute the same of padded tensors, and what is masked before them.

A tensor is padded where its size depends on a symbol: a program for the size S computes a call of size n. The
rules keep one invariant: of each tensor the first ``size(n)`` elements along each such dimension are those of
the call, whatever the others are, NaN and infinity included. An operator that sums, multiplies or compares
along such a dimension has its operands masked there with a number that changes nothing. An operator without
a rule runs by PyTorch.
"""

import enum
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.fx import Node
from torch.utils import _pytree

from tuner.models.torch.dynamic_sizes import SYMBOLIC, is_known_first, is_other_number
from tuner.models.torch.graph_outputs import is_overload
from tuner.models.torch.symbol_sizes import (
    OtherSizeError,
    Size,
    SymbolSize,
    size_of,
    sizes_of_tensor,
    symbols_of,
)

NO_RULE = "its sizes are dynamic"
OF_SEVERAL = "its sizes are those of several symbols"
OF_NUMBER = "a number that it takes is a dynamic size"
TO_THE_END = 2**62  # from here on, the end of a slice is that of its dimension
OTHER = "other"  # the second operand of an operator of elements
# types of elements into which a number is converted as PyTorch converts it: narrower ones round a size
WIDE_FLOATS = (torch.float32, torch.float64)
WIDE = (*WIDE_FLOATS, torch.int32, torch.int64)


class PaddingFill(enum.Enum):
    """The value that a mask writes into padding; its number depends on the type of the tensor."""

    ZERO = enum.auto()
    ONE = enum.auto()
    LEAST = enum.auto()
    GREATEST = enum.auto()

    def number(self, dtype: torch.dtype) -> bool | int | float:
        """Returns the value as a number of ``dtype``: for LEAST -inf, the least integer, or False."""
        is_high = self in (PaddingFill.ONE, PaddingFill.GREATEST)
        if dtype is torch.bool:
            return is_high
        if self in (PaddingFill.ZERO, PaddingFill.ONE):
            return int(is_high)
        if dtype.is_floating_point:
            return math.inf if is_high else -math.inf
        limits = torch.iinfo(dtype)
        return int(limits.max if is_high else limits.min)


@dataclass(frozen=True)
class Mask:
    """An argument whose padding along ``dims`` is overwritten by ``fill`` before an operator reads it."""

    argument: str
    dims: tuple[int, ...]
    fill: PaddingFill | float


class NoRuleError(Exception):
    """No rule says how an operator of padded tensors computes the same as of tensors without padding."""


class OperatorCall:
    """An operator's call in a graph: its arguments by name, and the sizes of its tensors.

    What returns sizes raises OtherSizeError for a size that depends on several symbols.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        schema = node.target._schema  # noqa: SLF001
        self.name = str(schema.name)
        self.arguments: dict[str, Any] = {}
        for index, argument in enumerate(schema.arguments):
            value = argument.default_value if argument.has_default_value() else None
            if index < len(node.args):
                value = node.args[index]
            self.arguments[argument.name] = node.kwargs.get(argument.name, value)
        self.first = str(schema.arguments[0].name) if schema.arguments else ""

    @cached_property
    def results(self) -> tuple[tuple[Size, ...], ...]:
        """Returns the sizes of each tensor that the operator returns."""
        leaves = _pytree.tree_leaves(self.node.meta["val"])
        return tuple(sizes_of_tensor(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor))

    def sizes(self, name: str) -> tuple[Size, ...]:
        """Returns the sizes of the tensor argument ``name``; () if the argument is None or a number."""
        return _sizes(self.arguments.get(name))

    def padded(self, name: str) -> tuple[int, ...]:
        """Returns the padded dimensions of the argument ``name``."""
        return padded_dims(self.sizes(name))

    def is_padded(self, name: str, dims: Iterable[int]) -> bool:
        """Returns whether any of the dimensions of an argument is padded."""
        return bool(self.padded_among(name, dims))

    def padded_among(self, name: str, dims: Iterable[int]) -> tuple[int, ...]:
        """Returns the dimensions in ``dims`` along which the argument ``name`` is padded.

        ``dims`` may be negative.
        """
        rank = max(len(self.sizes(name)), 1)
        wanted = {dim % rank for dim in dims}
        return tuple(dim for dim in self.padded(name) if dim in wanted)

    def require_static(self, *names: str) -> None:
        """Raises NoRuleError if an argument of these names has a number that depends on a symbol."""
        values = [self.arguments.get(name) for name in names]
        if any(is_symbol(leaf) for leaf in _pytree.tree_leaves(values)):
            raise NoRuleError(OF_NUMBER)


def _sizes(value: object) -> tuple[Size, ...]:
    if not isinstance(value, Node) or not isinstance(value.meta.get("val"), torch.Tensor):
        return ()
    return sizes_of_tensor(value.meta["val"])


def padded_dims(sizes: Iterable[Size]) -> tuple[int, ...]:
    """Returns the indices, from 0, of the dimensions whose size depends on a symbol."""
    return tuple(dim for dim, size in enumerate(sizes) if isinstance(size, SymbolSize))


def is_symbol(value: object) -> bool:
    """Returns whether an argument of a call is a node of a number that depends on a symbol."""
    return isinstance(value, Node) and isinstance(value.meta.get("val"), SYMBOLIC)


Rule = Callable[[OperatorCall], tuple[Mask, ...]]


def _elements(call: OperatorCall) -> tuple[Mask, ...]:
    """Returns no masks for an operator of elements; its ``other`` may be a number that depends on n."""
    call.require_static(*(name for name in call.arguments if name != OTHER))
    if is_symbol(call.arguments.get(OTHER)):
        _require_converted(call)
    return ()


def _require_converted(call: OperatorCall) -> None:
    """Raises NoRuleError unless the number ``other`` as a tensor is converted as PyTorch converts numbers."""
    other = call.arguments[OTHER]
    first = call.arguments[call.first]
    if not isinstance(first, Node) or not call.sizes(call.first) or not is_known_first(other):
        raise NoRuleError(OF_NUMBER)
    value = other.meta["val"]
    allowed: tuple[torch.dtype, ...] = WIDE
    if isinstance(value, torch.SymFloat):
        allowed = WIDE_FLOATS
    elif isinstance(value, torch.SymInt) and is_other_number(value):
        allowed = (*WIDE_FLOATS, torch.int64)  # it may be out of the range of others, an error in PyTorch
    if first.meta["val"].dtype not in allowed:
        raise NoRuleError("a dynamic size that it takes would be rounded to the type of the tensor")


def _made(_call: OperatorCall) -> tuple[Mask, ...]:
    return ()


def _dims(value: Any, rank: int) -> tuple[int, ...]:
    """Returns the dimensions that a reduction's argument ``dim`` names; all dimensions for None and []."""
    if value is None or value == []:
        return tuple(range(rank))
    if isinstance(value, int):
        return (value,)
    return tuple(value)


def _masks(argument: str, dims: tuple[int, ...], fill: PaddingFill | float) -> tuple[Mask, ...]:
    if not dims:
        return ()
    return (Mask(argument, dims, fill),)


def _reduction(fill: PaddingFill) -> Rule:
    def masks(call: OperatorCall) -> tuple[Mask, ...]:
        dims = _dims(call.arguments.get("dim"), len(call.sizes(call.first)))
        padded = call.padded_among(call.first, dims)
        return _masks(call.first, padded, fill)

    return masks


def _norm_of_vectors(call: OperatorCall) -> tuple[Mask, ...]:
    if call.arguments.get("ord") not in (1, 2):
        raise NoRuleError("its order is neither 1 nor 2")
    return _reduction(PaddingFill.ZERO)(call)


def _contraction(x: str, y: str, y_dim: int) -> Rule:
    """Returns the rule of a product that sums over the last dimension of ``x`` and ``y_dim`` of ``y``."""

    def masks(call: OperatorCall) -> tuple[Mask, ...]:
        if not call.is_padded(x, (-1,)):
            return ()
        of_y = y_dim if len(call.sizes(y)) > 1 else 0
        # both: 0 times infinity is NaN
        return (
            Mask(x, (len(call.sizes(x)) - 1,), PaddingFill.ZERO),
            Mask(y, (of_y % len(call.sizes(y)),), PaddingFill.ZERO),
        )

    return masks


def _along_static(*names: str) -> Rule:
    """Returns the rule of an operator whose dimensions ``names`` must not be padded."""

    def masks(call: OperatorCall) -> tuple[Mask, ...]:
        rank = len(call.sizes(call.first))
        for name in names:
            if call.is_padded(call.first, _dims(call.arguments.get(name), rank)):
                raise NoRuleError(
                    f"along a dimension of a dynamic size: dimension {call.arguments.get(name)}"
                )
        return ()

    return masks


def _norm_of_last(call: OperatorCall) -> tuple[Mask, ...]:
    normalized = len(call.arguments["normalized_shape"])
    if call.is_padded(call.first, range(-normalized, 0)):
        raise NoRuleError("it normalizes a dimension of a dynamic size")
    return ()


def _norm_of_groups(call: OperatorCall) -> tuple[Mask, ...]:
    if set(call.padded(call.first)) - {0}:
        raise NoRuleError("it normalizes a dimension of a dynamic size")
    return ()


def _indices(name: str, table: str, dim: int | None = None) -> Rule:
    """Returns the rule of an operator that reads ``table`` at indices: indices in the padding become 0."""

    def masks(call: OperatorCall) -> tuple[Mask, ...]:
        read = call.arguments["dim"] if dim is None else dim
        if call.is_padded(table, (read,)):
            raise NoRuleError("it reads a dimension of a dynamic size by indices")
        padded = call.padded(name)
        return _masks(name, padded, PaddingFill.ZERO)

    return masks


def _reshape(call: OperatorCall) -> tuple[Mask, ...]:
    before = call.sizes(call.first)
    after = call.results[0]
    if _groups(before) != _groups(after) and not (_is_rows(before) and _is_rows(after)):
        raise NoRuleError("it merges a dimension of a dynamic size into others")
    return ()


def _groups(sizes: tuple[Size, ...]) -> list[tuple[SymbolSize | None, int]]:
    """Returns each padded size, None at first, with the product of the static sizes up to the next one."""
    groups: list[tuple[SymbolSize | None, int]] = [(None, 1)]
    for size in sizes:
        if isinstance(size, SymbolSize):
            groups.append((size, 1))
        else:
            padded, product = groups[-1]
            groups[-1] = (padded, product * size)
    return groups


def _is_rows(sizes: tuple[Size, ...]) -> bool:
    """Returns whether the elements of a call are the first ones in memory: the first dimension is padded."""
    groups = _groups(sizes)
    return len(groups) == 2 and groups[0] == (None, 1)


def _expand(call: OperatorCall) -> tuple[Mask, ...]:
    before = call.sizes(call.first)
    after = call.results[0][len(call.results[0]) - len(before) :]
    for old, new in zip(before, after, strict=True):
        if old not in (1, new):
            raise NoRuleError(NO_RULE)
    return ()


def _repeat(call: OperatorCall) -> tuple[Mask, ...]:
    repeats = call.arguments["repeats"]
    before = (*(1 for _ in range(len(repeats) - len(call.sizes(call.first)))), *call.sizes(call.first))
    for old, times in zip(before, repeats, strict=True):
        if old != 1 and times != 1 and (isinstance(old, SymbolSize) or is_symbol(times)):
            raise NoRuleError("it repeats a dimension of a dynamic size")
    return ()


def _range(call: OperatorCall) -> tuple[Mask, ...]:
    call.require_static("start", "step")
    if not isinstance(call.arguments.get("step", 1) or 1, int) or (call.arguments.get("step") or 1) < 1:
        raise NoRuleError("its steps are not positive integers")
    return ()


def _filled(call: OperatorCall) -> tuple[Mask, ...]:
    call.require_static("fill_value")
    return ()


def _select(call: OperatorCall) -> tuple[Mask, ...]:
    call.require_static("index")
    return ()


def _slice(call: OperatorCall) -> tuple[Mask, ...]:
    call.require_static("start", "step")
    dim = call.arguments["dim"]
    if (call.arguments["start"] or 0) >= 0 or not call.is_padded(call.first, (dim,)):
        return ()
    end = call.arguments["end"]
    is_to_the_end = end is None or (isinstance(end, int) and end >= TO_THE_END)
    if not is_to_the_end or call.arguments["step"] != 1 or isinstance(call.results[0][dim], SymbolSize):
        raise NoRuleError("it begins before the end of a dimension of a dynamic size")
    return ()


def _cat(call: OperatorCall) -> tuple[Mask, ...]:
    tensors = call.arguments["tensors"]
    sizes = [_sizes(tensor) for tensor in tensors if _sizes(tensor) != (0,)]  # an empty vector is left out
    rank = len(sizes[0])
    dim = call.arguments.get("dim", 0) % rank
    if any(isinstance(of_tensor[dim], SymbolSize) for of_tensor in sizes[:-1]):
        raise NoRuleError("it puts something behind a dimension of a dynamic size")
    return ()


def _attention(call: OperatorCall) -> tuple[Mask, ...]:
    if call.arguments["dropout_p"]:
        raise NoRuleError("it draws random numbers")
    query = call.sizes("query")
    key = call.sizes("key")
    is_causal = call.arguments["is_causal"]
    if call.is_padded("query", (-1,)) or call.is_padded("value", (-1,)):
        raise NoRuleError("its heads have a dynamic size")
    if not isinstance(key[-2], SymbolSize):
        return ()
    if is_causal and (query[-2] != key[-2] or call.arguments["attn_mask"] is not None):
        raise NoRuleError("it is causal, for queries and keys of different sizes")
    # a probability of 0 times infinity is NaN
    return tuple(Mask(name, (len(call.sizes(name)) - 2,), PaddingFill.ZERO) for name in ("key", "value"))


def _convolution(call: OperatorCall) -> tuple[Mask, ...]:
    first = (
        len(call.sizes("input")) - len(call.sizes("weight")) + 2
    )  # spatial dimension: not all have a batch
    if call.padded("weight") or call.is_padded("input", (first - 1,)):
        raise NoRuleError("its channels or weights have a dynamic size")
    if call.arguments.get("transposed") or isinstance(call.arguments["padding"], str):
        raise NoRuleError(NO_RULE)
    spatial = tuple(dim for dim in call.padded("input") if dim >= first)
    return _masks("input", spatial, PaddingFill.ZERO)


def _pad(call: OperatorCall) -> tuple[Mask, ...]:
    pads = call.arguments["pad"]
    call.require_static("pad", "value")
    if call.arguments.get("mode", "constant") != "constant":
        raise NoRuleError(NO_RULE)
    rank = len(call.sizes(call.first))
    dims = call.padded_among(call.first, range(rank - len(pads) // 2, rank))
    return _masks(call.first, dims, float(call.arguments.get("value") or 0))


def _without_dropout(call: OperatorCall) -> tuple[Mask, ...]:
    if call.arguments.get("train"):
        raise NoRuleError("it draws random numbers")
    return ()


def _batch_norm(call: OperatorCall) -> tuple[Mask, ...]:
    if call.arguments.get("training"):
        raise NoRuleError("it normalizes a dimension of a dynamic size")
    return ()


def _index_of_extreme(fill: PaddingFill) -> Rule:
    def masks(call: OperatorCall) -> tuple[Mask, ...]:
        if call.arguments["dim"] is None and len(call.sizes(call.first)) > 1:
            raise NoRuleError("its index counts the elements of a dynamic size")
        return _reduction(fill)(call)

    return masks


# by the name of the operator in PyTorch; operators of elements have a tag there
RULES: dict[str, Rule] = {
    **dict.fromkeys(
        (
            *("to", "_to_copy", "type_as", "clone", "contiguous", "alias", "detach", "lift_fresh_copy"),
            *("transpose", "permute", "t", "mT", "movedim", "swapaxes", "unsqueeze", "numpy_T", "expand_as"),
            *("zeros_like", "ones_like", "empty_like", "triu", "tril", "cumsum", "stack"),
            *("__and__", "__or__", "__xor__", "_assert_tensor_metadata"),
        ),
        _elements,
    ),
    **dict.fromkeys(("zeros", "ones", "empty", "new_zeros", "new_ones", "new_empty"), _made),
    **dict.fromkeys(("full", "full_like", "new_full"), _filled),
    "arange": _range,
    "dropout": _without_dropout,
    **dict.fromkeys(("sum", "mean", "count_nonzero", "any"), _reduction(PaddingFill.ZERO)),
    **dict.fromkeys(("prod", "all"), _reduction(PaddingFill.ONE)),
    **dict.fromkeys(("amax", "max"), _reduction(PaddingFill.LEAST)),
    **dict.fromkeys(("amin", "min"), _reduction(PaddingFill.GREATEST)),
    "argmax": _index_of_extreme(PaddingFill.LEAST),
    "argmin": _index_of_extreme(PaddingFill.GREATEST),
    **dict.fromkeys(("softmax", "_softmax", "log_softmax", "_log_softmax"), _reduction(PaddingFill.LEAST)),
    "logsumexp": _reduction(PaddingFill.LEAST),
    "linalg_vector_norm": _norm_of_vectors,
    "linear": _contraction("input", "weight", -1),
    "matmul": _contraction("self", "other", -2),
    "mm": _contraction("self", "mat2", -2),
    "bmm": _contraction("self", "mat2", -2),
    "addmm": _contraction("mat1", "mat2", -2),
    "baddbmm": _contraction("batch1", "batch2", -2),
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _convolution),
    **dict.fromkeys(("constant_pad_nd", "pad"), _pad),
    **dict.fromkeys(("layer_norm", "native_layer_norm", "rms_norm"), _norm_of_last),
    **dict.fromkeys(("group_norm", "instance_norm"), _norm_of_groups),
    **dict.fromkeys(("batch_norm", "_native_batch_norm_legit_no_training"), _batch_norm),
    "embedding": _indices("indices", "weight", 0),
    **dict.fromkeys(("index_select", "gather"), _indices("index", "self")),
    **dict.fromkeys(("view", "reshape", "_unsafe_view", "flatten", "unflatten"), _reshape),
    "expand": _expand,
    "repeat": _repeat,
    "select": _select,
    "slice": _slice,
    "cat": _cat,
    **dict.fromkeys(("squeeze", "topk", "sort", "argsort", "glu", "var", "std"), _along_static("dim")),
    **dict.fromkeys(("split", "split_with_sizes", "chunk", "unbind"), _along_static("dim")),
}


def masks_before(node: Node, symbol: str) -> tuple[Mask, ...]:
    """Returns the masks of arguments with which an operator is right for tensors padded along ``symbol``.

    Raises NoRuleError where no masks make it right, or a size depends on another symbol.
    """
    if not is_overload(node) or node.target.namespace != "aten":
        raise NoRuleError(NO_RULE)
    call = OperatorCall(node)
    try:
        _require_sizes_of(symbol, call)
        return _rule(node)(call)
    except OtherSizeError as error:
        raise NoRuleError(str(error)) from error


def _rule(node: Node) -> Rule:
    target: Any = node.target
    if target._schema.is_mutable:  # noqa: SLF001
        raise NoRuleError("it writes a tensor whose sizes are dynamic")
    if torch.Tag.pointwise in target.tags:
        return _elements
    rule = RULES.get(target._schema.name.removeprefix("aten::"))  # noqa: SLF001
    if rule is None:
        raise NoRuleError(NO_RULE)
    return rule


def _require_sizes_of(symbol: str, call: OperatorCall) -> None:
    """Raises NoRuleError where a size that a call reads or returns depends on another symbol."""
    other = call.arguments.get(OTHER)
    read = [node for node in call.node.all_input_nodes if not (node is other and is_symbol(node))]
    values = [node.meta.get("val") for node in read]
    for leaf in _pytree.tree_leaves([call.node.meta.get("val"), *values]):
        sizes: tuple[Size, ...] = ()
        if isinstance(leaf, torch.Tensor):
            sizes = sizes_of_tensor(leaf)
        elif isinstance(leaf, torch.SymInt):
            sizes = (size_of(leaf),)
        elif isinstance(leaf, SYMBOLIC):
            raise NoRuleError(OF_NUMBER)
        if any(isinstance(size, SymbolSize) and size.symbol != symbol for size in sizes):
            raise NoRuleError(OF_SEVERAL)
    if isinstance(other, Node) and is_symbol(other) and not symbols_of(other.meta["val"]) <= {symbol}:
        raise NoRuleError(OF_SEVERAL)
