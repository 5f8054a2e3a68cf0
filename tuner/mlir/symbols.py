"""What a function, or another operation with a symbol, is called, and what a function takes and gives."""

from typing import Any

from tuner.mlir.bindings import ir


def name_of(op: Any) -> str:
    """Returns the symbol of an operation that has one."""
    return str(ir.StringAttr(op.attributes["sym_name"]).value)


def function_type(function: Any) -> Any:
    """Returns the ``ir.FunctionType`` of a function of any dialect but LLVM's."""
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
