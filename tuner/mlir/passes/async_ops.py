"""Gives device work what makes it asynchronous: a token that it waits for, and one that stands for its end.

All of ``DEVICE_OPS`` take their tokens first and give theirs last.
"""

from collections.abc import Sequence
from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import create
from tuner.mlir.passes.launch_operands import SEGMENTS

ASYNC = "!gpu.async.token"


def is_token(value: Any) -> bool:
    """Tells whether a value is a token."""
    return str(value.type) == ASYNC


def make_async(op: Any, dependency: Any) -> Any:
    """Builds the asynchronous op before ``op``, hands its results on, and returns its token.

    ``op`` has no users then, and is the caller's to erase: insertion points may still name it.
    """
    attributes = {name: op.attributes[name] for name in op.attributes}
    if SEGMENTS in attributes:
        sizes = list(ir.DenseI32ArrayAttr(attributes[SEGMENTS]))
        attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([1, *sizes[1:]])
    results = [*(result.type for result in op.results), ir.Type.parse(ASYNC)]
    with op.location, ir.InsertionPoint(op):
        made = create(op.name, results, [dependency, *op.operands], **attributes)
    for index, result in enumerate(op.results):
        result.replace_all_uses_with(made.results[index])
    return made.results[len(results) - 1]


def wait_async(tokens: Sequence[Any]) -> Any:
    """Builds a new stream behind the tokens, here, and returns its token."""
    return create("gpu.wait", [ir.Type.parse(ASYNC)], tokens).results[0]


def wait_on_host(tokens: Sequence[Any]) -> None:
    """Lets the host wait here; the streams of the tokens end."""
    create("gpu.wait", [], tokens)
