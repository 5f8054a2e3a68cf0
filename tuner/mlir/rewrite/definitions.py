"""How a value is defined: by which op, as which constant, through which views."""

from collections.abc import Container

from tuner.mlir.bindings import Attribute, Op, Value, ir


def op_of(value: Value, *names: str) -> Op | None:
    """Returns the op that defines a value if its name is one of ``names``, else None."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation  # an OpView may hide `name`
    return op if op is not None and op.name in names else None


def attributes_of(op: Op) -> dict[str, Attribute]:
    """Returns an op's attributes as a dict from name to attribute, in the form that creates another op."""
    return {name: op.attributes[name] for name in op.attributes}


def constant_of(value: Value) -> int | None:
    """Returns the integer of an integer or index ``arith.constant``; None for any other value."""
    op = op_of(value, "arith.constant")
    number = None if op is None else op.attributes["value"]
    return int(number.value) if isinstance(number, ir.IntegerAttr) else None


def is_zero(value: Value) -> bool:
    """Returns whether a value is an ``arith.constant`` that is the number 0, of a float or integer type."""
    op = op_of(value, "arith.constant")
    number = None if op is None else op.attributes["value"]
    return isinstance(number, ir.FloatAttr | ir.IntegerAttr) and number.value == 0


def source_of(value: Value, names: Container[str]) -> Value:
    """Returns the value that a chain of ops starts from, such as the buffer of a chain of subviews.

    While the value is defined by an op whose name is in ``names``, continues with that op's first operand.
    """
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in names:
        value = value.owner.operation.operands[0]
    return value
