"""Creates the tensor maps of a script's kernels in a program's host code.

Until a program's buffers are in device memory, compiled kernels and their launches take the tensors
themselves, and an attribute of the launch records the types of the tensor maps. Then the tensor maps are
created before the launches, as in hand-written code.

    gpu.launch_func @m::@k ... args(%a : memref<64x64xf16>) {tuner.maps = [!nvgpu.tensormap.descriptor<...>]}
  becomes
    %any = memref.cast %a : memref<64x64xf16> to memref<*xf16>
    %map = nvgpu.tma.create.descriptor %any box[%c64, %c64] : memref<*xf16> -> ...
    %address = builtin.unrealized_conversion_cast %map : !nvgpu.tensormap.descriptor<...> to !llvm.ptr
    gpu.launch_func @m::@k ... args(%address : !llvm.ptr)
"""

import re

from tuner.core.device import TensorMapLayout
from tuner.core.kernel_program import Launch
from tuner.mlir.bindings import Attribute, Op, Type, Value, ir
from tuner.mlir.gpu.tensor_map_layouts import DTYPES, PROMOTIONS, SWIZZLES, TENSOR_MAP, TF32, TFLOAT32
from tuner.mlir.rewrite.building import index, value
from tuner.mlir.rewrite.launch_operands import ARGUMENTS, launches_of, operands
from tuner.mlir.rewrite.symbols import function_type, name_of
from tuner.mlir.rewrite.type_sizes import element_bytes
from tuner.mlir.rewrite.walking import walk

# attribute of a launch; per argument: the type of the tensor map that the kernel takes, or unit
NOTE = "tuner.maps"
CAST, POINTER = "builtin.unrealized_conversion_cast", "!llvm.ptr"
KIND = (
    "!nvgpu.tensormap.descriptor<tensor = memref<{box}x{element}, 3>, swizzle = {swizzle}, "
    "l2promo = {promotion}, oob = zero, interleave = none>"
)
BOX = re.compile(r"memref<((?:\d+x)+)")


def replace_maps_by_tensors(function: Op, launch: Launch) -> None:
    """Changes each tensor-map parameter of a compiled kernel to a memref of the tensor, in place.

    ``launch`` states which parameters of ``function`` are tensor maps. ``create_tensor_maps`` undoes this
    later.
    """
    for number, name in enumerate(launch.arguments):
        tensor_map = launch.tensor_map(name)
        if tensor_map is not None:
            _retype(function, number, _tensor_type(tensor_map.layout))


def tensor_map_attributes(launch: Launch) -> dict[str, Attribute]:
    """Returns attributes for a launch operation: per argument, the tensor-map type that the kernel expects.

    Returns {} for a launch without tensor maps. ``create_tensor_maps`` reads and removes the attributes.
    """
    maps = [launch.tensor_map(name) for name in launch.arguments]
    if not any(maps):
        return {}
    tensor_map_types = [
        ir.UnitAttr.get() if each is None else ir.TypeAttr.get(_map_type(each.layout)) for each in maps
    ]
    is_tf32 = any(each.layout.dtype == TFLOAT32 for each in launch.tensor_maps)
    return {NOTE: ir.ArrayAttr.get(tensor_map_types)} | ({TF32: ir.UnitAttr.get()} if is_tf32 else {})


def create_tensor_maps(module: ir.Module) -> None:
    """Creates tensor maps before the launches that have the attribute of ``tensor_map_attributes``, in place.

    The launches, and the parameters of their kernels, then take the tensor maps in place of the tensors.
    """
    for function in walk(module, "gpu.func"):
        tensor_map_types = [
            launch for launch in launches_of(module, name_of(function)) if NOTE in launch.attributes
        ]
        for launch in tensor_map_types:
            kinds = [
                each.value if isinstance(each, ir.TypeAttr) else None for each in launch.attributes[NOTE]
            ]
            _take_maps(launch, kinds)
        for number, kind in enumerate(kinds if tensor_map_types else ()):
            if kind is not None:
                _retype(function, number, ir.Type.parse(POINTER))


def _take_maps(launch: Op, kinds: list[Type | None]) -> None:
    first = len(launch.operands) - len(operands(launch, ARGUMENTS))
    is_tf32 = TF32 in launch.attributes
    with launch.location, ir.InsertionPoint(launch):
        for number, kind in enumerate(kinds, first):
            if kind is not None:
                launch.operands[number] = _address(launch.operands[number], kind, is_tf32=is_tf32)
    del launch.attributes[NOTE]
    if is_tf32:
        del launch.attributes[TF32]


def _address(tensor: Value, kind: Type, *, is_tf32: bool) -> Value:
    element = ir.MemRefType(tensor.type).element_type
    unranked = value("memref.cast", ir.UnrankedMemRefType.get(element, None), tensor)
    found = BOX.search(str(kind))
    assert found is not None  # the type's own syntax
    box = [index(int(size)) for size in found[1].rstrip("x").split("x")]
    made = value(TENSOR_MAP, kind, unranked, *box, **({TF32: ir.UnitAttr.get()} if is_tf32 else {}))
    return value(CAST, ir.Type.parse(POINTER), made)


def _retype(function: Op, number: int, kind: Type) -> None:
    """Changes the type of a parameter; the body uses a cast of the parameter to the old type."""
    block = function.regions[0].blocks[0]
    argument = block.arguments[number]
    old, uses = argument.type, [(use.owner, use.operand_number) for use in argument.uses]
    argument.set_type(kind)
    with function.location, ir.InsertionPoint.at_block_begin(block):
        same = value(CAST, old, argument)
    for user, place in uses:
        user.operands[place] = same
    whole = function_type(function)
    inputs = [kind if place == number else each for place, each in enumerate(whole.inputs)]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, whole.results))


def _element(layout: TensorMapLayout) -> Type:
    number = DTYPES["f32"] if layout.dtype == TFLOAT32 else layout.dtype
    return ir.Type.parse(_word(DTYPES, number))


def _tensor_type(layout: TensorMapLayout) -> ir.MemRefType:
    element = _element(layout)
    strides = [each // element_bytes(element) for each in reversed(layout.strides_bytes)] + [1]
    order = ir.StridedLayoutAttr.get(0, strides)
    return ir.MemRefType.get(list(reversed(layout.sizes)), element, layout=order)


def _map_type(layout: TensorMapLayout) -> Type:
    words = {
        "box": "x".join(map(str, reversed(layout.box))),
        "element": _element(layout),
        "swizzle": _word(SWIZZLES, layout.swizzle),
        "promotion": _word(PROMOTIONS, layout.l2_promotion),
    }
    return ir.Type.parse(KIND.format(**words))


def _word(words: dict[str, int], number: int) -> str:
    return next(word for word, each in words.items() if each == number)
