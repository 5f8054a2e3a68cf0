"""The ``gpu.module`` ops of a module: merged, inlined, extended to a batch of matrices; launches read."""

from dataclasses import dataclass, replace

from tuner.core.compiled_code import BufferMap, KernelBuffer, Launch
from tuner.core.epilogues import EPILOGUES
from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import TensorMapLayout
from tuner.mlir.bindings import Attribute, Op, Value, ir
from tuner.mlir.gpu.tensor_maps import TENSOR_MAP, layout_of
from tuner.mlir.ir.building import create, value
from tuner.mlir.ir.memrefs import BOUNDS, argument_attributes, memref_bytes
from tuner.mlir.ir.reading import (
    ARGUMENTS,
    BLOCK,
    GRID,
    TILE_GRID,
    attributes_of,
    callee_of,
    constant,
    inline_call,
    kernel_of,
    name_of,
    operands,
    ops_in,
    shared_bytes,
    source_of,
    unsupported,
    walk,
    walk_where,
)

FUNCTION = "func.func"
CALL = "func.call"
KERNEL = "gpu.func"
ALLOWED = "a function of its gpu.module with one block, which does not call itself"
NAME = "tuner.buffer"
ZEROED = "tuner.zeroed"
RENAMING = ("memref.cast", "builtin.unrealized_conversion_cast")
HARMLESS = frozenset({"arith.constant", "memref.dealloc", "func.return", "memref.assume_alignment"})
OBJECTS = "tuner.objects"  # attribute of a gpu.module: the objects of its gpu.binary
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


def inline_device_functions(module: ir.Module) -> None:
    """Inlines the functions that kernels of a ``gpu.module`` call, and erases its functions, in place.

    Upstream's inliner handles host code only. Raises CandidateError(COMPILE) for a call of a function that
    is recursive, has no body or has several blocks.

        gpu.module @m {
          func.func @twice(%a: f32) -> f32 {
          gpu.func @k(%x: f32, %p: memref<f32>) kernel {
            %y = func.call @twice(%x) : (f32) -> f32
      becomes
        gpu.module @m {
          gpu.func @k(%x: f32, %p: memref<f32>) kernel {
            %y = arith.addf %x, %x : f32
    """
    for holder in walk(module, "gpu.module"):
        functions = {name_of(op): op for op in walk(holder, FUNCTION)}
        for caller in walk(holder, KERNEL):
            while calls := walk(caller, CALL):
                for call in calls:
                    name = callee_of(call)
                    callee = functions.get(name)
                    if (
                        callee is None
                        or len(callee.regions[0].blocks) != 1
                        or _reaches(callee, name, functions)
                    ):
                        raise unsupported(call, f"a call of @{name}", ALLOWED)
                    inline_call(call, callee)
        for function in functions.values():
            function.erase()


def _reaches(function: Op, name: str, functions: dict[str, Op]) -> bool:
    open_names = [name_of(function)]
    seen = set[str]()
    while open_names:
        caller = functions.get(open_names.pop())
        for call in walk(caller, CALL) if caller is not None else []:
            callee = callee_of(call)
            if callee == name:
                return True
            if callee not in seen:
                seen.add(callee)
                open_names.append(callee)
    return False


# Reads the host code of a module: its launches in order, and the buffers that kernels take pointers to.
#
# Takes a module after outlining and changes nothing. Host functions (public, straight-line) run in the order
# of the module. A buffer is an argument of a host function, named by its attribute ``tuner.buffer = "name"``
# or else by its position among the problem's buffers, or a ``memref.alloc`` in a host function (scratch,
# named by the same attribute). With the unit attribute ``tuner.zeroed`` on either, the buffer must hold zeros
# before the first launch. Not handled: any other host code, and sizes that are not constant; both are errors.


@dataclass(frozen=True)
class LaunchSequence:
    """The kernel launches of a module in order, and the buffers in global memory that they may use."""

    launches: tuple[Launch, ...]
    buffers: tuple[KernelBuffer, ...]  # the problem's buffers first, then scratch


class _Reader:
    def __init__(self, buffers: tuple[KernelBuffer, ...], kernels: dict[str, Op]) -> None:
        self._given = buffers
        self._kernels = kernels
        self.buffers = {buffer.name: buffer for buffer in buffers}
        self.launches: list[Launch] = []
        self._names: dict[Value, str] = {}
        self._maps: dict[Value, BufferMap] = {}

    def read(self, function: Op) -> None:
        blocks = list(function.regions[0].blocks)
        if len(blocks) != 1:
            raise _unsupported(function, "control flow")
        for argument in blocks[0].arguments:
            if not isinstance(argument.type, ir.MemRefType):
                found = f"found argument {argument.arg_number} of type {argument.type}"
                raise CandidateError(Stage.COMPILE, f"{name_of(function)}: {found}, allowed memrefs")
            attributes = argument_attributes(function, argument.arg_number)
            if NAME in attributes:
                name = str(ir.StringAttr(attributes[NAME]).value)
            elif argument.arg_number < len(self._given):
                name = self._given[argument.arg_number].name
            else:
                raise CandidateError(
                    Stage.COMPILE,
                    f"{name_of(function)}: found argument {argument.arg_number} without a name,"
                    f" allowed {len(self._given)} of the problem, or with {NAME}",
                )
            size = _true_bytes(argument, attributes.get(BOUNDS))
            self._add(argument, name, size, ZEROED in attributes)
        for op in blocks[0].operations:
            self._read_op(function, op.operation)

    def _read_op(self, function: Op, op: Op) -> None:
        if op.name == "memref.alloc":
            named = NAME in op.attributes
            scratch = f"scratch{sum(name.startswith('scratch') for name in self.buffers)}"
            name = str(ir.StringAttr(op.attributes[NAME]).value) if named else scratch
            size = memref_bytes(ir.MemRefType(op.results[0].type))
            self._add(op.results[0], name, size, ZEROED in op.attributes)
        elif op.name in RENAMING:
            self._names[op.results[0]] = self._name_of(op, op.operands[0])
        elif op.name == TENSOR_MAP:
            self._add_map(function, op)
        elif op.name == "gpu.launch_func":
            self.launches.append(self._launch(op))
        elif op.name not in HARMLESS:
            raise _unsupported(function, op.name)

    def _launch(self, op: Op) -> Launch:
        sizes = [
            constant(op, value, "its size") for value in _operands_of(op, GRID) + _operands_of(op, BLOCK)
        ]
        names = tuple(self._name_of(op, value) for value in operands(op, ARGUMENTS))
        grid = (sizes[0], sizes[1], sizes[2])
        block = (sizes[3], sizes[4], sizes[5])
        maps = tuple(tensor_map for tensor_map in self._maps.values() if tensor_map.name in names)
        return Launch(kernel_of(op), grid, block, shared_bytes(op), names, maps, self._tile_grid(op))

    def _tile_grid(self, op: Op) -> tuple[int, int] | None:
        said = self._kernels[kernel_of(op)].attributes.get(TILE_GRID)
        if said is None:
            return None
        columns, rows = ir.DenseI32ArrayAttr(said)
        return columns, rows

    def _add_map(self, function: Op, op: Op) -> None:
        buffer = self._name_of(op, op.operands[0])
        name = f"{buffer}_map{sum(tensor_map.buffer == buffer for tensor_map in self._maps.values())}"
        self._names[op.results[0]] = name
        self._maps[op.results[0]] = BufferMap(name, buffer, layout_of(op, _true_sizes(function, op)))

    def _name_of(self, op: Op, value: Value) -> str:
        if value not in self._names:
            what = kernel_of(op) if op.name == "gpu.launch_func" else op.name
            found = value.owner if isinstance(value.owner, ir.Block) else value.owner.name
            raise CandidateError(
                Stage.COMPILE, f"{what}: found an argument from {found}, allowed arguments and allocations"
            )
        return self._names[value]

    def _add(self, value: Value, name: str, size: int, is_zeroed: bool) -> None:
        self._names[value] = name
        known = self.buffers.get(name, KernelBuffer(name, size, "scratch", is_zeroed))
        if known.role == "scratch":
            known = replace(known, bytes=max(known.bytes, size))
        self.buffers[name] = replace(known, is_zeroed=known.is_zeroed or is_zeroed)


def read_launches(module: ir.Module, buffers: tuple[KernelBuffer, ...]) -> LaunchSequence:
    """Returns a module's kernel launches in order, and their buffers: the problem's, then scratch buffers.

    Raises CandidateError(COMPILE) for host code that is not supported, such as control flow or sizes that are
    not constant, and for a module without a launch.
    """
    reader = _Reader(buffers, {name_of(function): function for function in walk(module, "gpu.func")})
    for op in ops_in(module.body):
        if op.name == "func.func":
            visibility = op.attributes.get("sym_visibility")
            is_private = visibility is not None and ir.StringAttr(visibility).value == "private"
            if not is_private and len(op.regions[0].blocks) > 0:
                reader.read(op)
        elif op.name != "gpu.module":
            raise CandidateError(Stage.COMPILE, f"module: found {op.name}, allowed functions")
    if not reader.launches:
        raise CandidateError(Stage.COMPILE, "the script made no kernel: found no gpu.launch")
    return LaunchSequence(tuple(reader.launches), tuple(reader.buffers.values()))


def _operands_of(op: Op, segments: slice) -> list[Value]:
    return [value for segment in range(segments.start, segments.stop) for value in operands(op, segment)]


def _true_sizes(function: Op, op: Op) -> tuple[int, ...] | None:
    base = source_of(op.operands[0], ("memref.cast",))
    if not isinstance(base.owner, ir.Block):
        return None
    bounds = argument_attributes(function, ir.BlockArgument(base).arg_number).get(BOUNDS)
    if bounds is None:
        return None
    return tuple(ir.DenseI64ArrayAttr(bounds))


def _true_bytes(argument: Value, bounds: Attribute | None) -> int:
    view = ir.MemRefType(argument.type)
    true = list(view.shape) if bounds is None else list(ir.DenseI64ArrayAttr(bounds))
    if len(true) != view.rank:
        return memref_bytes(view)
    strides, offset = view.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(offset, strides)
    return memref_bytes(ir.MemRefType.get(true, view.element_type, layout=layout))


def _unsupported(function: Op, found: str) -> CandidateError:
    return CandidateError(Stage.COMPILE, f"{name_of(function)}: found {found} outside of every gpu.launch")


def has_objects(holder: Op) -> bool:
    """Returns whether a ``gpu.module`` is compiled already: it has its code as an attribute."""
    return OBJECTS in holder.attributes


def merge_gpu_modules(module: ir.Module) -> None:
    """Moves all symbols of ``gpu.module`` ops that are not compiled yet into the first one, in place.

    A kernel whose name is used already gets another name, and its launches follow. Raises
    CandidateError(COMPILE) for another symbol whose name is used already.

        gpu.launch_func @second::@k blocks in ...
        gpu.module @second {
      becomes
        gpu.launch_func @first::@k_1 blocks in ...
        gpu.func @k_1() kernel {
    """
    holders = [op.operation for op in module.body.operations if op.operation.name == "gpu.module"]
    holders = [holder for holder in holders if not has_objects(holder)]
    if len(holders) < 2:
        return
    first = holders[0]
    taken = set(map(name_of, first.regions[0].blocks[0].operations))
    for holder in holders[1:]:
        for op in list(holder.regions[0].blocks[0].operations):
            _move(module, op.operation, name_of(holder), first, taken)
        holder.erase()


def _move(module: ir.Module, op: Op, holder_name: str, first: Op, taken: set[str]) -> None:
    old = name_of(op)
    new = old
    number = 0
    while new in taken:
        number += 1
        new = f"{old}_{number}"
    if new != old and op.name != "gpu.func":  # only launches are given new names, not uses inside of kernels
        found = f"found a second {op.name} @{old}"
        raise CandidateError(Stage.COMPILE, f"@{holder_name}: {found}, allowed one in all modules")
    taken.add(new)
    op.attributes["sym_name"] = ir.StringAttr.get(new)
    before = f"@{holder_name}::@{old}"
    for launch in walk(module, "gpu.launch_func"):
        if str(launch.attributes["kernel"]) == before:
            launch.attributes["kernel"] = ir.SymbolRefAttr.get([name_of(first), new])
    first.regions[0].blocks[0].append(op)


# Extends kernels of one matrix pair to all pairs of a batch, along z of the grid.
#
# A grid of (x, y, z) blocks becomes a grid of (x, y, z * batch): block z computes part ``z % slices`` of
# matrix ``z / slices``, where ``slices`` is the z of the script's grid. All matrices share the bias; a tensor
# map gets the matrix as its last dimension. In the kernel, in LLVM dialect::
#
#     llvm.func @k(%a: !llvm.ptr, ...) attributes {tuner.batch_bytes = array<i64: 4096>, tuner.slices = 1}
#       %z = nvvm.read.ptx.sreg.ctaid.z
#       nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %map, %full, box[%column, %k]
#   becomes
#       %matrix = llvm.udiv %z, %slices
#       %own_a = llvm.getelementptr %a[%matrix * 4096] : (!llvm.ptr, i64) -> !llvm.ptr, i8   // in place of %a
#       nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %map, %full, box[%column, %k, %matrix]


def note_batches(module: ir.Module, host: LaunchSequence) -> None:
    """Records on each ``gpu.func``, as attributes, the bytes of a matrix per parameter, and its slices of K.

    ``choose_matrices`` reads them. ``host`` has one launch of each kernel. The bytes are 0 for a tensor map,
    and for the bias, which all matrices share.
    """
    sizes = {buffer.name: _matrix_bytes(buffer) for buffer in host.buffers}
    launches = {launch.kernel: launch for launch in host.launches}
    for function in walk(module, "gpu.func"):
        launch = launches[name_of(function)]
        strides = [sizes.get(name, 0) for name in launch.arguments]  # 0 for a tensor map
        function.attributes[BYTES] = ir.DenseI64ArrayAttr.get(strides)
        function.attributes[SLICES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), launch.grid[2])


def for_every_matrix(host: LaunchSequence, batch: int) -> LaunchSequence:
    """Returns the launches and buffers for ``batch`` matrix pairs, made from those for one matrix pair."""
    sizes = {buffer.name: _matrix_bytes(buffer) for buffer in host.buffers}
    launches = tuple(_widened(launch, sizes, batch) for launch in host.launches)
    buffers = tuple(
        buffer if buffer.name in SHARED_BUFFERS else replace(buffer, bytes=batch * buffer.bytes)
        for buffer in host.buffers
    )
    return LaunchSequence(launches, buffers)


def choose_matrices(module: ir.Module) -> None:
    """Lets block z of each kernel compute part z % slices of matrix z / slices of a batch, in place.

    Kernels are each ``llvm.func`` with the attributes of ``note_batches``, which are removed: call it after
    the conversion to the LLVM and NVVM dialects.
    """
    for function in walk(module, "llvm.func"):
        if BYTES in function.attributes:
            strides = tuple(ir.DenseI64ArrayAttr(function.attributes[BYTES]))
            slices = ir.IntegerAttr(function.attributes[SLICES]).value
            del function.attributes[BYTES], function.attributes[SLICES]
            entry = function.regions[0].blocks[0]
            word = ir.IntegerType.get_signless(32)
            with ir.InsertionPoint.at_block_begin(entry):
                z = value(BLOCK_Z, word)
                count = _constant(word, slices)
                matrix = value("llvm.udiv", word, z, count)
                part = value("llvm.urem", word, z, count)
                wide = value("llvm.zext", ir.IntegerType.get_signless(64), matrix)
                for argument, stride in zip(entry.arguments, strides, strict=True):
                    if stride:
                        _offset(argument, wide, stride)
            for read in walk(function, BLOCK_Z):
                if read.results[0] != z:
                    read.results[0].replace_all_uses_with(part)
            for read in walk(function, GRID_Z):
                read.results[0].replace_all_uses_with(count)
            for copy in walk_where(function, lambda op: op.name.startswith(TENSOR_COPY)):
                sizes = list(ir.DenseI32ArrayAttr(copy.attributes[SEGMENTS]))
                operands = list(copy.operands)
                # the i32 operands are the indices of the box; the matrix becomes the last index
                words = [place for place, operand in enumerate(operands) if str(operand.type) == "i32"]
                segment = next(number for number in range(len(sizes)) if sum(sizes[: number + 1]) > words[0])
                operands.insert(words[-1] + 1, matrix)
                sizes[segment] += 1
                attributes = attributes_of(copy)
                attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get(sizes)
                with ir.InsertionPoint(copy):
                    create(copy.name, [], operands, **attributes)
                copy.erase()


def _matrix_bytes(buffer: KernelBuffer) -> int:
    if buffer.name in SHARED_BUFFERS:
        return 0
    return buffer.bytes


def _widened(launch: Launch, sizes: dict[str, int], batch: int) -> Launch:
    x, y, z = launch.grid
    maps = tuple(_of_batch(tensor_map, sizes[tensor_map.buffer], batch) for tensor_map in launch.tensor_maps)
    return replace(launch, grid=(x, y, z * batch), tensor_maps=maps)


def _of_batch(one: BufferMap, matrix_bytes: int, batch: int) -> BufferMap:
    layout: TensorMapLayout = one.layout
    return replace(
        one,
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


def _constant(kind: ir.Type, number: int) -> Value:
    return value("llvm.mlir.constant", kind, value=ir.IntegerAttr.get(kind, number))
