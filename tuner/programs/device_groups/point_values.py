"""Computes one element of a tensor: the operations on tensors that lead to it, as scalar operations.

Takes a group's function on tensors, whose operations are ``linalg.generic``; creates, at the current
insertion point, loads of the elements that are read and copies of the bodies. A reduction becomes loops that
carry the sum. Elements are computed once for each place where they are needed, and not stored.

    %sum = linalg.generic ... ins(%a, %b : ...) outs(%zeros : tensor<4x8xf32>)           // matmul
    %result = linalg.generic ... ins(%sum, %bias : ...) outs(%empty : tensor<4x8xf32>)   // add
  at (%i, %j) becomes
    %s = scf.for %k = %c0 to %c16 step %c1 iter_args(%old = %zero) -> (f32) {
      %x = memref.load %a[%i, %k] : memref<4x16xf32>
      ...
    }
    %y = memref.load %bias[%j] : memref<8xf32>
    %r = arith.addf %s, %y : f32

Not handled: operations other than ``linalg`` and constants, and bodies with regions.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.rewrite.building import index, loop, value
from tuner.programs.op_groups.op_names import (
    CONSTANT,
    FILL,
    GENERIC,
    defining,
    inits_of,
    inputs_of,
    is_parallel,
    is_tensor,
    loop_sizes,
    maps_of,
)

BINARY = {  # of indices, which are not negative
    ir.AffineAddExpr: "arith.addi",
    ir.AffineMulExpr: "arith.muli",
    ir.AffineModExpr: "arith.remui",
    ir.AffineFloorDivExpr: "arith.divui",
    ir.AffineCeilDivExpr: "arith.ceildivui",
}


class PointValues:
    """The elements of a group's tensors, created where they are asked for; each once in a region."""

    def __init__(self, memory: Mapping[Value, Value]) -> None:
        """Takes the memrefs that have the elements of some tensors, the group's inputs among them."""
        self._memory = memory
        self._known: dict[tuple[Value, tuple[Value, ...]], Value] = {}
        self._indices: dict[int, Value] = {}

    def at(self, tensor: Value, indices: Sequence[Value]) -> Value:
        """Creates the element of a tensor at ``indices``, one for each dimension; returns its value.

        Raises CandidateError(COMPILE) for a tensor that other operations compute.
        """
        key = (tensor, tuple(indices))
        if key not in self._known:
            self._known[key] = self._computed(tensor, list(indices))
        return self._known[key]

    def know(self, tensor: Value, indices: Sequence[Value], element: Value) -> None:
        """Takes ``element`` as the element of a tensor at ``indices``, in this region and those inside it."""
        self._known[tensor, tuple(indices)] = element

    @contextmanager
    def region(self) -> Iterator[None]:
        """Context manager: what is created in it is forgotten afterwards, since it is inside of a region."""
        known, indices = dict(self._known), dict(self._indices)
        try:
            yield
        finally:
            self._known, self._indices = known, indices

    def constant(self, number: int) -> Value:
        """Creates an index constant, once in a region; returns its value."""
        if number not in self._indices:
            self._indices[number] = index(number)
        return self._indices[number]

    def step(self, op: Op, loops: Sequence[Value | None], carried: Sequence[Value]) -> list[Value]:
        """Creates one iteration of a ``linalg.generic``; returns what its body yields.

        Args:
            op: the generic.
            loops: the index of each loop.
            carried: the elements of the outputs so far; () where the body does not read them.
        """
        block = op.regions[0].blocks[0]
        arguments = list(block.arguments)
        known: dict[Value, Value] = {}
        inputs = len(inputs_of(op))
        for number, mapping in enumerate(maps_of(op)):
            if not list(arguments[number].uses):
                continue
            if number < inputs:
                known[arguments[number]] = self._operand(op.operands[number], mapping, loops)
            elif carried:
                known[arguments[number]] = carried[number - inputs]
            else:
                known[arguments[number]] = self.at(op.operands[number], self.mapped(mapping, loops))
        for each in (inner.operation for inner in block.operations):
            if each.name == "linalg.yield":
                return [self._scalar(operand, known) for operand in each.operands]
            self._copy(each, known, loops)
        raise AssertionError("a generic's body ends with linalg.yield")

    def mapped(self, mapping: ir.AffineMap, loops: Sequence[Value | None]) -> list[Value]:
        """Creates the results of an indexing map for the indices of its loops."""
        return [self._evaluated(each, loops) for each in mapping.results]

    def _computed(self, tensor: Value, indices: list[Value]) -> Value:
        if tensor in self._memory:
            memory = self._memory[tensor]
            return value("memref.load", memory.type.element_type, memory, *indices)
        op = defining(tensor)
        if op is not None and op.name == FILL:
            return self._scalar(op.operands[0], {})
        if op is not None and op.name == CONSTANT and op.attributes["value"].is_splat:
            element = op.attributes["value"].get_splat_value()
            return value("arith.constant", tensor.type.element_type, value=element)
        if op is None or op.name != GENERIC:
            name = "an argument" if op is None else op.name
            raise CandidateError(Stage.COMPILE, f"{name} is not computed element by element")
        return self._of_generic(op, tensor, indices)

    def _of_generic(self, op: Op, tensor: Value, indices: list[Value]) -> Value:
        number = list(op.results).index(tensor)
        loops = _loops_at(maps_of(op)[len(inputs_of(op)) + number], indices)
        missing = [at for at, each in enumerate(loops) if each is None]
        if not missing:
            found = self.step(op, loops, ())
        elif any(is_parallel(op)[at] for at in missing):
            raise CandidateError(Stage.COMPILE, f"{op.name}: a result does not have all parallel loops")
        else:
            found = self._reduced(op, loops, missing)
        outputs = maps_of(op)[len(inputs_of(op)) :]
        for result, mapping, element in zip(op.results, outputs, found, strict=True):
            if _is_plain(mapping):
                self.know(result, self.mapped(mapping, loops), element)
        return found[number]

    def _reduced(self, op: Op, loops: list[Value | None], missing: list[int]) -> list[Value]:
        outputs = maps_of(op)[len(inputs_of(op)) :]
        start = [
            self.at(init, self.mapped(mapping, loops))
            for init, mapping in zip(inits_of(op), outputs, strict=True)
        ]
        return self._nest(op, loops, missing, start)

    def _nest(self, op: Op, loops: list[Value | None], left: list[int], carried: list[Value]) -> list[Value]:
        if not left:
            return self.step(op, loops, carried)

        def body(number: Value, *old: Value) -> list[Value]:
            inner = list(loops)
            inner[left[0]] = number
            with self.region():
                return self._nest(op, inner, left[1:], list(old))

        return loop(0, loop_sizes(op)[left[0]], body, carried)

    def _operand(self, operand: Value, mapping: ir.AffineMap, loops: Sequence[Value | None]) -> Value:
        if not is_tensor(operand):
            return self._scalar(operand, {})
        return self.at(operand, self.mapped(mapping, loops))

    def _copy(self, op: Op, known: dict[Value, Value], loops: Sequence[Value | None]) -> None:
        """Creates a copy of an operation of a body, in whose place it counts."""
        if op.name == "linalg.index":
            found = loops[ir.IntegerAttr(op.attributes["dim"]).value]
            assert found is not None
            known[op.results[0]] = found
        elif op.name == "tensor.extract":
            tensor, *indices = op.operands
            known[op.results[0]] = self.at(tensor, [self._scalar(each, known) for each in indices])
        elif len(op.regions):
            raise CandidateError(Stage.COMPILE, f"{op.name} has regions")
        else:
            operands = [self._scalar(each, known) for each in op.operands]
            copy = op.clone()
            for number, operand in enumerate(operands):
                copy.operands[number] = operand
            known.update(zip(op.results, copy.results, strict=True))

    def _scalar(self, found: Value, known: dict[Value, Value]) -> Value:
        """Creates a number that a body reads: computed in it, or outside of it, by operations on numbers."""
        if found in known:
            return known[found]
        op = defining(found)
        if op is None or any(is_tensor(each) for each in op.results):
            raise CandidateError(Stage.COMPILE, "a body reads a number that no operation on numbers computes")
        self._copy(op, known, ())
        return known[found]

    def _evaluated(self, expression: ir.AffineExpr, loops: Sequence[Value | None]) -> Value:
        if isinstance(expression, ir.AffineDimExpr):
            found = loops[expression.position]
            assert found is not None
            return found
        if isinstance(expression, ir.AffineConstantExpr):
            return self.constant(expression.value)
        for kind, name in BINARY.items():
            if isinstance(expression, kind):
                sides = [self._evaluated(each, loops) for each in (expression.lhs, expression.rhs)]
                return value(name, ir.IndexType.get(), *sides)
        raise CandidateError(Stage.COMPILE, f"an operand is read at {expression}")


def _loops_at(mapping: ir.AffineMap, indices: Sequence[Value]) -> list[Value | None]:
    """Returns the loops' indices at which an output has an element; None: the output has no such loop."""
    if not _is_plain(mapping):
        raise CandidateError(Stage.COMPILE, f"a result is written at {mapping}")
    loops: list[Value | None] = [None] * mapping.n_dims
    for result, each in zip(mapping.results, indices, strict=True):
        loops[ir.AffineDimExpr(result).position] = each
    return loops


def _is_plain(mapping: ir.AffineMap) -> bool:
    """Returns whether each result of a map is one of its dimensions."""
    return all(isinstance(each, ir.AffineDimExpr) for each in mapping.results)
