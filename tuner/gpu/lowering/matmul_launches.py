"""Replaces a program's matmuls by launches of tuned GPU kernels, with their tensor maps.

``insert_gpu_kernels`` compiles the script of each problem once and launches its kernels for each match;
``create_tensor_maps`` creates the maps later, once buffers are in device memory.
"""

import re
from dataclasses import dataclass

from tuner.core.compiled_code import KernelBuffer, Launch, TensorMapLayout, buffers_of
from tuner.core.device_programs import MatmulKernel
from tuner.core.errors import CandidateError, Stage, failing_at
from tuner.core.gpu import Chip
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.gpu.mlir.launch_sequence import LaunchSequence
from tuner.gpu.mlir.lowering import outline, store_objects
from tuner.gpu.mlir.tensor_maps import DTYPES, PROMOTIONS, SWIZZLES, TENSOR_MAP, TF32, TFLOAT32
from tuner.gpu.payload.gpu import gpu_payload_mlir
from tuner.gpu.payload.scratch import scratch_in
from tuner.mlir.bindings import Attribute, Op, Type, Value, ir
from tuner.mlir.effects.launches import ARGUMENTS, SEGMENTS, launches_of, operands
from tuner.mlir.ir import building
from tuner.mlir.ir.building import create, index, reinterpreted, value
from tuner.mlir.ir.memrefs import element_bytes
from tuner.mlir.ir.reading import function_type, name_of, set_operands, types_of, uses_of, walk
from tuner.mlir.programs.matmul_replacement import allocate, replace_matmuls
from tuner.mlir.programs.matmuls import MatmulMatch
from tuner.mlir.transform import apply_script, parse

# attribute of a launch; per argument: the type of the tensor map that the kernel takes, or unit
MAP_TYPES = "tuner.maps"
CAST = "builtin.unrealized_conversion_cast"
POINTER = "!llvm.ptr"
KIND = (
    "!nvgpu.tensormap.descriptor<tensor = memref<{box}x{element}, 3>, swizzle = {swizzle}, "
    "l2promo = {promotion}, oob = zero, interleave = none>"
)
BOX = re.compile(r"memref<((?:\d+x)+)")
CONTAINER = "gpu.container_module"


def replace_maps_by_tensors(function: Op, launch: Launch) -> None:
    """Changes each tensor-map parameter of a compiled kernel to a memref of the tensor, in place.

    Tensor maps need device memory. Until a program's buffers are in device memory, kernels and launches take
    the tensors themselves.
    """
    for name_index, name in enumerate(launch.arguments):
        tensor_map = launch.tensor_map(name)
        if tensor_map is not None:
            layout = tensor_map.layout
            element = _element(tensor_map.layout)
            strides = [
                stride_bytes // element_bytes(element) for stride_bytes in reversed(layout.strides_bytes)
            ]
            order = ir.StridedLayoutAttr.get(0, [*strides, 1])
            tensor = ir.MemRefType.get(list(reversed(layout.sizes)), element, layout=order)
            _retype(function, name_index, tensor)


def tensor_map_attributes(launch: Launch) -> dict[str, Attribute]:
    """Returns a launch's attribute with the tensor-map type per kernel argument, for ``create_tensor_maps``.

    A second attribute marks a launch with tensor maps of tf32. Returns {} for a launch without tensor maps.
    """
    maps = list(map(launch.tensor_map, launch.arguments))
    if not any(maps):
        return {}
    tensor_map_types = [
        ir.UnitAttr.get() if map_ is None else ir.TypeAttr.get(_map_type(map_.layout)) for map_ in maps
    ]
    is_tf32 = any(tensor_map.layout.dtype == TFLOAT32 for tensor_map in launch.tensor_maps)
    return {MAP_TYPES: ir.ArrayAttr.get(tensor_map_types)} | ({TF32: ir.UnitAttr.get()} if is_tf32 else {})


def create_tensor_maps(module: ir.Module) -> None:
    """Creates tensor maps before launches with the attribute of ``tensor_map_attributes``, in place.

    The launches, and the parameters of their kernels, then take the tensor maps in place of the tensors.

        gpu.launch_func @m::@k ... args(%a : memref<64x64xf16>) {tuner.maps = [!nvgpu.tensormap...]}
      becomes
        %any = memref.cast %a : memref<64x64xf16> to memref<*xf16>
        %map = nvgpu.tma.create.descriptor %any box[%c64, %c64] : memref<*xf16> -> ...
        %address = builtin.unrealized_conversion_cast %map : !nvgpu.tensormap.descriptor<...> to !llvm.ptr
        gpu.launch_func @m::@k ... args(%address : !llvm.ptr)
    """
    for function in walk(module, "gpu.func"):
        noted = [
            launch for launch in launches_of(module, name_of(function)) if MAP_TYPES in launch.attributes
        ]
        for launch in noted:
            kinds = [
                attribute.value if isinstance(attribute, ir.TypeAttr) else None
                for attribute in launch.attributes[MAP_TYPES]
            ]
            _take_maps(launch, kinds)
        # the same kinds at each launch of a kernel
        for type_index, type_ in enumerate(kinds if noted else ()):
            if type_ is not None:
                _retype(function, type_index, ir.Type.parse(POINTER))


def _take_maps(launch: Op, kinds: list[Type | None]) -> None:
    first = len(launch.operands) - len(operands(launch, ARGUMENTS))
    tf32 = {TF32: ir.UnitAttr.get()} if TF32 in launch.attributes else {}
    with launch.location, ir.InsertionPoint(launch):
        for number, type_ in enumerate(kinds, first):
            if type_ is not None:
                tensor = launch.operands[number]
                element = ir.MemRefType(tensor.type).element_type
                unranked = value("memref.cast", ir.UnrankedMemRefType.get(element, None), tensor)
                box = BOX.search(str(type_))
                assert box is not None  # the type's own syntax
                sizes = [index(int(size)) for size in box[1].rstrip("x").split("x")]
                tensor_map = value(TENSOR_MAP, type_, unranked, *sizes, **tf32)
                launch.operands[number] = value(CAST, ir.Type.parse(POINTER), tensor_map)
    for name in (MAP_TYPES, *tf32):
        del launch.attributes[name]


def _retype(function: Op, number: int, type_: Type) -> None:
    block = function.regions[0].blocks[0]
    argument = block.arguments[number]
    old = argument.type
    uses = uses_of(argument)
    argument.set_type(type_)
    with function.location, ir.InsertionPoint.at_block_begin(block):
        same = value(CAST, old, argument)
    set_operands(uses, same)
    inputs = types_of(block.arguments)
    kernel_type = ir.FunctionType.get(inputs, function_type(function).results)
    function.attributes["function_type"] = ir.TypeAttr.get(kernel_type)


def _element(layout: TensorMapLayout) -> Type:
    number = DTYPES["f32"] if layout.dtype == TFLOAT32 else layout.dtype
    return ir.Type.parse(_word(DTYPES, number))


def _map_type(layout: TensorMapLayout) -> Type:
    words = {
        "box": "x".join(map(str, reversed(layout.box))),
        "element": _element(layout),
        "swizzle": _word(SWIZZLES, layout.swizzle),
        "promotion": _word(PROMOTIONS, layout.l2_promotion),
    }
    return ir.Type.parse(KIND.format(**words))


def _word(words: dict[str, int], number: int) -> str:
    return next(word for word, code in words.items() if code == number)


@dataclass(frozen=True)
class InsertedKernels:
    """The GPU kernels of one matmul problem in a program's module, and the sequence of their launches."""

    module: str  # symbol of the gpu.module with the kernels
    host: LaunchSequence
    types: dict[str, tuple[Type, ...]]  # kernel name -> types of its parameters


def insert_gpu_kernels(
    module: ir.Module, matches: list[MatmulMatch], scripts: dict[Problem, Script], chip: Chip
) -> tuple[MatmulKernel, ...]:
    """Replaces matmuls by launches of GPU kernels that their scripts produce, in place.

    One ``gpu.module`` per problem, compiled once by the pipeline of a trial, whatever the number of its
    matmuls.

        linalg.generic ... ins(%a, %b : ...) outs(%c : memref<512x512xf32>)
      becomes, where C was filled with zeros
        gpu.launch_func @kernels_512x512x512_f32_nn::@matmul_kernel_512x512x512_f32_nn
            blocks in (...) threads in (...) args(%a : ..., %b : ..., %c : ...)

    Returns the kernels whose single launch computes a whole matmul, for problems with no other kernel. Raises
    CandidateError for a script that fails or produces no kernels.
    """
    kernels: dict[Problem, InsertedKernels] = {}
    for match in matches:
        if match.problem not in kernels:
            kernels[match.problem] = add_kernels(module, match.problem, scripts[match.problem], chip)
    replace_matmuls(
        matches, lambda match, a, b, c: launch_all(kernels[match.problem], {"a": a, "b": b, "c": c})
    )
    whole: list[MatmulKernel] = []
    for problem, inserted in kernels.items():
        whole += _whole(problem, inserted)
    return tuple(whole)


def add_kernels(module: ir.Module, problem: Problem, script: Script, chip: Chip) -> InsertedKernels:
    """Compiles a script's GPU kernels for one matmul and appends their ``gpu.module`` to ``module``.

    Returns names, parameter types and launches of the kernels. Raises CandidateError: BIND for a script text
    that cannot be used, else the stage that failed.
    """
    with failing_at(Stage.BIND):
        scratch = scratch_in(script.text, problem)
    own = parse(gpu_payload_mlir(problem, scratch), "payload")
    return add_kernels_of(module, own, buffers_of(problem), script, _suffix(problem), chip)


def add_kernels_of(
    module: ir.Module,
    payload: ir.Module,
    buffers: tuple[KernelBuffer, ...],
    script: Script,
    suffix: str,
    chip: Chip,
) -> InsertedKernels:
    """Compiles a script's GPU kernels for a payload and appends their ``gpu.module`` to ``module``.

    ``payload`` is changed; ``buffers``: the arguments of its function. ``suffix``: end of the kernels' names,
    unique in the program, of characters that PTX allows. Returns names, parameter types and launches of the
    kernels. Raises CandidateError for a script that fails.
    """
    apply_script(payload, parse(script.text, "script"))
    host, alignment_bytes = outline(payload, chip, buffers)
    holder = walk(payload, "gpu.module")[0]
    holder.attributes["sym_name"] = ir.StringAttr.get(f"kernels_{suffix}")
    launches = {launch.kernel: launch for launch in host.launches}
    functions = {name_of(function): function for function in walk(holder, "gpu.func")}
    for name, function in functions.items():
        function.attributes["sym_name"] = ir.StringAttr.get(f"{name}_{suffix}")
    store_objects(holder, chip, alignment_bytes)
    types = {}
    for name, function in functions.items():
        replace_maps_by_tensors(function, launches[name])
        types[f"{name}_{suffix}"] = tuple(types_of(function.regions[0].blocks[0].arguments))
    module.body.append(holder)
    module.operation.attributes[CONTAINER] = ir.UnitAttr.get()
    return InsertedKernels(f"kernels_{suffix}", host, types)


def _whole(problem: Problem, kernels: InsertedKernels) -> tuple[MatmulKernel, ...]:
    """Returns the only kernel of a problem if it takes just A, B and C and overwrites C; else ()."""
    launches = kernels.host.launches
    buffers = kernels.host.buffers
    if len(launches) != 1 or any(buffer.is_zeroed for buffer in buffers):
        return ()
    if sorted(launches[0].arguments) != ["a", "b", "c"] or launches[0].grid[2] != 1:
        return ()
    return (MatmulKernel(f"{launches[0].kernel}_{_suffix(problem)}", problem, launches[0].arguments),)


def _suffix(problem: Problem) -> str:
    return "_".join(filter(None, (problem.shape, problem.dtype, problem.output, problem.layout)))


def launch_all(kernels: InsertedKernels, arrays: dict[str, Value]) -> None:
    """Creates the launches of a script's kernels at the insertion point, in their order.

    ``arrays``: the memref of each matrix by name: "a", "b", "c". Scratch buffers are allocated and freed;
    buffers that kernels add to are filled with zeros first.
    """
    suffix = kernels.module.removeprefix("kernels")
    scratch = [buffer for buffer in kernels.host.buffers if buffer.role == "scratch"]
    arrays = arrays | {buffer.name: _scratch(buffer, kernels, suffix) for buffer in scratch}
    for buffer in kernels.host.buffers:
        if buffer.is_zeroed:
            building.clear(arrays[buffer.name])
    for launch in kernels.host.launches:
        _launch(launch, kernels, f"{launch.kernel}{suffix}", arrays)
    for buffer in scratch:
        create("memref.dealloc", [], [arrays[buffer.name]])


def _scratch(buffer: KernelBuffer, kernels: InsertedKernels, suffix: str) -> Value:
    elements = set()
    for launch in kernels.host.launches:
        types = kernels.types[f"{launch.kernel}{suffix}"]
        for name, type_ in zip(launch.arguments, types, strict=True):
            if name == buffer.name:
                elements.add(type_.element_type)
    if len(elements) != 1:
        actual = ", ".join(sorted(map(str, elements))) or "no launch that takes it"
        raise CandidateError(Stage.COMPILE, f"buffer {buffer.name}: found {actual}, allowed one element type")
    (element,) = elements
    return allocate(ir.MemRefType.get([buffer.bytes * 8 // element.width], element))


def _launch(launch: Launch, kernels: InsertedKernels, name: str, arrays: dict[str, Value]) -> None:
    arguments = []
    for argument, type_ in zip(launch.arguments, kernels.types[name], strict=True):
        tensor_map = launch.tensor_map(argument)
        array = arrays[argument if tensor_map is None else tensor_map.buffer]
        # the kernel's sizes may be padded beyond the end of the array
        arguments.append(array if array.type == type_ else reinterpreted(array, type_))
    sizes = list(map(index, (*launch.grid, *launch.block)))
    shared = []
    if launch.dynamic_shared_bytes:
        i32 = ir.IntegerType.get_signless(32)
        number = ir.IntegerAttr.get(i32, launch.dynamic_shared_bytes)
        shared = [value("arith.constant", i32, value=number)]
    segments = [0, *[1] * 6, 0, 0, 0, len(shared), len(arguments), 0]
    create(
        "gpu.launch_func",
        [],
        [*sizes, *shared, *arguments],
        kernel=ir.SymbolRefAttr.get([kernels.module, name]),
        **{SEGMENTS: ir.DenseI32ArrayAttr.get(segments), **tensor_map_attributes(launch)},
    )
