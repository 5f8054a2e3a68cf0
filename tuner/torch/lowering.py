"""Lowers a module from torch-mlir's dialect of PyTorch to linalg, in a child: a crash is a refusal.

The child process gets no weights: a constant is named in the text, and its bytes, which follow the text
(MLIR's ``dialect_resources``), stay in this process. Nor does it import PyTorch, which takes seconds. Before
torch-mlir runs, the graph is changed where torch-mlir would be wrong: ``fold_uniform`` lets PyTorch compute
operations of constants, ``promote_unsigned`` converts uint8.
"""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree

from tuner.core.errors import CandidateError, UsageError
from tuner.mlir.torch_dialect import first_line, lower, refused_operators
from tuner.programs.compile import call_in_kept_child
from tuner.torch.refusals import RefusedOperator, place_of, require_none

RESOURCES = "\n{-#"  # begins the bytes of constants, after the module
ATEN = torch.ops.aten
LIKE = ATEN.full_like.default
# all operations that create constants, after decompositions
FACTORIES = (ATEN.full.default, ATEN.scalar_tensor.default, LIKE)
# Of a weight of one float and an integer these are folded wrongly, too; with a float number, rightly.
ELEMENTWISE_SUMS = (
    *(ATEN.add.Tensor, ATEN.sub.Tensor, ATEN.mul.Tensor),
    *(ATEN.add.Scalar, ATEN.sub.Scalar, ATEN.mul.Scalar),
)
UNSIGNED = frozenset({torch.uint8, torch.uint16, torch.uint32, torch.uint64})
CONVERSIONS = (ATEN._to_copy.default, torch.ops.prims.convert_element_type.default)  # noqa: SLF001
REDUCTIONS = (ATEN.sum.default, ATEN.sum.dim_IntList)  # of int64
# by their names: each is right for all 256 numbers, which a test shows
BYTES = frozenset(
    {
        *("add", "sub", "mul", "neg", "amax", "amin", "maximum", "minimum", "clamp"),
        *("bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "__lshift__", "__rshift__"),
        *("cat", "stack", "split", "split_with_sizes", "slice", "select", "index", "index_select", "gather"),
        *("alias", "clone", "detach", "expand", "flip", "permute", "repeat", "squeeze", "transpose"),
        *("unsqueeze", "view", "where", "full", "full_like", "empty_strided", "scalar_tensor"),
    }
)


def lower_in_child(text: str) -> str:
    """Lowers a module from torch-mlir's dialect to linalg, in a child process; returns its text.

    Raises UsageError that names the operators which torch-mlir refuses, or if torch-mlir crashes.
    """
    return _lowered(text, lower, call_in_kept_child)


def lower_with_locations(text: str) -> str:
    """Lowers a module to linalg in a child process; operations keep their graph nodes' names as locations.

    Raises UsageError that names the operators which torch-mlir refuses, or if torch-mlir crashes.
    """
    return _lowered(text, partial(lower, has_locations=True), call_in_kept_child)


def lower_in_process(text: str) -> str:
    """Lowers a module from torch-mlir's dialect to linalg in this process, which a crash would end.

    Raises UsageError that names the operators which torch-mlir refuses.
    """
    return _lowered(text, lower, _call)


def _call(work: Callable[[], Any]) -> Any:
    return work()


def _lowered(text: str, lower_module: Callable[[str], str], call: Callable[[Callable[[], Any]], Any]) -> str:
    """Lowers a module by ``call``, here or in a child; a refusal names all operators that are refused."""
    module, mark, resources = text.partition(RESOURCES)
    try:
        return str(call(partial(lower_module, module))) + mark + resources
    except CandidateError as error:
        require_none(_refused_operators(module, call))
        raise UsageError(f"torch-mlir refuses the module: {error.reason}") from error


def require_none_of(refused: tuple[RefusedOperator, ...], text: Callable[[], str]) -> None:
    """Raises UsageError if ``refused`` is not empty; it also names the operators that torch-mlir refuses.

    ``text`` returns the module in torch-mlir's dialect; it is called only if there is something to refuse.
    """
    if not refused:
        return
    with contextlib.suppress(UsageError):  # the import may fail because of a refused operator
        module = text().partition(RESOURCES)[0]
        known = tuple(operator.place for operator in refused)
        refused = (*refused, *_refused_operators(module, call_in_kept_child, known))
    require_none(refused)


def _refused_operators(
    module: str, call: Callable[[Callable[[], Any]], Any], known: tuple[str, ...] = ()
) -> tuple[RefusedOperator, ...]:
    try:
        return tuple(RefusedOperator(*refused) for refused in call(partial(refused_operators, module, known)))
    except CandidateError:  # torch-mlir crashes
        return ()


# Computes operations of constants whose elements are all equal by PyTorch itself.
#
# torch-mlir 20261001 folds them wrongly: the sum of constants of 2.0 and -1 is 1.8e19, the sign of -3.0 is 1,
# a comparison of 0.25 with 0 is the opposite.


def fold_uniform(graph: torch.fx.Graph) -> None:
    """Replaces operations on constants of equal elements by ``aten.full`` with PyTorch's result, in place.

    Raises UsageError where PyTorch cannot compute such an operation, such as an integer division by zero.
    """
    known: dict[torch.fx.Node, torch.Tensor] = {}
    for node in graph.nodes:
        is_sum = node.target in ELEMENTWISE_SUMS and node.meta["val"].is_floating_point()
        if is_sum and type(node.args[1]) is int:
            node.args = (node.args[0], float(node.args[1]), *node.args[2:])
        if not _is_followed(node, known):
            continue
        shape = node.meta["val"].shape
        dtype = node.meta["val"].dtype
        try:
            if node.target is LIKE:
                result = torch.full(shape, node.args[1], dtype=dtype)
            else:
                result = node.target(*_values(node.args, known), **_values(node.kwargs, known))
        except RuntimeError as error:  # as in eager mode: a division by zero, a number out of range
            raise UsageError(f"{place_of(node)} of constants fails: {first_line(error)}") from error
        if _is_uniform(result):
            number = result.reshape(-1)[0]
            known[node] = number.expand(shape)
            node.target = ATEN.full.default
            node.args = (list(shape), number.item())
            node.kwargs = {"dtype": dtype, "device": number.device, "pin_memory": False}


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
    return (node.target in FACTORIES or bool(inputs)) and all(input_ in known for input_ in inputs)


def _values(arguments: Any, known: dict[torch.fx.Node, torch.Tensor]) -> Any:
    return torch.fx.node.map_arg(arguments, lambda node: known[node])


def _is_uniform(result: torch.Tensor) -> bool:
    if not result.numel() or result.is_complex():
        return False
    first = result.reshape(-1)[0]
    if first != first:
        return bool((result != result).all())
    return bool((result == first).all()) and bool((result.signbit() == first.signbit()).all())


# Unsigned integers: MLIR's integers have no sign, so an operation on uint8 is accepted only where its result
# has the same bits as for int8.
#
# Torch-mlir converts uint8 to wider types as it should, and forgets the sign where it promotes types itself.
# So types are promoted here, before operations.


def promote_unsigned(program: torch.export.ExportedProgram) -> tuple[RefusedOperator, ...]:
    """Converts uint8 operands as PyTorch promotes them, in place; returns operators that are refused.

    An operator is refused if the sign of its operands matters, or for uint16 to uint64. Raises UsageError for
    an argument or a weight of these types.
    """
    refused = []
    for node in list(program.graph.nodes):
        found = _types([node, *node.all_input_nodes]) & UNSIGNED
        if not found:
            continue
        reason = ""
        if found - {torch.uint8}:
            names = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in found))
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
    given = _types([node])
    taken = _types(node.all_input_nodes)
    if target in CONVERSIONS and torch.uint8 in given and any(dtype.is_floating_point for dtype in taken):
        _convert(program, node, torch.int32)  # wraps, where fptoui has no value
        return True
    if not given or target in CONVERSIONS or (torch.uint8 in given and _base(target) in BYTES):
        return True
    if given == {torch.bool} and torch.Tag.pointwise in target.tags:
        _convert(program, node, torch.int64)
        return True
    if torch.uint8 not in given and (torch.Tag.pointwise in target.tags or target in REDUCTIONS):
        _convert(program, node, *given)
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
