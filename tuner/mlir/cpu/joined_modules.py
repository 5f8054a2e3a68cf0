"""Joins modules of LLVM dialect into one, so that a single object file holds the kernels of several problems.

Functions and private data of different modules have the same names: in the joined module each name begins
with the prefix of its module. Declarations of the C library's functions keep their names.

    llvm.func @matmul(%a: !llvm.ptr) attributes {llvm.emit_c_interface, passthrough = ["no-builtins"]} {
  of a module with prefix "k7_", for the processors "x86-64-v3", becomes
    llvm.func @k7_matmul(%a: !llvm.ptr) attributes {passthrough = ["no-builtins",
      ["target-cpu", "x86-64-v3"], ["target-features", ""]]} {
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tuner.mlir import interpreter
from tuner.mlir.bindings import Op, ir
from tuner.mlir.cpu.pipeline import EXPORTED
from tuner.mlir.rewrite.walking import walk_where

FUNCTION, GLOBAL = "llvm.func", "llvm.mlir.global"
PASSTHROUGH = "passthrough"


@dataclass(frozen=True)
class ModulePart:
    """A module that is joined with others: its text, its prefix, the processors that it is compiled for."""

    llvm_text: str  # of LLVM dialect
    prefix: str  # of the names of its functions and data in the joined module
    processor: str  # LLVM's name, as of -mcpu: "x86-64-v4"
    features: str = ""  # LLVM's features beyond those of the processor: "+avx512vnni"


def joined(parts: Iterable[ModulePart]) -> str:
    """Returns the text of one module with the functions and data of all parts.

    Raises CandidateError(BIND) for a part that cannot be parsed.
    """
    with interpreter.new_context(), ir.Location.unknown():
        whole = ir.Module.create()
        declared: set[str] = set()
        for part in parts:
            module = interpreter.parse(part.llvm_text, part.prefix)
            _rename(module, part.prefix)
            for op in [each.operation for each in module.body.operations]:
                if _is_declaration(op):
                    name = op.attributes["sym_name"].value
                    if name in declared:
                        continue
                    declared.add(name)
                elif op.name == FUNCTION:
                    _compile_for(op, part)
                op.detach_from_parent()
                whole.body.append(op)
        return str(whole)


def _is_declaration(op: Op) -> bool:
    return op.name == FUNCTION and not op.regions[0].blocks


def _rename(module: ir.Module, prefix: str) -> None:
    """Puts the prefix before the names of what a module defines, and before the uses of these names."""
    defined = [
        op.operation
        for op in module.body.operations
        if op.operation.name in (FUNCTION, GLOBAL) and not _is_declaration(op.operation)
    ]
    names = {op.attributes["sym_name"].value for op in defined}
    for op in defined:
        op.attributes["sym_name"] = ir.StringAttr.get(prefix + op.attributes["sym_name"].value)
    for op in walk_where(
        module, lambda each: any(_is_of(each.attributes[name], names) for name in each.attributes)
    ):
        for name in [each for each in op.attributes if _is_of(op.attributes[each], names)]:
            op.attributes[name] = ir.FlatSymbolRefAttr.get(prefix + op.attributes[name].value)


def _is_of(attribute: ir.Attribute, names: set[str]) -> bool:
    return isinstance(attribute, ir.FlatSymbolRefAttr) and attribute.value in names


def _compile_for(function: Op, part: ModulePart) -> None:
    """Makes LLVM compile a function for the part's processors; no wrapper is made for callers in MLIR."""
    if EXPORTED in function.attributes:
        del function.attributes[EXPORTED]
    function.attributes[PASSTHROUGH] = ir.Attribute.parse(
        f'["no-builtins", ["target-cpu", "{part.processor}"], ["target-features", "{part.features}"]]'
    )
