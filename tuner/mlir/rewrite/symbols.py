"""Accessors of ops that have a symbol or refer to one: name, callee and function type."""

from tuner.mlir.bindings import Attribute, Op, ir


def name_of(op: Op) -> str:
    """Returns the ``sym_name`` of an op."""
    return str(ir.StringAttr(op.attributes["sym_name"]).value)


def callee_of(call: Op) -> str:
    """Returns the symbol that a ``func.call`` or an ``llvm.call`` calls."""
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def private_function(name: str, kind: ir.FunctionType, **more: Attribute) -> Op:
    """Creates a private func.func without a body at the current insertion point; ``more`` are attributes."""
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "sym_visibility": ir.StringAttr.get("private"),
        "function_type": ir.TypeAttr.get(kind),
    }
    return ir.Operation.create("func.func", attributes=attributes | more, regions=1)


def function_type(function: Op) -> ir.FunctionType:
    """Returns the type of a func.func or gpu.func; an llvm.func has an LLVM function type instead."""
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
