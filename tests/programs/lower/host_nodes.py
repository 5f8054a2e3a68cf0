"""Reads a module into what ``host_interpreter`` executes."""

from typing import Any

import numpy as np

from tests.programs.lower.host_interpreter import (
    Block,
    Body,
    Function,
    Interpreter,
    Node,
    Shape,
    View,
    row_major,
)
from tuner.mlir.bindings import ir
from tuner.mlir.rewrite.type_sizes import is_row_major
from tuner.mlir.rewrite.walking import walk

DTYPES = {"f32": np.float32, "f64": np.float64, "index": np.int64, "i64": np.int64, "i32": np.int32}
IDS = ("gpu.block_id", "gpu.thread_id", "gpu.grid_dim", "gpu.block_dim")
LISTS = ("static_offsets", "static_sizes", "static_strides")


def interpreter_of(module: Any, kernels_use: str) -> Interpreter:
    """Returns the module, ready to run."""
    functions = {
        _name(op): _function(op) for op in module.body.operations if op.operation.name == "func.func"
    }
    for holder in walk(module, "gpu.module"):
        for kernel in walk(holder, "gpu.func"):
            functions[f"@{_name(holder)}::@{_name(kernel)}"] = _function(kernel)
    contents = {_name(op): _contents(op) for op in walk(module, "memref.global")}
    return Interpreter(functions, contents, kernels_use)


def _function(op: Any) -> Function:
    numbers: dict[Any, int] = {}
    body = _body(op.regions[0], numbers)
    return Function(body, len(numbers))


def _body(region: Any, numbers: dict[Any, int]) -> Body:
    if not len(region.blocks):
        return Body((), ())
    (block,) = region.blocks
    arguments = tuple(_number(argument, numbers) for argument in block.arguments)
    kept = (op.operation for op in block.operations if not _is_idle(op.operation))
    return Body(arguments, tuple(_node(op, numbers) for op in kept))


def _node(op: Any, numbers: dict[Any, int]) -> Node:
    bodies = () if op.name.startswith("linalg.") else tuple(_body(region, numbers) for region in op.regions)
    return Node(
        op.name,
        tuple(_number(operand, numbers) for operand in op.operands),
        tuple(_number(result, numbers) for result in op.results),
        tuple(_shape(result.type) for result in op.results),
        {name: _attribute(name, op.attributes[name]) for name in op.attributes},
        bodies,
    )


def _number(value: Any, numbers: dict[Any, int]) -> int:
    return numbers.setdefault(value, len(numbers))


def _is_idle(op: Any) -> bool:
    return op.name in IDS and not list(op.results[0].uses)


def _shape(kind: Any) -> Shape | None:
    if not isinstance(kind, ir.MemRefType):
        return None
    strides, offset = kind.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_size()
    sizes, strides, (offset,) = (
        tuple(None if each == unknown else each for each in list_)
        for list_ in (kind.shape, strides, [offset])
    )
    return Shape(sizes, strides, offset, DTYPES[str(kind.element_type)], is_row_major(kind))


def _attribute(name: str, attribute: Any) -> Any:
    if name in LISTS:
        unknown = ir.ShapedType.get_dynamic_size()
        return [None if each == unknown else each for each in ir.DenseI64ArrayAttr(attribute)]
    if name in ("name", "callee"):
        return ir.FlatSymbolRefAttr(attribute).value
    if name == "value":
        number = attribute.value
        return np.float32(number) if str(attribute.type) == "f32" else number
    if name == "predicate":
        return ir.IntegerAttr(attribute).value
    if name == "dimension":
        return str(attribute).removeprefix("#gpu<dim ").removesuffix(">")
    return str(attribute)


def _contents(op: Any) -> View:
    kind = ir.TypeAttr(op.attributes["type"]).value
    sizes = tuple(kind.shape)
    value = ir.DenseElementsAttr(op.attributes["initial_value"])
    numbers = np.full(sizes, ir.FloatAttr(value.get_splat_value()).value, DTYPES[str(kind.element_type)])
    numbers.flags.writeable = "constant" not in op.attributes  # a write raises
    return View(Block(numbers.reshape(-1), "host", False), 0, sizes, row_major(sizes))


def _name(op: Any) -> str:
    return str(ir.StringAttr(op.attributes["sym_name"]).value)
