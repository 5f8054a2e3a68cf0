"""Modules of LLVM dialect for the CPU: joins them, marks their processor."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tuner.mlir import transform
from tuner.mlir.bindings import Op, ir
from tuner.mlir.cpu.pipeline import EXPORTED, NO_BUILTINS
from tuner.mlir.ir.reading import ops_in, walk_where

FUNCTION = "llvm.func"
GLOBAL = "llvm.mlir.global"
PASSTHROUGH = "passthrough"
# of exported functions, and of the function of a fusion, which has no interface for C
ATTRIBUTES = re.compile(
    rf"attributes {{({re.escape(EXPORTED)}(?:, )?)?(?:{re.escape(NO_BUILTINS)})?}}(?= {{)"
)


@dataclass(frozen=True)
class ModulePart:
    """A module in LLVM dialect that is joined with others, and the processor that it is compiled for."""

    llvm_text: str  # of LLVM dialect
    prefix: str  # of the names of its functions and data in the joined module
    processor: str  # LLVM's name, as of -mcpu: "x86-64-v4"
    features: str = ""  # LLVM's features beyond those of the processor: "+avx512vnni"


def joined(parts: Iterable[ModulePart]) -> str:
    """Returns the text of one module with the functions and data of all parts, for a single object file.

    Names begin with the prefix of their module; those of functions that a module only declares, as of the C
    library, stay.

        llvm.func @matmul(%a: !llvm.ptr) attributes {llvm.emit_c_interface, passthrough = ["no-builtins"]} {
      of a module with prefix "k7_", for the processor "x86-64-v3", becomes
        llvm.func @k7_matmul(%a: !llvm.ptr) attributes {passthrough = ["no-builtins",
          ["target-cpu", "x86-64-v3"], ["target-features", ""]]} {

    Raises CandidateError(BIND) for a part that cannot be parsed.
    """
    with transform.new_context(), ir.Location.unknown():
        whole = ir.Module.create()
        declared: set[str] = set()
        for part in parts:
            module = transform.parse(part.llvm_text, part.prefix)
            _rename(module, part.prefix)
            for op in ops_in(module.body):
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
    defined = [
        op.operation
        for op in module.body.operations
        if op.operation.name in (FUNCTION, GLOBAL) and not _is_declaration(op.operation)
    ]
    names = {op.attributes["sym_name"].value for op in defined}
    for op in defined:
        op.attributes["sym_name"] = ir.StringAttr.get(prefix + op.attributes["sym_name"].value)
    for op in walk_where(
        module, lambda op: any(_is_of(op.attributes[name], names) for name in op.attributes)
    ):
        for name in [attribute for attribute in op.attributes if _is_of(op.attributes[attribute], names)]:
            op.attributes[name] = ir.FlatSymbolRefAttr.get(prefix + op.attributes[name].value)


def _is_of(attribute: ir.Attribute, names: set[str]) -> bool:
    return isinstance(attribute, ir.FlatSymbolRefAttr) and attribute.value in names


def _compile_for(function: Op, part: ModulePart) -> None:
    """Makes LLVM compile a function for the part's processor; no wrapper is made for callers in MLIR."""
    if EXPORTED in function.attributes:
        del function.attributes[EXPORTED]
    function.attributes[PASSTHROUGH] = ir.Attribute.parse(_passthrough(part.processor, part.features))


def compiled_for(llvm_text: str, processor: str, features: str) -> str:
    """Returns LLVM-dialect text with the processor and "no-builtins" set as attributes of its functions.

    Changes exported functions, and a fusion's function, which has no C interface. ``processor``: as for clang
    -mcpu; ``features``: such as "+avx2,+fma". Without these attributes LLVM compiles for the host processor.
    """
    passthrough = _passthrough(processor, features)

    def marked(match: re.Match[str]) -> str:
        exported = f"{EXPORTED}, " if match[1] else ""
        return f"attributes {{{exported}{PASSTHROUGH} = {passthrough}}}"

    return ATTRIBUTES.sub(marked, llvm_text)


def _passthrough(processor: str, features: str) -> str:
    """Returns the text of the attribute of LLVM's functions by which they are compiled for a processor."""
    return f'["no-builtins", ["target-cpu", "{processor}"], ["target-features", "{features}"]]'
