"""Memrefs: their layouts and sizes in memory, attributes of arguments, and copies as loops."""

import math
from collections.abc import Callable

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Attribute, Op, Type, Value, ir
from tuner.mlir.ir import building
from tuner.mlir.ir.building import create
from tuner.mlir.ir.reading import types_of, walk

POINTER_BYTES = 8  # also the size of an index
BUFFER = "tuner.buffer"  # attribute of an argument or an allocation: the name of its buffer


def contiguous_dimensions(memref: Type) -> int:
    """Returns how many trailing dimensions of a ranked memref type surely lie in memory without gaps.

    A dimension of size 1 has no gap. Of dimensions outside of one of dynamic size this is never sure: the
    result is 1 for ``memref<?x?xf32>``.
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


def argument_attributes(function: Op, index: int) -> dict[str, Attribute]:
    """Returns the attributes, by name, of argument ``index`` of a func.func."""
    if "arg_attrs" not in function.attributes:
        return {}
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[index])
    return {attribute.name: attribute.attr for attribute in attributes}


def named_arguments(function: Op, name: str) -> dict[str, Value]:
    """Returns {text: argument} of the arguments of a func.func that have the string attribute ``name``.

    The text is the attribute's value.
    """
    named = {}
    for argument in function.regions[0].blocks[0].arguments:
        attributes = argument_attributes(function, argument.arg_number)
        if name in attributes:
            named[ir.StringAttr(attributes[name]).value] = argument
    return named


def is_argument(view: Value) -> bool:
    """Returns whether a value is an argument of a func.func."""
    return isinstance(view.owner, ir.Block) and view.owner.owner.operation.name == "func.func"


def retype_argument(argument: Value, element: Type) -> None:
    """Changes the element type of a memref argument in place; call ``sync_function_type`` afterwards."""
    memref = ir.MemRefType(argument.type)
    argument.set_type(
        ir.MemRefType.get(memref.shape, element, layout=memref.layout, memory_space=memref.memory_space)
    )


def sync_function_type(function: Op) -> None:
    """Sets the type of a func.func, which must have no results, from the types of its block arguments."""
    types = types_of(function.regions[0].blocks[0].arguments)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))


def set_argument_attribute(function: Op, index: int, name: str, attribute: Attribute) -> None:
    """Sets the attribute ``name`` of argument ``index`` of a func.func, in place."""
    count = len(function.regions[0].blocks[0].arguments)
    every = [argument_attributes(function, position) for position in range(count)]
    every[index][name] = attribute
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
    """Returns the bytes of an element of a memref, rounded up: a number, index, vector, or memref descriptor.

    Raises CandidateError(COMPILE) for another type.
    """
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
    """Replaces each ``memref.copy`` that has a ranked operand without row-major layout by loops, in place.

    Returns how many copies were replaced.
    """
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

    A copy of a memref to itself goes.
    """
    for copy in walk(root, "memref.copy"):
        if copy.operands[0] == copy.operands[1]:
            copy.erase()
            continue
        replace_copy(copy, building.copy)


def replace_copy(copy: Op, build: Callable[[Value, Value], None]) -> None:
    """Replaces a ``memref.copy`` by the ops that ``build(source, target)`` creates in its place."""
    with copy.location, ir.InsertionPoint(copy):
        build(*copy.operands)
    copy.erase()


def _is_plain(buffer: Value) -> bool:
    return isinstance(buffer.type, ir.UnrankedMemRefType) or is_row_major(buffer.type)
