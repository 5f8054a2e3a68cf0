"""Memory spaces of memref types by name: numbers and older names in a module are replaced."""

import re

from tuner.mlir.bindings import Attribute, Op, Type, ir
from tuner.mlir.ir.reading import arguments_in, unsupported, walk_where

SPACES = {"0": "", "1": "", "3": "workgroup", "5": "private"}  # NVVM's number -> name; "": default space
ALLOWED = "0 or 1 (global), 3 (workgroup), 5 (private)"
NESTED = r"(?:[^<>]|->|<(?:[^<>]|->|<[^<>]*>)*>)*?"  # text in which < and > are balanced
WORD = re.compile(rf"(memref<{NESTED}), #gpu\.(?:memory|address)_space<(global|workgroup|private)>>")
NUMBER = re.compile(rf"(memref<{NESTED}), (\d+)(?: : \w+)?>")
SPACE_NAME = "memory_space"  # attribute of bufferization.alloc_tensor


def name_memory_spaces(module: ir.Module) -> None:
    """Rewrites the memory spaces of all memref types in a module to ``#gpu.address_space`` names, in place.

    Input files write spaces as numbers or as ``#gpu.memory_space``. Global memory (0, 1, ``<global>``)
    becomes the default space, and casts that no longer change the space go. Raises CandidateError(COMPILE)
    for a number other than 0, 1 (global), 3 (workgroup) and 5 (private). See
    <https://docs.nvidia.com/cuda/nvvm-ir-spec/#address-space>.

        %t = memref.alloc() : memref<16xf32, 3>
        memref.store %x, %g[%i] : memref<16xf32, 1>
      becomes
        %t = memref.alloc() : memref<16xf32, #gpu.address_space<workgroup>>
        memref.store %x, %g[%i] : memref<16xf32>
    """
    _Renaming().change(module.operation)


class _Renaming:
    """Replaces types; each distinct type is parsed once."""

    def __init__(self) -> None:
        self._known: dict[Type, Type] = {}

    def change(self, root: Op) -> None:
        ops = walk_where(root, lambda _: True)
        for op in ops:
            for defined in [*op.results, *arguments_in(op)]:
                new = self._of(op, defined.type)
                if new != defined.type:
                    defined.set_type(new)
            for name in list(op.attributes):
                if name == SPACE_NAME and isinstance(op.attributes[name], ir.IntegerAttr):
                    _name_space(op)
                    continue
                changed = self._attribute(op, op.attributes[name])
                if changed is not None:
                    op.attributes[name] = changed
        casts = [op for op in ops if op.name == "memref.memory_space_cast"]
        for op in casts:
            if op.operands[0].type == op.results[0].type:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()

    def _of(self, op: Op, old: Type) -> Type:
        if old not in self._known:
            text = str(old)
            renamed = _renamed(op, text)
            self._known[old] = old if renamed == text else ir.Type.parse(renamed)
        return self._known[old]

    def _attribute(self, op: Op, old: Attribute) -> Attribute | None:
        if isinstance(old, ir.TypeAttr):
            new = self._of(op, old.value)
            if new == old.value:
                return None
            return ir.TypeAttr.get(new)
        return None


def _name_space(op: Op) -> None:
    space = _space(op, str(op.attributes[SPACE_NAME].value))
    if space:
        op.attributes[SPACE_NAME] = ir.Attribute.parse(f"#gpu.address_space<{space}>")
    else:
        del op.attributes[SPACE_NAME]


def _space(op: Op, number: str) -> str:
    if number not in SPACES:
        raise unsupported(op, f"memory space {number}", ALLOWED)
    return SPACES[number]


def _renamed(op: Op, text: str) -> str:
    if "memref<" not in text:
        return text

    def by_number(match: re.Match[str]) -> str:
        return _with_space(match[1], _space(op, match[2]))

    by_word = WORD.sub(lambda match: _with_space(match[1], match[2].replace("global", "")), text)
    return NUMBER.sub(by_number, by_word)


def _with_space(memref: str, space: str) -> str:
    if space:
        return f"{memref}, #gpu.address_space<{space}>>"
    return f"{memref}>"
