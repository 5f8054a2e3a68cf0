"""Accessors of ops that have a symbol or refer to one: name, callee and function type."""

from tuner.mlir.bindings import Attribute, Op, ir


def name_of(op: Op) -> str:
    """Returns the symbol name (``sym_name``) of an op such as a func.func, without "@"."""
    return str(ir.StringAttr(op.attributes["sym_name"]).value)


def callee_of(call: Op) -> str:
    """Returns the name of the function that a ``func.call`` or a direct ``llvm.call`` calls, without "@"."""
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def private_function(name: str, kind: ir.FunctionType, **more: Attribute) -> Op:
    """Creates a private func.func without a body at the current insertion point; returns the op.

    ``kind``: its type; ``more``: further attributes.
    """
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "sym_visibility": ir.StringAttr.get("private"),
        "function_type": ir.TypeAttr.get(kind),
    }
    return ir.Operation.create("func.func", attributes=attributes | more, regions=1)


def function_type(function: Op) -> ir.FunctionType:
    """Returns the FunctionType of a func.func or gpu.func, not that of an llvm.func."""
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
