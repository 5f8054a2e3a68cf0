"""Memrefs: their layouts and sizes in memory, memory spaces, padded views, and copies as loops."""

import math
import re
from collections.abc import Callable

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Attribute, Op, Type, Value, ir
from tuner.mlir.ir import building
from tuner.mlir.ir.building import create, index, is_less, value
from tuner.mlir.ir.reading import arguments_in, types_of, unsupported, walk, walk_where

SPACES = {"0": "", "1": "", "3": "workgroup", "5": "private"}  # NVVM's number -> name; "": default space
ALLOWED = "0 or 1 (global), 3 (workgroup), 5 (private)"
NESTED = r"(?:[^<>]|->|<(?:[^<>]|->|<[^<>]*>)*>)*?"  # text in which < and > are balanced
WORD = re.compile(rf"(memref<{NESTED}), #gpu\.(?:memory|address)_space<(global|workgroup|private)>>")
NUMBER = re.compile(rf"(memref<{NESTED}), (\d+)(?: : \w+)?>")
SPACE_NAME = "memory_space"  # attribute of bufferization.alloc_tensor
BOUNDS = "tuner.bounds"  # attribute of an argument: array<i64: true sizes>
Bounds = dict[int, int]  # dimension -> its true size, for dimensions whose size in the type is larger
POINTER_BYTES = 8  # also the size of an index


def contiguous_dimensions(memref: Type) -> int:
    """Returns how many trailing dimensions of a ranked memref type are known to lie in memory without gaps.

    A dimension of size 1 has no gap. Outside of a dimension of dynamic size nothing is known: the result is 1
    for ``memref<?x?xf32>``.
    """
    strides, _ = memref.get_strides_and_offset()
    adjacent: int | None = 1  # the stride without a gap; None after a dynamic size
    for number in reversed(range(memref.rank)):
        is_dynamic = memref.is_dynamic_dim(number)
        if not is_dynamic and memref.shape[number] == 1:
            continue
        if strides[number] != adjacent:
            return int(memref.rank - 1 - number)
        adjacent = None if is_dynamic else adjacent * memref.shape[number]
    return int(memref.rank)


def is_contiguous(memref: Type) -> bool:
    """Returns whether a memref type is ranked and known to be contiguous, in row-major order."""
    return isinstance(memref, ir.MemRefType) and contiguous_dimensions(memref) == memref.rank


def has_zero_offset(memref: Type) -> bool:
    """Returns whether a memref type has offset 0: the aligned pointer then points to the first element."""
    return bool(memref.get_strides_and_offset()[1] == 0)


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


def argument_attributes(function: Op, number: int) -> dict[str, Attribute]:
    """Returns the attributes, by name, of argument number ``number`` of a func.func."""
    if "arg_attrs" not in function.attributes:
        return {}
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[number])
    return {attribute.name: attribute.attr for attribute in attributes}


def bounds_of(view: Value) -> Bounds:
    """Returns {dimension: true size} of the padded dimensions of a function argument, else {}.

    A padded view is an argument whose memref type has larger sizes than the memory passed for the argument.
    ``tuner.pad_views`` makes them, as the first step of a script: the type has sizes that tiles divide, so
    that tiling, vectorization and pipelining have no remainders, and the true strides; an attribute has the
    true sizes::

        %a: memref<64x64xf32, strided<[60, 1]>> {tuner.bounds = array<i64: 50, 60>}

    The type's rows overlap one another and its end lies beyond the memory, so that nothing may access the
    view by the type alone (docs/decisions/gpu-schedules.md says why that is so, and what another form costs):
    at the end ``tuner.bound_loads`` and ``tuner.finish_stores`` guard the accesses.
    """
    if not isinstance(view.owner, ir.Block) or view.owner.owner.operation.name != "func.func":
        return {}
    function = view.owner.owner.operation
    true = argument_attributes(function, ir.BlockArgument(view).arg_number).get(BOUNDS)
    if true is None:
        return {}
    sizes = zip(ir.MemRefType(view.type).shape, ir.DenseI64ArrayAttr(true), strict=True)
    return {dimension: size for dimension, (padded, size) in enumerate(sizes) if size < padded}


def is_inside(indices: list[Value], bounds: Bounds) -> Value | None:
    """Creates the check whether ``indices`` are below the true sizes in ``bounds``; returns its i1 value.

    None, and no ops, if ``bounds`` is empty.
    """
    truths = [is_less(indices[dimension], index(size)) for dimension, size in bounds.items()]
    if not truths:
        return None
    whole = truths[0]
    for truth in truths[1:]:
        whole = value("arith.andi", whole.type, whole, truth)
    return whole


def is_width_aligned(bounds: Bounds, rank: int, width: int) -> bool:
    """Returns whether no bound cuts a vector of ``width`` elements that starts at a multiple of ``width``."""
    return bounds.get(rank - 1, 0) % width == 0


def elements_inside(indices: list[Value], bounds: Bounds, width: int) -> Value:
    """Creates the number of a vector's elements, the first at ``indices``, that are within ``bounds``.

    The vector has ``width`` elements along the last dimension. ``bounds`` (dimension -> true size) must not
    be empty; where they are multiples of ``width``, the vector must start at one.
    """
    kind = ir.IndexType.get()
    last = len(indices) - 1
    if is_width_aligned(bounds, len(indices), width):
        return value("arith.select", kind, is_inside(indices, bounds), index(width), index(0))
    left = value("arith.subi", kind, index(bounds[last]), indices[last])
    count = value("arith.maxsi", kind, value("arith.minsi", kind, left, index(width)), index(0))
    others = {dimension: size for dimension, size in bounds.items() if dimension != last}
    inside = is_inside(indices, others)
    if inside is None:
        return count
    return value("arith.select", kind, inside, count, index(0))


def retype_argument(argument: Value, element: Type) -> None:
    """Changes the element type of a memref argument in place; call ``sync_function_type`` afterwards."""
    memref = ir.MemRefType(argument.type)
    argument.set_type(
        ir.MemRefType.get(memref.shape, element, layout=memref.layout, memory_space=memref.memory_space)
    )


def sync_function_type(function: Op) -> None:
    """Sets the type of a func.func, which must have no results, from the types of its block arguments."""
    kinds = types_of(function.regions[0].blocks[0].arguments)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, []))


def set_argument_attribute(function: Op, number: int, name: str, attribute: Attribute) -> None:
    """Sets the attribute ``name`` of argument number ``number`` of a func.func, in place."""
    count = len(function.regions[0].blocks[0].arguments)
    every = [argument_attributes(function, position) for position in range(count)]
    every[number][name] = attribute
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(list(map(ir.DictAttr.get, every)))


def is_workgroup(memref: Type) -> bool:
    """Returns whether a memref type is in shared memory: workgroup address space, or NVVM's number 3."""
    space = str(memref.memory_space)
    return "workgroup" in space or space.split(" ")[0] == "3"


def is_row_major(memref: Type) -> bool:
    """Returns whether a memref type has the identity layout: row-major, without gaps or offset."""
    plain = ir.MemRefType.get(memref.shape, memref.element_type, memory_space=memref.memory_space)
    return bool(plain == memref)


def element_bytes(element: Type) -> int:
    """Returns the bytes of a number, index or vector type, rounded up, or raises CandidateError(COMPILE)."""
    if isinstance(element, ir.ComplexType):
        return 2 * element_bytes(element.element_type)
    if isinstance(element, ir.MemRefType):  # a descriptor: two pointers, an offset, sizes and strides
        return POINTER_BYTES * (3 + 2 * int(element.rank))
    if isinstance(element, ir.VectorType):
        return int(math.prod(element.shape)) * element_bytes(element.element_type)
    if isinstance(element, ir.IndexType):
        return POINTER_BYTES
    if isinstance(element, ir.IntegerType | ir.FloatType):
        return -(-int(element.width) // 8)
    raise CandidateError(Stage.COMPILE, f"element type: found {element}, allowed numbers and vectors of them")


def memref_bytes(memref: Type) -> int:
    """Returns the bytes from a memref's first element to its last, including gaps; 0 without elements.

    Strides must be static. Raises CandidateError(COMPILE) for dynamic sizes, and for elements other than
    numbers, indices, vectors and memrefs.
    """
    if not memref.has_static_shape:
        raise CandidateError(Stage.COMPILE, f"type: found {memref}, allowed a static shape")
    if 0 in memref.shape:
        return 0
    strides, _ = memref.get_strides_and_offset()
    last = sum((size - 1) * stride for size, stride in zip(memref.shape, strides, strict=True))
    return int(last + 1) * element_bytes(memref.element_type)


def copy_buffer(target: Value, source: Value) -> None:
    """Creates ``memref.copy`` from ``source`` to ``target``, memrefs of the same shape."""
    create("memref.copy", [], [source, target])


def copy_views_by_loops(function: Op) -> int:
    """Replaces each ``memref.copy`` of a memref that is not row-major by loops; returns how many."""
    copies = [copy for copy in walk(function, "memref.copy") if not all(map(_is_plain, copy.operands))]
    for copy in copies:
        replace_copy(copy, building.copy)
    return len(copies)


def copy_by_loops(root: Op | ir.Module) -> None:
    """Replaces every ``memref.copy`` nested in ``root`` by a loop over the elements, in place.

    LLVM would call functions of MLIR's runtime library or memcpy, which the JIT's wheel looks up by a wrong
    name. Copies to and from the device must be ``gpu.memcpy`` already. Types must be ranked.

        memref.copy %a, %b : memref<4xf32> to memref<4xf32>
      becomes
        scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
          %0 = memref.load %a[%i] : memref<4xf32>
          memref.store %0, %b[%i] : memref<4xf32>
          scf.reduce
        }
    """
    for copy in walk(root, "memref.copy"):
        replace_copy(copy, building.copy)


def replace_copy(copy: Op, build: Callable[[Value, Value], None]) -> None:
    """Replaces a ``memref.copy`` by the ops that ``build(source, target)`` creates in its place."""
    with copy.location, ir.InsertionPoint(copy):
        build(*copy.operands)
    copy.erase()


def _is_plain(buffer: Value) -> bool:
    return isinstance(buffer.type, ir.UnrankedMemRefType) or is_row_major(buffer.type)
