"""Fusions as GPU kernels of one thread per element: the launches, and the scalar code of an element."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from tuner.core.errors import CandidateError, Stage
from tuner.core.fusions import Fusion
from tuner.gpu.lowering.kernels import BLOCK_THREADS, BLOCKS_LIMIT, create_launch
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.fusions import operations
from tuner.mlir.ir.building import branch, delinearized, index, is_less, loop, store, value
from tuner.mlir.ir.linalg import GENERALIZE
from tuner.mlir.ir.reading import maps_in, users_of
from tuner.mlir.passes import run_passes
from tuner.mlir.programs.indirect_indices import assert_indirect_indices
from tuner.mlir.transform import parse

Output = tuple[Value, Value]  # a tensor, and the memref that it is written to
READ = "bufferization.to_tensor"
WRITE = "bufferization.materialize_in_destination"
Build = Callable[[Value, Value], None]  # of a block's number and a thread's number in it
BINARY = {  # of indices, which are not negative
    ir.AffineAddExpr: "arith.addi",
    ir.AffineMulExpr: "arith.muli",
    ir.AffineModExpr: "arith.remui",
    ir.AffineFloorDivExpr: "arith.divui",
    ir.AffineCeilDivExpr: "arith.ceildivui",
}


@dataclass(frozen=True)
class FusionFunction:
    """The function of a fusion, on tensors, with the memrefs that its inputs and outputs lie in.

    The function is in the current MLIR context. ``ops``: the operations of its block but the return;
    ``generics``: those of them that are ``linalg.generic``.
    """

    module: ir.Module  # owns the function
    memory: dict[Value, Value]  # tensor that the function reads -> memref with its elements
    outputs: tuple[Output, ...]

    @property
    def ops(self) -> list[Op]:
        return operations.body_of(self.module.body.operations[0].operation)[:-1]

    @property
    def generics(self) -> list[Op]:
        return [op for op in self.ops if op.name == operations.GENERIC]


def fusion_function(fusion: Fusion, memrefs: Sequence[Value], *, is_generalized: bool) -> FusionFunction:
    """Parses a fusion's text in the current MLIR context; inserts assertions before accesses by data.

    ``memrefs``: memrefs of another module in the same context, for the fusion's inputs, then its outputs.
    ``is_generalized``: whether named linalg operations become ``linalg.generic``.
    """
    module = parse(fusion.text, "fusion")
    assert_indirect_indices(module.body.operations[0].operation)
    if is_generalized:
        run_passes(module, GENERALIZE)
    function = module.body.operations[0].operation
    memref_of = dict(zip(function.regions[0].blocks[0].arguments, memrefs, strict=True))
    memory: dict[Value, Value] = {}
    outputs: list[Output] = []
    for op in operations.body_of(function):
        if op.name == READ:
            memory[op.results[0]] = memref_of[op.operands[0]]
        elif op.name == WRITE:
            outputs.append((op.operands[0], memref_of[op.operands[1]]))
    return FusionFunction(module, memory, tuple(outputs))


def launch(blocks: int, threads: int, build: Build) -> None:
    """Creates a ``gpu.launch`` of ``blocks`` blocks of ``threads`` threads.

    ``build(block, thread)`` creates the kernel's body from the number of the block, and of the thread in the
    block. Raises CandidateError(COMPILE) for more than BLOCKS_LIMIT blocks.
    """
    if blocks > BLOCKS_LIMIT:
        raise CandidateError(Stage.COMPILE, f"found {blocks} thread blocks, allowed {BLOCKS_LIMIT}")
    one = index(1)
    create_launch(index(blocks), index(threads), one, build)


def launch_for_each(shape: Sequence[int], build: Callable[[list[Value]], None]) -> None:
    """Creates a launch of one thread per element of an array of ``shape``.

    ``build(indices)`` creates its body from the indices of the thread's element.
    """
    total = math.prod(shape)

    def thread(block: Value, number_in_block: Value) -> None:
        type_ = ir.IndexType.get()
        first = value("arith.muli", type_, block, index(BLOCK_THREADS))
        number = value("arith.addi", type_, first, number_in_block)
        sizes = list(map(index, shape))
        branch(is_less(number, index(total)), lambda: build(delinearized(number, sizes)))

    launch(max(1, -(-total // BLOCK_THREADS)), BLOCK_THREADS, thread)


class PointValues:
    """Creates the scalar operations that compute single elements of the tensors of a fusion.

    Takes a fusion's function of ``linalg`` and constants, bodies without regions. A reduction becomes loops
    that carry the sum. An element is computed where it is read, and again where it is read in another region;
    it is not stored.
        %sum = linalg.generic ... ins(%a, %b : ...) outs(%zeros : tensor<4x8xf32>)           // matmul
        %result = linalg.generic ... ins(%sum, %bias : ...) outs(%empty : tensor<4x8xf32>)   // add
      at (%i, %j) becomes
        %s = scf.for %k = %c0 to %c16 step %c1 iter_args(%old = %zero) -> (f32) {
          %x = memref.load %a[%i, %k] : memref<4x16xf32>
          ...
        }
        %y = memref.load %bias[%j] : memref<8xf32>
        %r = arith.addf %s, %y : f32
    """

    def __init__(self, memory: Mapping[Value, Value]) -> None:
        self._memory = memory
        self._known: dict[tuple[Value, tuple[Value, ...]], Value] = {}
        self._indices: dict[int, Value] = {}

    def at(self, tensor: Value, indices: Sequence[Value]) -> Value:
        """Returns the element of ``tensor`` at ``indices``; creates what computes it if it is not known here.

        Raises CandidateError(COMPILE) for an operation that has no scalar form.
        """
        key = (tensor, tuple(indices))
        if key not in self._known:
            self._known[key] = self._computed(tensor, list(indices))
        return self._known[key]

    def know(self, tensor: Value, indices: Sequence[Value], element: Value) -> None:
        """Records that ``element`` is the element of ``tensor`` at ``indices``, so that ``at`` returns it.

        This holds in the current region and in regions inside it.
        """
        self._known[tensor, tuple(indices)] = element

    @contextmanager
    def region(self) -> Iterator[None]:
        """Context manager for the body of an inner MLIR region.

        At its end, values that were created in it are forgotten: they are not visible outside the region.
        """
        known = dict(self._known)
        indices = dict(self._indices)
        try:
            yield
        finally:
            self._known = known
            self._indices = indices

    def constant(self, number: int) -> Value:
        """Returns ``number`` as a constant of type index, created at its first use in a region."""
        if number not in self._indices:
            self._indices[number] = index(number)
        return self._indices[number]

    def store(self, outputs: Sequence[Output], indices: list[Value]) -> None:
        """Creates what computes the element at ``indices`` of each output's tensor, and the stores."""
        elements = [self.at(tensor, indices) for tensor, _ in outputs]
        for element, (_, memory) in zip(elements, outputs, strict=True):
            store(element, memory, indices)

    def step(self, op: Op, loops: Sequence[Value | None], carried: Sequence[Value]) -> list[Value]:
        """Creates one iteration of a ``linalg.generic`` at ``loops``; returns the values that it yields.

        ``loops``: the index of each loop. ``carried``: per output, the accumulator of the enclosing loops; ()
        without loops: then a body that reads an output gets the output's initial element.
        """
        arguments = list(op.regions[0].blocks[0].arguments)
        known: dict[Value, Value] = {}
        inputs = len(operations.inputs_of(op))
        for operand_index, mapping in enumerate(maps_in(op)):
            if not list(arguments[operand_index].uses):
                continue
            operand = op.operands[operand_index]
            if operand_index >= inputs and carried:
                known[arguments[operand_index]] = carried[operand_index - inputs]
            elif operations.is_tensor(operand):
                known[arguments[operand_index]] = self.at(operand, self.mapped(mapping, loops))
            else:
                known[arguments[operand_index]] = self._scalar(operand, {})
        *computed, end = operations.body_of(op)
        for scalar_op in computed:
            self._create_scalar(scalar_op, known, loops)
        return [self._scalar(operand, known) for operand in end.operands]

    def mapped(self, mapping: ir.AffineMap, loops: Sequence[Value | None]) -> list[Value]:
        """Creates the values of an indexing map's results at ``loops``, the index of each loop."""
        return [self._evaluated(result, loops) for result in mapping.results]

    def _computed(self, tensor: Value, indices: list[Value]) -> Value:
        if tensor in self._memory:
            memory = self._memory[tensor]
            return value("memref.load", memory.type.element_type, memory, *indices)
        op = operations.defining(tensor)
        if op is not None and op.name == operations.FILL:
            return self._scalar(op.operands[0], {})
        if op is not None and op.name == operations.CONSTANT and op.attributes["value"].is_splat:
            element = op.attributes["value"].get_splat_value()
            return value("arith.constant", tensor.type.element_type, value=element)
        if op is None or op.name != operations.GENERIC:
            name = "an argument" if op is None else op.name
            raise CandidateError(Stage.COMPILE, f"{name} is not computed element by element")
        return self._of_generic(op, tensor, indices)

    def _of_generic(self, op: Op, tensor: Value, indices: list[Value]) -> Value:
        number = list(op.results).index(tensor)
        maps = maps_in(op)[len(operations.inputs_of(op)) :]
        loops = _loops_at(maps[number], indices)
        # loops that the element's indices do not determine: reductions
        missing = [at for at, loop in enumerate(loops) if loop is None]
        if any(operations.is_parallel(op)[at] for at in missing):
            raise CandidateError(Stage.COMPILE, f"{op.name}: a result does not have all parallel loops")
        inits = zip(operations.inits_of(op), maps, strict=True) if missing else ()
        start = [self.at(init, self.mapped(mapping, loops)) for init, mapping in inits]
        elements = self._nest(op, loops, missing, start)
        for result, mapping, element in zip(op.results, maps, elements, strict=True):
            if _is_plain(mapping):
                self.know(result, self.mapped(mapping, loops), element)
        return elements[number]

    def _nest(self, op: Op, loops: list[Value | None], left: list[int], carried: list[Value]) -> list[Value]:
        if not left:
            return self.step(op, loops, carried)

        def body(number: Value, *old: Value) -> list[Value]:
            inner = list(loops)
            inner[left[0]] = number
            with self.region():
                return self._nest(op, inner, left[1:], list(old))

        return loop(0, operations.loop_sizes(op)[left[0]], body, carried)

    def _create_scalar(self, op: Op, known: dict[Value, Value], loops: Sequence[Value | None]) -> None:
        if op.name == "linalg.index":
            index_of_loop = loops[ir.IntegerAttr(op.attributes["dim"]).value]
            assert index_of_loop is not None
            known[op.results[0]] = index_of_loop
        elif op.name == "tensor.extract":
            tensor, *indices = op.operands
            known[op.results[0]] = self.at(tensor, [self._scalar(number, known) for number in indices])
        elif len(op.regions):
            raise CandidateError(Stage.COMPILE, f"{op.name} has regions")
        else:
            for operand in op.operands:
                self._scalar(operand, known)
            operations.clone_into(op, known)

    def _scalar(self, number: Value, known: dict[Value, Value]) -> Value:
        """Creates a number that a body reads, computed in or outside the body by operations on numbers."""
        if number in known:
            return known[number]
        op = operations.defining(number)
        if op is None or any(map(operations.is_tensor, op.results)):
            raise CandidateError(Stage.COMPILE, "a body reads a number that no operation on numbers computes")
        self._create_scalar(op, known, ())
        return known[number]

    def _evaluated(self, expression: ir.AffineExpr, loops: Sequence[Value | None]) -> Value:
        if isinstance(expression, ir.AffineDimExpr):
            index_of_loop = loops[expression.position]
            assert index_of_loop is not None
            return index_of_loop
        if isinstance(expression, ir.AffineConstantExpr):
            return self.constant(expression.value)
        for kind, name in BINARY.items():
            if isinstance(expression, kind):
                sides = [self._evaluated(side, loops) for side in (expression.lhs, expression.rhs)]
                return value(name, ir.IndexType.get(), *sides)
        raise CandidateError(Stage.COMPILE, f"an operand is read at {expression}")


def _loops_at(mapping: ir.AffineMap, indices: Sequence[Value]) -> list[Value | None]:
    """Returns the index of each loop at the output element at ``indices``; None for loops that are reduced.

    Raises CandidateError(COMPILE) for an output map with other results than loops.
    """
    if not _is_plain(mapping):
        raise CandidateError(Stage.COMPILE, f"a result is written at {mapping}")
    loops: list[Value | None] = [None] * mapping.n_dims
    for result, position in zip(mapping.results, indices, strict=True):
        loops[ir.AffineDimExpr(result).position] = position
    return loops


def _is_plain(mapping: ir.AffineMap) -> bool:
    return all(isinstance(result, ir.AffineDimExpr) for result in mapping.results)


# A thread computes one element of the fusion's result and the elements that it depends on (``PointValues``):
# sums are in a register, operands of an epilogue are loaded where they are needed.


def launch_elements(function: FusionFunction) -> None:
    """Creates the launches of a fusion at the insertion point: one for all outputs of the same shape.

    A thread computes one element. Raises CandidateError(COMPILE) where several elements read the same sum,
    which each thread would compute again.
    """
    for op in function.generics:
        if op.results[0] in function.memory or all(operations.is_parallel(op)):
            continue
        # a reduction that a larger loop nest reads would be recomputed by every thread that reads it
        sizes = zip(operations.loop_sizes(op), operations.is_parallel(op), strict=True)
        elements = math.prod(size for size, parallel in sizes if parallel)
        readers = users_of(op.results[0])
        if any(
            reader.name == operations.GENERIC and math.prod(operations.loop_sizes(reader)) > elements
            for reader in readers
        ):
            raise CandidateError(Stage.COMPILE, "several elements need the same sum")
    by_shape: dict[tuple[int, ...], list[Output]] = {}
    for tensor, memory in function.outputs:
        by_shape.setdefault(tuple(memory.type.shape), []).append((tensor, memory))
    for shape, outputs in by_shape.items():
        launch_for_each(shape, partial(_store, function, outputs))


def _store(function: FusionFunction, outputs: Sequence[Output], indices: list[Value]) -> None:
    PointValues(function.memory).store(outputs, indices)
