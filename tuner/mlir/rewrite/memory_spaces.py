"""Normalizes memory spaces of memrefs, which input files write as numbers or as ``#gpu.memory_space``.

Takes any module; gives ``#gpu.address_space<workgroup>`` and ``<private>`` in all types, also of functions,
attributions and globals, and in types of other dialects that contain a memref. Global memory is the default
space: numbers 0 and 1 and ``<global>`` are removed, and with them casts that no longer change the space.
Other numbers are errors. See <https://docs.nvidia.com/cuda/nvvm-ir-spec/#address-space>.

    %t = memref.alloc() : memref<16xf32, 3>
    memref.store %x, %g[%i] : memref<16xf32, 1>
  becomes
    %t = memref.alloc() : memref<16xf32, #gpu.address_space<workgroup>>
    memref.store %x, %g[%i] : memref<16xf32>
"""

import re

from tuner.mlir.bindings import Attribute, Op, Type, ir
from tuner.mlir.rewrite.located_error import unsupported
from tuner.mlir.rewrite.walking import walk_where

SPACES = {"0": "", "1": "", "3": "workgroup", "5": "private"}  # NVVM's number -> name; "": default space
ALLOWED = "0 or 1 (global), 3 (workgroup), 5 (private)"
NESTED = r"(?:[^<>]|->|<(?:[^<>]|->|<[^<>]*>)*>)*?"  # text in which < and > are balanced
WORD = re.compile(rf"(memref<{NESTED}), #gpu\.(?:memory|address)_space<(global|workgroup|private)>>")
NUMBER = re.compile(rf"(memref<{NESTED}), (\d+)(?: : \w+)?>")
SPACE_NAME = "memory_space"  # attribute of bufferization.alloc_tensor


def name_memory_spaces(module: ir.Module) -> None:
    """Rewrites the memory spaces of all memref types in a module to ``#gpu.address_space`` names, in place.

    Global memory becomes the default space, without a name. Raises CandidateError(COMPILE) for a number other
    than 0, 1 (global), 3 (workgroup) and 5 (private).
    """
    _Renaming().change(module.operation)


class _Renaming:
    """Replaces types; each distinct type is parsed once."""

    def __init__(self) -> None:
        self._known: dict[Type, Type] = {}

    def change(self, root: Op) -> None:
        ops = walk_where(root, lambda _: True)
        for op in ops:
            self._change_op(op)
        casts = [op for op in ops if op.name == "memref.memory_space_cast"]
        for op in casts:
            if op.operands[0].type == op.results[0].type:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()

    def _change_op(self, op: Op) -> None:
        blocks = [block for region in op.regions for block in region]
        for value in [*op.results, *(argument for block in blocks for argument in block.arguments)]:
            new = self._of(op, value.type)
            if new != value.type:
                value.set_type(new)
        for name in list(op.attributes):
            changed = self._attribute(op, name, op.attributes[name])
            if changed is not None:
                op.attributes[name] = changed

    def _of(self, op: Op, old: Type) -> Type:
        if old not in self._known:
            text = str(old)
            renamed = _renamed(op, text)
            self._known[old] = old if renamed == text else ir.Type.parse(renamed)
        return self._known[old]

    def _attribute(self, op: Op, name: str, old: Attribute) -> Attribute | None:
        if isinstance(old, ir.TypeAttr):
            new = self._of(op, old.value)
            return None if new == old.value else ir.TypeAttr.get(new)
        if name == SPACE_NAME and isinstance(old, ir.IntegerAttr) and SPACES.get(str(old.value)):
            return ir.Attribute.parse(f"#gpu.address_space<{SPACES[str(old.value)]}>")
        return None


def _renamed(op: Op, text: str) -> str:
    if "memref<" not in text:
        return text

    def by_number(match: re.Match[str]) -> str:
        if match[2] not in SPACES:
            raise unsupported(op, f"memory space {match[2]}", ALLOWED)
        return _with_space(match[1], SPACES[match[2]])

    def by_word(match: re.Match[str]) -> str:
        return _with_space(match[1], match[2].replace("global", ""))

    return NUMBER.sub(by_number, WORD.sub(by_word, text))


def _with_space(memref: str, space: str) -> str:
    return f"{memref}, #gpu.address_space<{space}>>" if space else f"{memref}>"
