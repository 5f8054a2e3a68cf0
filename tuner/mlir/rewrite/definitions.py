"""How a value is defined: by which op, as which constant, behind which views."""

from collections.abc import Container

from tuner.mlir.bindings import Attribute, Op, Value, ir


def op_of(value: Value, *names: str) -> Op | None:
    """Returns the op of one of these names that defines a value; None for another op, or a block argument."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation  # whose name no attribute hides
    return op if op is not None and op.name in names else None


def attributes_of(op: Op) -> dict[str, Attribute]:
    """Returns an op's attributes, as what creates another op takes them."""
    return {name: op.attributes[name] for name in op.attributes}


def constant_of(value: Value) -> int | None:
    """Returns the integer that ``arith.constant`` gives; None for any other value."""
    op = op_of(value, "arith.constant")
    number = None if op is None else op.attributes["value"]
    return int(number.value) if isinstance(number, ir.IntegerAttr) else None


def source_of(value: Value, names: Container[str]) -> Value:
    """Returns what a chain of ops of these names begins with, each of which takes another's result first."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in names:
        value = value.owner.operation.operands[0]
    return value
