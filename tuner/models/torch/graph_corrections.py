"""Changes an exported graph where torch-mlir would compile it wrongly, before torch-mlir reads the graph.

``fit_numbers`` wraps Python's numbers; ``fill_empty`` creates tensors of no elements;
``fold_uniform`` lets PyTorch compute operations of constants;
``count_from_front`` numbers dimensions; ``promote_unsigned`` converts uint8 operands.
"""

import math
import re
from typing import Any

import torch
from torch.utils import _pytree

from tuner.core.errors import UsageError
from tuner.models.mlir.torch_dialect import first_line
from tuner.models.torch.element_types import wrapped_to
from tuner.models.torch.graph_outputs import is_overload
from tuner.models.torch.refusals import RefusedOperator, place_of

ATEN = torch.ops.aten
FULL = ATEN.full.default
LIKE = ATEN.full_like.default
# all operations that create constants, after decompositions
FACTORIES = (FULL, ATEN.scalar_tensor.default, LIKE)
# Of a weight of one float and an integer these are folded wrongly, too; with a float number, rightly.
ELEMENTWISE_SUMS = (
    *(ATEN.add.Tensor, ATEN.sub.Tensor, ATEN.mul.Tensor),
    *(ATEN.add.Scalar, ATEN.sub.Scalar, ATEN.mul.Scalar),
)
# torch-mlir 20261001 takes a negative dimension of these as an index of its own, and crashes
SCATTERS = (
    *(ATEN.scatter.value, ATEN.scatter.src, ATEN.scatter.reduce, ATEN.scatter.value_reduce),
    *(ATEN.scatter_add.default, ATEN.scatter_reduce.two),
)
UNSIGNED = frozenset({torch.uint8, torch.uint16, torch.uint32, torch.uint64})
CONVERSIONS = (ATEN._to_copy.default, torch.ops.prims.convert_element_type.default)  # noqa: SLF001
LARGEST_E4M3FN = int(torch.finfo(torch.float8_e4m3fn).max)
NOT_ABOVE_E4M3FN = (torch.bool, torch.int8, torch.uint8)  # types of which no number is larger
REDUCTIONS = (ATEN.sum.default, ATEN.sum.dim_IntList)  # of int64
# by their names: each is right for all 256 numbers, which a test shows
BYTES = frozenset(
    {
        *("add", "sub", "mul", "neg", "amax", "amin", "maximum", "minimum", "clamp"),
        *("bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "__lshift__", "__rshift__"),
        *("cat", "stack", "split", "split_with_sizes", "slice", "select", "index", "index_select", "gather"),
        *("alias", "clone", "detach", "expand", "flip", "permute", "repeat", "squeeze", "transpose"),
        *("unsqueeze", "view", "where", "full", "full_like", "empty_strided", "scalar_tensor"),
        *("constant_pad_nd", "_index_put_impl"),
    }
)
# by their names: PyTorch converts a Python number to the type of the other operand, without its high bits
WRAPPING = frozenset(
    {
        *(
            "add",
            "sub",
            "rsub",
            "mul",
            "div",
            "floor_divide",
            "remainder",
            "fmod",
            "__lshift__",
            "__rshift__",
        ),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "__and__", "__or__", "__xor__"),
        *("bitwise_left_shift", "bitwise_right_shift"),
    }
)

NUMBER_TYPE = re.compile("number|float|Tensor")  # in a schema, of an argument that may be a number
# in PyTorch's errors; the last one is of integers beyond 63 bits next to booleans
UNFIT = re.compile("cannot be converted|Subtraction, the `-` operator|Promotion for uint16")
DIFFERENCES = ("sub", "rsub")  # which PyTorch refuses of booleans


def fit_numbers(graph: torch.fx.Graph) -> None:
    """Wraps integers of Python that are out of range for their operation's type, as PyTorch does, in place.

    Raises UsageError, with PyTorch's own error, where PyTorch refuses the operation: ``clamp`` of int8 to
    300.
    """
    for node in graph.nodes:
        value = node.meta.get("val")
        if not is_overload(node) or not isinstance(value, torch.Tensor):
            continue
        is_fit = all(_is_number_of(number, value.dtype) for number in _numbers(node))
        if is_fit and not _is_difference_of_truths(node):
            continue
        _require_computed(node)
        if _base(node.target) in WRAPPING and not value.is_floating_point():
            arguments = [_wrapped(argument, value.dtype) for argument in node.args]
            node.args = tuple(arguments)


def _is_difference_of_truths(node: torch.fx.Node) -> bool:
    if _base(node.target) not in DIFFERENCES:
        return False
    has_truth = bool in map(type, node.args)
    return has_truth or torch.bool in _types(node.all_input_nodes)


def _numbers(node: torch.fx.Node) -> list[Any]:
    """Returns the arguments of an operation that are computed with, which indices and sizes are not."""
    target: Any = node.target
    schema = target._schema.arguments  # noqa: SLF001 - torch's only name
    names = [argument.name for argument in schema]
    arguments = dict(zip(names, node.args, strict=False)) | node.kwargs
    computed = [argument.name for argument in schema if NUMBER_TYPE.search(str(argument.type))]
    return [arguments[name] for name in computed if name in arguments]


def _is_number_of(argument: Any, dtype: torch.dtype) -> bool:
    """Returns whether a type can hold a number; True of other arguments, and of infinity and NaN."""
    if isinstance(argument, bool) or not isinstance(argument, int | float) or dtype.is_complex:
        return True
    if dtype.is_floating_point:
        return not math.isfinite(argument) or abs(argument) <= torch.finfo(dtype).max
    if dtype is torch.bool:
        return True
    limits = torch.iinfo(dtype)
    return bool(limits.min <= argument <= limits.max)


def _wrapped(argument: Any, dtype: torch.dtype) -> Any:
    if isinstance(argument, float) or _is_number_of(argument, dtype):
        return argument
    return wrapped_to(argument, dtype)


def _require_computed(node: torch.fx.Node) -> None:
    """Raises UsageError where PyTorch fails to compute an operation of tensors of ones."""
    arguments = torch.fx.node.map_arg((node.args, node.kwargs), _ones)
    try:
        node.target(*arguments[0], **arguments[1])  # type: ignore[operator,unused-ignore]
    except (RuntimeError, IndexError) as error:  # others are of the tensors of ones
        if UNFIT.search(str(error)):
            raise UsageError(f"{place_of(node)} fails: {first_line(error)}") from error


def _ones(node: torch.fx.Node) -> Any:
    value = node.meta["val"]
    if isinstance(value, torch.Tensor):
        return torch.ones([1] * value.dim(), dtype=value.dtype)
    return value


def fill_empty(graph: torch.fx.Graph) -> None:
    """Replaces operations whose result has no elements by ``aten.full``, in place.

    torch-mlir 20261001 divides by a size of 0 where it lowers their views, and crashes.
    """
    has_empty = False
    for node in graph.nodes:
        result = node.meta.get("val")
        if node.op != "call_function" or not isinstance(result, torch.Tensor) or result.is_complex():
            continue
        if all(isinstance(size, int) for size in result.shape) and 0 in result.shape:
            _fill(node, result.shape, result, 0)
            has_empty = True
    if has_empty:
        graph.eliminate_dead_code()  # a split, whose parts are created now


# Computes operations of constants whose elements are all equal by PyTorch itself.
#
# torch-mlir 20261001 folds them wrongly: the sum of constants of 2.0 and -1 is 1.8e19, the sign of -3.0 is 1,
# a comparison of 0.25 with 0 is the opposite.


def fold_uniform(graph: torch.fx.Graph) -> None:
    """Replaces an operation on constants by ``aten.full`` if all elements of its result are equal; in place.

    The constants are those whose elements are all equal; PyTorch computes the result. Raises UsageError where
    PyTorch cannot compute such an operation, such as an integer division by zero.
    """
    known: dict[torch.fx.Node, torch.Tensor] = {}
    for node in graph.nodes:
        is_sum = node.target in ELEMENTWISE_SUMS and node.meta["val"].is_floating_point()
        if is_sum and type(node.args[1]) is int:
            node.args = (node.args[0], float(node.args[1]), *node.args[2:])
        if not _is_followed(node, known):
            continue
        try:
            result = _result_of_constants(node, known)
        except RuntimeError as error:  # as in eager mode: a division by zero, a number out of range
            raise UsageError(f"{place_of(node)} of constants fails: {first_line(error)}") from error
        if _is_uniform(result):
            number = result.reshape(-1)[0]
            shape = node.meta["val"].shape
            known[node] = number.expand(shape)
            _fill(node, shape, result, number.item())


def _fill(node: torch.fx.Node, shape: torch.Size, like: torch.Tensor, number: complex) -> None:
    node.target = FULL
    node.args = (list(shape), number)
    node.kwargs = {"dtype": like.dtype, "device": like.device, "pin_memory": False}


def _result_of_constants(node: torch.fx.Node, known: dict[torch.fx.Node, torch.Tensor]) -> torch.Tensor:
    """Returns an operation's result by PyTorch, or one element of it where all are computed alike.

    That is, for constants and pointwise operations: scores of attention, for example, have 8 x 1500 x 1500
    elements. The dimensions are as many as the result's.
    """
    if node.target in (FULL, LIKE):
        value = node.meta["val"]
        return torch.full([min(size, 1) for size in value.shape], node.args[1], dtype=value.dtype)
    is_by_element = torch.Tag.pointwise in node.target.tags
    operands = {}
    for each in node.all_input_nodes:
        operands[each] = _one_of(known[each]) if is_by_element else known[each]
    result: torch.Tensor = node.target(*_values(node.args, operands), **_values(node.kwargs, operands))
    return result


def _one_of(constant: torch.Tensor) -> torch.Tensor:
    """Returns the first element, with as many dimensions as the constant has; nothing of an empty one."""
    return constant[(slice(1),) * constant.dim()]


def _is_followed(node: torch.fx.Node, known: dict[torch.fx.Node, torch.Tensor]) -> bool:
    if node.op != "call_function" or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
        return False  # random numbers, which are refused later
    if not all(isinstance(size, int) for size in node.meta["val"].shape):
        return False
    # of full_like, only the number counts
    inputs = [
        input_node
        for input_node in node.all_input_nodes
        if node.target is not LIKE or input_node is not node.args[0]
    ]
    return (node.target in FACTORIES or bool(inputs)) and known.keys() >= {*inputs}


def _values(arguments: Any, known: dict[torch.fx.Node, torch.Tensor]) -> Any:
    return torch.fx.node.map_arg(arguments, lambda node: known[node])


def _is_uniform(result: torch.Tensor) -> bool:
    if not result.numel() or result.is_complex():
        return False
    first = result.reshape(-1)[0]
    if first != first:
        return bool((result != result).all())
    return bool((result == first).all()) and bool((result.signbit() == first.signbit()).all())


def count_from_front(graph: torch.fx.Graph) -> None:
    """Replaces negative dimensions of scatters by the same dimensions, counted from the first; in place."""
    for node in graph.nodes:
        if node.target in SCATTERS and node.args[1] < 0:
            written, dimension, *others = node.args
            node.args = (written, dimension + written.meta["val"].dim(), *others)


def saturate_bytes(program: torch.export.ExportedProgram) -> None:
    """Limits numbers that are converted to float8_e4m3fn to its largest finite number, 448; in place.

    PyTorch does so, as the type has no infinity; MLIR would make NaN of larger numbers.
    """
    for node in list(program.graph.nodes):
        if node.target not in CONVERSIONS or node.meta["val"].dtype is not torch.float8_e4m3fn:
            continue
        (source,) = node.all_input_nodes
        if source.meta["val"].dtype in NOT_ABOVE_E4M3FN:
            continue
        limited = source
        for is_beyond, limit in ((ATEN.gt.Scalar, LARGEST_E4M3FN), (ATEN.lt.Scalar, -LARGEST_E4M3FN)):
            with program.graph.inserting_before(node):
                beyond = program.graph.call_function(is_beyond, (limited, limit))  # false for NaN
                limited = program.graph.call_function(ATEN.where.ScalarSelf, (beyond, limit, limited))
            beyond.meta = {"val": source.meta["val"].to(torch.bool)}
            limited.meta = {"val": source.meta["val"]}
        node.replace_input_with(source, limited)


# Unsigned integers: MLIR's integers have no sign, so an operation on uint8 is accepted only where its result
# has the same bits as for int8.
#
# Torch-mlir converts uint8 to wider types as it should, and forgets the sign where it promotes types itself.
# So types are promoted here, before operations.


def promote_unsigned(program: torch.export.ExportedProgram) -> tuple[RefusedOperator, ...]:
    """Converts uint8 operands as PyTorch promotes them, in place; returns operators that are refused.

    An operator is refused if it has a uint8 operand whose sign matters, or a type from uint16 to uint64.
    Raises UsageError for an argument or a weight of a type from uint16 to uint64.
    """
    refused = []
    for node in list(program.graph.nodes):
        unsigned = _types([node, *node.all_input_nodes]) & UNSIGNED
        if not unsigned:
            continue
        reason = ""
        if unsigned - {torch.uint8}:
            names = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in unsigned))
            reason = f"{names} is not supported: of unsigned types, only uint8"
            if node.op == "placeholder":
                raise UsageError(reason)
        elif node.op == "call_function" and not _is_promoted(program, node):
            reason = "of uint8: convert to int32 before it"
        if reason and node.op == "call_function":
            refused.append(RefusedOperator(place_of(node), reason))
    return tuple(refused)


def _is_promoted(program: torch.export.ExportedProgram, node: torch.fx.Node) -> bool:
    target: Any = node.target
    result_types = _types([node])
    operand_types = _types(node.all_input_nodes)
    if target in CONVERSIONS and torch.uint8 in result_types and torch.float64 in operand_types:
        _convert(program, node, torch.int64)  # as PyTorch does; torch-mlir converts as for int8
        return True
    if not result_types or target in CONVERSIONS or (torch.uint8 in result_types and _base(target) in BYTES):
        return True
    if result_types == {torch.bool} and torch.Tag.pointwise in target.tags:
        _convert(program, node, torch.int64)
        return True
    if torch.uint8 not in result_types and (torch.Tag.pointwise in target.tags or target in REDUCTIONS):
        _convert(program, node, *result_types)
        return True
    return _base(target) == "getitem"


def _convert(program: torch.export.ExportedProgram, node: torch.fx.Node, dtype: torch.dtype) -> None:
    """Lets a node read its inputs of uint8, or the floats that become uint8, as ``dtype``."""
    for input_node in node.all_input_nodes:
        value = input_node.meta["val"]
        if value.dtype is torch.uint8 or node.target in CONVERSIONS:
            with program.graph.inserting_before(node):
                wide = program.graph.call_function(CONVERSIONS[0], (input_node,), {"dtype": dtype})
            wide.meta = {"val": value.to(dtype)}
            node.replace_input_with(input_node, wide)


def _base(target: Any) -> str:
    return str(getattr(target, "__name__", target)).partition(".")[0]


def _types(nodes: list[torch.fx.Node]) -> set[torch.dtype]:
    values = _pytree.tree_leaves([node.meta.get("val") for node in nodes])
    return {value.dtype for value in values if isinstance(value, torch.Tensor)}
