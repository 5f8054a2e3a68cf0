"""Extends kernels of one matrix pair to all pairs of a batch, along z of the grid.

A grid of (x, y, z) blocks becomes a grid of (x, y, z * batch): block z computes part ``z % slices`` of
matrix ``z / slices``, where ``slices`` is the z of the script's grid. All matrices share the bias; a tensor
map gets the matrix as its last dimension. In the kernel, in LLVM dialect:

    llvm.func @k(%a: !llvm.ptr, ...) attributes {tuner.batch_bytes = array<i64: 4096>, tuner.slices = 1}
      %z = nvvm.read.ptx.sreg.ctaid.z
      nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %map, %full, box[%column, %k]
  becomes
      %matrix = llvm.udiv %z, %slices
      %own_a = llvm.getelementptr %a[%matrix * 4096] : (!llvm.ptr, i64) -> !llvm.ptr, i8   // in place of %a
      nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %map, %full, box[%column, %k, %matrix]
"""

from dataclasses import replace

from tuner.core.compiled_code import BufferMap, KernelBuffer, Launch, TensorMapLayout
from tuner.core.epilogues import EPILOGUES
from tuner.gpu.mlir.launch_sequence import LaunchSequence
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.reading import attributes_of, name_of, walk, walk_where

# Attributes of a kernel: distance of consecutive matrices per parameter; grid z of one matrix.
BYTES = "tuner.batch_bytes"
SLICES = "tuner.slices"
SHARED_BUFFERS = frozenset(  # names of those that all matrices of a batch share
    argument.name for epilogue in EPILOGUES.values() for argument in epilogue.arguments if argument.is_shared
)
BLOCK_Z = "nvvm.read.ptx.sreg.ctaid.z"
GRID_Z = "nvvm.read.ptx.sreg.nctaid.z"
TENSOR_COPY = "nvvm.cp.async.bulk.tensor."
SEGMENTS = "operandSegmentSizes"


def note_batches(module: ir.Module, host: LaunchSequence) -> None:
    """Records on each ``gpu.func``, as attributes, the bytes of a matrix per parameter, and the grid's z.

    ``choose_matrices`` reads the attributes. ``host``: launches of one matrix pair, one of each kernel. The
    bytes are 0 for a tensor map, and for buffers that all matrices of a batch share, such as the bias.
    """
    sizes = _bytes_by_name(host)
    functions = walk(module, "gpu.func")
    kernels = dict(zip(map(name_of, functions), functions, strict=True))
    for launch in host.launches:
        function = kernels[launch.kernel]
        strides = [sizes.get(name, 0) for name in launch.arguments]
        function.attributes[BYTES] = ir.DenseI64ArrayAttr.get(strides)
        function.attributes[SLICES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), launch.grid[2])


def for_every_matrix(host: LaunchSequence, batch: int) -> LaunchSequence:
    """Returns the launches and buffers for ``batch`` matrix pairs, made from those for one matrix pair.

    Grids have ``batch`` times as many blocks along z, tensor maps one more dimension, that of the matrices,
    and buffers ``batch`` times the bytes, but for buffers that all matrices share.
    """
    sizes = _bytes_by_name(host)
    launches = [_widened(launch, sizes, batch) for launch in host.launches]
    buffers: list[KernelBuffer] = []
    for buffer in host.buffers:
        if buffer.name not in SHARED_BUFFERS:
            buffer = replace(buffer, bytes=batch * buffer.bytes)
        buffers.append(buffer)
    return LaunchSequence(tuple(launches), tuple(buffers))


def choose_matrices(module: ir.Module) -> None:
    """Lets block z of each kernel compute part z % slices of matrix z / slices of a batch, in place.

    A kernel is an ``llvm.func`` with the attributes of ``note_batches``, which are removed. So this function
    is for modules that were converted to the LLVM and NVVM dialects.
    """
    for function in walk(module, "llvm.func"):
        if BYTES in function.attributes:
            strides = tuple(ir.DenseI64ArrayAttr(function.attributes[BYTES]))
            slices = ir.IntegerAttr(function.attributes[SLICES]).value
            del function.attributes[BYTES], function.attributes[SLICES]
            block = function.regions[0].blocks[0]
            word = ir.IntegerType.get_signless(32)
            with ir.InsertionPoint.at_block_begin(block):
                z = value(BLOCK_Z, word)
                count = _constant(word, slices)
                matrix = value("llvm.udiv", word, z, count)
                part = value("llvm.urem", word, z, count)
                wide = value("llvm.zext", ir.IntegerType.get_signless(64), matrix)
                for argument, stride in zip(block.arguments, strides, strict=True):
                    if stride:
                        _offset(argument, wide, stride)
            for read in walk(function, BLOCK_Z):
                if read.results[0] != z:
                    read.results[0].replace_all_uses_with(part)
            for read in walk(function, GRID_Z):
                read.results[0].replace_all_uses_with(count)
            for copy in walk_where(function, lambda op: op.name.startswith(TENSOR_COPY)):
                _copy_of_matrix(copy, matrix)


def _copy_of_matrix(copy: Op, matrix: Value) -> None:
    """Replaces a TMA copy by one whose box has ``matrix`` as its last index, in place."""
    sizes = list(ir.DenseI32ArrayAttr(copy.attributes[SEGMENTS]))
    operands = list(copy.operands)
    # the i32 operands are the indices of the box
    indices = [index for index, operand in enumerate(operands) if str(operand.type) == "i32"]
    segment = 0
    while sum(sizes[: segment + 1]) <= indices[0]:
        segment += 1
    operands.insert(indices[-1] + 1, matrix)
    sizes[segment] += 1
    attributes = attributes_of(copy)
    attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get(sizes)
    with ir.InsertionPoint(copy):
        create(copy.name, [], operands, **attributes)
    copy.erase()


def _bytes_by_name(host: LaunchSequence) -> dict[str, int]:
    """Returns the bytes of a matrix by its buffer's name, without buffers that all matrices share."""
    return {buffer.name: buffer.bytes for buffer in host.buffers if buffer.name not in SHARED_BUFFERS}


def _widened(launch: Launch, sizes: dict[str, int], batch: int) -> Launch:
    x, y, z = launch.grid
    maps = tuple(
        _of_batch(tensor_map, sizes.get(tensor_map.buffer, 0), batch) for tensor_map in launch.tensor_maps
    )
    return replace(launch, grid=(x, y, z * batch), tensor_maps=maps)


def _of_batch(tensor_map: BufferMap, matrix_bytes: int, batch: int) -> BufferMap:
    layout: TensorMapLayout = tensor_map.layout
    return replace(
        tensor_map,
        layout=replace(
            layout,
            sizes=(*layout.sizes, batch),
            strides_bytes=(*layout.strides_bytes, matrix_bytes),
            box=(*layout.box, 1),
        ),
    )


def _offset(argument: Value, matrix: Value, stride: int) -> None:
    distance = value("llvm.mul", matrix.type, matrix, _constant(matrix.type, stride))
    own = create(
        "llvm.getelementptr",
        [argument.type],
        [argument, distance],
        rawConstantIndices=ir.DenseI32ArrayAttr.get([-(2**31)]),  # the one index is an operand
        elem_type=ir.TypeAttr.get(ir.IntegerType.get_signless(8)),
    )
    argument.replace_all_uses_except(own.results[0], own)


def _constant(type_: ir.Type, number: int) -> Value:
    return value("llvm.mlir.constant", type_, value=ir.IntegerAttr.get(type_, number))
