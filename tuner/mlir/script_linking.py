"""Transform scripts of several modules, linked: sequences that one declares come from another that has them.

Also writes scripts as text that MLIR reads back as the same ops. Linking is as mlir-opt's
``--transform-preload-library`` does for its files: https://mlir.llvm.org/docs/Dialects/Transform/
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Attribute, Op, ir
from tuner.mlir.ir.reading import ops_in, walk, walk_where

SEQUENCE = "transform.named_sequence"
SCHEDULE = "transform.with_named_sequence"  # attribute of a module that is a schedule
MAIN = "__transform_main"
PRIVATE = "private"
APPLY_REGISTERED = "transform.apply_registered_pass"
OPTIONS = "options"
PARAMETER = re.compile(r"#transform\.param_operand<index\s*=\s*(\d+)\s*:\s*i64>")


@dataclass(frozen=True, eq=False)
class Library:
    """A module whose sequences other modules use, and the name of its file for messages."""

    name: str
    module: Op


def linked(script: ir.Module, name: str, libraries: Sequence[Library]) -> str:
    """Returns the text of a script with the sequences of its libraries added; changes the modules.

    A sequence that only libraries define as ``@__transform_main`` is the entry. Raises CandidateError(BIND)
    for a public sequence that two of the modules define, for one of another type than its declaration, and if
    not exactly one module of ``script`` has sequences. ``name``: of the script, for messages.

        transform.named_sequence private @is_product(%o: ...) -> !transform.any_op
      of the script becomes, with the sequences next to it in the library,
        transform.named_sequence @is_product(%o: ...) -> !transform.any_op { ... }
    """
    holders = _holders(script.operation)
    if len(holders) != 1:
        raise CandidateError(
            Stage.BIND, f"{name}: found {len(holders)} modules with sequences, allowed one with libraries"
        )
    for library in libraries:
        for module in _holders(library.module):
            _merge(holders[0], Library(library.name, module))
    return text_of(script.operation)


def link_modules(script: ir.Module) -> None:
    """Links the modules of one script, in place: each gets the sequences that it only declares.

    With these come the others of the module that defines them, without its ``@__transform_main``. Raises
    CandidateError(BIND) for a public sequence that two modules define, and for one of another type than its
    declaration. A module without ``@__transform_main`` whose sequences others took is erased: it is a
    library.
    """
    holders = _holders(script.operation)
    if len(holders) < 2:
        return
    used: list[Op] = []
    for holder in holders:
        missing = _declared(holder)
        for other in holders:
            if other != holder and missing & _defined(other).keys():
                _merge(holder, Library("script", other.clone()), skips_main=True)
                used.append(other)
    for other in [module for module in holders if module in used and MAIN not in _defined(module)]:
        other.erase()


def _holders(module: Op) -> list[Op]:
    """Returns the modules that have sequences: the module, or those in it."""
    ops = _ops_in(module)
    if any(op.name == SEQUENCE for op in ops):
        return [module]
    return [op for op in ops if op.name == "builtin.module" and SCHEDULE in op.attributes]


def _ops_in(module: Op) -> list[Op]:
    return ops_in(module.regions[0].blocks[0])


def _declared(module: Op) -> set[str]:
    return {_symbol(op) for op in _sequences(module) if not _has_body(op)}


def _sequences(module: Op) -> list[Op]:
    return [op for op in _ops_in(module) if op.name == SEQUENCE]


def _has_body(op: Op) -> bool:
    return len(op.regions[0].blocks) > 0


def _symbol(op: Op) -> str:
    return str(op.attributes["sym_name"].value)


def _defined(module: Op) -> dict[str, Op]:
    return {_symbol(op): op for op in _sequences(module) if _has_body(op)}


def _merge(holder: Op, library: Library, *, skips_main: bool = False) -> None:
    """Moves the sequences of a library into a module; private ones of a name that is taken are renamed."""
    if skips_main and MAIN in _defined(library.module):
        _defined(library.module)[MAIN].erase()
    known = {_symbol(op): op for op in _sequences(holder)}
    for op in _sequences(library.module):
        name = _symbol(op)
        if name not in known or not _has_body(known[name]) or not _has_body(op):
            continue
        if _is_private(op):
            _rename(library.module, name, _free(name, known))
        elif _is_private(known[name]):
            _rename(holder, name, _free(name, known))
        else:
            raise CandidateError(
                Stage.BIND, f"sequence @{name}: {library.name} defines it, and so does another module"
            )
    known = {_symbol(op): op for op in _sequences(holder)}
    block = holder.regions[0].blocks[0]
    for op in _sequences(library.module):
        own = known.get(_symbol(op))
        if own is not None:
            _require_same_type(own, op, library.name)
            if not _has_body(op):
                continue
            own.erase()
        op.detach_from_parent()
        block.append(op)


def _is_private(op: Op) -> bool:
    return "sym_visibility" in op.attributes and op.attributes["sym_visibility"].value == PRIVATE


def _require_same_type(own: Op, other: Op, name: str) -> None:
    types = [op.attributes["function_type"].value for op in (own, other)]
    if types[0] != types[1]:
        raise CandidateError(
            Stage.BIND,
            f"sequence @{_symbol(own)}: is {types[0]} in the script, but {types[1]} in {name}",
        )


def _free(name: str, known: dict[str, Op]) -> str:
    number = 0
    while f"{name}_{number}" in known:
        number += 1
    return f"{name}_{number}"


def _rename(module: Op, old: str, new: str) -> None:
    """Renames a sequence of a module, and each reference to it."""
    for op in _sequences(module):
        if _symbol(op) == old:
            op.attributes["sym_name"] = ir.StringAttr.get(new)
    reference = re.compile(rf"{re.escape(str(ir.FlatSymbolRefAttr.get(old)))}(?![\w$.-])")
    renamed = str(ir.FlatSymbolRefAttr.get(new))
    for op in walk_where(module, lambda op: op.name.startswith("transform.")):
        for name in list(op.attributes):
            attribute = op.attributes[name]
            if isinstance(attribute, ir.FlatSymbolRefAttr | ir.SymbolRefAttr | ir.ArrayAttr):
                text = str(attribute)
                if reference.search(text):
                    op.attributes[name] = Attribute.parse(reference.sub(renamed, text))


# Scripts as text that MLIR reads back as the same script, which its printers do not always give.
#
# ``transform.apply_registered_pass`` prints its options sorted by name, and the types of their parameters in
# another order: with two types, the text cannot be parsed.


def sort_pass_options(module: ir.Module) -> None:
    """Orders the parameters of each ``transform.apply_registered_pass`` as its options are printed, in place.

      %0 = ... with options = {"a" = %2, "b" = %1} to %f : (..., !transform.param<i64>, !transform.any_param)
    of the operands (%f, %1, %2) gets the operands (%f, %2, %1), and prints
      %0 = ... with options = {"a" = %2, "b" = %1} to %f : (..., !transform.any_param, !transform.param<i64>)
    """
    for op in walk(module, APPLY_REGISTERED):
        if OPTIONS in op.attributes:
            _sort(op)


def _sort(op: Op) -> None:
    target, *parameters = op.operands
    options = str(op.attributes[OPTIONS])
    order = list(dict.fromkeys(map(int, PARAMETER.findall(options))))
    if order == sorted(order):
        return

    def renumbered(match: re.Match[str]) -> str:
        return f"#transform.param_operand<index={order.index(int(match[1]))}>"

    op.attributes[OPTIONS] = Attribute.parse(PARAMETER.sub(renumbered, options))
    for operand, number in enumerate(order, 1):
        op.operands[operand] = parameters[number]
    assert op.operands[0] == target


def text_of(script: Op) -> str:
    """Returns a script as text that MLIR parses to the same ops.

    This is MLIR's generic form where the usual form is not parsed to the same ops.
    """
    text = str(script)
    generic = script.get_asm(print_generic_op_form=True)
    try:
        is_same = ir.Module.parse(text).operation.get_asm(print_generic_op_form=True) == generic
    except (ir.MLIRError, ValueError):
        is_same = False
    return text if is_same else generic
