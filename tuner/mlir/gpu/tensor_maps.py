"""Tensor maps of kernels (TMA): the alignment of shared memory for them, and their addresses as arguments.

Takes outlined kernels with arguments of type ``!nvgpu.tensormap.descriptor``. The host creates a map in
device memory and passes its address, so a kernel takes an address; upstream's conversion of nvgpu leaves
arguments of a kernel as they are, and ``convert-gpu-to-nvvm`` then has no LLVM type for them.

    gpu.func @k(%map: !nvgpu.tensormap.descriptor<...>) kernel {
  becomes
    gpu.func @k(%address: !llvm.ptr) kernel {
      %map = builtin.unrealized_conversion_cast %address : !llvm.ptr to !nvgpu.tensormap.descriptor<...>
"""

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.rewrite.building import value
from tuner.mlir.rewrite.launch_operands import ARGUMENTS, launches_of, operands
from tuner.mlir.rewrite.symbols import function_type, name_of
from tuner.mlir.rewrite.type_sizes import is_workgroup
from tuner.mlir.rewrite.walking import walk

MAP = "!nvgpu.tensormap.descriptor<"
POINTER, CAST = "!llvm.ptr", "builtin.unrealized_conversion_cast"
BOX_ALIGN_BYTES = 128  # of a box in shared memory; PTX ISA, "cp.async.bulk.tensor"
SWIZZLED_ALIGN_BYTES = 1024  # period of the pattern of swizzle_128b, the longest; same section
NOT_SWIZZLED = "swizzle = none"


def is_tensor_map(kind: Type) -> bool:
    """Returns whether a type is that of a tensor map, ``!nvgpu.tensormap.descriptor``."""
    return str(kind).startswith(MAP)


def box_alignment_bytes(function: Op) -> int:
    """Returns the alignment of shared memory that a kernel's tensor maps require; 1 without tensor maps.

    ``function`` is a ``gpu.func``; its tensor maps are the arguments of type
    ``!nvgpu.tensormap.descriptor``, not those of type ``!llvm.ptr``. The result, in bytes, is 128 where no
    map is swizzled, else 1024.
    """
    maps = [kind for kind in function_type(function).inputs if is_tensor_map(kind)]
    if not maps:
        return 1
    return BOX_ALIGN_BYTES if all(NOT_SWIZZLED in str(kind) for kind in maps) else SWIZZLED_ALIGN_BYTES


def align_shared_globals(module: ir.Module) -> None:
    """Increases alignments of shared-memory ``memref.global`` ops to what tensor maps require, in place.

    The tensor maps are those of the kernels in the same ``gpu.module``.
    """
    for holder in walk(module, "gpu.module"):
        needed = max((box_alignment_bytes(kernel) for kernel in walk(holder, "gpu.func")), default=1)
        for each in walk(holder, "memref.global") if needed > 1 else ():
            if is_workgroup(ir.MemRefType(ir.TypeAttr(each.attributes["type"]).value)):
                asked = each.attributes["alignment"].value if "alignment" in each.attributes else 1
                kind = ir.IntegerType.get_signless(64)
                each.attributes["alignment"] = ir.IntegerAttr.get(kind, max(needed, asked))


def pass_tensor_maps_by_address(module: ir.Module) -> None:
    """Changes tensor-map arguments of kernels and launches to addresses (``!llvm.ptr``), in place."""
    for function in walk(module, "gpu.func"):
        kind = function_type(function)
        numbers = [number for number, each in enumerate(kind.inputs) if is_tensor_map(each)]
        for number in numbers:
            _take_address(function, number)
        inputs = [argument.type for argument in function.regions[0].blocks[0].arguments][: len(kind.inputs)]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, kind.results))
        for launch in launches_of(module, name_of(function)) if numbers else ():
            _pass_addresses(launch)


def _take_address(function: Op, number: int) -> None:
    block = function.regions[0].blocks[0]
    argument = block.arguments[number]
    old, uses = argument.type, [(use.owner, use.operand_number) for use in argument.uses]
    argument.set_type(ir.Type.parse(POINTER))
    with function.location, ir.InsertionPoint.at_block_begin(block):
        tensor_map = value(CAST, old, argument)
    for user, place in uses:
        user.operands[place] = tensor_map


def _pass_addresses(launch: Op) -> None:
    first = len(launch.operands) - len(operands(launch, ARGUMENTS))
    for number in range(first, len(launch.operands)):
        if is_tensor_map(launch.operands[number].type):
            launch.operands[number] = _address(launch, launch.operands[number])


def _address(launch: Op, tensor_map: Value) -> Value:
    with launch.location, ir.InsertionPoint(launch):
        return value(CAST, ir.Type.parse(POINTER), tensor_map)
