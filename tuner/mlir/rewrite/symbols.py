"""Accessors of ops with a symbol or a reference to one: name, callee and function type."""

from tuner.mlir.bindings import Attribute, Op, ir


def name_of(op: Op) -> str:
    """Returns ``sym_name`` of an op that has one."""
    return str(ir.StringAttr(op.attributes["sym_name"]).value)


def callee_of(call: Op) -> str:
    """Returns the name of the function that a ``func.call`` or an ``llvm.call`` names."""
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def private_function(name: str, kind: ir.FunctionType, **more: Attribute) -> Op:
    """Creates, at the current insertion point, a func.func that only its module sees; it has no body yet."""
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "sym_visibility": ir.StringAttr.get("private"),
        "function_type": ir.TypeAttr.get(kind),
    }
    return ir.Operation.create("func.func", attributes=attributes | more, regions=1)


def function_type(function: Op) -> ir.FunctionType:
    """Returns the type of a func.func or gpu.func; llvm.func has a type of its own kind."""
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
