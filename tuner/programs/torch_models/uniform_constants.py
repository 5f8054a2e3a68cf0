"""Computes operations of constants whose elements are all equal by PyTorch itself.

torch-mlir 20261001 folds them wrongly: the sum of constants of 2.0 and -1 is 1.8e19, the sign of -3.0 is 1, a
comparison of 0.25 with 0 is the opposite.
"""

from typing import Any

import torch

from tuner.core.errors import UsageError
from tuner.programs.torch_models.lowering import first_line

ATEN = torch.ops.aten
LIKE = ATEN.full_like.default
FACTORIES = (
    ATEN.full.default,
    ATEN.scalar_tensor.default,
    LIKE,
)  # what is left of others after decompositions
# Of a weight of one float and an integer these are folded wrongly, too, and rightly of a float.
SUMS = (ATEN.add.Tensor, ATEN.sub.Tensor, ATEN.mul.Tensor, ATEN.add.Scalar, ATEN.sub.Scalar, ATEN.mul.Scalar)


def fold_uniform(graph: torch.fx.Graph) -> None:
    """Turns each operation of such constants whose result is one too into ``aten.full``, in place.

    Integers that are added to or multiplied with floats become floats. Raises UsageError where PyTorch fails.
    """
    known: dict[torch.fx.Node, torch.Tensor] = {}
    for node in graph.nodes:
        if node.target in SUMS and node.meta["val"].is_floating_point() and type(node.args[1]) is int:
            node.args = (node.args[0], float(node.args[1]), *node.args[2:])
        if not _is_followed(node, known):
            continue
        shape, dtype = node.meta["val"].shape, node.meta["val"].dtype
        try:
            if node.target is LIKE:
                result = torch.full(shape, node.args[1], dtype=dtype)
            else:
                result = node.target(*_values(node.args, known), **_values(node.kwargs, known))
        except RuntimeError as error:  # as in eager mode: a division by zero, a number out of range
            raise UsageError(f"{node.target} of constants fails: {first_line(error)}") from error
        if _is_uniform(result):
            number = result.reshape(-1)[0]
            known[node] = number.expand(shape)
            node.target, node.args = ATEN.full.default, (list(shape), number.item())
            node.kwargs = {"dtype": dtype, "device": number.device, "pin_memory": False}


def _is_followed(node: torch.fx.Node, known: dict[torch.fx.Node, torch.Tensor]) -> bool:
    """Returns whether an operation gives a tensor of known sizes, and computes it of such constants alone."""
    if node.op != "call_function" or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    if not all(isinstance(size, int) for size in node.meta["val"].shape):
        return False
    inputs = node.all_input_nodes
    return node.target in FACTORIES or (bool(inputs) and all(each in known for each in inputs))


def _values(arguments: Any, known: dict[torch.fx.Node, torch.Tensor]) -> Any:
    return torch.fx.node.map_arg(arguments, lambda node: known[node])


def _is_uniform(result: torch.Tensor) -> bool:
    if not result.numel() or result.is_complex():
        return False
    first = result.reshape(-1)[0]
    if first != first:
        return bool((result != result).all())
    return bool((result == first).all()) and bool((result.signbit() == first.signbit()).all())
