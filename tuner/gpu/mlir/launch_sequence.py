"""Reads the host code of a module: its launches in order, and the buffers that kernels take pointers to.

Takes a module after outlining and changes nothing. Host functions (public, straight-line) run in the order of
the module. A buffer is an argument of a host function, named by its attribute ``tuner.buffer = "name"`` or
else by its position among the problem's buffers, or a ``memref.alloc`` in a host function (scratch, named by
the same attribute or else scratch0, scratch1, ...). With the unit attribute ``tuner.zeroed`` on either, the
buffer must hold zeros before the first launch; with ``tuner.keeps_zeros`` as well, the kernels leave zeros
behind, as counters that are set back after use, so scratch that is kept from run to run is filled only once.
Not handled: any other host code, and sizes that are not constant; both are errors.
"""

from collections.abc import Container
from dataclasses import dataclass, replace
from functools import partial

from tuner.core.compiled_code import BufferMap, KernelBuffer, Launch
from tuner.core.errors import CandidateError, Stage
from tuner.gpu.ir.launches import TILE_GRID, constant, shared_bytes
from tuner.gpu.ir.padded_views import BOUNDS
from tuner.gpu.mlir.tensor_maps import TENSOR_MAP, layout_of
from tuner.mlir.bindings import Attribute, Op, Value, ir
from tuner.mlir.effects.launches import ARGUMENTS, BLOCK, GRID, kernel_of, operands
from tuner.mlir.ir.memrefs import BUFFER, argument_attributes, memref_bytes, named_arguments
from tuner.mlir.ir.reading import name_of, ops_in, source_of, walk

ZEROED = "tuner.zeroed"
KEEPS_ZEROS = "tuner.keeps_zeros"
RENAMING = ("memref.cast", "builtin.unrealized_conversion_cast")
HARMLESS = frozenset({"arith.constant", "memref.dealloc", "func.return", "memref.assume_alignment"})


@dataclass(frozen=True)
class LaunchSequence:
    """The kernel launches of a module in order, and the buffers in global memory that they may use."""

    launches: tuple[Launch, ...]
    buffers: tuple[KernelBuffer, ...]  # the problem's buffers first, then scratch


class _Reader:
    def __init__(
        self, buffers: tuple[KernelBuffer, ...], kernels: dict[str, Op], given_names: Container[str]
    ) -> None:
        self._of_problem = buffers
        self._kernels = kernels
        self._given_names = given_names  # of buffers in the module, which no unnamed allocation gets
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
            if BUFFER in attributes:
                name = str(ir.StringAttr(attributes[BUFFER]).value)
            elif argument.arg_number < len(self._of_problem):
                name = self._of_problem[argument.arg_number].name
            else:
                raise CandidateError(
                    Stage.COMPILE,
                    f"{name_of(function)}: found argument {argument.arg_number} without a name,"
                    f" allowed {len(self._of_problem)} of the problem, or with {BUFFER}",
                )
            size = _true_bytes(argument, attributes.get(BOUNDS))
            self._add(argument, name, size, attributes)
        for op in blocks[0].operations:
            self._read_op(function, op.operation)

    def _read_op(self, function: Op, op: Op) -> None:
        if op.name == "memref.alloc":
            if BUFFER in op.attributes:
                name = str(ir.StringAttr(op.attributes[BUFFER]).value)
            else:
                name = self._new_name()
            size = memref_bytes(ir.MemRefType(op.results[0].type))
            self._add(op.results[0], name, size, op.attributes)
        elif op.name in RENAMING:
            self._names[op.results[0]] = self._name_of(op, op.operands[0])
        elif op.name == TENSOR_MAP:
            self._add_map(function, op)
        elif op.name == "gpu.launch_func":
            self.launches.append(self._launch(op))
        elif op.name not in HARMLESS:
            raise _unsupported(function, op.name)

    def _new_name(self) -> str:
        number = 0
        while f"scratch{number}" in self.buffers or f"scratch{number}" in self._given_names:
            number += 1
        return f"scratch{number}"

    def _launch(self, op: Op) -> Launch:
        sizes = [
            constant(op, value, "its size") for value in _operands_of(op, GRID) + _operands_of(op, BLOCK)
        ]
        names = tuple(map(partial(self._name_of, op), operands(op, ARGUMENTS)))
        grid = (sizes[0], sizes[1], sizes[2])
        block = (sizes[3], sizes[4], sizes[5])
        maps = tuple(tensor_map for tensor_map in self._maps.values() if tensor_map.name in names)
        return Launch(kernel_of(op), grid, block, shared_bytes(op), names, maps, self._tile_grid(op))

    def _tile_grid(self, op: Op) -> tuple[int, int] | None:
        tile_grid = self._kernels[kernel_of(op)].attributes.get(TILE_GRID)
        if tile_grid is None:
            return None
        columns, rows = ir.DenseI32ArrayAttr(tile_grid)
        return columns, rows

    def _add_map(self, function: Op, op: Op) -> None:
        buffer = self._name_of(op, op.operands[0])
        name = f"{buffer}_map{sum(tensor_map.buffer == buffer for tensor_map in self._maps.values())}"
        self._names[op.results[0]] = name
        self._maps[op.results[0]] = BufferMap(name, buffer, layout_of(op, _true_sizes(function, op)))

    def _name_of(self, op: Op, value: Value) -> str:
        if value not in self._names:
            user = kernel_of(op) if op.name == "gpu.launch_func" else op.name
            origin = value.owner if isinstance(value.owner, ir.Block) else value.owner.name
            raise CandidateError(
                Stage.COMPILE, f"{user}: found an argument from {origin}, allowed arguments and allocations"
            )
        return self._names[value]

    def _add(self, value: Value, name: str, size: int, attributes: Container[str]) -> None:
        self._names[value] = name
        is_zeroed = ZEROED in attributes
        known = self.buffers.get(name, KernelBuffer(name, size, "scratch", is_zeroed))
        if known.role == "scratch":
            keeps_zeros = is_zeroed and KEEPS_ZEROS in attributes
            if name in self.buffers:  # what one function's kernels set back, another's may leave changed
                keeps_zeros &= known.keeps_zeros
            known = replace(known, bytes=max(known.bytes, size), keeps_zeros=keeps_zeros)
        self.buffers[name] = replace(known, is_zeroed=known.is_zeroed or is_zeroed)


def read_launches(module: ir.Module, buffers: tuple[KernelBuffer, ...]) -> LaunchSequence:
    """Returns a module's kernel launches in order, and their buffers: the problem's, then scratch buffers.

    Raises CandidateError(COMPILE) for host code that is not supported, such as control flow or sizes that are
    not constant, and for a module without a launch.
    """
    kernels = {name_of(function): function for function in walk(module, "gpu.func")}
    reader = _Reader(buffers, kernels, _given_names(module))
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


def _given_names(module: ir.Module) -> set[str]:
    """Returns the names of buffers that ``tuner.buffer`` gives to arguments and allocations."""
    names = set()
    for op in walk(module, "memref.alloc"):
        if BUFFER in op.attributes:
            names.add(str(ir.StringAttr(op.attributes[BUFFER]).value))
    for function in walk(module, "func.func"):
        if len(function.regions[0].blocks) > 0:
            names.update(named_arguments(function, BUFFER))
    return names


def _operands_of(op: Op, segments: slice) -> list[Value]:
    values: list[Value] = []
    for segment in range(segments.start, segments.stop):
        values += operands(op, segment)
    return values


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
