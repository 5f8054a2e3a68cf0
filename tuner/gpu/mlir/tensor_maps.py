"""Tensor maps of kernels (TMA): their layouts, their passing to kernels, the alignment of shared memory.

A kernel takes a map as ``!nvgpu.tensormap.descriptor``, if a script or program says so, or as
``!llvm.ptr``, if ``tuner.wgmma_pipeline`` has created the map. Parameters of the second form are recorded
before kernels are lowered, and are passed by value; maps of the first form are passed by address.
"""

import re

from tuner.core.compiled_code import TensorMapLayout
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.effects.launches import launches_of
from tuner.mlir.ir.building import value
from tuner.mlir.ir.memrefs import argument_attributes, element_bytes, is_workgroup
from tuner.mlir.ir.reading import (
    constant_of,
    function_type,
    name_of,
    set_operands,
    source_of,
    types_of,
    uses_of,
    walk,
)

TENSOR_MAP = "nvgpu.tma.create.descriptor"  # the op that creates a map
TF32 = "tuner.tf32"  # unit attribute of this op: copies round f32 to tf32, which no type can express
# CUtensorMapDataType, CUtensorMapSwizzle and CUtensorMapL2promotion of cuda.h
DTYPES = {"f16": 6, "f32": 7, "f64": 8, "bf16": 9, **dict.fromkeys(("i8", "f8E4M3FN", "f8E5M2"), 0)}
TFLOAT32 = 11
SWIZZLES = {"none": 0, "swizzle_32b": 1, "swizzle_64b": 2, "swizzle_128b": 3}
PROMOTIONS = {"none": 0, "l2promo_64b": 1, "l2promo_128b": 2, "l2promo_256b": 3}
FIELDS = re.compile(r"swizzle = (\w+), l2promo = (\w+), oob = (\w+), interleave = (\w+)")
TENSOR_MAPS = "tuner.tensor_maps"  # attribute of a kernel: numbers of its parameters that are tensor maps
BY_VALUE = "{llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}"
MAP_TYPE = "!nvgpu.tensormap.descriptor<"  # begins the type of a map in a program
POINTER = "!llvm.ptr"
CAST = "builtin.unrealized_conversion_cast"
BOX_ALIGN_BYTES = 128  # of a box in shared memory; PTX ISA, "cp.async.bulk.tensor"
SWIZZLED_ALIGN_BYTES = 1024  # period of the pattern of swizzle_128b, the longest; same section
NOT_SWIZZLED = "swizzle = none"


def layout_of(op: Op, sizes: tuple[int, ...] | None = None) -> TensorMapLayout:
    """Returns the layout of the tensor map that an ``nvgpu.tma.create.descriptor`` creates.

    ``sizes`` are the tensor's true sizes, outermost first, if its type is padded. Raises
    CandidateError(COMPILE) for sizes that are not constant, and an element type or options that are not
    supported.
    """
    source = source_of(op.operands[0], ("memref.cast",))
    if not isinstance(source.type, ir.MemRefType) or not source.type.has_static_shape:
        raise _refused(source.type, "a memref of static sizes")
    tensor = ir.MemRefType(source.type)
    element = str(tensor.element_type)
    fields = FIELDS.search(str(op.results[0].type))
    assert fields is not None  # every type of this op prints the fields
    swizzle, promotion, fill, interleave = fields.groups()
    if element not in DTYPES or (fill, interleave) != ("zero", "none"):
        raise _refused(
            f"{element}, oob {fill}, interleave {interleave}", "floats and i8, oob zero, interleave none"
        )
    strides, _ = tensor.get_strides_and_offset()
    item_bytes = element_bytes(tensor.element_type)
    return TensorMapLayout(
        sizes=tuple(reversed(sizes or tuple(tensor.shape))),
        strides_bytes=tuple(stride * item_bytes for stride in reversed(strides[:-1])),
        box=tuple(reversed(list(map(_box_size, list(op.operands)[1:])))),
        dtype=TFLOAT32 if TF32 in op.attributes else DTYPES[element],
        swizzle=SWIZZLES[swizzle],
        l2_promotion=PROMOTIONS[promotion],
    )


def _box_size(size: Value) -> int:
    number = constant_of(size)
    if number is None:
        raise _refused("a box of sizes that are not constant", "constants")
    return number


def _refused(found: object, allowed: str) -> CandidateError:
    return CandidateError(Stage.COMPILE, f"tensor map: found {found}, allowed {allowed}")


def record_tensor_maps(module: ir.Module) -> None:
    """Records, in an attribute of each ``gpu.func``, which of its parameters are tensor maps, in place.

    These are the parameters of type ``!llvm.ptr``: buffers are memrefs at this stage. The attribute is for
    ``pass_tensor_maps_by_value``, since ``nvvm.grid_constant`` is not allowed on a ``gpu.func``. Kernels of
    whole programs, whose maps are in device memory, are not recorded.

        gpu.func @k(%map: !llvm.ptr, %c: memref<4xf32>) kernel {
      becomes
        gpu.func @k(%map: !llvm.ptr, %c: memref<4xf32>) kernel attributes {
          tuner.tensor_maps = array<i64: 0>} {
    """
    pointer = ir.Type.parse(POINTER)
    for function in walk(module, "gpu.func"):
        arguments = function.regions[0].blocks[0].arguments
        pointers = [index for index, argument in enumerate(arguments) if argument.type == pointer]
        if pointers:
            function.attributes[TENSOR_MAPS] = ir.DenseI64ArrayAttr.get(pointers)


def pass_tensor_maps_by_value(module: ir.Module) -> None:
    """Adds ``llvm.byval``, ``llvm.align`` and ``nvvm.grid_constant`` to kernel parameters, in place.

    These are the parameters that ``record_tensor_maps`` recorded as tensor maps: the TMA reads a map in place
    where it was passed by value.

        llvm.func @k(%map: !llvm.ptr, %c: !llvm.ptr) attributes {tuner.tensor_maps = array<i64: 0>}
      becomes
        llvm.func @k(%map: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>,
          nvvm.grid_constant}, %c: !llvm.ptr)
    """
    by_value = {attribute.name: attribute.attr for attribute in ir.DictAttr(ir.Attribute.parse(BY_VALUE))}
    for function in walk(module, "llvm.func"):
        if TENSOR_MAPS not in function.attributes:
            continue
        count = len(function.regions[0].blocks[0].arguments)
        every = [argument_attributes(function, number) for number in range(count)]
        for number in ir.DenseI64ArrayAttr(function.attributes[TENSOR_MAPS]):
            every[number] |= by_value
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(list(map(ir.DictAttr.get, every)))
        del function.attributes[TENSOR_MAPS]


def is_tensor_map(type_: Type) -> bool:
    """Returns whether a type is that of a tensor map, ``!nvgpu.tensormap.descriptor``."""
    return str(type_).startswith(MAP_TYPE)


def box_alignment_bytes(function: Op) -> int:
    """Returns the alignment in bytes of shared memory that the tensor maps of a kernel's descriptors require.

    1024 for a swizzled map, 128 for others, 1 without. A map that is passed as ``!llvm.ptr`` has none here:
    the launch that creates it aligns the memory.
    """
    maps = list(filter(is_tensor_map, function_type(function).inputs))
    if not maps:
        return 1
    if all(NOT_SWIZZLED in str(map_type) for map_type in maps):
        return BOX_ALIGN_BYTES
    return SWIZZLED_ALIGN_BYTES


def align_shared_globals(module: ir.Module) -> None:
    """Aligns shared-memory ``memref.global`` ops to what tensor maps of their module require, in place."""
    for holder in walk(module, "gpu.module"):
        needed = max(map(box_alignment_bytes, walk(holder, "gpu.func")), default=1)
        for memory in walk(holder, "memref.global") if needed > 1 else ():
            if is_workgroup(ir.MemRefType(ir.TypeAttr(memory.attributes["type"]).value)):
                requested = memory.attributes["alignment"].value if "alignment" in memory.attributes else 1
                i64 = ir.IntegerType.get_signless(64)
                memory.attributes["alignment"] = ir.IntegerAttr.get(i64, max(needed, requested))


def pass_tensor_maps_by_address(module: ir.Module) -> None:
    """Changes tensor-map arguments of kernels and launches to addresses (``!llvm.ptr``), in place.

    Upstream's conversion of nvgpu leaves arguments of a kernel as they are, without an LLVM type.

        gpu.func @k(%map: !nvgpu.tensormap.descriptor<...>) kernel {
      becomes
        gpu.func @k(%address: !llvm.ptr) kernel {
          %map = builtin.unrealized_conversion_cast %address : !llvm.ptr to !nvgpu.tensormap.descriptor<...>
    """
    for function in walk(module, "gpu.func"):
        function_types = function_type(function)
        maps = [index for index, type_ in enumerate(function_types.inputs) if is_tensor_map(type_)]
        block = function.regions[0].blocks[0]
        for argument in [block.arguments[index] for index in maps]:
            old = argument.type
            uses = uses_of(argument)
            argument.set_type(ir.Type.parse(POINTER))
            with function.location, ir.InsertionPoint.at_block_begin(block):
                tensor_map = value(CAST, old, argument)
            set_operands(uses, tensor_map)
        inputs = types_of(function.regions[0].blocks[0].arguments)[: len(function_types.inputs)]
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(inputs, function_types.results)
        )
        for launch in launches_of(module, name_of(function)) if maps else ():
            for operand_index, operand in enumerate(list(launch.operands)):
                if is_tensor_map(operand.type):
                    with launch.location, ir.InsertionPoint(launch):
                        launch.operands[operand_index] = value(CAST, ir.Type.parse(POINTER), operand)
